#include "embedra/mpi/call.h"

#include "doctest/doctest.h"

namespace embedra::mpi {
namespace {

bool Contains(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

CallHeader Reduce(const std::string& layout) {
  return MakeHeader(CallKind::kAllReduce, "weights", layout, 0);
}

TEST_CASE("Headers of the same call fit, whatever their names and rows") {
  std::vector<CallHeader> headers = {
      MakeHeader(CallKind::kAllGatherV, "a", "float [?,2]", 3),
      MakeHeader(CallKind::kAllGatherV, "b", "float [?,2]", 0)};
  CHECK(CheckHeaders(1, 0, "", headers).ok());
  CHECK(CheckHeaders(1, 1, "", headers).ok());
}

TEST_CASE("Ranks in different calls learn of it alike") {
  const std::vector<CallHeader> kinds = {
      Reduce("sum float [2]"), Reduce("sum float [2]"),
      MakeHeader(CallKind::kBarrier, "epoch", "", 0)};
  for (int rank = 0; rank < 3; ++rank) {
    const Status status = CheckHeaders(7, rank, "", kinds);
    CHECK(Contains(status,
                   "in collective 7: rank 0 called all_reduce "
                   "'weights' of sum float [2], rank 2 called "
                   "barrier 'epoch' (this is rank"));
  }
}

TEST_CASE("Layouts that differ only after what fits in a header are told") {
  const std::string same(100, 'x');
  CHECK(CheckHeaders(1, 0, "", {Reduce(same), Reduce(same)}).ok());
  CHECK(!CheckHeaders(1, 0, "", {Reduce(same + "a"), Reduce(same + "b")}).ok());
}

TEST_CASE("Long names and layouts are cut, and end") {
  const CallHeader header = MakeHeader(
      CallKind::kBroadcast, std::string(1000, 'n'), std::string(1000, 'l'), 0);
  CHECK(NameOf(header) == "broadcast '" + std::string(39, 'n') + "'");
  CHECK(std::string(header.text) == std::string(63, 'l'));
}

TEST_CASE("The rank that cannot take part has its reason, others its number") {
  std::vector<CallHeader> headers(3, Reduce("sum float [2]"));
  headers[1].failed = 1;
  const Status own = CheckHeaders(1, 1, "no rows", headers);
  CHECK(own.code() == StatusCode::kInvalidArgument);
  CHECK(
      Contains(own, "Rank 1, all_reduce 'weights' of sum float [2]: no rows"));
  const Status other = CheckHeaders(1, 2, "", headers);
  CHECK(other.code() == StatusCode::kFailedPrecondition);
  CHECK(Contains(other, "Rank 1 could not take part in all_reduce 'weights'"));
}

}  // namespace
}  // namespace embedra::mpi
