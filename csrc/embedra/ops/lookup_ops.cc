// Ops that read rows by key.

#include <vector>

#include "embedra/ops/checks.h"
#include "embedra/ops/pooled_outputs.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/status_convert.h"
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

REGISTER_OP("EmbedraTableLookup")
    .Input("tables: N * resource")
    .Input("trainables: N * resource")
    .Input("keys: N * int64")
    .Input("default_rows: N * T")
    .Output("rows: N * T")
    .Output("positions: N * int64")
    .Output("found: N * bool")
    .Output("bounds: N * int64")
    .Attr("N: int >= 1")
    .Attr("T: {float, bfloat16, half}")
    .Attr("dims: list(int)")
    .Attr("insert: bool")
    .Attr("insert_in_gradient: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      std::vector<int64_t> dims;
      std::vector<ShapeHandle> keys;
      TF_RETURN_IF_ERROR(GetDims(c, &dims));
      TF_RETURN_IF_ERROR(c->input("keys", &keys));
      std::vector<ShapeHandle> rows(keys.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        TF_RETURN_IF_ERROR(
            c->Concatenate(keys[i], c->Vector(dims[i]), &rows[i]));
      }
      TF_RETURN_IF_ERROR(c->set_output("rows", rows));
      TF_RETURN_IF_ERROR(c->set_output("positions", keys));
      TF_RETURN_IF_ERROR(c->set_output("found", keys));
      return c->set_output("bounds",
                           std::vector<ShapeHandle>(keys.size(), c->Scalar()));
    })
    .Doc(R"doc(
Looks up the rows of keys, and with `insert` creates those that are absent.

Without `insert`, an absent key gets its default row, or the row it would start
with where `default_rows` has no elements. `positions` is -1 for it.

trainables: Handles of the variables that stand for the tables; never read. The
  gradient with respect to them is made of slices at `positions`.
bounds: One more than the largest position ever used in each table.
insert_in_gradient: Without `insert`, whether absent keys are created if and when
  a gradient is computed.
)doc");

class TableLookupOp : public TableListKernel {
 public:
  explicit TableLookupOp(OpKernelConstruction* ctx) : TableListKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("insert", &insert_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList keys, defaults;
    OpOutputList rows, positions, found, bounds;
    TF_RETURN_IF_ERROR(ctx->input_list("keys", &keys));
    TF_RETURN_IF_ERROR(ctx->input_list("default_rows", &defaults));
    TF_RETURN_IF_ERROR(ctx->output_list("rows", &rows));
    TF_RETURN_IF_ERROR(ctx->output_list("positions", &positions));
    TF_RETURN_IF_ERROR(ctx->output_list("found", &found));
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
      TensorShape shape = keys[i].shape();
      TF_RETURN_IF_ERROR(positions.allocate(i, shape, &call.positions));
      TF_RETURN_IF_ERROR(found.allocate(i, shape, &call.found));
      TF_RETURN_IF_ERROR(bounds.allocate(i, TensorShape({}), &call.bound));
      TF_RETURN_IF_ERROR(shape.AddDimWithStatus(tables[i].dim()));
      TF_RETURN_IF_ERROR(AllocatePooled(rows, i, shape, &call.rows));
      cost_ns += RowsCostNs(keys[i].NumElements(), tables[i].dim());
    }

    const ParallelFor parallel = DeviceParallelFor(ctx);
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return Lookup(tables[i], keys[i], calls[i], parallel);
    });
  }

 private:
  struct Call {
    const void* default_row = nullptr;
    Tensor* rows = nullptr;
    Tensor* positions = nullptr;
    Tensor* found = nullptr;
    Tensor* bound = nullptr;
  };

  absl::Status Lookup(Table& table, const Tensor& keys, const Call& call,
                      const ParallelFor& parallel) const {
    const int64_t n = keys.NumElements();
    void* rows = MutableRawData(call.rows);
    int64_t* positions = MutableData<int64_t>(call.positions);
    bool* found = MutableData<bool>(call.found);
    const MissingRow missing = call.default_row == nullptr
                                   ? MissingRow::kInitial
                                   : MissingRow::kDefault;
    const Status status =
        insert_ ? table.FindOrInsert(Data<int64_t>(keys), n, rows, positions,
                                     found, parallel)
                : table.Find(Data<int64_t>(keys), n, missing, call.default_row,
                             rows, positions, found, parallel);
    call.bound->scalar<int64_t>()() = table.position_bound();
    return ToAbsl(status);
  }

  bool insert_;
};

REGISTER_OP("EmbedraTableMissing")
    .Input("table: resource")
    .Input("keys: int64")
    .Output("missing: int64")
    .SetIsStateful()
    .SetShapeFn(VectorOutputs)
    .Doc(R"doc(
The keys that the table does not hold, each once, in order of appearance.
)doc");

class TableMissingOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& keys = ctx->input(1);
    std::vector<int64_t> missing;
    TF_RETURN_IF_ERROR(ToAbsl(
        table.FindMissing(Data<int64_t>(keys), keys.NumElements(), &missing)));
    return SetVectorOutput(ctx, "missing", missing);
  }
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableLookup").Device(tensorflow::DEVICE_CPU), TableLookupOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableMissing").Device(tensorflow::DEVICE_CPU), TableMissingOp);

}  // namespace
}  // namespace embedra
