#include "embedra/core/grouping.h"

#include <map>
#include <random>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/thread_pool.h"

namespace embedra::internal {
namespace {

using Members = std::map<int64_t, std::vector<uint32_t>>;

// The groups by value; checks that each value comes once, and that groups come
// in order of first appearance within a part.
Members Collect(const Grouping& grouping) {
  Members members;
  int64_t groups = 0;
  for (int p = 0; p < grouping.parts(); ++p) {
    int64_t first_before = -1;
    for (int64_t g = grouping.group_begin(p); g < grouping.group_end(p); ++g) {
      const uint32_t* m = grouping.members(g);
      auto& list = members[grouping.value(g)];
      REQUIRE(list.empty());
      list.assign(m, m + grouping.count(g));
      REQUIRE(int64_t{list[0]} > first_before);
      first_before = list[0];
      ++groups;
    }
  }
  CHECK(groups == grouping.num_groups());
  return members;
}

std::vector<int64_t> RandomValues(int64_t n, int64_t low, int64_t high) {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<int64_t> value(low, high);
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (int64_t& v : values) v = value(random);
  return values;
}

TEST_CASE("keys are grouped, members in order of appearance") {
  const std::vector<int64_t> keys = {7, 4, 7, 9, 4, 7, -1};
  const Members members =
      Collect(Grouping::OfKeys(keys.data(), nullptr, 7, Serial()));
  CHECK(members == Members{{7, {0, 2, 5}}, {4, {1, 4}}, {9, {3}}, {-1, {6}}});
}

TEST_CASE("only the chosen entries take part") {
  const std::vector<int64_t> keys = {7, 4, 7, 9};
  const std::vector<uint32_t> entries = {1, 2};
  const Members members =
      Collect(Grouping::OfKeys(keys.data(), entries.data(), 2, Serial()));
  CHECK(members == Members{{7, {2}}, {4, {1}}});
}

TEST_CASE("negative positions are left out") {
  const std::vector<int64_t> positions = {3, -1, 3, -7, 0};
  const Grouping grouping =
      Grouping::OfPositions(positions.data(), 5, Serial());
  CHECK(grouping.entries() == 3);
  CHECK(Collect(grouping) == Members{{3, {0, 2}}, {0, {4}}});
}

TEST_CASE("an empty batch has no groups") {
  CHECK(Grouping::OfPositions(nullptr, 0, Serial()).num_groups() == 0);
  CHECK(Grouping::OfKeys(nullptr, nullptr, 0, Serial()).num_groups() == 0);
}

TEST_CASE("large batches agree with a map, on any number of threads") {
  const std::vector<int64_t> values = RandomValues(100000, -500, 20000);
  Members expected;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0) {
      expected[values[i]].push_back(static_cast<uint32_t>(i));
    }
  }
  const int64_t n = static_cast<int64_t>(values.size());
  const Grouping serial = Grouping::OfPositions(values.data(), n, Serial());
  CHECK(Collect(serial) == expected);
  for (const int threads : {2, 3, 8}) {
    ThreadPool pool(threads);
    const Grouping grouping =
        Grouping::OfPositions(values.data(), n, pool.parallel());
    REQUIRE(grouping.parts() == serial.parts());
    for (int p = 0; p < serial.parts(); ++p) {
      REQUIRE(grouping.group_end(p) == serial.group_end(p));
      for (int64_t g = serial.group_begin(p); g < serial.group_end(p); ++g) {
        REQUIRE(grouping.value(g) == serial.value(g));
      }
    }
    CHECK(Collect(grouping) == expected);
  }
}

}  // namespace
}  // namespace embedra::internal
