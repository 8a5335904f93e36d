// Outputs of kernels in memory of the pool: large ones that each step makes.

#ifndef EMBEDRA_OPS_POOLED_OUTPUTS_H_
#define EMBEDRA_OPS_POOLED_OUTPUTS_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace embedra {

// As `ctx->allocate_output`, of plain dtypes only.
absl::Status AllocatePooled(tensorflow::OpKernelContext* ctx, int index,
                            const tensorflow::TensorShape& shape,
                            tensorflow::Tensor** output);

// As `outputs.allocate`.
absl::Status AllocatePooled(tensorflow::OpOutputList& outputs, int i,
                            const tensorflow::TensorShape& shape,
                            tensorflow::Tensor** output);

}  // namespace embedra

#endif  // EMBEDRA_OPS_POOLED_OUTPUTS_H_
