// Raw access to tensors, and tensors from vectors.

#ifndef EMBEDRA_OPS_TENSORS_H_
#define EMBEDRA_OPS_TENSORS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace embedra {

// The elements of `tensor`, row-major. `Element` must be its dtype.
template <typename Element>
const Element* Data(const tensorflow::Tensor& tensor) {
  return tensor.flat<Element>().data();
}

template <typename Element>
Element* MutableData(tensorflow::Tensor* tensor) {
  return tensor->flat<Element>().data();
}

// The elements of a tensor of any plain dtype.
inline const void* RawData(const tensorflow::Tensor& tensor) {
  return tensor.tensor_data().data();
}

inline void* MutableRawData(tensorflow::Tensor* tensor) {
  return const_cast<char*>(tensor->tensor_data().data());
}

// Allocates output `name`, which must not be a list, and copies `values` to it.
// `shape` must have as many elements as `values`.
template <typename Element>
absl::Status SetOutput(tensorflow::OpKernelContext* ctx, const char* name,
                       const tensorflow::TensorShape& shape,
                       const std::vector<Element>& values) {
  tensorflow::Tensor* output;
  TF_RETURN_IF_ERROR(ctx->allocate_output(name, shape, &output));
  std::copy(values.begin(), values.end(), MutableData<Element>(output));
  return absl::OkStatus();
}

template <typename Element>
absl::Status SetVectorOutput(tensorflow::OpKernelContext* ctx, const char* name,
                             const std::vector<Element>& values) {
  return SetOutput(
      ctx, name, tensorflow::TensorShape({static_cast<int64_t>(values.size())}),
      values);
}

inline absl::Status SetVectorOutput(tensorflow::OpKernelContext* ctx,
                                    const char* name,
                                    const std::vector<std::string>& values) {
  tensorflow::Tensor* output;
  TF_RETURN_IF_ERROR(ctx->allocate_output(
      name, tensorflow::TensorShape({static_cast<int64_t>(values.size())}),
      &output));
  std::copy(values.begin(), values.end(),
            MutableData<tensorflow::tstring>(output));
  return absl::OkStatus();
}

template <typename Element>
absl::Status SetScalarOutput(tensorflow::OpKernelContext* ctx, const char* name,
                             Element value) {
  return SetOutput(ctx, name, tensorflow::TensorShape({}),
                   std::vector<Element>{value});
}

}  // namespace embedra

#endif  // EMBEDRA_OPS_TENSORS_H_
