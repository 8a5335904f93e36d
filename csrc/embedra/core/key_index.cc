#include "embedra/core/key_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace embedra::internal {
namespace {

constexpr double kMaxLoad = 0.8;

// What an empty shard points at, so that probes need no special case. It is
// never written.
IndexGroup empty_group = {};

int64_t LimitOf(int64_t num_groups) {
  return static_cast<int64_t>(static_cast<double>(num_groups) *
                              IndexGroup::kEntries * kMaxLoad);
}

// Least group count of the form 2^(k + shard/64) with room for `size` keys; see
// "Growth" in the header. 0 if the shard cannot be that large.
uint32_t GroupsFor(int shard, int64_t size) {
  const double stagger =
      std::exp2(static_cast<double>(shard) / KeyIndex::kShards);
  for (int k = 0; k < 32; ++k) {
    const double count = std::ceil(std::ldexp(stagger, k));
    if (count > std::numeric_limits<uint32_t>::max()) break;
    if (LimitOf(static_cast<int64_t>(count)) >= size) {
      return static_cast<uint32_t>(count);
    }
  }
  return 0;
}

}  // namespace

KeyIndex::KeyIndex() { Clear(); }
KeyIndex::~KeyIndex() = default;

void KeyIndex::Clear() {
  for (int s = 0; s < kShards; ++s) {
    shards_[s] = Shard{&empty_group, 1, 0, 0};
    memory_[s] = MemoryBlock();
  }
}

bool KeyIndex::Reserve(int s, int64_t extra, const RecordStore& store) {
  Shard& shard = shards_[s];
  if (extra <= shard.limit - shard.size) return true;
  const uint32_t num_groups = GroupsFor(s, shard.size + extra);
  if (num_groups == 0) return false;
  MemoryBlock memory = MemoryBlock::Reserve(num_groups * sizeof(IndexGroup), 0);
  if (!memory) return false;
  Shard grown = shard;
  grown.groups = reinterpret_cast<IndexGroup*>(memory.data());
  grown.num_groups = num_groups;
  grown.limit = LimitOf(num_groups);
  MoveEntries(shard, grown, store);
  shard = grown;
  memory_[s] = std::move(memory);
  return true;
}

// The hash is not kept, so the keys are read from the records; their addresses
// are known well ahead, so that the misses overlap.
void KeyIndex::MoveEntries(const Shard& from, const Shard& to,
                           const RecordStore& store) {
  constexpr int kBlock = 4;  // groups
  uint32_t positions[kBlock * IndexGroup::kEntries];
  uint64_t hashes[kBlock * IndexGroup::kEntries];
  for (uint32_t g = 0; g < from.num_groups;) {
    int count = 0;
    const uint32_t end = std::min<uint32_t>(g + kBlock, from.num_groups);
    for (; g < end; ++g) {
      const IndexGroup& group = from.groups[g];
      uint32_t used = ~group.Match(0) & IndexGroup::kAll;
      for (; used != 0; used &= used - 1) {
        positions[count] = group.positions[__builtin_ctz(used)];
        __builtin_prefetch(store.Record(positions[count]));
        ++count;
      }
    }
    for (int i = 0; i < count; ++i) {
      hashes[i] = HashKey(HeaderOf(store.Record(positions[i])).key);
      __builtin_prefetch(to.groups + Home(to, hashes[i]), 1);
    }
    for (int i = 0; i < count; ++i) InsertInto(to, hashes[i], positions[i]);
  }
}

void KeyIndex::InsertInto(const Shard& shard, uint64_t hash,
                          uint32_t position) {
  uint32_t g = Home(shard, hash);
  for (;;) {
    IndexGroup& group = shard.groups[g];
    const uint32_t free = group.Match(0);
    if (free != 0) {
      const int entry = __builtin_ctz(free);
      group.tags[entry] = Tag(hash);
      group.positions[entry] = position;
      return;
    }
    ++group.overflow;
    g = Next(shard, g);
  }
}

void KeyIndex::Insert(uint64_t hash, uint32_t position) {
  Shard& shard = shards_[ShardOf(hash)];
  InsertInto(shard, hash, position);
  ++shard.size;
}

void KeyIndex::Erase(uint64_t hash, uint32_t position) {
  Shard& shard = shards_[ShardOf(hash)];
  const uint8_t tag = Tag(hash);
  for (uint32_t g = Home(shard, hash);; g = Next(shard, g)) {
    IndexGroup& group = shard.groups[g];
    for (uint32_t m = group.Match(tag); m != 0; m &= m - 1) {
      const int entry = __builtin_ctz(m);
      if (group.positions[entry] != position) continue;
      group.tags[entry] = 0;
      --shard.size;
      return;
    }
    --group.overflow;  // the entry lies further on, and was counted here
  }
}

int64_t KeyIndex::size() const {
  int64_t total = 0;
  for (const Shard& shard : shards_) total += shard.size;
  return total;
}

int64_t KeyIndex::capacity() const {
  int64_t total = 0;
  for (const Shard& shard : shards_) total += shard.limit;
  return total;
}

int64_t KeyIndex::entries() const {
  int64_t total = 0;
  for (const Shard& shard : shards_) {
    if (shard.groups == &empty_group) continue;
    total += int64_t{shard.num_groups} * IndexGroup::kEntries;
  }
  return total;
}

int64_t KeyIndex::bytes() const {
  int64_t total = 0;
  for (const MemoryBlock& block : memory_) {
    total += static_cast<int64_t>(block.bytes());
  }
  return total;
}

}  // namespace embedra::internal
