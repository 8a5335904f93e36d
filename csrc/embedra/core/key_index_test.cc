#include "embedra/core/key_index.h"

#include <cstdint>
#include <limits>
#include <random>
#include <unordered_map>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/record_store.h"

namespace embedra::internal {
namespace {

// An index with the records that it needs in order to grow.
class IndexFixture {
 public:
  IndexFixture() : store_(RecordLayout(1, RowType::kFloat32, {})) {}

  void Insert(int64_t key, uint32_t position) {
    REQUIRE(store_.Reserve(int64_t{position} + 1));
    const uint64_t hash = HashKey(key);
    REQUIRE(index.Reserve(KeyIndex::ShardOf(hash), 1, store_));
    HeaderOf(store_.Record(position)) = {key, 0, 0, 1, 0};
    index.Insert(hash, position);
  }

  uint32_t Find(int64_t key) const {
    return index.Search(HashKey(key), [&](uint32_t position) {
      return HeaderOf(store_.Record(position)).key == key;
    });
  }

  KeyIndex index;

 private:
  RecordStore store_;
};

TEST_CASE("an empty index finds nothing") {
  IndexFixture f;
  for (int64_t key = -100; key < 100; ++key) {
    CHECK(f.Find(key) == KeyIndex::kNone);
  }
  CHECK(f.index.size() == 0);
  CHECK(f.index.entries() == 0);
  CHECK(f.index.bytes() == 0);
}

TEST_CASE("the ends of the key range are ordinary keys") {
  IndexFixture f;
  const std::vector<int64_t> keys = {0, -1, 1,
                                     std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max()};
  for (uint32_t i = 0; i < keys.size(); ++i) f.Insert(keys[i], i);
  for (uint32_t i = 0; i < keys.size(); ++i) CHECK(f.Find(keys[i]) == i);
  CHECK(f.Find(2) == KeyIndex::kNone);
}

// Ids arrive contiguous, or with their low bits or high bits all alike.
TEST_CASE("regular keys spread evenly and are found at any size") {
  for (const int64_t stride : {int64_t{1}, int64_t{64}, int64_t{1} << 32,
                               int64_t{1} << 44, int64_t{-1000003}}) {
    CAPTURE(stride);
    IndexFixture f;
    constexpr uint32_t kCount = 100000;
    for (uint32_t i = 0; i < kCount; ++i) {
      f.Insert(static_cast<int64_t>(static_cast<uint64_t>(stride) * i), i);
    }
    int wrong = 0;
    for (uint32_t i = 0; i < kCount; ++i) {
      wrong +=
          f.Find(static_cast<int64_t>(static_cast<uint64_t>(stride) * i)) != i;
    }
    CHECK(wrong == 0);
    for (int s = 0; s < KeyIndex::kShards; ++s) {
      CHECK(f.index.ShardSize(s) > kCount / KeyIndex::kShards * 8 / 10);
      CHECK(f.index.ShardSize(s) < kCount / KeyIndex::kShards * 12 / 10);
    }
  }
}

TEST_CASE("random insertions and removals agree with a map") {
  IndexFixture f;
  std::mt19937_64 random(3);
  std::unordered_map<int64_t, uint32_t> model;
  std::vector<uint32_t> free;
  uint32_t next = 0;
  for (int i = 0; i < 300000; ++i) {
    const int64_t key = static_cast<int64_t>(random() % 5000) - 2500;
    const auto it = model.find(key);
    if (it == model.end()) {
      REQUIRE(f.Find(key) == KeyIndex::kNone);
      uint32_t position = next;
      if (free.empty()) {
        ++next;
      } else {
        position = free.back();
        free.pop_back();
      }
      f.Insert(key, position);
      model[key] = position;
    } else {
      REQUIRE(f.Find(key) == it->second);
      f.index.Erase(HashKey(key), it->second);
      free.push_back(it->second);
      model.erase(it);
    }
    REQUIRE(f.index.size() == static_cast<int64_t>(model.size()));
  }
}

// Without tombstones, an index that churns stays the size of its contents.
TEST_CASE("an index that churns does not grow") {
  IndexFixture f;
  constexpr int64_t kLive = 20000;
  for (int64_t i = 0; i < kLive; ++i) {
    f.Insert(i, static_cast<uint32_t>(i));
  }
  const int64_t bytes = f.index.bytes();
  for (int64_t i = 0; i < 20 * kLive; ++i) {
    const uint32_t position = static_cast<uint32_t>(i % kLive);
    f.index.Erase(HashKey(i), position);
    f.Insert(i + kLive, position);
  }
  CHECK(f.index.size() == kLive);
  CHECK(f.index.bytes() < bytes * 12 / 10);
}

TEST_CASE("shards grow one after another") {
  IndexFixture f;
  int64_t entries = 0;
  int most_at_once = 0;
  uint32_t next = 0;
  for (int batch = 0; batch < 400; ++batch) {
    const int64_t before = f.index.entries();
    for (int i = 0; i < 1000; ++i, ++next) f.Insert(next, next);
    entries = f.index.entries();
    if (batch < 100) continue;  // small shards grow at once
    // A shard of this size holds at least 1000 entries.
    most_at_once = std::max(most_at_once,
                            static_cast<int>((entries - before) * 64 / before));
  }
  CHECK(most_at_once < 8);
  const double load =
      static_cast<double>(f.index.size()) / static_cast<double>(entries);
  CHECK(load > 0.5);
  CHECK(load < 0.8);
}

TEST_CASE("reserving makes the room asked for") {
  IndexFixture f;
  RecordStore store(RecordLayout(1, RowType::kFloat32, {}));
  for (int s = 0; s < KeyIndex::kShards; ++s) {
    REQUIRE(f.index.Reserve(s, 1000, store));
  }
  CHECK(f.index.capacity() >= 64000);
  const int64_t bytes = f.index.bytes();
  for (int s = 0; s < KeyIndex::kShards; ++s) {
    REQUIRE(f.index.Reserve(s, 1000, store));  // is there already
  }
  CHECK(f.index.bytes() == bytes);
  f.index.Clear();
  CHECK(f.index.bytes() == 0);
}

}  // namespace
}  // namespace embedra::internal
