#include "embedra/core/perfect_hash.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "doctest/doctest.h"

namespace embedra {
namespace {

using Keys = std::vector<int64_t>;

int64_t Wrapped(uint64_t bits) { return static_cast<int64_t>(bits); }

// Builds a hash, and checks that every key is in a slot of its own, and no
// other key at home in its slot.
PerfectHash Checked(const Keys& keys) {
  const int64_t n = static_cast<int64_t>(keys.size());
  PerfectHash hash;
  REQUIRE(PerfectHash::Build(keys.data(), n, &hash).ok());
  Keys slots(hash.num_slots);
  hash.FillSlots(keys.data(), n, slots.data());
  const std::set<int64_t> members(keys.begin(), keys.end());
  std::set<int64_t> found;
  for (uint64_t slot = 0; slot < hash.num_slots; ++slot) {
    if (hash.SlotOf(slots[slot]) == slot) found.insert(slots[slot]);
  }
  CHECK(found == members);
  return hash;
}

TEST_CASE("keys of any pattern have slots of their own") {
  constexpr int kSize = 20000;
  std::mt19937_64 random(3);
  Keys contiguous, negative, high, strided, drawn;
  for (int64_t i = 0; i < kSize; ++i) {
    contiguous.push_back(i);
    negative.push_back(-i);
    high.push_back(Wrapped(static_cast<uint64_t>(i) << 48));
    strided.push_back(Wrapped(static_cast<uint64_t>(i) * 0x100000001u));
    drawn.push_back(Wrapped(random()));
  }
  for (const Keys& keys : {contiguous, negative, high, strided, drawn}) {
    const PerfectHash hash = Checked(keys);
    CHECK(hash.num_slots == kSize + kSize / 16 + 2);
    CHECK(hash.pilots.size() == 8192);
  }
}

TEST_CASE("sets of few keys, of none, and with repeats") {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  for (const Keys& keys : {Keys{}, Keys{0}, Keys{1},
                           Keys{kLow, kHigh, 0, -1, 1}, Keys{7, 7, 7, 8, 7}}) {
    Checked(keys);
  }
  Keys keys;
  for (int64_t i = 1; i < 300; ++i) {
    keys.push_back(i * i);
    Checked(keys);
  }
}

uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

TEST_CASE("keys that fall into one bucket get other multipliers") {
  const PerfectHash usual = Checked({1, 2, 3});
  const uint64_t bucket_inverse = Inverse(usual.bucket_multiplier);
  const uint64_t key_inverse = Inverse(usual.key_multiplier);
  std::mt19937_64 random(4);
  Keys keys;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t mixed = (random() >> 12) * bucket_inverse;
    keys.push_back(Wrapped((mixed ^ mixed >> 32) * key_inverse));
  }
  const PerfectHash hash = Checked(keys);
  CHECK(hash.key_multiplier != usual.key_multiplier);
}

TEST_CASE("more keys than slots have numbers are refused") {
  PerfectHash hash;
  const int64_t key = 0;
  const Status status = PerfectHash::Build(&key, (int64_t{1} << 31) + 1, &hash);
  CHECK(status.code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace embedra
