// Lookups of single rows, and the two halves of Upsert that are not templates.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "embedra/core/batch_probe.h"
#include "embedra/core/dense_ids.h"
#include "embedra/core/scratch_pool.h"
#include "embedra/core/table_impl.h"
#include "embedra/core/upsert.h"

namespace embedra {

using internal::Buffer;
using internal::CountLookups;
using internal::Grouping;
using internal::HeaderOf;
using internal::KeyIndex;
using internal::ProbedBlock;
using internal::RecordLayout;
using internal::ScratchPool;

namespace {

constexpr int64_t kKeyCostNs = 60;

}  // namespace

struct Table::Impl::LookupCall {
  enum class Absent { kLeave, kInitial, kDefault };

  const int64_t* keys;
  char* rows;
  int64_t* positions;  // may be null
  bool* found;         // may be null
  Absent absent;
  const void* default_row;
  bool count;  // in the records' frequency and last step
};

int64_t Table::Impl::LookupRange(const LookupCall& call, int64_t begin,
                                 int64_t end, float* scratch) const {
  const size_t row_bytes = row_bytes_;
  const uint32_t step = RecordStep();
  int64_t absent = 0;
  const auto emit = [&](const ProbedBlock& block) {
    const char* sources[ProbedBlock::kSize];
    int found = 0;
    for (int i = 0; i < block.count; ++i) {
      char* record = block.records[i];
      sources[i] =
          record == nullptr ? nullptr : record + RecordLayout::kRowOffset;
      found += record != nullptr;
      if (call.count && record != nullptr) CountLookups(record, 1, step);
      if (call.positions != nullptr) {
        call.positions[block.first + i] =
            record == nullptr ? kNoPosition : int64_t{block.positions[i]};
      }
      if (call.found != nullptr) {
        call.found[block.first + i] = record != nullptr;
      }
    }
    char* target = call.rows + static_cast<size_t>(block.first) * row_bytes;
    kernels_.copy_rows(sources, block.count, row_bytes, target);
    if (found == block.count) return;
    absent += block.count - found;
    if (call.absent == LookupCall::Absent::kLeave) return;
    for (int i = 0; i < block.count; ++i, target += row_bytes) {
      if (sources[i] != nullptr) continue;
      if (call.absent == LookupCall::Absent::kDefault) {
        std::memcpy(target, call.default_row, row_bytes);
      } else {
        WriteInitialRow(call.keys[block.first + i], target, scratch);
      }
    }
  };
  internal::ProbeKeys(index_, store_, call.keys, begin, end,
                      RecordLayout::kRowOffset + row_bytes, emit);
  return absent;
}

void Table::Impl::CountFound(int64_t found, int64_t absent) const {
  hits_.fetch_add(found, std::memory_order_relaxed);
  misses_.fetch_add(absent, std::memory_order_relaxed);
}

Status Table::Impl::Find(const int64_t* keys, int64_t n, MissingRow missing,
                         const void* default_row, void* rows,
                         int64_t* positions, bool* found,
                         const ParallelFor& parallel) const {
  Status status = CheckBatch(n, {keys, rows});
  if (!status.ok()) return status;
  const bool use_default = missing == MissingRow::kDefault;
  if (use_default && default_row == nullptr) {
    return Invalid("MissingRow::kDefault needs a default row, got null");
  }
  using Absent = LookupCall::Absent;
  const LookupCall call = {keys,
                           static_cast<char*>(rows),
                           positions,
                           found,
                           use_default ? Absent::kDefault : Absent::kInitial,
                           default_row,
                           /*count=*/false};
  ScratchPool scratch(options_.dim, parallel);
  std::atomic<int64_t> absent{0};
  {
    SharedLock lock(mutex_);
    parallel(n, kKeyCostNs, [&](int64_t begin, int64_t end) {
      const ScratchPool::Piece piece(scratch);
      absent += LookupRange(call, begin, end, piece.data());
    });
  }
  CountFound(n - absent, absent);
  return Status();
}

Status Table::Impl::FindOrInsert(const int64_t* keys, int64_t n, void* rows,
                                 int64_t* positions, bool* found,
                                 const ParallelFor& parallel) {
  Status status = CheckBatch(n, {keys, rows});
  if (!status.ok()) return status;
  Buffer<bool> own_found(found == nullptr ? n : 0);
  if (found == nullptr) found = own_found.data();
  // A bounded table must know what of the batch it holds.
  const bool wants_positions =
      options_.max_capacity > 0 && positions == nullptr;
  Buffer<int64_t> own_positions(wants_positions ? n : 0);
  if (wants_positions) positions = own_positions.data();
  char* const target = static_cast<char*>(rows);
  const LookupCall call = {
      keys,    target,        positions, found, LookupCall::Absent::kLeave,
      nullptr, /*count=*/true};
  std::atomic<int64_t> absent{0};
  uint64_t generation;
  {
    SharedLock lock(mutex_);
    generation = generation_;
    parallel(n, kKeyCostNs, [&](int64_t begin, int64_t end) {
      absent += LookupRange(call, begin, end, nullptr);
    });
  }
  CountFound(n - absent, absent);
  if (absent == 0) return Status();

  Buffer<uint32_t> entries(absent);
  for (int64_t i = 0, at = 0; i < n; ++i) {
    if (!found[i]) entries[at++] = static_cast<uint32_t>(i);
  }
  const Grouping groups =
      Grouping::OfKeys(keys, entries.data(), absent, parallel);
  Buffer<float> scratch(options_.dim * KeyIndex::kShards);
  const uint32_t step = RecordStep();
  WriteLock lock(*this);
  const bool unchanged = generation_ == generation + 1;
  if (MayOverflow(absent)) SpareBatch(keys, positions, n);
  return Upsert(groups, /*all_absent=*/unchanged, parallel,
                [&](int shard, int64_t group, uint32_t position, char* record,
                    bool is_new) {
                  char* row = record + RecordLayout::kRowOffset;
                  if (is_new) {
                    WriteInitialRow(groups.value(group), row,
                                    scratch.data() + shard * options_.dim);
                  }
                  const uint32_t* members = groups.members(group);
                  const int64_t count = groups.count(group);
                  CountLookups(record, static_cast<uint32_t>(count), step);
                  for (int64_t m = 0; m < count; ++m) {
                    std::memcpy(target + members[m] * row_bytes_, row,
                                row_bytes_);
                    if (positions != nullptr) positions[members[m]] = position;
                  }
                });
}

Status Table::Impl::FindMissing(const int64_t* keys, int64_t n,
                                std::vector<int64_t>* missing) const {
  Status status = CheckBatch(n, {keys});
  if (!status.ok()) return status;
  Buffer<int64_t> absent(n);
  int64_t count = 0;
  {
    SharedLock lock(mutex_);
    internal::ProbeKeys(index_, store_, keys, 0, n, sizeof(int64_t),
                        [&](const ProbedBlock& block) {
                          for (int i = 0; i < block.count; ++i) {
                            if (block.records[i] != nullptr) continue;
                            absent[count++] = keys[block.first + i];
                          }
                        });
  }
  Buffer<uint32_t> table(internal::DenseIds::TableSize(count));
  Buffer<int64_t> values(count);
  internal::DenseIds unique(count, table.data(), values.data());
  for (int64_t i = 0; i < count; ++i) unique.FindOrAdd(absent[i]);
  missing->assign(values.data(), values.data() + unique.size());
  return Status();
}

// ---- Upsert, first two steps
// -------------------------------------------------

void Table::Impl::Locate(const Grouping& keys, bool all_absent,
                         UpsertPlan* plan, const ParallelFor& parallel) const {
  plan->located = Buffer<uint32_t>(keys.entries());
  const int64_t cost = (keys.entries() / keys.parts() + 1) * kKeyCostNs;
  int64_t counts[KeyIndex::kShards];
  parallel(keys.parts(), cost, [&](int64_t begin, int64_t end) {
    for (int shard = static_cast<int>(begin); shard < end; ++shard) {
      const int64_t first = keys.group_begin(shard);
      const int64_t last = keys.group_end(shard);
      counts[shard] = last - first;
      if (all_absent) {
        std::fill(plan->located.data() + first, plan->located.data() + last,
                  KeyIndex::kNone);
        continue;
      }
      internal::ProbeKeys(index_, store_, keys.values(), first, last,
                          sizeof(int64_t), [&](const ProbedBlock& block) {
                            for (int i = 0; i < block.count; ++i) {
                              plan->located[block.first + i] =
                                  block.positions[i];
                              counts[shard] -= block.records[i] != nullptr;
                            }
                          });
    }
  });
  plan->new_begins[0] = 0;
  for (int s = 0; s < KeyIndex::kShards; ++s) {
    plan->new_begins[s + 1] = plan->new_begins[s] + counts[s];
  }
}

Status Table::Impl::MakeRoom(UpsertPlan* plan, const ParallelFor& parallel) {
  const int64_t total = plan->new_begins[KeyIndex::kShards];
  plan->positions = Buffer<uint32_t>(total);
  if (total == 0) return Status();
  const int64_t bound = allocator_.BoundAfter(total, generation_);
  if (bound > int64_t{KeyIndex::kNone}) {
    return Status::ResourceExhausted(
        "table '" + options_.name + "': a table holds at most " +
        std::to_string(KeyIndex::kNone) + " records");
  }
  if (!store_.Reserve(bound)) {
    return OutOfMemory("for " + std::to_string(total) + " new records");
  }
  std::atomic<bool> ok{true};
  const int64_t cost = total / KeyIndex::kShards + 1;
  parallel(KeyIndex::kShards, cost, [&](int64_t begin, int64_t end) {
    for (int shard = static_cast<int>(begin); shard < end; ++shard) {
      const int64_t extra =
          plan->new_begins[shard + 1] - plan->new_begins[shard];
      if (!index_.Reserve(shard, extra, store_)) ok = false;
    }
  });
  if (!ok) {
    return OutOfMemory("to index " + std::to_string(total) + " new keys");
  }
  Evict(&plan->victims, /*seen=*/true, parallel);
  allocator_.Allocate(total, generation_, plan->positions.data());
  bound_.store(allocator_.bound(), std::memory_order_relaxed);
  size_.fetch_add(total, std::memory_order_relaxed);
  inserts_.fetch_add(total, std::memory_order_relaxed);
  return Status();
}

}  // namespace embedra
