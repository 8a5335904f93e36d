// Ops by which a table is kept small: restriction, and counts of uses.

#include <string>
#include <vector>

#include "embedra/ops/checks.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/table_kernel.h"
#include "embedra/ops/table_parallel.h"
#include "embedra/ops/table_resource.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedra {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

REGISTER_OP("EmbedraTableRestrict")
    .Input("table: resource")
    .Input("max_records: int64")
    .Output("removed: int64")
    .Attr("order: {'recency', 'frequency'} = 'recency'")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      TF_RETURN_IF_ERROR(CheckScalarInputs(c, "max_records"));
      return VectorOutputs(c);
    })
    .Doc(R"doc(
Keeps the `max_records` records that are highest in an order.

removed: The keys of the others, each once.
order: `recency` drops those with the smallest last step first, `frequency`
  those with the fewest training lookups. Ties go by the other, then by key.
)doc");

class TableRestrictOp : public TableKernel {
 public:
  explicit TableRestrictOp(OpKernelConstruction* ctx) : TableKernel(ctx) {
    std::string order;
    OP_REQUIRES_OK(ctx, ctx->GetAttr("order", &order));
    OP_REQUIRES_OK(ctx, ParseEvictionOrder(order, &order_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    TF_RETURN_IF_ERROR(CheckScalar("max_records", ctx->input(1)));
    std::vector<int64_t> removed;
    TF_RETURN_IF_ERROR(
        ToAbsl(table.Restrict(ctx->input(1).scalar<int64_t>()(), order_,
                              &removed, DeviceParallelFor(ctx))));
    return SetVectorOutput(ctx, "removed", removed);
  }

 private:
  EvictionOrder order_;
};

REGISTER_OP("EmbedraTableCountUses")
    .Input("table: resource")
    .Input("keys: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Counts a use of each key that the table holds, at a step of its own.

Training lookups count by themselves.
)doc");

class TableCountUsesOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& keys = ctx->input(1);
    return ToAbsl(table.CountUses(Data<int64_t>(keys), keys.NumElements(),
                                  DeviceParallelFor(ctx)));
  }
};

REGISTER_OP("EmbedraTableUses")
    .Input("table: resource")
    .Input("keys: int64")
    .Output("frequencies: int64")
    .Output("last_steps: int64")
    .Output("found: bool")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      for (int i = 0; i < 3; ++i) c->set_output(i, c->input(1));
      return absl::OkStatus();
    })
    .Doc(R"doc(
How often, and at which step last, keys were used; 0 for absent keys.
)doc");

class TableUsesOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& keys = ctx->input(1);
    Tensor *frequencies, *last_steps, *found;
    TF_RETURN_IF_ERROR(
        ctx->allocate_output("frequencies", keys.shape(), &frequencies));
    TF_RETURN_IF_ERROR(
        ctx->allocate_output("last_steps", keys.shape(), &last_steps));
    TF_RETURN_IF_ERROR(ctx->allocate_output("found", keys.shape(), &found));
    return ToAbsl(table.Uses(Data<int64_t>(keys), keys.NumElements(),
                             MutableData<int64_t>(frequencies),
                             MutableData<int64_t>(last_steps),
                             MutableData<bool>(found), DeviceParallelFor(ctx)));
  }
};

REGISTER_KERNEL_BUILDER(Name("EmbedraTableUses").Device(tensorflow::DEVICE_CPU),
                        TableUsesOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableRestrict").Device(tensorflow::DEVICE_CPU),
    TableRestrictOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableCountUses").Device(tensorflow::DEVICE_CPU),
    TableCountUsesOp);

}  // namespace
}  // namespace embedra
