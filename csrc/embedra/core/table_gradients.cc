// Gradients that leave or wait: deduplicated, pooled, pending.

#include <algorithm>
#include <atomic>

#include "embedra/core/bags.h"
#include "embedra/core/table_impl.h"

namespace embedra {

using internal::Buffer;
using internal::Grouping;
using internal::HeaderOf;

namespace {

constexpr int64_t kGroupCostNs = 60;

int64_t PartCostNs(const Grouping& groups) {
  return (groups.entries() / groups.parts() + 1) * kGroupCostNs;
}

// The groups with `alive`, in order of their first member in a batch of `n`.
Buffer<uint32_t> OrderByFirstMember(const Grouping& groups,
                                    const Buffer<uint8_t>& alive, int64_t n) {
  constexpr uint32_t kNoGroup = 0xffffffffu;
  Buffer<uint32_t> group_at(n);  // by first member
  std::fill(group_at.begin(), group_at.end(), kNoGroup);
  int64_t count = 0;
  for (int part = 0; part < groups.parts(); ++part) {
    for (int64_t g = groups.group_begin(part); g < groups.group_end(part);
         ++g) {
      if (!alive[g]) continue;
      group_at[groups.members(g)[0]] = static_cast<uint32_t>(g);
      ++count;
    }
  }
  Buffer<uint32_t> order(count);
  std::copy_if(group_at.begin(), group_at.end(), order.begin(),
               [](uint32_t group) { return group != kNoGroup; });
  return order;
}

}  // namespace

int64_t Table::Impl::MarkAlive(const Grouping& groups, Buffer<uint8_t>* alive,
                               const ParallelFor& parallel) const {
  constexpr int64_t kAhead = 16;
  std::atomic<int64_t> gone{0};
  parallel(groups.parts(), PartCostNs(groups), [&](int64_t begin, int64_t end) {
    int64_t missing = 0;
    for (int part = static_cast<int>(begin); part < end; ++part) {
      const int64_t last = groups.group_end(part);
      for (int64_t g = groups.group_begin(part); g < last; ++g) {
        if (g + kAhead < last) {
          const int64_t ahead = groups.value(g + kAhead);
          if (ahead < store_.capacity()) {
            __builtin_prefetch(store_.Record(static_cast<uint32_t>(ahead)));
          }
        }
        (*alive)[g] = LiveRecord(groups.value(g)) != nullptr;
        missing += !(*alive)[g];
      }
    }
    gone += missing;
  });
  return gone;
}

// `row_of(entry, &weight)` gives the gradient of an entry, to be multiplied by
// the weight, which it sets.
template <typename RowOf>
Status Table::Impl::SumGroups(const Grouping& groups,
                              const Buffer<uint8_t>& alive, int64_t n,
                              const GradientOutput& output,
                              const ParallelFor& parallel,
                              const RowOf& row_of) const {
  constexpr int kBlock = 32;
  const int64_t dim = options_.dim;
  const Buffer<uint32_t> order = OrderByFirstMember(groups, alive, n);
  int64_t* unique = nullptr;
  float* sums = nullptr;
  Status status = output(order.size(), &unique, &sums);
  if (!status.ok()) return status;
  const auto add_rows =
      kernels_.add_rows[static_cast<size_t>(RowType::kFloat32)];
  // In order of the outcome, as that is the largest array: it is written from
  // front to back, and what is looked up elsewhere fits the caches.
  const int64_t cost = kGroupCostNs + dim;
  parallel(order.size(), cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t g = order[i];
      const uint32_t* members = groups.members(g);
      const int64_t size = groups.count(g);
      float* sum = sums + i * dim;
      unique[i] = groups.value(g);
      std::fill(sum, sum + dim, 0.0f);
      for (int64_t first = 0; first < size; first += kBlock) {
        const int64_t length = std::min<int64_t>(kBlock, size - first);
        const void* rows[kBlock];
        float weights[kBlock];
        for (int64_t m = 0; m < length; ++m) {
          rows[m] = row_of(members[first + m], &weights[m]);
        }
        add_rows(rows, weights, length, dim, sum);
      }
    }
  });
  return Status();
}

Status Table::Impl::Deduplicate(const int64_t* positions, int64_t n,
                                const float* grads,
                                const GradientOutput& output) const {
  Status status = CheckBatch(n, {positions, grads});
  if (!status.ok()) return status;
  const Grouping groups = Grouping::OfPositions(positions, n, Serial());
  Buffer<uint8_t> alive(groups.entries());
  int64_t gone;
  {
    SharedLock lock(mutex_);
    gone = MarkAlive(groups, &alive, Serial());
  }
  const int64_t dim = options_.dim;
  status = SumGroups(groups, alive, n, output, Serial(),
                     [grads, dim](uint32_t entry, float* weight) {
                       *weight = 1.0f;
                       return grads + entry * dim;
                     });
  if (status.ok()) stale_gradients_.fetch_add(gone, std::memory_order_relaxed);
  return status;
}

Status Table::Impl::PooledGradient(const Bags& bags, const int64_t* positions,
                                   const float* pooled_grads,
                                   const GradientOutput& output,
                                   const ParallelFor& parallel) const {
  Status status = CheckBags(bags);
  if (!status.ok()) return status;
  const int64_t n = bags.row_splits[bags.num_bags];
  status = CheckBatch(n, {positions, pooled_grads});
  if (!status.ok()) return status;
  // For each entry, its bag and what its row was multiplied by.
  Buffer<uint32_t> bag_of(n);
  Buffer<float> factors(n);
  for (int64_t b = 0; b < bags.num_bags; ++b) {
    const float divisor = internal::BagDivisor(bags, b);
    const float factor = divisor == 0.0f ? 0.0f : 1.0f / divisor;
    for (int64_t i = bags.row_splits[b]; i < bags.row_splits[b + 1]; ++i) {
      bag_of[i] = static_cast<uint32_t>(b);
      factors[i] = bags.weights == nullptr ? factor : bags.weights[i] * factor;
    }
  }
  const Grouping groups = Grouping::OfPositions(positions, n, parallel);
  // Whether the records still live is seen when the sums are applied.
  Buffer<uint8_t> alive(groups.entries());
  std::fill(alive.begin(), alive.end(), uint8_t{1});
  const int64_t dim = options_.dim;
  return SumGroups(groups, alive, n, output, parallel,
                   [&](uint32_t entry, float* weight) {
                     *weight = factors[entry];
                     return pooled_grads + bag_of[entry] * dim;
                   });
}

Status Table::Impl::AccumulateGradients(const int64_t* positions, int64_t n,
                                        const float* grads) {
  Status status = CheckBatch(n, {positions, grads});
  if (!status.ok()) return status;
  int64_t gone = 0;
  SharedLock lock(mutex_);
  std::lock_guard<std::mutex> pending_lock(pending_mutex_);
  pending_.Reserve(n, options_.dim);
  for (int64_t i = 0; i < n; ++i) {
    if (positions[i] < 0) continue;
    const char* record = LiveRecord(positions[i]);
    if (record == nullptr) {
      ++gone;
      continue;
    }
    pending_.Add(positions[i], HeaderOf(record).key, grads + i * options_.dim,
                 options_.dim);
  }
  stale_gradients_.fetch_add(gone, std::memory_order_relaxed);
  return Status();
}

Status Table::Impl::TakeGradients(std::vector<int64_t>* positions,
                                  std::vector<float>* grads) {
  SharedLock lock(mutex_);
  std::lock_guard<std::mutex> pending_lock(pending_mutex_);
  const size_t dim = static_cast<size_t>(options_.dim);
  std::vector<int64_t> live;
  std::vector<float> sums;
  live.reserve(static_cast<size_t>(pending_.size()));
  sums.reserve(static_cast<size_t>(pending_.size()) * dim);
  for (size_t i = 0; i < pending_.positions().size(); ++i) {
    const int64_t position = pending_.positions()[i];
    const char* record = LiveRecord(position);
    if (record == nullptr || HeaderOf(record).key != pending_.keys()[i]) {
      continue;
    }
    live.push_back(position);
    const float* sum = pending_.sums().data() + i * dim;
    sums.insert(sums.end(), sum, sum + dim);
  }
  stale_gradients_.fetch_add(
      pending_.size() - static_cast<int64_t>(live.size()),
      std::memory_order_relaxed);
  pending_ = internal::PendingGradients();
  *positions = std::move(live);
  *grads = std::move(sums);
  return Status();
}

}  // namespace embedra
