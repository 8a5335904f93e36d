#include "embedra/core/pending_gradients.h"

#include <algorithm>

#include "embedra/core/hash.h"

namespace embedra::internal {

uint32_t* PendingGradients::Entry(int64_t position) {
  const uint64_t mask = table_.size() - 1;
  uint64_t at = HashKey(position) & mask;
  while (table_[at] != 0 && positions_[table_[at] - 1] != position) {
    at = (at + 1) & mask;
  }
  return &table_[at];
}

void PendingGradients::Reserve(int64_t n, int64_t dim) {
  const size_t count = positions_.size() + static_cast<size_t>(n);
  if (count <= positions_.capacity() && 2 * count <= table_.size()) return;
  const size_t room = std::max(count, 2 * positions_.size());
  positions_.reserve(room);
  keys_.reserve(room);
  sums_.reserve(room * static_cast<size_t>(dim));
  size_t size = 16;
  while (size < 2 * room) size *= 2;
  if (size <= table_.size()) return;
  std::vector<uint32_t> table(size);
  table_.swap(table);
  for (size_t i = 0; i < positions_.size(); ++i) {
    *Entry(positions_[i]) = static_cast<uint32_t>(i + 1);
  }
}

void PendingGradients::Add(int64_t position, int64_t key, const float* gradient,
                           int64_t dim) {
  uint32_t* entry = Entry(position);
  if (*entry == 0) {
    positions_.push_back(position);
    keys_.push_back(key);
    sums_.insert(sums_.end(), gradient, gradient + dim);
    *entry = static_cast<uint32_t>(positions_.size());
    return;
  }
  const size_t i = *entry - 1;
  float* sum = sums_.data() + i * static_cast<size_t>(dim);
  if (keys_[i] != key) {  // the record that the sum was for is gone
    keys_[i] = key;
    std::copy(gradient, gradient + dim, sum);
    return;
  }
  for (int64_t c = 0; c < dim; ++c) sum[c] += gradient[c];
}

}  // namespace embedra::internal
