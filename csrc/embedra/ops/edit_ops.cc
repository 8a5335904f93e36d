// Ops that change a table by key, or as a whole.

#include <vector>

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

// Each table's `rows` has the shape of its keys, and dim at the end.
absl::Status CheckRows(const Table& table, const Tensor& keys, const char* name,
                       const Tensor& rows) {
  TensorShape expected = keys.shape();
  TF_RETURN_IF_ERROR(expected.AddDimWithStatus(table.dim()));
  return CheckShape(table, name, rows, expected);
}

// As CheckRows, where shapes are known before anything runs.
absl::Status KeysAndRowsShapes(InferenceContext* c, const char* name) {
  std::vector<int64_t> dims;
  std::vector<ShapeHandle> keys, rows;
  TF_RETURN_IF_ERROR(GetDims(c, &dims));
  TF_RETURN_IF_ERROR(c->input("keys", &keys));
  TF_RETURN_IF_ERROR(c->input(name, &rows));
  for (size_t i = 0; i < keys.size(); ++i) {
    ShapeHandle expected;
    TF_RETURN_IF_ERROR(c->Concatenate(keys[i], c->Vector(dims[i]), &expected));
    TF_RETURN_IF_ERROR(c->Merge(rows[i], expected, &expected));
  }
  return absl::OkStatus();
}

REGISTER_OP("EmbedraTableAssign")
    .Input("tables: N * resource")
    .Input("keys: N * int64")
    .Input("rows: N * T")
    .Attr("N: int >= 1")
    .Attr("T: {float, bfloat16, half}")
    .Attr("dims: list(int)")
    .Attr("only_missing: bool = false")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return KeysAndRowsShapes(c, "rows");
    })
    .Doc(R"doc(
Sets the rows of keys; absent keys are created. Slots of present ones are kept.

only_missing: Leave the rows of present keys as they are.
)doc");

class TableAssignOp : public TableListKernel {
 public:
  explicit TableAssignOp(OpKernelConstruction* ctx) : TableListKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("only_missing", &only_missing_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList keys, rows;
    TF_RETURN_IF_ERROR(ctx->input_list("keys", &keys));
    TF_RETURN_IF_ERROR(ctx->input_list("rows", &rows));
    int64_t cost_ns = 0;
    for (int i = 0; i < tables.size(); ++i) {
      TF_RETURN_IF_ERROR(CheckRows(tables[i], keys[i], "rows", rows[i]));
      cost_ns += RowsCostNs(keys[i].NumElements(), tables[i].dim());
    }
    const ParallelFor parallel = DeviceParallelFor(ctx);
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return ToAbsl(tables[i].Assign(Data<int64_t>(keys[i]),
                                     keys[i].NumElements(), RawData(rows[i]),
                                     only_missing_, parallel));
    });
  }

 private:
  bool only_missing_;
};

REGISTER_OP("EmbedraTableAccumulate")
    .Input("tables: N * resource")
    .Input("keys: N * int64")
    .Input("deltas: N * float")
    .Attr("N: int >= 1")
    .Attr("dims: list(int)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return KeysAndRowsShapes(c, "deltas");
    })
    .Doc(R"doc(
Adds `deltas` to the rows of keys; absent keys start from their initial row.
)doc");

class TableAccumulateOp : public TableListKernel {
 public:
  using TableListKernel::TableListKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList keys, deltas;
    TF_RETURN_IF_ERROR(ctx->input_list("keys", &keys));
    TF_RETURN_IF_ERROR(ctx->input_list("deltas", &deltas));
    int64_t cost_ns = 0;
    for (int i = 0; i < tables.size(); ++i) {
      TF_RETURN_IF_ERROR(CheckRows(tables[i], keys[i], "deltas", deltas[i]));
      cost_ns += RowsCostNs(keys[i].NumElements(), tables[i].dim());
    }
    const ParallelFor parallel = DeviceParallelFor(ctx);
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return ToAbsl(tables[i].Accumulate(Data<int64_t>(keys[i]),
                                         keys[i].NumElements(),
                                         Data<float>(deltas[i]), parallel));
    });
  }
};

REGISTER_OP("EmbedraTableRemove")
    .Input("tables: N * resource")
    .Input("keys: N * int64")
    .Output("removed: N * int64")
    .Attr("N: int >= 1")
    .SetIsStateful()
    .SetShapeFn(ScalarOutputs)
    .Doc(R"doc(
Removes keys, and counts those that were present.
)doc");

class TableRemoveOp : public TableListKernel {
 public:
  using TableListKernel::TableListKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList keys;
    OpOutputList removed;
    TF_RETURN_IF_ERROR(ctx->input_list("keys", &keys));
    TF_RETURN_IF_ERROR(ctx->output_list("removed", &removed));
    for (int i = 0; i < tables.size(); ++i) {
      Tensor* count;
      TF_RETURN_IF_ERROR(removed.allocate(i, TensorShape({}), &count));
      TF_RETURN_IF_ERROR(
          ToAbsl(tables[i].Remove(Data<int64_t>(keys[i]), keys[i].NumElements(),
                                  MutableData<int64_t>(count))));
    }
    return absl::OkStatus();
  }
};

REGISTER_OP("EmbedraTableSize")
    .Input("tables: N * resource")
    .Output("sizes: N * int64")
    .Attr("N: int >= 1")
    .SetIsStateful()
    .SetShapeFn(ScalarOutputs)
    .Doc(R"doc(
The number of keys in each table.
)doc");

class TableSizeOp : public TableListKernel {
 public:
  using TableListKernel::TableListKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpOutputList sizes;
    TF_RETURN_IF_ERROR(ctx->output_list("sizes", &sizes));
    for (int i = 0; i < tables.size(); ++i) {
      Tensor* size;
      TF_RETURN_IF_ERROR(sizes.allocate(i, TensorShape({}), &size));
      size->scalar<int64_t>()() = tables[i].size();
    }
    return absl::OkStatus();
  }
};

REGISTER_OP("EmbedraTableClear")
    .Input("tables: N * resource")
    .Attr("N: int >= 1")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Removes every key; seed, step and slots stay.
)doc");

class TableClearOp : public TableListKernel {
 public:
  using TableListKernel::TableListKernel;

 protected:
  absl::Status Run(OpKernelContext*, const TableList& tables) override {
    for (int i = 0; i < tables.size(); ++i) {
      TF_RETURN_IF_ERROR(ToAbsl(tables[i].Clear()));
    }
    return absl::OkStatus();
  }
};

REGISTER_OP("EmbedraTableReserve")
    .Input("table: resource")
    .Input("capacity: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return CheckScalarInputs(c, "capacity");
    })
    .Doc(R"doc(
Makes room for `capacity` keys in all.
)doc");

class TableReserveOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    TF_RETURN_IF_ERROR(CheckScalar("capacity", ctx->input(1)));
    return ToAbsl(table.Reserve(ctx->input(1).scalar<int64_t>()()));
  }
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableAssign").Device(tensorflow::DEVICE_CPU), TableAssignOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableAccumulate").Device(tensorflow::DEVICE_CPU),
    TableAccumulateOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableRemove").Device(tensorflow::DEVICE_CPU), TableRemoveOp);
REGISTER_KERNEL_BUILDER(Name("EmbedraTableSize").Device(tensorflow::DEVICE_CPU),
                        TableSizeOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableClear").Device(tensorflow::DEVICE_CPU), TableClearOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableReserve").Device(tensorflow::DEVICE_CPU), TableReserveOp);

}  // namespace
}  // namespace embedra
