// Ops that make tables.

#include <string>

#include "absl/strings/str_cat.h"
#include "embedra/ops/checks.h"
#include "embedra/ops/row_dtype.h"
#include "embedra/ops/table_resource.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_op_kernel.h"

namespace embedra {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

#define EMBEDRA_TABLE_ATTRS                                 \
  Attr("table_name: string")                                \
      .Attr("dim: int >= 1")                                \
      .Attr("dtype: {float, bfloat16, half} = DT_FLOAT")    \
      .Attr(                                                \
          "initializer: {'constant', 'uniform', 'normal', " \
          "'truncated_normal'} = 'constant'")               \
      .Attr("initializer_parameters: list(float) = [0.0]")  \
      .Attr("seed: int = 0")                                \
      .Attr("initial_capacity: int >= 0 = 0")               \
      .Attr("max_capacity: int >= 0 = 0")                   \
      .Attr("eviction: {'recency', 'frequency'} = 'recency'")

REGISTER_OP("EmbedraTable")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .EMBEDRA_TABLE_ATTRS.Output("handle: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
A handle to a table that lives in the session or device, by `shared_name`.

The table is made at the first execution. A handle whose `shared_name` is taken
by a table of another dim or dtype is an error.
)doc");

REGISTER_OP("EmbedraAnonymousTable")
    .EMBEDRA_TABLE_ATTRS.Output("handle: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
A new table at every execution, which lives as long as its handle.
)doc");

#undef EMBEDRA_TABLE_ATTRS

REGISTER_OP("EmbedraTableClose")
    .Input("table: resource")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Gives a table's memory back. Every later use of the table is an error.

Functions traced over a table hold its handle, and TensorFlow may keep them long
after the table's owner is gone.
)doc");

class TableHandleOp : public tensorflow::ResourceOpKernel<TableResource> {
 public:
  explicit TableHandleOp(OpKernelConstruction* ctx) : ResourceOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadTableOptions(ctx, &options_));
  }

 private:
  absl::Status CreateResource(TableResource** resource) override {
    *resource = nullptr;
    return TableResource::Create(options_, resource);
  }

  absl::Status VerifyResource(TableResource* resource) override {
    return CheckTableMatches(resource->table(), options_.dim,
                             ToDataType(options_.row_type));
  }

  TableOptions options_;
};

class AnonymousTableOp : public tensorflow::OpKernel {
 public:
  explicit AnonymousTableOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadTableOptions(ctx, &options_));
  }

  void Compute(OpKernelContext* ctx) override {
    tensorflow::Tensor* handle;
    OP_REQUIRES_OK(ctx, ctx->allocate_output("handle", {}, &handle));
    TableResource* resource;
    OP_REQUIRES_OK(ctx, TableResource::Create(options_, &resource));
    // The handle takes over the reference.
    handle->scalar<tensorflow::ResourceHandle>()() =
        tensorflow::ResourceHandle::MakeRefCountingHandle(
            resource, ctx->device()->name());
  }

 private:
  TableOptions options_;
};

class TableCloseOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    tensorflow::core::RefCountPtr<TableResource> resource;
    OP_REQUIRES_OK(ctx,
                   tensorflow::LookupResource(
                       ctx, tensorflow::HandleFromInput(ctx, 0), &resource));
    OP_REQUIRES_OK(ctx, resource->Close());
  }
};

REGISTER_KERNEL_BUILDER(Name("EmbedraTable").Device(tensorflow::DEVICE_CPU),
                        TableHandleOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraAnonymousTable").Device(tensorflow::DEVICE_CPU),
    AnonymousTableOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableClose").Device(tensorflow::DEVICE_CPU), TableCloseOp);

}  // namespace
}  // namespace embedra
