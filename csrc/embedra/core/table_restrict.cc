// What bounds a table: restriction, eviction, and the counts they go by.

#include <algorithm>
#include <utility>

#include "embedra/core/batch_probe.h"
#include "embedra/core/table_impl.h"

namespace embedra {

using internal::CountLookups;
using internal::Grouping;
using internal::HashKey;
using internal::HeaderOf;
using internal::KeyIndex;
using internal::ProbedBlock;
using internal::RecordHeader;
using internal::VictimSearch;

namespace {

constexpr int64_t kKeyCostNs = 60;
constexpr int64_t kAhead = 8;
// A full table drops this share of its bound at once: the search costs as much
// for one record as for many.
constexpr int64_t kBlocksInTable = 16;

}  // namespace

Status Table::Impl::CountUses(const int64_t* keys, int64_t n,
                              const ParallelFor& parallel) {
  const Status status = CheckBatch(n, {keys});
  if (!status.ok()) return status;
  SharedLock lock(mutex_);
  step_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t step = RecordStep();
  parallel(n, kKeyCostNs, [&](int64_t begin, int64_t end) {
    internal::ProbeKeys(index_, store_, keys, begin, end, sizeof(RecordHeader),
                        [&](const ProbedBlock& block) {
                          for (int i = 0; i < block.count; ++i) {
                            char* record = block.records[i];
                            if (record == nullptr) continue;
                            CountLookups(record, 1, step);
                          }
                        });
  });
  return Status();
}

Status Table::Impl::Uses(const int64_t* keys, int64_t n, int64_t* frequencies,
                         int64_t* last_steps, bool* found,
                         const ParallelFor& parallel) const {
  const Status status = CheckBatch(n, {keys, frequencies, last_steps});
  if (!status.ok()) return status;
  const auto emit = [&](const ProbedBlock& block) {
    for (int i = 0; i < block.count; ++i) {
      const char* record = block.records[i];
      const int64_t at = block.first + i;
      if (found != nullptr) found[at] = record != nullptr;
      frequencies[at] = last_steps[at] = 0;
      if (record == nullptr) continue;
      // Lookups write these two under the shared lock.
      const RecordHeader& header = HeaderOf(record);
      frequencies[at] = __atomic_load_n(&header.frequency, __ATOMIC_RELAXED);
      last_steps[at] = __atomic_load_n(&header.last_step, __ATOMIC_RELAXED);
    }
  };
  SharedLock lock(mutex_);
  parallel(n, kKeyCostNs, [&](int64_t begin, int64_t end) {
    internal::ProbeKeys(index_, store_, keys, begin, end, sizeof(RecordHeader),
                        emit);
  });
  return Status();
}

Status Table::Impl::Restrict(int64_t max_records, EvictionOrder order,
                             std::vector<int64_t>* removed,
                             const ParallelFor& parallel) {
  if (max_records < 0) {
    return Invalid("max_records must be >= 0, got " +
                   std::to_string(max_records));
  }
  std::vector<int64_t> keys;
  {
    WriteLock lock(*this);
    const int64_t size = index_.size();
    const int64_t count = std::max<int64_t>(size - max_records, 0);
    if (count > 0) {
      VictimSearch victims(size, count);
      victims.Find(store_, allocator_.bound(), order, Mark(1), count, parallel);
      allocator_.ReserveFrees(victims.runs());
      keys.resize(static_cast<size_t>(victims.count()));
      Drop(&victims, /*seen=*/true, keys.data(), parallel);
      removes_.fetch_add(victims.count(), std::memory_order_relaxed);
    }
  }
  if (removed != nullptr) *removed = std::move(keys);
  return Status();
}

// ---- Eviction from bounded tables
// --------------------------------------------

void Table::Impl::SpareBatch(const int64_t* keys, const int64_t* positions,
                             int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) PrefetchPosition(positions[i + kAhead]);
    char* record = LiveRecord(positions[i]);
    if (record != nullptr && HeaderOf(record).key == keys[i]) Spare(record);
  }
}

Status Table::Impl::PlanEviction(const Grouping& keys, UpsertPlan* plan,
                                 const ParallelFor& parallel) {
  const int64_t added = plan->new_begins[KeyIndex::kShards];
  if (!MayOverflow(added)) return Status();
  for (int part = 0; part < keys.parts(); ++part) {
    for (int64_t g = keys.group_begin(part); g < keys.group_end(part); ++g) {
      const uint32_t position = plan->located[g];
      if (position != KeyIndex::kNone) Spare(store_.Record(position));
    }
  }
  const int64_t most = options_.max_capacity;
  if (spared_ + added > most) {
    return Invalid("a batch of " + std::to_string(spared_ + added) +
                   " distinct keys does not fit in a table of max_capacity " +
                   std::to_string(most));
  }
  const int64_t size = index_.size();
  const int64_t count =
      std::min(size + added - most + most / kBlocksInTable, size - spared_);
  plan->victims = VictimSearch(size, count);
  plan->victims.Find(store_, allocator_.bound(), options_.eviction, Mark(0),
                     count, parallel);
  allocator_.ReserveFrees(plan->victims.runs());
  return Status();
}

void Table::Impl::Evict(VictimSearch* victims, bool seen,
                        const ParallelFor& parallel) {
  if (victims->count() == 0) return;
  Drop(victims, seen, nullptr, parallel);
  evictions_.fetch_add(victims->count(), std::memory_order_relaxed);
}

void Table::Impl::Drop(VictimSearch* victims, bool seen, int64_t* keys,
                       const ParallelFor& parallel) {
  constexpr int64_t kRecordCostNs = 30;
  const int64_t count = victims->count();
  parallel(count, kRecordCostNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* record = store_.Record(victims->position(i));
      const int64_t key = HeaderOf(record).key;
      if (keys != nullptr) keys[i] = key;
      victims->set_hash(i, HashKey(key));
      HeaderOf(record).live = 0;
    }
  });
  int64_t begins[KeyIndex::kShards + 1];
  victims->OrderByShard(begins);
  parallel(KeyIndex::kShards, count / KeyIndex::kShards * kRecordCostNs + 1,
           [&](int64_t first, int64_t last) {
             for (int64_t at = begins[first]; at < begins[last]; ++at) {
               if (at + kAhead < begins[last]) {
                 index_.Prefetch(victims->hash(victims->ordered(at + kAhead)));
               }
               const int64_t i = victims->ordered(at);
               index_.Erase(victims->hash(i), victims->position(i));
             }
           });
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t position = victims->position(i);
    if (!seen && HeaderOf(store_.Record(position)).mark == Mark(0)) {
      allocator_.GiveBack(position);
    } else {
      allocator_.Free(position, generation_);
    }
  }
  size_.fetch_sub(count, std::memory_order_relaxed);
}

}  // namespace embedra
