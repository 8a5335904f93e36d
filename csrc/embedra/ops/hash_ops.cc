// An op that numbers keys without gaps worth mentioning, for exports.

#include <vector>

#include "absl/strings/str_cat.h"
#include "embedra/core/perfect_hash.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace embedra {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::shape_inference::InferenceContext;

REGISTER_OP("EmbedraPerfectHash")
    .Input("keys: int64")
    .Output("parameters: int64")
    .Output("pilots: uint16")
    .Output("slots: int64")
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      c->set_output(0, c->Vector(4));
      c->set_output(1, c->Vector(InferenceContext::kUnknownDim));
      c->set_output(2, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    })
    .Doc(R"doc(
A slot of its own for each key; see embedra/core/perfect_hash.h.

keys: Shape [n]; repeats count once.
parameters: The multiplier of keys, that of buckets, the shift, and the number
  of slots.
pilots: One for each bucket.
slots: The key whose slot it is; in vacant ones a key that has another slot.
)doc");

class PerfectHashOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& keys = ctx->input(0);
    OP_REQUIRES(ctx, keys.dims() == 1,
                absl::InvalidArgumentError(
                    absl::StrCat("`keys` must be a vector. Received: shape ",
                                 keys.shape().DebugString())));
    const int64_t n = keys.NumElements();
    PerfectHash hash;
    OP_REQUIRES_OK(ctx,
                   ToAbsl(PerfectHash::Build(Data<int64_t>(keys), n, &hash)));
    const std::vector<int64_t> parameters = {
        static_cast<int64_t>(hash.key_multiplier),
        static_cast<int64_t>(hash.bucket_multiplier), hash.shift,
        static_cast<int64_t>(hash.num_slots)};
    OP_REQUIRES_OK(ctx, SetVectorOutput(ctx, "parameters", parameters));
    OP_REQUIRES_OK(ctx, SetVectorOutput(ctx, "pilots", hash.pilots));
    Tensor* slots;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(
                            "slots", TensorShape({parameters[3]}), &slots));
    hash.FillSlots(Data<int64_t>(keys), n, MutableData<int64_t>(slots));
  }
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraPerfectHash").Device(tensorflow::DEVICE_CPU), PerfectHashOp);

}  // namespace
}  // namespace embedra
