// ProbeKeys: looks up many keys with their cache misses overlapped.
//
// A lookup in a table larger than the cache waits for two loads, the second of
// which depends on the first: the group of the index, then the record. Three
// blocks of keys are therefore in flight at once:
//
//   block b+2:  hash,           ask for the lines of the index
//   block b+1:  read the index, ask for the lines of the records
//   block b:    read the records, compare the keys, hand the block on

#ifndef EMBEDRA_CORE_BATCH_PROBE_H_
#define EMBEDRA_CORE_BATCH_PROBE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "embedra/core/key_index.h"
#include "embedra/core/record_store.h"

namespace embedra::internal {

struct ProbedBlock {
  static constexpr int kSize = 32;

  int64_t first;  // entry of the batch
  int count;
  char* records[kSize];       // null for absent keys
  uint32_t positions[kSize];  // KeyIndex::kNone for absent keys
};

// Calls `emit(const ProbedBlock&)` for blocks that cover keys [begin, end), in
// order. `bytes` of each record are asked for ahead.
template <typename Emit>
void ProbeKeys(const KeyIndex& index, const RecordStore& store,
               const int64_t* keys, int64_t begin, int64_t end, size_t bytes,
               const Emit& emit) {
  constexpr int kSize = ProbedBlock::kSize;
  uint64_t hashes[3][kSize];
  uint32_t candidates[2][kSize];
  ProbedBlock block;
  const int64_t blocks = (end - begin + kSize - 1) / kSize;
  const auto size_of = [&](int64_t b) {
    return static_cast<int>(std::min<int64_t>(kSize, end - begin - b * kSize));
  };
  for (int64_t b = 0; b < blocks + 2; ++b) {
    if (b < blocks) {
      uint64_t* hash = hashes[b % 3];
      const int64_t* key = keys + begin + b * kSize;
      for (int i = 0, n = size_of(b); i < n; ++i) {
        hash[i] = HashKey(key[i]);
        index.Prefetch(hash[i]);
      }
    }
    if (b >= 1 && b <= blocks) {
      const uint64_t* hash = hashes[(b - 1) % 3];
      uint32_t* candidate = candidates[(b - 1) % 2];
      for (int i = 0, n = size_of(b - 1); i < n; ++i) {
        candidate[i] = index.Candidate(hash[i]);
        if (candidate[i] == KeyIndex::kNone) continue;
        PrefetchRecord(store.Record(candidate[i]), bytes);
      }
    }
    if (b < 2) continue;
    const uint64_t* hash = hashes[(b - 2) % 3];
    const uint32_t* candidate = candidates[(b - 2) % 2];
    block.first = begin + (b - 2) * kSize;
    block.count = size_of(b - 2);
    for (int i = 0; i < block.count; ++i) {
      const int64_t key = keys[block.first + i];
      const auto is_key = [&](uint32_t p) {
        return HeaderOf(store.Record(p)).key == key;
      };
      uint32_t position = candidate[i];
      if (position != KeyIndex::kNone && !is_key(position)) {
        position = index.Search(hash[i], is_key);  // tags met by chance
      }
      block.positions[i] = position;
      block.records[i] =
          position == KeyIndex::kNone ? nullptr : store.Record(position);
    }
    emit(block);
  }
}

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_BATCH_PROBE_H_
