// Ops for what a table is and has seen: slots, clock, initial rows, statistics.

#include <string>
#include <vector>

#include "embedra/core/row_kernels.h"
#include "embedra/ops/checks.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/table_kernel.h"
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
      c->set_output(0, c->Vector(10));
      c->set_output(1, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
What a table holds and has seen.

counters: size, capacity, bytes, inserts, removes, hits, misses, updates,
  stale_gradients, evictions.
load_factor: Occupied share of the index.
)doc");

class TableStatisticsOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Statistics s = table.statistics();
    const std::vector<int64_t> counters = {
        s.size, s.capacity, s.bytes,   s.inserts,         s.removes,
        s.hits, s.misses,   s.updates, s.stale_gradients, s.evictions};
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
    .Input("stream_name: string")
    .Input("kind: string")
    .Input("parameters: float")
    .Input("seed: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      for (const char* scalar : {"stream_name", "kind", "seed"}) {
        TF_RETURN_IF_ERROR(CheckScalarInputs(c, scalar));
      }
      return absl::OkStatus();
    })
    .Doc(R"doc(
Sets what the rows of keys that come later are drawn from.

stream_name: Stands for the table's name in the draw.
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
    TF_RETURN_IF_ERROR(CheckScalar("stream_name", name));
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

REGISTER_OP("EmbedraTableInitializer")
    .Input("table: resource")
    .Output("stream_name: string")
    .Output("kind: string")
    .Output("parameters: float")
    .Output("seed: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      for (int i : {0, 1, 3}) c->set_output(i, c->Scalar());
      c->set_output(2, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    })
    .Doc(R"doc(
What new rows are drawn from, as EmbedraTableSetInitializer takes it.
)doc");

class TableInitializerOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    InitializerSpec initializer;
    uint64_t seed;
    std::string stream_name;
    table.GetInitializer(&initializer, &seed, &stream_name);
    TF_RETURN_IF_ERROR(
        SetScalarOutput(ctx, "stream_name", tstring(stream_name)));
    TF_RETURN_IF_ERROR(
        SetScalarOutput(ctx, "kind", tstring(NameOf(initializer.kind))));
    TF_RETURN_IF_ERROR(
        SetVectorOutput(ctx, "parameters", initializer.parameters));
    return SetScalarOutput(ctx, "seed", static_cast<int64_t>(seed));
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

EMBEDRA_REGISTER(TableSlots);
EMBEDRA_REGISTER(TableSetSlots);
EMBEDRA_REGISTER(TableStatistics);
EMBEDRA_REGISTER(TableStep);
EMBEDRA_REGISTER(TableSetStep);
EMBEDRA_REGISTER(TableKeys);
EMBEDRA_REGISTER(KernelSet);
EMBEDRA_REGISTER(TableSetInitializer);
EMBEDRA_REGISTER(TableInitializer);

#undef EMBEDRA_REGISTER

}  // namespace
}  // namespace embedra
