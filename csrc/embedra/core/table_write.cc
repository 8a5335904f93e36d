// Writes by key: assign, accumulate, import, remove, clear, reserve.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "embedra/core/scratch_pool.h"
#include "embedra/core/table_impl.h"
#include "embedra/core/upsert.h"

namespace embedra {

using internal::Buffer;
using internal::Grouping;
using internal::HashKey;
using internal::HeaderOf;
using internal::KeyIndex;
using internal::RecordLayout;
using internal::VictimSearch;

namespace {

uint32_t Saturated(int64_t value) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(value, 0, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

Status Table::Impl::Assign(const int64_t* keys, int64_t n, const void* rows,
                           bool only_missing, const ParallelFor& parallel) {
  Status status = CheckBatch(n, {keys, rows});
  if (!status.ok()) return status;
  const Grouping groups = Grouping::OfKeys(keys, nullptr, n, parallel);
  const char* source = static_cast<const char*>(rows);
  const size_t size = row_bytes_;
  WriteLock lock(*this);
  return Upsert(groups, /*all_absent=*/false, parallel,
                [&](int, int64_t group, uint32_t, char* record, bool is_new) {
                  if (only_missing && !is_new) return;
                  const uint32_t* members = groups.members(group);
                  const uint32_t entry = only_missing
                                             ? members[0]
                                             : members[groups.count(group) - 1];
                  std::memcpy(record + RecordLayout::kRowOffset,
                              source + entry * size, size);
                });
}

Status Table::Impl::Accumulate(const int64_t* keys, int64_t n,
                               const float* deltas,
                               const ParallelFor& parallel) {
  Status status = CheckBatch(n, {keys, deltas});
  if (!status.ok()) return status;
  const Grouping groups = Grouping::OfKeys(keys, nullptr, n, parallel);
  const int64_t dim = options_.dim;
  Buffer<float> scratch(dim * KeyIndex::kShards);
  const auto to_float = kernels_.to_float[row_type_index()];
  const auto from_float = kernels_.from_float[row_type_index()];
  WriteLock lock(*this);
  return Upsert(
      groups, /*all_absent=*/false, parallel,
      [&](int shard, int64_t group, uint32_t, char* record, bool is_new) {
        void* row = record + RecordLayout::kRowOffset;
        // In float32 throughout: halves are rounded once.
        float* sum = scratch.data() + shard * dim;
        if (is_new) {
          initializer_.Fill(groups.value(group), sum);
        } else {
          to_float(row, dim, sum);
        }
        const uint32_t* members = groups.members(group);
        for (int64_t m = 0; m < groups.count(group); ++m) {
          const float* delta = deltas + members[m] * dim;
          for (int64_t i = 0; i < dim; ++i) sum[i] += delta[i];
        }
        from_float(sum, dim, row);
      });
}

Status Table::Impl::Import(const RecordColumns& records,
                           const ParallelFor& parallel) {
  Status status = CheckBatch(records.size, {records.keys, records.rows});
  if (!status.ok()) return status;
  const Grouping groups =
      Grouping::OfKeys(records.keys, nullptr, records.size, parallel);
  const char* rows = static_cast<const char*>(records.rows);
  const size_t row_bytes = row_bytes_;
  WriteLock lock(*this);
  const size_t slot_width = static_cast<size_t>(layout().slot_width);
  // The records of the batch compete with those of the table.
  const int64_t added = groups.num_groups();
  const bool may_overflow = MayOverflow(added);
  VictimSearch victims;
  if (may_overflow) {
    victims = VictimSearch(index_.size() + added, added);
    allocator_.ReserveFrees(added, added);
  }
  status = Upsert(
      groups, /*all_absent=*/false, parallel,
      [&](int, int64_t group, uint32_t, char* record, bool) {
        const size_t entry = groups.members(group)[groups.count(group) - 1];
        std::memcpy(record + RecordLayout::kRowOffset, rows + entry * row_bytes,
                    row_bytes);
        if (records.slots == nullptr) {
          WriteInitialSlots(record);
        } else if (slot_width > 0) {
          std::memcpy(store_.Slots(record), records.slots + entry * slot_width,
                      slot_width * sizeof(float));
        }
        auto& header = HeaderOf(record);
        header.frequency = records.frequencies == nullptr
                               ? 0
                               : Saturated(records.frequencies[entry]);
        header.last_step = records.last_steps == nullptr
                               ? 0
                               : Saturated(records.last_steps[entry]);
      },
      Bound::kIgnore);
  if (!status.ok() || !may_overflow) return status;
  victims.Find(store_, allocator_.bound(), options_.eviction, Mark(1),
               index_.size() - options_.max_capacity, parallel);
  Evict(&victims, /*seen=*/false, parallel);
  return Status();
}

Status Table::Impl::Remove(const int64_t* keys, int64_t n, int64_t* removed) {
  Status status = CheckBatch(n, {keys});
  if (!status.ok()) return status;
  int64_t count = 0;
  WriteLock lock(*this);
  allocator_.ReserveFrees(std::min(n, index_.size()));
  for (int64_t i = 0; i < n; ++i) {
    constexpr int64_t kAhead = 8;
    if (i + kAhead < n) index_.Prefetch(HashKey(keys[i + kAhead]));
    const uint64_t hash = HashKey(keys[i]);
    const uint32_t position = index_.Search(hash, [&](uint32_t p) {
      return HeaderOf(store_.Record(p)).key == keys[i];
    });
    if (position == KeyIndex::kNone) continue;
    allocator_.Free(position, generation_);
    index_.Erase(hash, position);
    HeaderOf(store_.Record(position)).live = 0;
    ++count;
  }
  size_.fetch_sub(count, std::memory_order_relaxed);
  removes_.fetch_add(count, std::memory_order_relaxed);
  if (removed != nullptr) *removed = count;
  return Status();
}

Status Table::Impl::Clear() {
  WriteLock lock(*this);
  allocator_.ReserveFrees(1);
  allocator_.FreeAll(generation_);
  const int64_t count = index_.size();
  index_.Clear();
  store_.Discard();
  size_.store(0, std::memory_order_relaxed);
  removes_.fetch_add(count, std::memory_order_relaxed);
  return Status();
}

Status Table::Impl::Reserve(int64_t capacity) {
  if (capacity < 0 || capacity > int64_t{KeyIndex::kNone}) {
    return Invalid("capacity must be from 0 to " +
                   std::to_string(KeyIndex::kNone) + ", got " +
                   std::to_string(capacity));
  }
  if (capacity == 0) return Status();
  // Shards get unequal shares: room for four standard deviations more.
  const double share =
      static_cast<double>(capacity) / static_cast<double>(KeyIndex::kShards);
  const int64_t target =
      static_cast<int64_t>(std::ceil(share + 4.0 * std::sqrt(share)));
  WriteLock lock(*this);
  for (int s = 0; s < KeyIndex::kShards; ++s) {
    if (!index_.Reserve(s, target - index_.ShardSize(s), store_)) {
      return OutOfMemory("to index " + std::to_string(capacity) + " keys");
    }
  }
  return Status();
}

}  // namespace embedra
