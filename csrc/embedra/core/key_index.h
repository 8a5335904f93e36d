// KeyIndex: where the record of a key lives, in one cache line.
//
//   hash (64 bits):  [ shard 6 ][ .... ][ home group 32 ][ .... ][ tag 8 ]
//
//   shards_[64], each a growable array of groups of one cache line:
//
//     byte  0         12              16                              64
//           [ 12 tags ][ overflow: 4  ][ 12 positions, 4 bytes each    ]
//
// A tag is 8 bits of the hash, 0 for a free entry; the 12 tags of a group are
// compared at once. An entry that finds its home group full goes to the next
// group that is not, and every group on the way counts it in `overflow`. A
// probe goes on only while `overflow` is not zero, so nearly every lookup, of a
// present key or of an absent one, reads a single line. Removal counts down and
// leaves no tombstone: a table that churns for ever stays as fast as a new one.
// (The scheme is that of F14 in Folly; the group is wider here as positions are
// half the size of pointers.)
//
// Keys themselves live in the records: all 2^64 of them are legal, and the
// caller compares. A group of seven entries shares a tag with another key in
// about 3% of probes, which then look at a record in vain.
//
// # Growth
//
// A shard grows alone, by two. Group counts of shard s are 2^(k + s/64), so the
// shards reach their limits one after another, evenly over a doubling of the
// table: no batch pays for all of them, and the load of the whole stays near
// the mean of the saw-tooth, 0.58, whatever the size.
//
// # Thread safety
//
// Const methods may run together. Methods that change a shard may run together
// on different shards, and not with anything else on the same one.

#ifndef EMBEDRA_CORE_KEY_INDEX_H_
#define EMBEDRA_CORE_KEY_INDEX_H_

#include <cstdint>
#include <vector>

#include "embedra/core/hash.h"
#include "embedra/core/memory_block.h"
#include "embedra/core/record_store.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace embedra::internal {

struct alignas(64) IndexGroup {
  static constexpr int kEntries = 12;
  static constexpr uint32_t kAll = (1u << kEntries) - 1;

  uint8_t tags[kEntries];
  uint32_t overflow;
  uint32_t positions[kEntries];

  // Bit e is set where tags[e] == tag.
  uint32_t Match(uint8_t tag) const {
#if defined(__SSE2__)
    const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
    const __m128i equal =
        _mm_cmpeq_epi8(line, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<uint32_t>(_mm_movemask_epi8(equal)) & kAll;
#else
    uint32_t mask = 0;
    for (int e = 0; e < kEntries; ++e) {
      mask |= static_cast<uint32_t>(tags[e] == tag) << e;
    }
    return mask;
#endif
  }
};
static_assert(sizeof(IndexGroup) == 64, "one cache line");

class KeyIndex {
 public:
  static constexpr int kShardBits = 6;
  static constexpr int kShards = 1 << kShardBits;
  // No position; also the bound of positions.
  static constexpr uint32_t kNone = 0xffffffffu;

  static int ShardOf(uint64_t hash) {
    return static_cast<int>(hash >> (64 - kShardBits));
  }

  KeyIndex();
  ~KeyIndex();
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  void Prefetch(uint64_t hash) const {
    const Shard& shard = shards_[ShardOf(hash)];
    __builtin_prefetch(shard.groups + Home(shard, hash));
  }

  // The first position whose tag fits `hash`, or kNone if the key is absent.
  // The key at that position may still be another one.
  uint32_t Candidate(uint64_t hash) const {
    return Search(hash, [](uint32_t) { return true; });
  }

  // The position of the key with `hash` for which `is_key(position)` holds, or
  // kNone.
  template <typename IsKey>
  uint32_t Search(uint64_t hash, const IsKey& is_key) const {
    const Shard& shard = shards_[ShardOf(hash)];
    const uint8_t tag = Tag(hash);
    uint32_t g = Home(shard, hash);
    for (uint32_t probes = 0; probes < shard.num_groups; ++probes) {
      const IndexGroup& group = shard.groups[g];
      for (uint32_t m = group.Match(tag); m != 0; m &= m - 1) {
        const uint32_t position = group.positions[__builtin_ctz(m)];
        if (is_key(position)) return position;
      }
      if (group.overflow == 0) return kNone;
      g = Next(shard, g);
    }
    return kNone;
  }

  // Makes room in `shard` for `extra` more keys. `store` holds the records of
  // those it has. False, with nothing changed, when memory is short.
  bool Reserve(int shard, int64_t extra, const RecordStore& store);

  // Adds an entry. PRECONDITION: the key is absent and there is room.
  void Insert(uint64_t hash, uint32_t position);
  // Removes an entry. PRECONDITION: it is there.
  void Erase(uint64_t hash, uint32_t position);
  // Removes everything and gives the memory back.
  void Clear();

  int64_t ShardSize(int shard) const { return shards_[shard].size; }
  int64_t size() const;
  // Keys that fit before some shard grows, if they spread evenly; entries that
  // exist; bytes that they take.
  int64_t capacity() const;
  int64_t entries() const;
  int64_t bytes() const;

 private:
  struct Shard {
    IndexGroup* groups;
    uint32_t num_groups;
    int64_t size;
    int64_t limit;  // size at which the shard must grow
  };

  static uint8_t Tag(uint64_t hash) {
    const uint8_t tag = static_cast<uint8_t>(hash);
    return tag == 0 ? 1 : tag;
  }
  static uint32_t Home(const Shard& shard, uint64_t hash) {
    const uint64_t middle = static_cast<uint32_t>(hash >> 16);
    return static_cast<uint32_t>((middle * shard.num_groups) >> 32);
  }
  static uint32_t Next(const Shard& shard, uint32_t g) {
    return g + 1 == shard.num_groups ? 0 : g + 1;
  }
  static void InsertInto(const Shard& shard, uint64_t hash, uint32_t position);
  static void MoveEntries(const Shard& from, const Shard& to,
                          const RecordStore& store);

  Shard shards_[kShards];
  MemoryBlock memory_[kShards];
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_KEY_INDEX_H_
