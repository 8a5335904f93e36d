// Ops that move whole records out of and into a table.

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedra/ops/checks.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/table_kernel.h"
#include "embedra/ops/table_parallel.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace embedra {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

int64_t TotalWidth(const std::vector<SlotSpec>& slots) {
  int64_t width = 0;
  for (const SlotSpec& slot : slots) width += slot.width;
  return width;
}

REGISTER_OP("EmbedraTableExport")
    .Input("table: resource")
    .Input("cursor: int64")
    .Input("max_records: int64")
    .Output("keys: int64")
    .Output("rows: T")
    .Output("slots: float")
    .Output("frequencies: int64")
    .Output("last_steps: int64")
    .Output("next_cursor: int64")
    .Attr("T: {float, bfloat16, half}")
    .Attr("dim: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      int64_t dim;
      TF_RETURN_IF_ERROR(c->GetAttr("dim", &dim));
      TF_RETURN_IF_ERROR(CheckScalarInputs(c, "cursor"));
      TF_RETURN_IF_ERROR(CheckScalarInputs(c, "max_records"));
      const auto count = c->UnknownDim();
      const ShapeHandle vector = c->Vector(count);
      TF_RETURN_IF_ERROR(c->set_output("keys", {vector}));
      TF_RETURN_IF_ERROR(
          c->set_output("rows", {c->Matrix(count, c->MakeDim(dim))}));
      TF_RETURN_IF_ERROR(
          c->set_output("slots", {c->Matrix(count, c->UnknownDim())}));
      TF_RETURN_IF_ERROR(c->set_output("frequencies", {vector}));
      TF_RETURN_IF_ERROR(c->set_output("last_steps", {vector}));
      return c->set_output("next_cursor", {c->Scalar()});
    })
    .Doc(R"doc(
Up to `max_records` whole records from `cursor` on; start with 0.

The scan is over when `next_cursor` equals `cursor`. Records that live through
all of it appear exactly once.

slots: All slots of a record side by side, in the order of EmbedraTableSlots.
)doc");

class TableExportOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    TF_RETURN_IF_ERROR(CheckScalar("cursor", ctx->input(1)));
    TF_RETURN_IF_ERROR(CheckScalar("max_records", ctx->input(2)));
    int64_t cursor = ctx->input(1).scalar<int64_t>()();
    const int64_t max_records = ctx->input(2).scalar<int64_t>()();
    if (cursor < 0 || max_records < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Table '", table.options().name,
          "': `cursor` must not be negative, and `max_records` must be "
          "positive. Received: cursor=",
          cursor, ", max_records=", max_records, "."));
    }
    RecordBatch batch;
    TF_RETURN_IF_ERROR(ToAbsl(table.Export(&cursor, max_records, &batch)));
    TF_RETURN_IF_ERROR(SetRecords(ctx, table, batch));
    return SetScalarOutput(ctx, "next_cursor", cursor);
  }

 private:
  static absl::Status SetRecords(OpKernelContext* ctx, const Table& table,
                                 const RecordBatch& batch) {
    const auto n = static_cast<int64_t>(batch.keys.size());
    // The batch's own width: another thread may change the slots meanwhile.
    const int64_t slot_width =
        n > 0 ? static_cast<int64_t>(batch.slots.size()) / n
              : TotalWidth(table.slots());
    Tensor* rows;
    TF_RETURN_IF_ERROR(
        ctx->allocate_output("rows", TensorShape({n, table.dim()}), &rows));
    std::memcpy(MutableRawData(rows), batch.rows.data(), batch.rows.size());
    TF_RETURN_IF_ERROR(SetVectorOutput(ctx, "keys", batch.keys));
    TF_RETURN_IF_ERROR(
        SetOutput(ctx, "slots", TensorShape({n, slot_width}), batch.slots));
    TF_RETURN_IF_ERROR(SetVectorOutput(ctx, "frequencies", batch.frequencies));
    return SetVectorOutput(ctx, "last_steps", batch.last_steps);
  }
};

REGISTER_OP("EmbedraTableImport")
    .Input("table: resource")
    .Input("keys: int64")
    .Input("rows: T")
    .Input("slots: float")
    .Input("frequencies: int64")
    .Input("last_steps: int64")
    .Attr("T: {float, bfloat16, half}")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Adds or overwrites whole records, as EmbedraTableExport gives them.

`slots`, `frequencies` and `last_steps` may have no elements, and then take
their initial values.
)doc");

class TableImportOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& keys = ctx->input(1);
    const Tensor& rows = ctx->input(2);
    const Tensor& slots = ctx->input(3);
    const Tensor& frequencies = ctx->input(4);
    const Tensor& last_steps = ctx->input(5);
    TF_RETURN_IF_ERROR(CheckRank(table, "keys", keys, 1));
    const int64_t n = keys.NumElements();
    bool has_slots, has_frequencies, has_last_steps;
    TF_RETURN_IF_ERROR(
        CheckShape(table, "rows", rows, TensorShape({n, table.dim()})));
    TF_RETURN_IF_ERROR(
        CheckOptional(table, "slots", slots,
                      TensorShape({n, TotalWidth(table.slots())}), &has_slots));
    TF_RETURN_IF_ERROR(CheckOptional(table, "frequencies", frequencies,
                                     keys.shape(), &has_frequencies));
    TF_RETURN_IF_ERROR(CheckOptional(table, "last_steps", last_steps,
                                     keys.shape(), &has_last_steps));
    RecordColumns columns;
    columns.size = n;
    columns.keys = Data<int64_t>(keys);
    columns.rows = RawData(rows);
    if (has_slots) columns.slots = Data<float>(slots);
    if (has_frequencies) columns.frequencies = Data<int64_t>(frequencies);
    if (has_last_steps) columns.last_steps = Data<int64_t>(last_steps);
    return ToAbsl(table.Import(columns, DeviceParallelFor(ctx)));
  }
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableExport").Device(tensorflow::DEVICE_CPU), TableExportOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableImport").Device(tensorflow::DEVICE_CPU), TableImportOp);

}  // namespace
}  // namespace embedra
