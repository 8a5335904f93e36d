// Gradients in vectors, for tests and the benchmark. The ops have the core
// write straight into their outputs.

#ifndef EMBEDRA_CORE_GRADIENT_VECTORS_H_
#define EMBEDRA_CORE_GRADIENT_VECTORS_H_

#include <cstdint>
#include <vector>

#include "embedra/core/table.h"

namespace embedra::internal {

inline GradientOutput ToVectors(int64_t dim, std::vector<int64_t>* unique,
                                std::vector<float>* sums) {
  return [=](int64_t count, int64_t** positions, float** rows) {
    unique->resize(static_cast<size_t>(count));
    sums->resize(static_cast<size_t>(count * dim));
    *positions = unique->data();
    *rows = sums->data();
    return Status();
  };
}

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_GRADIENT_VECTORS_H_
