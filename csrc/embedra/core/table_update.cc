// One optimizer step on the rows of a batch.
//
//   positions --Grouping--> groups of equal ones     (no lock)
//   clipnorm: norm over all summed gradients         (write lock from here on)
//   by part in parallel: sum the gradients of a group, apply the rule if the
//   record is still there
//
// Gradients of rows that occur once, mostly the bulk, are read where they are.
// Sums go in order of occurrence and parts depend on the batch alone, so that a
// step gives the same bits on any number of threads.

#include <algorithm>
#include <atomic>
#include <cmath>

#include "embedra/core/batch_probe.h"
#include "embedra/core/scratch_pool.h"
#include "embedra/core/step_numbers.h"
#include "embedra/core/table_impl.h"

namespace embedra {

using internal::Buffer;
using internal::Grouping;
using internal::ScratchPool;

namespace {

constexpr int kBlock = 16;  // records on which a kernel works at once

int64_t RowCostNs(size_t stride) {
  return 60 + static_cast<int64_t>(stride) / 4;
}

// Finds the gradient of each group, summing where there are several.
class GroupGradients {
 public:
  GroupGradients(const Grouping& groups, const float* grads, int64_t dim,
                 const internal::RowKernels& kernels)
      : groups_(groups),
        grads_(grads),
        dim_(dim),
        add_rows_(kernels.add_rows[static_cast<size_t>(RowType::kFloat32)]) {}

  void Prefetch(int64_t group) const {
    internal::PrefetchRecord(reinterpret_cast<const char*>(
                                 grads_ + groups_.members(group)[0] * dim_),
                             static_cast<size_t>(dim_) * sizeof(float));
  }

  // The gradient of `group`: in place, or summed in `sum` (dim elements).
  const float* Get(int64_t group, float* sum) const {
    const uint32_t* members = groups_.members(group);
    const int64_t count = groups_.count(group);
    if (count == 1) return grads_ + members[0] * dim_;
    std::fill(sum, sum + dim_, 0.0f);
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t n = std::min<int64_t>(kBlock, count - first);
      const void* rows[kBlock];
      float ones[kBlock];
      for (int64_t m = 0; m < n; ++m) {
        rows[m] = grads_ + members[first + m] * dim_;
        ones[m] = 1.0f;
      }
      add_rows_(rows, ones, n, dim_, sum);
    }
    return sum;
  }

 private:
  const Grouping& groups_;
  const float* grads_;
  int64_t dim_;
  void (*add_rows_)(const void* const*, const float*, int64_t, int64_t, float*);
};

// Walks over the groups of parts [part, last_part).
class GroupCursor {
 public:
  GroupCursor(const Grouping& groups, int part, int last_part)
      : groups_(groups), part_(part), last_part_(last_part) {
    Enter();
  }

  bool done() const { return part_ == last_part_; }
  int64_t group() const { return group_; }
  void Next() {
    if (++group_ < end_) return;
    ++part_;
    Enter();
  }

 private:
  // Goes to the first group from `part_` on.
  void Enter() {
    for (; part_ < last_part_; ++part_) {
      group_ = groups_.group_begin(part_);
      end_ = groups_.group_end(part_);
      if (group_ < end_) return;
    }
  }

  const Grouping& groups_;
  int part_;
  const int last_part_;
  int64_t group_ = 0;
  int64_t end_ = 0;
};

}  // namespace

float Table::Impl::ClipFactor(const Grouping& groups, const float* grads,
                              const RowOptimizer& optimizer,
                              const ParallelFor& parallel) const {
  Buffer<uint8_t> alive(groups.entries());
  MarkAlive(groups, &alive, parallel);
  const int64_t dim = options_.dim;
  const GroupGradients gradients(groups, grads, dim, kernels_);
  // One total for each part, added in order: the same on any threads.
  Buffer<double> totals(groups.parts());
  ScratchPool scratch(dim, parallel);
  const int64_t cost = (groups.entries() / groups.parts() + 1) *
                       RowCostNs(static_cast<size_t>(dim));
  parallel(groups.parts(), cost, [&](int64_t begin, int64_t end) {
    const ScratchPool::Piece piece(scratch);
    for (int part = static_cast<int>(begin); part < end; ++part) {
      double total = 0.0;
      for (int64_t g = groups.group_begin(part); g < groups.group_end(part);
           ++g) {
        if (!alive[g]) continue;
        total += kernels_.square_sum(gradients.Get(g, piece.data()), dim,
                                     optimizer.gradient_scale);
      }
      totals[part] = total;
    }
  });
  double total = 0.0;
  for (const double part : totals) total += part;
  const double clipnorm = static_cast<double>(optimizer.clipnorm);
  return static_cast<float>(clipnorm / std::max(std::sqrt(total), clipnorm));
}

int64_t Table::Impl::ApplyParts(const Grouping& groups, const float* grads,
                                const internal::StepNumbers& numbers,
                                StepFn step, int first_part, int last_part,
                                float* scratch) {
  const int64_t dim = options_.dim;
  const GroupGradients gradients(groups, grads, dim, kernels_);
  float* const sums = scratch + 2 * dim;
  // The look-ahead runs on over the ends of parts: it would otherwise start
  // anew, and wait, in each.
  GroupCursor ahead(groups, first_part, last_part);
  const auto prefetch = [&] {
    if (ahead.done()) return;
    PrefetchPosition(groups.value(ahead.group()));
    gradients.Prefetch(ahead.group());
    ahead.Next();
  };
  for (int i = 0; i < kBlock; ++i) prefetch();
  int64_t applied = 0;
  GroupCursor at(groups, first_part, last_part);
  while (!at.done()) {
    char* records[kBlock];
    const float* values[kBlock];
    int count = 0;
    for (int i = 0; i < kBlock && !at.done(); ++i, at.Next()) {
      prefetch();
      records[count] = LiveRecord(groups.value(at.group()));
      if (records[count] == nullptr) continue;
      values[count] = gradients.Get(at.group(), sums + count * dim);
      ++count;
    }
    step(numbers, records, values, count, scratch);
    applied += count;
  }
  return applied;
}

Status Table::Impl::Update(const RowOptimizer& optimizer,
                           const int64_t* positions, int64_t n,
                           const float* grads, const ParallelFor& parallel,
                           std::vector<std::string>* dropped_slots) {
  Status status = CheckBatch(n, {positions, grads});
  if (status.ok()) {
    status = internal::ValidateOptimizer(optimizer, options_.name);
  }
  if (!status.ok()) return status;
  const Grouping groups = Grouping::OfPositions(positions, n, parallel);
  // Of a body: a widened row, a prepared gradient, the sums of a block.
  ScratchPool scratch((2 + kBlock) * options_.dim, parallel);

  WriteLock lock(*this);
  RowOptimizer scaled = optimizer;
  if (optimizer.clipnorm > 0.0f) {
    scaled.gradient_scale *= ClipFactor(groups, grads, optimizer, parallel);
  }
  status = SetSlotsLocked(SlotsOf(optimizer, options_.dim), dropped_slots);
  if (!status.ok()) return status;
  const internal::StepNumbers numbers = internal::NumbersOf(scaled, layout());
  const StepFn step =
      kernels_.step[internal::RuleOf(optimizer)][row_type_index()];
  const int64_t cost =
      (groups.entries() / groups.parts() + 1) * RowCostNs(layout().stride);
  std::atomic<int64_t> applied{0};
  parallel(groups.parts(), cost, [&](int64_t begin, int64_t end) {
    const ScratchPool::Piece piece(scratch);
    applied += ApplyParts(groups, grads, numbers, step, static_cast<int>(begin),
                          static_cast<int>(end), piece.data());
  });
  updates_.fetch_add(applied, std::memory_order_relaxed);
  stale_gradients_.fetch_add(groups.num_groups() - applied,
                             std::memory_order_relaxed);
  return Status();
}

}  // namespace embedra
