#include "embedra/ops/summed_gradients.h"

#include <string>

#include "embedra/ops/pooled_outputs.h"
#include "embedra/ops/tensors.h"

namespace embedra {

using tensorflow::Tensor;
using tensorflow::TensorShape;

absl::Status GradientOutputs::Init(tensorflow::OpKernelContext* ctx,
                                   const char* unique, const char* sums) {
  TF_RETURN_IF_ERROR(ctx->output_list(unique, &unique_));
  return ctx->output_list(sums, &sums_);
}

GradientOutput GradientOutputs::For(int i, int64_t dim) {
  return [this, i, dim](int64_t count, int64_t** unique, float** sums) {
    Tensor* unique_output;
    Tensor* sums_output;
    absl::Status status =
        AllocatePooled(unique_, i, TensorShape({count}), &unique_output);
    status.Update(
        AllocatePooled(sums_, i, TensorShape({count, dim}), &sums_output));
    if (!status.ok()) {
      return Status::ResourceExhausted(std::string(status.message()));
    }
    *unique = MutableData<int64_t>(unique_output);
    *sums = MutableData<float>(sums_output);
    return Status();
  };
}

}  // namespace embedra
