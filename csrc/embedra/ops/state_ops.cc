// Ops for a table's state: whole records, slot layout, clock, statistics.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedra/core/row_kernels.h"
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

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;

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

REGISTER_OP("EmbedraTableSlots")
    .Input("table: resource")
    .Output("names: string")
    .Output("widths: int64")
    .Output("initials: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      const ShapeHandle vector = c->Vector(InferenceContext::kUnknownDim);
      for (int i = 0; i < 3; ++i) c->set_output(i, vector);
      return absl::OkStatus();
    })
    .Doc(R"doc(
The slots kept beside each row, in the order of their columns in a record.
)doc");

class TableSlotsOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    std::vector<std::string> names;
    std::vector<int64_t> widths;
    std::vector<float> initials;
    for (const SlotSpec& slot : table.slots()) {
      names.push_back(slot.name);
      widths.push_back(slot.width);
      initials.push_back(slot.initial);
    }
    TF_RETURN_IF_ERROR(SetVectorOutput(ctx, "names", names));
    TF_RETURN_IF_ERROR(SetVectorOutput(ctx, "widths", widths));
    return SetVectorOutput(ctx, "initials", initials);
  }
};

REGISTER_OP("EmbedraTableSetSlots")
    .Input("table: resource")
    .Input("names: string")
    .Input("widths: int64")
    .Input("initials: float")
    .Output("dropped: string")
    .SetIsStateful()
    .SetShapeFn(VectorOutputs)
    .Doc(R"doc(
Sets the slots kept beside each row, and names those that were dropped.

Slots that stay the same keep their contents; new ones start at `initials`.
)doc");

class TableSetSlotsOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& names = ctx->input(1);
    const Tensor& widths = ctx->input(2);
    const Tensor& initials = ctx->input(3);
    TF_RETURN_IF_ERROR(CheckRank(table, "names", names, 1));
    TF_RETURN_IF_ERROR(CheckShape(table, "widths", widths, names.shape()));
    TF_RETURN_IF_ERROR(CheckShape(table, "initials", initials, names.shape()));
    std::vector<SlotSpec> slots(names.NumElements());
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i].name = std::string(Data<tstring>(names)[i]);
      slots[i].width = Data<int64_t>(widths)[i];
      slots[i].initial = Data<float>(initials)[i];
    }
    std::vector<std::string> dropped;
    TF_RETURN_IF_ERROR(ToAbsl(table.SetSlots(slots, &dropped)));
    return SetVectorOutput(ctx, "dropped", dropped);
  }
};

REGISTER_OP("EmbedraTableStatistics")
    .Input("table: resource")
    .Output("counters: int64")
    .Output("load_factor: double")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      c->set_output(0, c->Vector(9));
      c->set_output(1, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
What a table holds and has seen.

counters: size, capacity, bytes, inserts, removes, hits, misses, updates,
  stale_gradients.
load_factor: Occupied share of the index.
)doc");

class TableStatisticsOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Statistics s = table.statistics();
    const std::vector<int64_t> counters = {
        s.size, s.capacity, s.bytes,   s.inserts,        s.removes,
        s.hits, s.misses,   s.updates, s.stale_gradients};
    TF_RETURN_IF_ERROR(SetVectorOutput(ctx, "counters", counters));
    return SetScalarOutput(ctx, "load_factor", s.load_factor);
  }
};

REGISTER_OP("EmbedraTableStep")
    .Input("table: resource")
    .Output("step: int64")
    .SetIsStateful()
    .SetShapeFn(ScalarOutputs)
    .Doc(R"doc(
The table's clock: the number of optimizer steps that it has seen.
)doc");

class TableStepOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    return SetScalarOutput(ctx, "step", table.step());
  }
};

REGISTER_OP("EmbedraTableSetStep")
    .Input("table: resource")
    .Input("step: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return CheckScalarInputs(c, "step");
    })
    .Doc(R"doc(
Sets the table's clock.
)doc");

class TableSetStepOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    TF_RETURN_IF_ERROR(CheckScalar("step", ctx->input(1)));
    table.set_step(ctx->input(1).scalar<int64_t>()());
    return absl::OkStatus();
  }
};

REGISTER_OP("EmbedraTableKeys")
    .Input("table: resource")
    .Input("positions: int64")
    .Output("keys: int64")
    .Output("alive: bool")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      c->set_output(0, c->input(1));
      c->set_output(1, c->input(1));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The keys of the records at `positions`; 0 and not alive for those gone.
)doc");

class TableKeysOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& positions = ctx->input(1);
    Tensor *keys, *alive;
    TF_RETURN_IF_ERROR(ctx->allocate_output("keys", positions.shape(), &keys));
    TF_RETURN_IF_ERROR(
        ctx->allocate_output("alive", positions.shape(), &alive));
    return ToAbsl(table.Keys(Data<int64_t>(positions), positions.NumElements(),
                             MutableData<int64_t>(keys),
                             MutableData<bool>(alive)));
  }
};

REGISTER_OP("EmbedraTableSetInitializer")
    .Input("table: resource")
    .Input("name: string")
    .Input("kind: string")
    .Input("parameters: float")
    .Input("seed: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      for (const char* scalar : {"name", "kind", "seed"}) {
        TF_RETURN_IF_ERROR(CheckScalarInputs(c, scalar));
      }
      return absl::OkStatus();
    })
    .Doc(R"doc(
Sets what the rows of keys that come later are drawn from.

name: Stands for the table's name in the draw.
kind: constant, uniform, normal or truncated_normal.
)doc");

class TableSetInitializerOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& name = ctx->input(1);
    const Tensor& kind = ctx->input(2);
    const Tensor& parameters = ctx->input(3);
    const Tensor& seed = ctx->input(4);
    TF_RETURN_IF_ERROR(CheckScalar("name", name));
    TF_RETURN_IF_ERROR(CheckScalar("kind", kind));
    TF_RETURN_IF_ERROR(CheckRank(table, "parameters", parameters, 1));
    TF_RETURN_IF_ERROR(CheckScalar("seed", seed));
    InitializerSpec initializer;
    TF_RETURN_IF_ERROR(
        ParseInitializer(kind.scalar<tstring>()(), &initializer.kind));
    const float* values = Data<float>(parameters);
    initializer.parameters.assign(values, values + parameters.NumElements());
    return ToAbsl(table.SetInitializer(
        initializer, static_cast<uint64_t>(seed.scalar<int64_t>()()),
        name.scalar<tstring>()()));
  }
};

REGISTER_OP("EmbedraKernelSet")
    .Output("name: string")
    .SetIsStateful()
    .SetShapeFn(ScalarOutputs)
    .Doc(R"doc(
The instruction set whose kernels this processor runs: baseline, avx2, avx512.
)doc");

class KernelSetOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    OP_REQUIRES_OK(ctx, SetScalarOutput(ctx, "name", tstring(KernelSet())));
  }
};

#define EMBEDRA_REGISTER(op)                                                  \
  REGISTER_KERNEL_BUILDER(Name("Embedra" #op).Device(tensorflow::DEVICE_CPU), \
                          op##Op)

EMBEDRA_REGISTER(TableExport);
EMBEDRA_REGISTER(TableImport);
EMBEDRA_REGISTER(TableSlots);
EMBEDRA_REGISTER(TableSetSlots);
EMBEDRA_REGISTER(TableStatistics);
EMBEDRA_REGISTER(TableStep);
EMBEDRA_REGISTER(TableSetStep);
EMBEDRA_REGISTER(TableKeys);
EMBEDRA_REGISTER(KernelSet);
EMBEDRA_REGISTER(TableSetInitializer);

#undef EMBEDRA_REGISTER

}  // namespace
}  // namespace embedra
