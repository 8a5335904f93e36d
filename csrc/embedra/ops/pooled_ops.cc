// Ops that look up bags of keys and combine their rows in one pass.

#include <string>
#include <vector>

#include "embedra/ops/checks.h"
#include "embedra/ops/pooled_outputs.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/summed_gradients.h"
#include "embedra/ops/table_kernel.h"
#include "embedra/ops/table_parallel.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/op.h"

namespace embedra {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// The op definitions admit these three values only.
absl::Status ReadCombiner(OpKernelConstruction* ctx, Combiner* combiner) {
  std::string name;
  TF_RETURN_IF_ERROR(ctx->GetAttr("combiner", &name));
  *combiner = name == "mean"    ? Combiner::kMean
              : name == "sqrtn" ? Combiner::kSqrtN
                                : Combiner::kSum;
  return absl::OkStatus();
}

// Checks the inputs that describe the bags of one table. `keys` may also be
// their positions: only its length counts, and the caller sets `bags->keys`.
absl::Status ReadBags(const Table& table, const Tensor& keys,
                      const Tensor& row_splits, const Tensor& weights,
                      Bags* bags) {
  bool weighted;
  TF_RETURN_IF_ERROR(CheckRank(table, "keys", keys, 1));
  TF_RETURN_IF_ERROR(CheckRowSplits(table, row_splits, keys.NumElements()));
  TF_RETURN_IF_ERROR(
      CheckOptional(table, "weights", weights, keys.shape(), &weighted));
  if (weighted) bags->weights = Data<float>(weights);
  bags->row_splits = Data<int64_t>(row_splits);
  bags->num_bags = row_splits.NumElements() - 1;
  return absl::OkStatus();
}

REGISTER_OP("EmbedraTablePooledLookup")
    .Input("tables: N * resource")
    .Input("trainables: N * resource")
    .Input("keys: N * int64")
    .Input("row_splits: N * int64")
    .Input("weights: N * float")
    .Input("default_rows: N * T")
    .Output("pooled: N * float")
    .Output("positions: N * int64")
    .Output("bounds: N * int64")
    .Attr("N: int >= 1")
    .Attr("T: {float, bfloat16, half}")
    .Attr("dims: list(int)")
    .Attr("insert: bool")
    .Attr("insert_in_gradient: bool = false")
    .Attr("combiner: {'sum', 'mean', 'sqrtn'}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      std::vector<int64_t> dims;
      std::vector<ShapeHandle> keys, row_splits;
      TF_RETURN_IF_ERROR(GetDims(c, &dims));
      TF_RETURN_IF_ERROR(c->input("keys", &keys));
      TF_RETURN_IF_ERROR(c->input("row_splits", &row_splits));
      std::vector<ShapeHandle> pooled(keys.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        tensorflow::shape_inference::DimensionHandle num_bags;
        TF_RETURN_IF_ERROR(c->WithRank(keys[i], 1, &keys[i]));
        TF_RETURN_IF_ERROR(c->WithRank(row_splits[i], 1, &row_splits[i]));
        TF_RETURN_IF_ERROR(c->Subtract(c->Dim(row_splits[i], 0), 1, &num_bags));
        pooled[i] = c->Matrix(num_bags, c->MakeDim(dims[i]));
      }
      TF_RETURN_IF_ERROR(c->set_output("pooled", pooled));
      TF_RETURN_IF_ERROR(c->set_output("positions", keys));
      return c->set_output("bounds",
                           std::vector<ShapeHandle>(keys.size(), c->Scalar()));
    })
    .Doc(R"doc(
Looks up bags of keys and combines the rows of each bag to one.

Bag b of a table holds keys[row_splits[b] : row_splits[b + 1]]; an empty bag
gives zeros. Absent keys and `trainables` are as in EmbedraTableLookup.

weights: One weight for each key, or no elements for none.
)doc");

class TablePooledLookupOp : public TableListKernel {
 public:
  explicit TablePooledLookupOp(OpKernelConstruction* ctx)
      : TableListKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("insert", &insert_));
    OP_REQUIRES_OK(ctx, ReadCombiner(ctx, &combiner_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList keys, row_splits, weights, defaults;
    OpOutputList pooled, positions, bounds;
    TF_RETURN_IF_ERROR(ctx->input_list("keys", &keys));
    TF_RETURN_IF_ERROR(ctx->input_list("row_splits", &row_splits));
    TF_RETURN_IF_ERROR(ctx->input_list("weights", &weights));
    TF_RETURN_IF_ERROR(ctx->input_list("default_rows", &defaults));
    TF_RETURN_IF_ERROR(ctx->output_list("pooled", &pooled));
    TF_RETURN_IF_ERROR(ctx->output_list("positions", &positions));
    TF_RETURN_IF_ERROR(ctx->output_list("bounds", &bounds));

    std::vector<Call> calls(tables.size());
    int64_t cost_ns = 0;
    for (int i = 0; i < tables.size(); ++i) {
      Call& call = calls[i];
      bool has_default;
      TF_RETURN_IF_ERROR(CheckOptional(tables[i], "default_rows", defaults[i],
                                       TensorShape({tables[i].dim()}),
                                       &has_default));
      if (has_default) call.default_row = RawData(defaults[i]);
      TF_RETURN_IF_ERROR(
          ReadBags(tables[i], keys[i], row_splits[i], weights[i], &call.bags));
      call.bags.keys = Data<int64_t>(keys[i]);
      call.bags.combiner = combiner_;
      TF_RETURN_IF_ERROR(AllocatePooled(
          pooled, i, TensorShape({call.bags.num_bags, tables[i].dim()}),
          &call.pooled));
      TF_RETURN_IF_ERROR(
          AllocatePooled(positions, i, keys[i].shape(), &call.positions));
      TF_RETURN_IF_ERROR(bounds.allocate(i, TensorShape({}), &call.bound));
      cost_ns += RowsCostNs(keys[i].NumElements(), tables[i].dim());
    }

    const ParallelFor parallel = DeviceParallelFor(ctx);
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return Lookup(tables[i], calls[i], parallel);
    });
  }

 private:
  struct Call {
    Bags bags;
    const void* default_row = nullptr;
    Tensor* pooled = nullptr;
    Tensor* positions = nullptr;
    Tensor* bound = nullptr;
  };

  absl::Status Lookup(Table& table, const Call& call,
                      const ParallelFor& parallel) const {
    float* pooled = MutableData<float>(call.pooled);
    int64_t* positions = MutableData<int64_t>(call.positions);
    const MissingRow missing = call.default_row == nullptr
                                   ? MissingRow::kInitial
                                   : MissingRow::kDefault;
    const Status status =
        insert_
            ? table.FindOrInsertPooled(call.bags, pooled, positions, parallel)
            : table.FindPooled(call.bags, missing, call.default_row, pooled,
                               positions, parallel);
    call.bound->scalar<int64_t>()() = table.position_bound();
    return ToAbsl(status);
  }

  bool insert_;
  Combiner combiner_;
};

REGISTER_OP("EmbedraTablePooledGradient")
    .Input("tables: N * resource")
    .Input("positions: N * int64")
    .Input("row_splits: N * int64")
    .Input("weights: N * float")
    .Input("grads: N * float")
    .Output("unique: N * int64")
    .Output("values: N * float")
    .Attr("N: int >= 1")
    .Attr("dims: list(int)")
    .Attr("combiner: {'sum', 'mean', 'sqrtn'}")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return SummedGradientShapes(c, "unique", "values");
    })
    .Doc(R"doc(
The gradient of EmbedraTablePooledLookup with respect to the rows.

Summed over equal positions; the gradient of each key is never formed. Keys
without a position are left out.

positions: Those that the lookup gave.
)doc");

class TablePooledGradientOp : public TableListKernel {
 public:
  explicit TablePooledGradientOp(OpKernelConstruction* ctx)
      : TableListKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadCombiner(ctx, &combiner_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList positions, row_splits, weights, grads;
    TF_RETURN_IF_ERROR(ctx->input_list("positions", &positions));
    TF_RETURN_IF_ERROR(ctx->input_list("row_splits", &row_splits));
    TF_RETURN_IF_ERROR(ctx->input_list("weights", &weights));
    TF_RETURN_IF_ERROR(ctx->input_list("grads", &grads));

    std::vector<Bags> bags(tables.size());
    int64_t cost_ns = 0;
    for (int i = 0; i < tables.size(); ++i) {
      TF_RETURN_IF_ERROR(ReadBags(tables[i], positions[i], row_splits[i],
                                  weights[i], &bags[i]));
      bags[i].combiner = combiner_;
      TF_RETURN_IF_ERROR(
          CheckShape(tables[i], "grads", grads[i],
                     TensorShape({bags[i].num_bags, tables[i].dim()})));
      cost_ns += RowsCostNs(positions[i].NumElements(), tables[i].dim());
    }

    const ParallelFor parallel = DeviceParallelFor(ctx);
    GradientOutputs outputs;
    TF_RETURN_IF_ERROR(outputs.Init(ctx, "unique", "values"));
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return ToAbsl(tables[i].PooledGradient(
          bags[i], Data<int64_t>(positions[i]), Data<float>(grads[i]),
          outputs.For(i, tables[i].dim()), parallel));
    });
  }

 private:
  Combiner combiner_;
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraTablePooledLookup").Device(tensorflow::DEVICE_CPU),
    TablePooledLookupOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTablePooledGradient").Device(tensorflow::DEVICE_CPU),
    TablePooledGradientOp);

}  // namespace
}  // namespace embedra
