#include "embedra/mpi/progress.h"

#include "doctest/doctest.h"

namespace embedra::mpi {
namespace {

Progress At(int64_t sequence, bool running, bool ended = false) {
  Progress progress;
  progress.sequence = sequence;
  progress.running = running;
  progress.ended = ended;
  progress.header = MakeHeader(CallKind::kBarrier, "epoch", "", 0);
  return progress;
}

TEST_CASE("The board tells how far a rank is") {
  ProgressBoard board;
  double seconds;
  CHECK(board.Read(&seconds).sequence == 0);
  CHECK(board.Begin(MakeHeader(CallKind::kAllReduce, "x", "", 0)) == 1);
  CHECK(board.Read(&seconds).running == 1);
  CHECK(seconds >= 0);
  board.Finish();
  CHECK(board.Read(&seconds).running == 0);
  CHECK(board.Begin(MakeHeader(CallKind::kBarrier, "y", "", 0)) == 2);
  CHECK(NameOf(board.Read(&seconds).header) == "barrier 'y'");
  board.End();
  CHECK(board.Read(&seconds).ended == 1);
}

TEST_CASE("Only ranks that are behind are late") {
  const Progress own = At(5, true);
  CHECK(DescribeLateRanks(own, 0, {{}, At(5, true), At(6, false)}).empty());
  CHECK(DescribeLateRanks(own, 0, {{}, At(4, false), At(5, true)}) ==
        "rank 1 has last finished collective 4, barrier 'epoch'");
  CHECK(DescribeLateRanks(own, 1, {At(4, true), {}, At(0, false)}) ==
        "rank 0 is in collective 4, barrier 'epoch'; rank 2 has not begun any "
        "collective");
}

TEST_CASE("Ranks that do not answer, or have ended, are named") {
  const Progress own = At(5, true);
  CHECK(DescribeLateRanks(own, 2, {std::nullopt, At(4, false, true), {}}) ==
        "rank 0 does not answer; rank 1 has ended");
}

TEST_CASE("A rank that ended before this collective ends the job") {
  const Progress own = At(5, true);
  CHECK(EndedTooEarly(own, {{}, At(4, false, true)}) == 1);
  CHECK(EndedTooEarly(own, {{}, At(4, false)}) == -1);
  // It took part, and this rank is not done with it yet.
  CHECK(EndedTooEarly(own, {{}, At(5, false, true)}) == -1);
  CHECK(EndedTooEarly(own, {{}, std::nullopt}) == -1);
}

}  // namespace
}  // namespace embedra::mpi
