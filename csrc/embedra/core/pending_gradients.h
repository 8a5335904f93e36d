// PendingGradients: gradients summed over the batches of one optimizer step.
//
// A sum belongs to a key as well as to a position: should the record go and the
// position be handed out again meanwhile, the sum is not for the newcomer.

#ifndef EMBEDRA_CORE_PENDING_GRADIENTS_H_
#define EMBEDRA_CORE_PENDING_GRADIENTS_H_

#include <cstdint>
#include <vector>

namespace embedra::internal {

class PendingGradients {
 public:
  // Makes room for `n` more sums, after which Add() cannot fail. Throws
  // std::bad_alloc.
  void Reserve(int64_t n, int64_t dim);

  // Adds `gradient` (dim elements) to the sum of the record of `key` at
  // `position`.
  void Add(int64_t position, int64_t key, const float* gradient, int64_t dim);

  int64_t size() const { return static_cast<int64_t>(positions_.size()); }
  const std::vector<int64_t>& positions() const { return positions_; }
  const std::vector<int64_t>& keys() const { return keys_; }
  const std::vector<float>& sums() const { return sums_; }

 private:
  uint32_t* Entry(int64_t position);

  std::vector<uint32_t> table_;  // open addressing: index + 1 into the below
  std::vector<int64_t> positions_;
  std::vector<int64_t> keys_;
  std::vector<float> sums_;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_PENDING_GRADIENTS_H_
