// BagSummer: adds a stream of rows up, bag by bag.

#ifndef EMBEDRA_CORE_BAGS_H_
#define EMBEDRA_CORE_BAGS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "embedra/core/table.h"

namespace embedra::internal {

// What the sum over `bag` is divided by.
inline float BagDivisor(const Bags& bags, int64_t bag) {
  const int64_t begin = bags.row_splits[bag];
  const int64_t end = bags.row_splits[bag + 1];
  if (bags.combiner == Combiner::kSum) return 1.0f;
  const bool mean = bags.combiner == Combiner::kMean;
  float total = 0.0f;
  if (bags.weights == nullptr) {
    total = static_cast<float>(end - begin);
  } else {
    for (int64_t i = begin; i < end; ++i) {
      const float weight = bags.weights[i];
      total += mean ? weight : weight * weight;
    }
  }
  return mean ? total : std::sqrt(total);
}

// Takes the rows of the entries of bags [begin, end) in order, in blocks of any
// size, and writes `pooled` (num_bags x dim; only those bags).
class BagSummer {
 public:
  using AddRows = void (*)(const void* const* rows, const float* weights,
                           int64_t n, int64_t dim, float* sum);

  BagSummer(const Bags& bags, int64_t begin, int64_t end, int64_t dim,
            float* pooled, AddRows add_rows)
      : bags_(bags),
        bag_(begin),
        end_(end),
        entry_(bags.row_splits[begin]),
        dim_(dim),
        pooled_(pooled),
        add_rows_(add_rows) {
    std::fill(pooled + begin * dim, pooled + end * dim, 0.0f);
    std::fill(ones_, ones_ + kBlock, 1.0f);
  }

  void Add(const void* const* rows, int64_t count) {
    while (count > 0) {
      while (entry_ == bags_.row_splits[bag_ + 1]) CloseBag();
      const int64_t n = std::min(
          {count, bags_.row_splits[bag_ + 1] - entry_, int64_t{kBlock}});
      const float* weights =
          bags_.weights == nullptr ? ones_ : bags_.weights + entry_;
      add_rows_(rows, weights, n, dim_, pooled_ + bag_ * dim_);
      rows += n;
      entry_ += n;
      count -= n;
    }
  }

  // Call once, after the last row.
  void Finish() {
    while (bag_ < end_) CloseBag();
  }

 private:
  static constexpr int kBlock = 32;

  void CloseBag() {
    if (bags_.combiner != Combiner::kSum) {
      const float divisor = BagDivisor(bags_, bag_);
      float* sum = pooled_ + bag_ * dim_;
      for (int64_t i = 0; i < dim_; ++i) {
        // As TensorFlow: nothing where the weights cancel out.
        sum[i] = divisor == 0.0f ? 0.0f : sum[i] / divisor;
      }
    }
    ++bag_;
  }

  const Bags& bags_;
  int64_t bag_;
  const int64_t end_;
  int64_t entry_;
  const int64_t dim_;
  float* const pooled_;
  const AddRows add_rows_;
  float ones_[kBlock];
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_BAGS_H_
