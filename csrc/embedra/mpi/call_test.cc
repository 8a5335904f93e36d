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

// Sends the keys of a lookup in a table.
CallHeader Lookup(const std::string& table) {
  return MakeHeader(CallKind::kAllToAllV, table + " keys", "int64 [?]", 8);
}

TEST_CASE("Headers of the same call fit, whatever their rows") {
  std::vector<CallHeader> headers = {
      MakeHeader(CallKind::kAllGatherV, "a", "float [?,2]", 3),
      MakeHeader(CallKind::kAllGatherV, "a", "float [?,2]", 0)};
  CHECK(CheckHeaders(1, 0, "", headers).ok());
  CHECK(CheckHeaders(1, 1, "", headers).ok());
}

TEST_CASE("Ranks that look up different tables learn of it alike") {
  const std::vector<CallHeader> headers = {Lookup("user"), Lookup("user"),
                                           Lookup("item")};
  for (int rank = 0; rank < 3; ++rank) {
    const Status status = CheckHeaders(7, rank, "", headers);
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Contains(status,
                   "in collective 7: rank 0 called all_to_all_v 'user keys' of "
                   "int64 [?], rank 2 called all_to_all_v 'item keys' of int64 "
                   "[?] (this is rank " +
                       std::to_string(rank) +
                       "). All ranks must run the same"));
    CHECK(Contains(status, "name layers explicitly"));
  }
}

TEST_CASE("Kinds and layouts that differ are told before labels that do") {
  const std::vector<CallHeader> headers = {
      Lookup("user"), Lookup("item"),
      MakeHeader(CallKind::kBarrier, "epoch", "", 0)};
  const Status status = CheckHeaders(1, 0, "", headers);
  CHECK(Contains(status, "rank 2 called barrier 'epoch'"));
  CHECK(Contains(status, "of the same dtypes and shapes"));
}

TEST_CASE("Labels differ also in what does not fit in a header") {
  const std::string half(30, 'x');
  CHECK(
      CheckHeaders(1, 0, "", {Lookup(half + half), Lookup(half + half)}).ok());
  const std::vector<CallHeader> headers = {Lookup(half + "a" + half),
                                           Lookup(half + "b" + half)};
  CHECK(Contains(CheckHeaders(1, 0, "", headers),
                 "which differ in what is left out here (this is rank 0)"));
}

TEST_CASE("A call of any label fits others of its kind, and no labelled one") {
  const auto gather = [](const std::string& label, Labels labels) {
    return MakeHeader(CallKind::kAllGatherV, label, "uint8 [?]", 1, labels);
  };
  CHECK(CheckHeaders(
            1, 0, "",
            {gather("saving", Labels::kAny), gather("an error", Labels::kAny)})
            .ok());
  CHECK(!CheckHeaders(
             1, 0, "",
             {gather("saving", Labels::kAny), gather("saving", Labels::kSame)})
             .ok());
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

TEST_CASE("Of long labels the middle is left out, of long layouts the end") {
  const CallHeader header = MakeHeader(
      CallKind::kBroadcast, std::string(500, 'a') + std::string(500, 'z'),
      std::string(1000, 'l'), 0);
  CHECK(NameOf(header) == "broadcast '" + std::string(18, 'a') + "..." +
                              std::string(18, 'z') + "'");
  CHECK(std::string(header.text) == std::string(55, 'l'));
}

TEST_CASE("Characters of several bytes are kept or left out as a whole") {
  std::string label = "ab";
  for (int i = 0; i < 20; ++i) label += "\u7528";  // 3 bytes
  std::string expected = "ab";
  for (int i = 0; i < 5; ++i) expected += "\u7528";
  expected += "...";
  for (int i = 0; i < 6; ++i) expected += "\u7528";
  const CallHeader header = MakeHeader(CallKind::kBarrier, label, "", 0);
  CHECK(std::string(header.name) == expected);
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
