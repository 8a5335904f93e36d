// Pooled lookups: rows are added up as they are found, and never stored.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "embedra/core/bags.h"
#include "embedra/core/batch_probe.h"
#include "embedra/core/scratch_pool.h"
#include "embedra/core/table_impl.h"
#include "embedra/core/upsert.h"

namespace embedra {

using internal::BagSummer;
using internal::Buffer;
using internal::CountLookups;
using internal::Grouping;
using internal::HeaderOf;
using internal::ProbedBlock;
using internal::RecordLayout;
using internal::ScratchPool;

namespace {

// Of a key: a probe, and a row to add.
int64_t KeyCostNs(size_t row_bytes) {
  return 40 + static_cast<int64_t>(row_bytes) / 8;
}

int64_t BagCostNs(const Bags& bags, size_t row_bytes) {
  const int64_t keys = bags.row_splits[bags.num_bags];
  return (keys / bags.num_bags + 1) * KeyCostNs(row_bytes);
}

}  // namespace

struct Table::Impl::PooledCall {
  enum class Absent { kZero, kInitial, kDefault };

  const Bags& bags;
  float* pooled;
  int64_t* positions;  // may be null
  Absent absent;
  const void* default_row;
  bool count;
};

Status Table::Impl::CheckBags(const Bags& bags) const {
  if (bags.num_bags < 0) {
    return Invalid("num_bags must be >= 0, got " +
                   std::to_string(bags.num_bags));
  }
  if (bags.row_splits == nullptr || bags.row_splits[0] != 0) {
    return Invalid("row_splits must be given and start with 0");
  }
  for (int64_t b = 0; b < bags.num_bags; ++b) {
    if (bags.row_splits[b + 1] < bags.row_splits[b]) {
      return Invalid("row_splits must not decrease, got " +
                     std::to_string(bags.row_splits[b]) + " before " +
                     std::to_string(bags.row_splits[b + 1]) + " at bag " +
                     std::to_string(b));
    }
  }
  return CheckBatch(bags.row_splits[bags.num_bags], {});
}

// `scratch` holds a row of zeros in the row type, then kSize initial rows, then
// dim() floats.
int64_t Table::Impl::PoolRange(const PooledCall& call, int64_t begin,
                               int64_t end, float* scratch) const {
  using Absent = PooledCall::Absent;
  const Bags& bags = call.bags;
  const uint32_t step = RecordStep();
  char* const zeros = reinterpret_cast<char*>(scratch);
  char* const initial_rows = zeros + row_bytes_;
  float* const wide = scratch + (ProbedBlock::kSize + 1) * options_.dim;
  if (call.absent == Absent::kZero) std::memset(zeros, 0, row_bytes_);
  BagSummer summer(bags, begin, end, options_.dim, call.pooled,
                   kernels_.add_rows[row_type_index()]);
  int64_t absent = 0;
  const auto emit = [&](const ProbedBlock& block) {
    const void* rows[ProbedBlock::kSize];
    for (int i = 0; i < block.count; ++i) {
      char* record = block.records[i];
      if (call.positions != nullptr) {
        call.positions[block.first + i] =
            record == nullptr ? kNoPosition : int64_t{block.positions[i]};
      }
      if (record != nullptr) {
        if (call.count) CountLookups(record, 1, step);
        rows[i] = record + RecordLayout::kRowOffset;
        continue;
      }
      ++absent;
      if (call.absent == Absent::kZero) {
        rows[i] = zeros;
      } else if (call.absent == Absent::kDefault) {
        rows[i] = call.default_row;
      } else {
        char* row = initial_rows + static_cast<size_t>(i) * row_bytes_;
        WriteInitialRow(bags.keys[block.first + i], row, wide);
        rows[i] = row;
      }
    }
    summer.Add(rows, block.count);
  };
  internal::ProbeKeys(index_, store_, bags.keys, bags.row_splits[begin],
                      bags.row_splits[end],
                      RecordLayout::kRowOffset + row_bytes_, emit);
  summer.Finish();
  return absent;
}

Status Table::Impl::FindPooled(const Bags& bags, MissingRow missing,
                               const void* default_row, float* pooled,
                               int64_t* positions,
                               const ParallelFor& parallel) const {
  Status status = CheckBags(bags);
  if (!status.ok()) return status;
  const int64_t n = bags.row_splits[bags.num_bags];
  status = CheckBatch(n, {bags.keys});
  if (status.ok()) status = CheckBatch(bags.num_bags, {pooled});
  if (!status.ok()) return status;
  const bool use_default = missing == MissingRow::kDefault;
  if (use_default && default_row == nullptr) {
    return Invalid("MissingRow::kDefault needs a default row, got null");
  }
  if (bags.num_bags == 0) return Status();
  const PooledCall call = {
      bags,
      pooled,
      positions,
      use_default ? PooledCall::Absent::kDefault : PooledCall::Absent::kInitial,
      default_row,
      /*count=*/false};
  ScratchPool scratch((ProbedBlock::kSize + 2) * options_.dim, parallel);
  std::atomic<int64_t> absent{0};
  {
    SharedLock lock(mutex_);
    parallel(bags.num_bags, BagCostNs(bags, row_bytes_),
             [&](int64_t begin, int64_t end) {
               const ScratchPool::Piece piece(scratch);
               absent += PoolRange(call, begin, end, piece.data());
             });
  }
  CountFound(n - absent, absent);
  return Status();
}

// In the usual case every key is there, and one pass under the shared lock does
// it all. Otherwise the absent keys are inserted and the bags that have some
// are added up once more.
Status Table::Impl::FindOrInsertPooled(const Bags& bags, float* pooled,
                                       int64_t* positions,
                                       const ParallelFor& parallel) {
  Status status = CheckBags(bags);
  if (!status.ok()) return status;
  const int64_t n = bags.row_splits[bags.num_bags];
  status = CheckBatch(n, {bags.keys});
  if (status.ok()) status = CheckBatch(bags.num_bags, {pooled});
  if (!status.ok() || bags.num_bags == 0) return status;
  Buffer<int64_t> own_positions(positions == nullptr ? n : 0);
  if (positions == nullptr) positions = own_positions.data();
  const PooledCall call = {bags,      pooled,
                           positions, PooledCall::Absent::kZero,
                           nullptr,   /*count=*/true};
  ScratchPool scratch((ProbedBlock::kSize + 2) * options_.dim, parallel);
  std::atomic<int64_t> absent{0};
  uint64_t generation;
  {
    SharedLock lock(mutex_);
    generation = generation_;
    parallel(bags.num_bags, BagCostNs(bags, row_bytes_),
             [&](int64_t begin, int64_t end) {
               const ScratchPool::Piece piece(scratch);
               absent += PoolRange(call, begin, end, piece.data());
             });
  }
  CountFound(n - absent, absent);
  if (absent == 0) return Status();
  std::vector<int64_t> touched;  // bags with absent keys
  for (int64_t b = 0; b < bags.num_bags; ++b) {
    const int64_t* first = positions + bags.row_splits[b];
    const int64_t* last = positions + bags.row_splits[b + 1];
    if (std::find(first, last, kNoPosition) != last) touched.push_back(b);
  }
  return InsertForBags(bags, touched, generation, pooled, positions, parallel);
}

Status Table::Impl::InsertForBags(const Bags& bags,
                                  const std::vector<int64_t>& touched,
                                  uint64_t generation, float* pooled,
                                  int64_t* positions,
                                  const ParallelFor& parallel) {
  Buffer<float> scratch(options_.dim * internal::KeyIndex::kShards);
  const uint32_t step = RecordStep();
  WriteLock lock(*this);
  const bool unchanged = generation_ == generation + 1;
  std::vector<uint32_t> entries;
  for (const int64_t b : touched) {
    for (int64_t i = bags.row_splits[b]; i < bags.row_splits[b + 1]; ++i) {
      // What was found may have been removed since.
      const char* record =
          unchanged || positions[i] < 0 ? nullptr : LiveRecord(positions[i]);
      const bool there =
          unchanged ? positions[i] >= 0
                    : record != nullptr && HeaderOf(record).key == bags.keys[i];
      if (!there) entries.push_back(static_cast<uint32_t>(i));
    }
  }
  if (MayOverflow(static_cast<int64_t>(entries.size()))) {
    SpareBatch(bags.keys, positions, bags.row_splits[bags.num_bags]);
  }
  const Grouping groups =
      Grouping::OfKeys(bags.keys, entries.data(),
                       static_cast<int64_t>(entries.size()), parallel);
  Status status =
      Upsert(groups, /*all_absent=*/unchanged, parallel,
             [&](int shard, int64_t group, uint32_t position, char* record,
                 bool is_new) {
               if (is_new) {
                 WriteInitialRow(groups.value(group),
                                 record + RecordLayout::kRowOffset,
                                 scratch.data() + shard * options_.dim);
               }
               const int64_t count = groups.count(group);
               CountLookups(record, static_cast<uint32_t>(count), step);
               for (int64_t m = 0; m < count; ++m) {
                 positions[groups.members(group)[m]] = position;
               }
             });
  if (!status.ok()) return status;
  parallel(static_cast<int64_t>(touched.size()), BagCostNs(bags, row_bytes_),
           [&](int64_t begin, int64_t end) {
             for (int64_t t = begin; t < end; ++t) {
               PoolByPosition(bags, touched[static_cast<size_t>(t)], positions,
                              pooled);
             }
           });
  return Status();
}

void Table::Impl::PoolByPosition(const Bags& bags, int64_t bag,
                                 const int64_t* positions,
                                 float* pooled) const {
  constexpr int kBlock = ProbedBlock::kSize;
  BagSummer summer(bags, bag, bag + 1, options_.dim, pooled,
                   kernels_.add_rows[row_type_index()]);
  const int64_t end = bags.row_splits[bag + 1];
  for (int64_t first = bags.row_splits[bag]; first < end; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, end - first));
    const void* rows[kBlock];
    for (int i = 0; i < count; ++i) {
      const char* record =
          store_.Record(static_cast<uint32_t>(positions[first + i]));
      internal::PrefetchRecord(record, RecordLayout::kRowOffset + row_bytes_);
      rows[i] = record + RecordLayout::kRowOffset;
    }
    summer.Add(rows, count);
  }
  summer.Finish();
}

}  // namespace embedra
