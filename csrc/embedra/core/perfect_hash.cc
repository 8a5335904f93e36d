#include "embedra/core/perfect_hash.h"

#include <algorithm>
#include <limits>
#include <string>

#include "embedra/core/hash.h"

namespace embedra {
namespace {

// On average there are between half as many keys in a bucket and this many.
constexpr uint64_t kKeysPerBucket = 4;
constexpr uint64_t kMostPilots = std::numeric_limits<uint16_t>::max();
// Slots are numbered by 32 bits.
constexpr int64_t kMostKeys = int64_t{1} << 31;
// A second attempt is rare, and needed for sets that are made to collide.
constexpr uint64_t kMostAttempts = 64;

uint64_t Mix(int64_t key, uint64_t multiplier) {
  const uint64_t product = static_cast<uint64_t>(key) * multiplier;
  return product ^ product >> 32;
}

uint64_t Slot(uint64_t mixed, uint64_t pilot, uint64_t num_slots) {
  return (mixed * pilot >> 32) * num_slots >> 32;
}

// The inverse of an odd number modulo 2^64, by Newton's iteration.
uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;  // right in the lowest 3 bits
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

// A set of slots.
class Slots {
 public:
  explicit Slots(uint64_t n) : words_(n / 64 + 1) {}

  // Adds a slot. Returns false, and changes nothing, if it is there.
  bool Add(uint64_t slot) {
    uint64_t& word = words_[slot / 64];
    const uint64_t bit = uint64_t{1} << slot % 64;
    const bool added = (word & bit) == 0;
    word |= bit;
    return added;
  }

  void Remove(uint64_t slot) {
    words_[slot / 64] &= ~(uint64_t{1} << slot % 64);
  }

 private:
  std::vector<uint64_t> words_;
};

// The numbers of buckets, largest bucket first. Bucket `b` has the members
// `[starts[b], starts[b + 1])`. Before all others comes bucket 0: key 0 is in
// there, for which slot 0 must be free, as all pilots give it that one.
std::vector<uint32_t> LargestFirst(const std::vector<uint32_t>& starts) {
  const size_t buckets = starts.size() - 1;
  const auto size = [&](size_t b) { return starts[b + 1] - starts[b]; };
  uint32_t largest = 0;
  for (size_t b = 0; b < buckets; ++b) largest = std::max(largest, size(b));
  std::vector<uint32_t> places(size_t{largest} + 2);
  for (size_t b = 0; b < buckets; ++b) ++places[largest - size(b) + 1];
  for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
  std::vector<uint32_t> order(buckets);
  for (size_t b = 0; b < buckets; ++b) {
    order[places[largest - size(b)]++] = static_cast<uint32_t>(b);
  }
  const auto zero = std::find(order.begin(), order.end(), 0);
  std::rotate(order.begin(), zero, zero + 1);
  return order;
}

// The first pilot for which all keys fall on free slots, which it takes; or 0
// if there is none.
uint16_t FindPilot(const std::vector<uint64_t>& mixed, uint64_t num_slots,
                   Slots* taken) {
  for (uint64_t pilot = 1; pilot <= kMostPilots; ++pilot) {
    size_t added = 0;
    while (added < mixed.size() &&
           taken->Add(Slot(mixed[added], pilot, num_slots))) {
      ++added;
    }
    if (added == mixed.size()) return static_cast<uint16_t>(pilot);
    while (added > 0) taken->Remove(Slot(mixed[--added], pilot, num_slots));
  }
  return 0;
}

// `products` are those of the mixed keys and the bucket multiplier, ascending,
// so that buckets lie side by side. Sets the pilots; returns whether there were
// some for all buckets.
bool FindPilots(const std::vector<uint64_t>& products, PerfectHash* hash) {
  const size_t buckets = size_t{1} << (64 - hash->shift);
  std::vector<uint32_t> starts(buckets + 1);
  for (const uint64_t product : products) {
    ++starts[(product >> hash->shift) + 1];
  }
  for (size_t b = 0; b < buckets; ++b) starts[b + 1] += starts[b];
  const uint64_t inverse = Inverse(hash->bucket_multiplier);
  hash->pilots.assign(buckets, 0);
  Slots taken(hash->num_slots);
  std::vector<uint64_t> mixed;
  for (const uint32_t bucket : LargestFirst(starts)) {
    mixed.assign(products.begin() + starts[bucket],
                 products.begin() + starts[bucket + 1]);
    for (uint64_t& one : mixed) one *= inverse;
    const uint16_t pilot = FindPilot(mixed, hash->num_slots, &taken);
    if (pilot == 0) return false;
    hash->pilots[bucket] = pilot;
  }
  return true;
}

}  // namespace

Status PerfectHash::Build(const int64_t* keys, int64_t n, PerfectHash* hash) {
  if (n < 0 || n > kMostKeys) {
    return Status::InvalidArgument(
        "A perfect hash is for up to 2^31 keys, got " + std::to_string(n));
  }
  const uint64_t size = static_cast<uint64_t>(n);
  hash->num_slots = size + size / 16 + 2;
  hash->shift = 63;
  while (kKeysPerBucket << (64 - hash->shift) < size) --hash->shift;
  std::vector<uint64_t> products;
  for (uint64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
    hash->key_multiplier = internal::Mix64(2 * attempt) | 1;
    hash->bucket_multiplier = internal::Mix64(2 * attempt + 1) | 1;
    products.resize(size);
    for (uint64_t i = 0; i < size; ++i) {
      products[i] =
          Mix(keys[i], hash->key_multiplier) * hash->bucket_multiplier;
    }
    std::sort(products.begin(), products.end());
    products.erase(std::unique(products.begin(), products.end()),
                   products.end());
    if (FindPilots(products, hash)) return Status();
  }
  return Status(StatusCode::kInternal,
                "No perfect hash was found for " + std::to_string(n) + " keys");
}

uint64_t PerfectHash::SlotOf(int64_t key) const {
  const uint64_t mixed = Mix(key, key_multiplier);
  return Slot(mixed, pilots[mixed * bucket_multiplier >> shift], num_slots);
}

void PerfectHash::FillSlots(const int64_t* keys, int64_t n,
                            int64_t* slots) const {
  // Of any two keys whose slots differ, one is not at home in a slot.
  int64_t other = 1;
  while (SlotOf(other) == SlotOf(0)) ++other;
  std::fill(slots, slots + num_slots, 0);
  slots[SlotOf(0)] = other;
  for (int64_t i = 0; i < n; ++i) slots[SlotOf(keys[i])] = keys[i];
}

}  // namespace embedra
