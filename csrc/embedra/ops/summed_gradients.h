// Outputs of the ops that sum gradients over equal positions.

#ifndef EMBEDRA_OPS_SUMMED_GRADIENTS_H_
#define EMBEDRA_OPS_SUMMED_GRADIENTS_H_

#include "absl/status/status.h"
#include "embedra/core/table.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedra {

// The output lists `unique` (of shapes [u]) and `sums` (of shapes [u, dim]),
// one entry for each table, which the core fills in place.
class GradientOutputs {
 public:
  absl::Status Init(tensorflow::OpKernelContext* ctx, const char* unique,
                    const char* sums);

  // Where the core puts the gradients of table `i`, which is `dim` wide. May be
  // used for several tables at once.
  GradientOutput For(int i, int64_t dim);

 private:
  tensorflow::OpOutputList unique_;
  tensorflow::OpOutputList sums_;
};

}  // namespace embedra

#endif  // EMBEDRA_OPS_SUMMED_GRADIENTS_H_
