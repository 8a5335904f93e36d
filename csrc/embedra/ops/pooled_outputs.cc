#include "embedra/ops/pooled_outputs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "embedra/core/memory_pool.h"
#include "tensorflow/core/framework/allocator.h"

namespace embedra {
namespace {

using internal::MemoryPool;
using tensorflow::DataType;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Tensors keep a pointer to it: it is never destroyed.
class PoolAllocator : public tensorflow::Allocator {
 public:
  static PoolAllocator* Get() {
    static auto* const allocator = new PoolAllocator;
    return allocator;
  }

  std::string Name() override { return "embedra_pool"; }

  void* AllocateRaw(size_t, size_t bytes) override {
    return MemoryPool::Shared().Take(bytes);
  }

  void DeallocateRaw(void* data) override { MemoryPool::Shared().Give(data); }
};

bool BelongsIntoPool(DataType dtype, const TensorShape& shape) {
  const auto bytes = static_cast<size_t>(shape.num_elements()) *
                     tensorflow::DataTypeSize(dtype);
  return bytes >= MemoryPool::kLeast;
}

absl::Status Allocate(DataType dtype, const TensorShape& shape,
                      Tensor* tensor) {
  *tensor = Tensor(PoolAllocator::Get(), dtype, shape);
  if (tensor->IsInitialized()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "No memory is left for a tensor of shape ", shape.DebugString(), "."));
}

}  // namespace

absl::Status AllocatePooled(OpKernelContext* ctx, int index,
                            const TensorShape& shape, Tensor** output) {
  const DataType dtype = ctx->expected_output_dtype(index);
  if (!BelongsIntoPool(dtype, shape)) {
    return ctx->allocate_output(index, shape, output);
  }
  Tensor tensor;
  TF_RETURN_IF_ERROR(Allocate(dtype, shape, &tensor));
  ctx->set_output(index, std::move(tensor));
  *output = ctx->mutable_output(index);
  return absl::OkStatus();
}

absl::Status AllocatePooled(OpOutputList& outputs, int i,
                            const TensorShape& shape, Tensor** output) {
  const DataType dtype = outputs.expected_output_dtype(i);
  if (!BelongsIntoPool(dtype, shape)) return outputs.allocate(i, shape, output);
  Tensor tensor;
  TF_RETURN_IF_ERROR(Allocate(dtype, shape, &tensor));
  outputs.set(i, std::move(tensor));
  *output = outputs[i];
  return absl::OkStatus();
}

}  // namespace embedra
