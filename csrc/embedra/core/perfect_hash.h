// PerfectHash: a slot of its own for each of a fixed set of keys, by a formula
// of few integer operations, which other programs can evaluate too.
//
//   product = key * key_multiplier
//   mixed   = product ^ product >> 32
//   bucket  = mixed * bucket_multiplier >> shift
//   slot    = (mixed * pilots[bucket] >> 32) * num_slots >> 32
//
// all in 64 bits without sign, products modulo 2^64. This is "hash, displace":
// the pilot of a bucket is the first for which its keys fall on slots that are
// free, where buckets are taken in order of their size, largest first, as the
// last ones find few free slots (Pibiri and Trani, PTHash, SIGIR 2021). One
// slot in 17 stays vacant. Other keys have slots too: whether a key is in the
// set is known by comparing it with the key of its slot.

#ifndef EMBEDRA_CORE_PERFECT_HASH_H_
#define EMBEDRA_CORE_PERFECT_HASH_H_

#include <cstdint>
#include <vector>

#include "embedra/core/status.h"

namespace embedra {

struct PerfectHash {
  uint64_t key_multiplier;     // odd
  uint64_t bucket_multiplier;  // odd
  int shift;                   // 64 - log2(number of buckets), 63 at most
  uint64_t num_slots;
  std::vector<uint16_t> pilots;  // one for each bucket

  // Finds a hash for the set of `keys[0, n)`; repeats count once.
  // COMPLEXITY: O(n log n); some 10 random reads a key in a bitmap of the
  // slots. Memory meanwhile is 12 to 14 bytes a key.
  static Status Build(const int64_t* keys, int64_t n, PerfectHash* hash);

  uint64_t SlotOf(int64_t key) const;

  // Writes to `slots[0, num_slots)` the key whose slot each is, and to vacant
  // ones a key whose slot is another one.
  void FillSlots(const int64_t* keys, int64_t n, int64_t* slots) const;
};

}  // namespace embedra

#endif  // EMBEDRA_CORE_PERFECT_HASH_H_
