// Outputs of the ops that sum gradients over equal positions.

#ifndef EMBEDRA_OPS_SUMMED_GRADIENTS_H_
#define EMBEDRA_OPS_SUMMED_GRADIENTS_H_

#include <vector>

#include "absl/status/status.h"
#include "embedra/ops/table_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedra {

// What the core hands back for one table.
struct SummedGradients {
  std::vector<int64_t> unique;  // positions, (u)
  std::vector<float> sums;      // (u x dim)
};

// Copies `gradients`, one for each table, to the output lists `unique` (of
// shapes [u]) and `sums` (of shapes [u, dim]).
absl::Status SetGradientOutputs(tensorflow::OpKernelContext* ctx,
                                const TableList& tables,
                                const std::vector<SummedGradients>& gradients,
                                const char* unique, const char* sums);

}  // namespace embedra

#endif  // EMBEDRA_OPS_SUMMED_GRADIENTS_H_
