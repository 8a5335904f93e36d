#include "embedra/ops/summed_gradients.h"

#include <algorithm>

#include "embedra/ops/tensors.h"

namespace embedra {

using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

absl::Status SetGradientOutputs(tensorflow::OpKernelContext* ctx,
                                const TableList& tables,
                                const std::vector<SummedGradients>& gradients,
                                const char* unique, const char* sums) {
  OpOutputList unique_list, sums_list;
  TF_RETURN_IF_ERROR(ctx->output_list(unique, &unique_list));
  TF_RETURN_IF_ERROR(ctx->output_list(sums, &sums_list));
  for (int i = 0; i < tables.size(); ++i) {
    const SummedGradients& from = gradients[i];
    const int64_t count = static_cast<int64_t>(from.unique.size());
    Tensor* unique_output;
    Tensor* sums_output;
    TF_RETURN_IF_ERROR(
        unique_list.allocate(i, TensorShape({count}), &unique_output));
    TF_RETURN_IF_ERROR(sums_list.allocate(
        i, TensorShape({count, tables[i].dim()}), &sums_output));
    std::copy(from.unique.begin(), from.unique.end(),
              MutableData<int64_t>(unique_output));
    std::copy(from.sums.begin(), from.sums.end(),
              MutableData<float>(sums_output));
  }
  return absl::OkStatus();
}

}  // namespace embedra
