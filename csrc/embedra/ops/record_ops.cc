// Ops that read and write rows and slots by position, for optimizers that
// compute in TensorFlow.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// `table` has a slot of each name, with the width given beside it.
absl::Status CheckSlots(const Table& table,
                        const std::vector<std::string>& names,
                        const std::vector<int64_t>& widths) {
  const std::vector<SlotSpec> slots = table.slots();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto slot =
        std::find_if(slots.begin(), slots.end(), [&](const SlotSpec& spec) {
          return spec.name == names[i] && spec.width == widths[i];
        });
    if (slot != slots.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Table '", table.options().name, "': no slot '", names[i],
        "' of width ", widths[i], ". Its slots are: [",
        absl::StrJoin(slots, ", ",
                      [](std::string* out, const SlotSpec& spec) {
                        absl::StrAppend(out, spec.name, ":", spec.width);
                      }),
        "]."));
  }
  return absl::OkStatus();
}

absl::Status ReadSlotAttributes(OpKernelConstruction* ctx,
                                std::vector<std::string>* names,
                                std::vector<int64_t>* widths) {
  TF_RETURN_IF_ERROR(ctx->GetAttr("slot_names", names));
  TF_RETURN_IF_ERROR(ctx->GetAttr("slot_widths", widths));
  int64_t num_slots;
  TF_RETURN_IF_ERROR(ctx->GetAttr("K", &num_slots));
  const auto count = static_cast<size_t>(num_slots);
  if (names->size() == count && widths->size() == count) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "`slot_names` and `slot_widths` must have one entry for each of the ",
      count, " slots. Received: ", names->size(), " names and ", widths->size(),
      " widths."));
}

REGISTER_OP("EmbedraTableReadRecords")
    .Input("table: resource")
    .Input("positions: int64")
    .Output("rows: float")
    .Output("slots: K * float")
    .Attr("K: int >= 0")
    .Attr("dim: int >= 1")
    .Attr("slot_names: list(string)")
    .Attr("slot_widths: list(int)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      int64_t dim;
      std::vector<int64_t> widths;
      ShapeHandle positions;
      TF_RETURN_IF_ERROR(c->GetAttr("dim", &dim));
      TF_RETURN_IF_ERROR(c->GetAttr("slot_widths", &widths));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &positions));
      const auto count = c->Dim(positions, 0);
      c->set_output(0, c->Matrix(count, c->MakeDim(dim)));
      for (int i = 1; i < c->num_outputs(); ++i) {
        if (i > static_cast<int>(widths.size())) {
          return absl::InvalidArgumentError(
              "`slot_widths` must have one entry for each slot.");
        }
        c->set_output(i, c->Matrix(count, c->MakeDim(widths[i - 1])));
      }
      return absl::OkStatus();
    })
    .Doc(R"doc(
Rows, as float32, and slots of the records at `positions`.

Positions must be unique; records that are gone read as zeros.
)doc");

class TableReadRecordsOp : public TableKernel {
 public:
  explicit TableReadRecordsOp(OpKernelConstruction* ctx) : TableKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadSlotAttributes(ctx, &names_, &widths_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& positions = ctx->input(1);
    TF_RETURN_IF_ERROR(CheckRank(table, "positions", positions, 1));
    TF_RETURN_IF_ERROR(CheckSlots(table, names_, widths_));
    const int64_t n = positions.NumElements();
    Tensor* rows;
    OpOutputList slots;
    TF_RETURN_IF_ERROR(
        ctx->allocate_output("rows", TensorShape({n, table.dim()}), &rows));
    TF_RETURN_IF_ERROR(ctx->output_list("slots", &slots));
    std::vector<float*> columns;
    for (size_t i = 0; i < names_.size(); ++i) {
      Tensor* slot;
      TF_RETURN_IF_ERROR(slots.allocate(static_cast<int>(i),
                                        TensorShape({n, widths_[i]}), &slot));
      columns.push_back(MutableData<float>(slot));
    }
    return ToAbsl(table.ReadRecords(Data<int64_t>(positions), n, names_,
                                    MutableData<float>(rows), columns,
                                    DeviceParallelFor(ctx)));
  }

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> widths_;
};

REGISTER_OP("EmbedraTableWriteRecords")
    .Input("table: resource")
    .Input("positions: int64")
    .Input("rows: float")
    .Input("slots: K * float")
    .Attr("K: int >= 0")
    .Attr("slot_names: list(string)")
    .Attr("slot_widths: list(int)")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Writes rows and slots of the records at `positions`; those gone are skipped.
)doc");

class TableWriteRecordsOp : public TableKernel {
 public:
  explicit TableWriteRecordsOp(OpKernelConstruction* ctx) : TableKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadSlotAttributes(ctx, &names_, &widths_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& positions = ctx->input(1);
    const Tensor& rows = ctx->input(2);
    OpInputList slots;
    TF_RETURN_IF_ERROR(ctx->input_list("slots", &slots));
    TF_RETURN_IF_ERROR(CheckRank(table, "positions", positions, 1));
    TF_RETURN_IF_ERROR(CheckSlots(table, names_, widths_));
    const int64_t n = positions.NumElements();
    TF_RETURN_IF_ERROR(
        CheckShape(table, "rows", rows, TensorShape({n, table.dim()})));
    std::vector<const float*> columns;
    for (size_t i = 0; i < names_.size(); ++i) {
      const Tensor& slot = slots[static_cast<int>(i)];
      TF_RETURN_IF_ERROR(
          CheckShape(table, names_[i], slot, TensorShape({n, widths_[i]})));
      columns.push_back(Data<float>(slot));
    }
    return ToAbsl(table.WriteRecords(Data<int64_t>(positions), n, names_,
                                     Data<float>(rows), columns,
                                     DeviceParallelFor(ctx)));
  }

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> widths_;
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableReadRecords").Device(tensorflow::DEVICE_CPU),
    TableReadRecordsOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableWriteRecords").Device(tensorflow::DEVICE_CPU),
    TableWriteRecordsOp);

}  // namespace
}  // namespace embedra
