// Ops that apply gradients, or gather them for a later step.

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "embedra/ops/checks.h"
#include "embedra/ops/shape_functions.h"
#include "embedra/ops/status_convert.h"
#include "embedra/ops/summed_gradients.h"
#include "embedra/ops/table_kernel.h"
#include "embedra/ops/table_parallel.h"
#include "embedra/ops/tensors.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/logging.h"

namespace embedra {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Positions [n] and gradients [n, dim] of one table.
absl::Status CheckGradients(const Table& table, const Tensor& positions,
                            const Tensor& grads) {
  TF_RETURN_IF_ERROR(CheckRank(table, "positions", positions, 1));
  return CheckShape(table, "grads", grads,
                    TensorShape({positions.NumElements(), table.dim()}));
}

absl::Status UpdateShapes(InferenceContext* c) {
  std::vector<ShapeHandle> positions, grads;
  TF_RETURN_IF_ERROR(c->input("positions", &positions));
  TF_RETURN_IF_ERROR(c->input("grads", &grads));
  for (size_t i = 0; i < positions.size(); ++i) {
    TF_RETURN_IF_ERROR(c->WithRank(positions[i], 1, &positions[i]));
    TF_RETURN_IF_ERROR(c->WithRank(grads[i], 2, &grads[i]));
  }
  for (const char* scalar : {"learning_rate", "step", "gradient_scale"}) {
    TF_RETURN_IF_ERROR(CheckScalarInputs(c, scalar));
  }
  return absl::OkStatus();
}

REGISTER_OP("EmbedraTableUpdate")
    .Input("tables: N * resource")
    .Input("positions: N * int64")
    .Input("grads: N * float")
    .Input("learning_rate: float")
    .Input("step: int64")
    .Input("gradient_scale: float")
    .Attr("N: int >= 1")
    .Attr("optimizer: string")
    .Attr("momentum: float = 0.0")
    .Attr("beta_1: float = 0.9")
    .Attr("beta_2: float = 0.999")
    .Attr("rho: float = 0.9")
    .Attr("epsilon: float = 1e-7")
    .Attr("initial_accumulator: float = 0.0")
    .Attr("learning_rate_power: float = -0.5")
    .Attr("l1: float = 0.0")
    .Attr("l2: float = 0.0")
    .Attr("l2_shrinkage: float = 0.0")
    .Attr("beta: float = 0.0")
    .Attr("clipnorm: float = 0.0")
    .Attr("clipvalue: float = 0.0")
    .Attr("weight_decay: float = 0.0")
    .Attr("nesterov: bool = false")
    .Attr("amsgrad: bool = false")
    .Attr("centered: bool = false")
    .SetIsStateful()
    .SetShapeFn(UpdateShapes)
    .Doc(R"doc(
One step of an optimizer on the rows at `positions`.

Gradients of equal positions are summed first, then scaled, then clipped, and
each row is stepped once. Negative positions are skipped, and so are those whose
record is gone. Each table's clock is set to `step`.

optimizer: sgd, momentum, adagrad, rowwise_adagrad, adam, ftrl or rmsprop.
step: 1 for the first update.
gradient_scale: Multiplies the summed gradients.
)doc");

absl::Status ParseOptimizer(const std::string& name, OptimizerKind* kind) {
  static const auto* const kKinds =
      new std::unordered_map<std::string, OptimizerKind>{
          {"sgd", OptimizerKind::kSgd},
          {"momentum", OptimizerKind::kMomentum},
          {"adagrad", OptimizerKind::kAdagrad},
          {"rowwise_adagrad", OptimizerKind::kRowwiseAdagrad},
          {"adam", OptimizerKind::kAdam},
          {"ftrl", OptimizerKind::kFtrl},
          {"rmsprop", OptimizerKind::kRmsprop}};
  const auto found = kKinds->find(name);
  if (found == kKinds->end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`optimizer` must be one of sgd, momentum, adagrad, rowwise_adagrad, "
        "adam, ftrl, rmsprop. Received: optimizer='",
        name, "'."));
  }
  *kind = found->second;
  return absl::OkStatus();
}

absl::Status ReadOptimizer(OpKernelConstruction* ctx, RowOptimizer* optimizer) {
  std::string name;
  TF_RETURN_IF_ERROR(ctx->GetAttr("optimizer", &name));
  TF_RETURN_IF_ERROR(ParseOptimizer(name, &optimizer->kind));
  const std::unordered_map<std::string, float*> numbers = {
      {"momentum", &optimizer->momentum},
      {"beta_1", &optimizer->beta_1},
      {"beta_2", &optimizer->beta_2},
      {"rho", &optimizer->rho},
      {"epsilon", &optimizer->epsilon},
      {"initial_accumulator", &optimizer->initial_accumulator},
      {"learning_rate_power", &optimizer->learning_rate_power},
      {"l1", &optimizer->l1},
      {"l2", &optimizer->l2},
      {"l2_shrinkage", &optimizer->l2_shrinkage},
      {"beta", &optimizer->beta},
      {"clipnorm", &optimizer->clipnorm},
      {"clipvalue", &optimizer->clipvalue},
      {"weight_decay", &optimizer->weight_decay}};
  for (const auto& [attribute, field] : numbers) {
    TF_RETURN_IF_ERROR(ctx->GetAttr(attribute, field));
  }
  TF_RETURN_IF_ERROR(ctx->GetAttr("nesterov", &optimizer->nesterov));
  TF_RETURN_IF_ERROR(ctx->GetAttr("amsgrad", &optimizer->amsgrad));
  return ctx->GetAttr("centered", &optimizer->centered);
}

class TableUpdateOp : public TableListKernel {
 public:
  explicit TableUpdateOp(OpKernelConstruction* ctx) : TableListKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadOptimizer(ctx, &optimizer_));
  }

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList positions, grads;
    const Tensor *learning_rate, *step, *gradient_scale;
    TF_RETURN_IF_ERROR(ctx->input_list("positions", &positions));
    TF_RETURN_IF_ERROR(ctx->input_list("grads", &grads));
    TF_RETURN_IF_ERROR(ctx->input("learning_rate", &learning_rate));
    TF_RETURN_IF_ERROR(ctx->input("step", &step));
    TF_RETURN_IF_ERROR(ctx->input("gradient_scale", &gradient_scale));
    TF_RETURN_IF_ERROR(CheckScalar("learning_rate", *learning_rate));
    TF_RETURN_IF_ERROR(CheckScalar("step", *step));
    TF_RETURN_IF_ERROR(CheckScalar("gradient_scale", *gradient_scale));

    int64_t cost_ns = 0;
    for (int i = 0; i < tables.size(); ++i) {
      TF_RETURN_IF_ERROR(CheckGradients(tables[i], positions[i], grads[i]));
      cost_ns += RowsCostNs(positions[i].NumElements(), tables[i].dim());
    }
    RowOptimizer optimizer = optimizer_;
    optimizer.learning_rate = learning_rate->scalar<float>()();
    optimizer.step = step->scalar<int64_t>()();
    optimizer.gradient_scale = gradient_scale->scalar<float>()();

    const ParallelFor parallel = DeviceParallelFor(ctx);
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return Update(tables[i], optimizer, positions[i], grads[i], parallel);
    });
  }

 private:
  static absl::Status Update(Table& table, const RowOptimizer& optimizer,
                             const Tensor& positions, const Tensor& grads,
                             const ParallelFor& parallel) {
    std::vector<std::string> dropped;
    TF_RETURN_IF_ERROR(ToAbsl(table.Update(
        optimizer, Data<int64_t>(positions), positions.NumElements(),
        Data<float>(grads), parallel, &dropped)));
    table.set_step(optimizer.step);
    if (!dropped.empty()) {
      LOG(WARNING) << "Table '" << table.options().name
                   << "': the new optimizer does not use the slots "
                   << absl::StrJoin(dropped, ", ")
                   << ", which were kept for another; dropped them.";
    }
    return absl::OkStatus();
  }

  RowOptimizer optimizer_;
};

REGISTER_OP("EmbedraTableDeduplicate")
    .Input("tables: N * resource")
    .Input("positions: N * int64")
    .Input("grads: N * float")
    .Output("unique: N * int64")
    .Output("sums: N * float")
    .Attr("N: int >= 1")
    .Attr("dims: list(int)")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      return SummedGradientShapes(c, "unique", "sums");
    })
    .Doc(R"doc(
Sums the gradients of equal positions, in order of first appearance.

Negative positions are left out, and so are those whose record is gone.
)doc");

class TableDeduplicateOp : public TableListKernel {
 public:
  using TableListKernel::TableListKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, const TableList& tables) override {
    OpInputList positions, grads;
    TF_RETURN_IF_ERROR(ctx->input_list("positions", &positions));
    TF_RETURN_IF_ERROR(ctx->input_list("grads", &grads));
    int64_t cost_ns = 0;
    for (int i = 0; i < tables.size(); ++i) {
      TF_RETURN_IF_ERROR(CheckGradients(tables[i], positions[i], grads[i]));
      cost_ns += RowsCostNs(positions[i].NumElements(), tables[i].dim());
    }
    GradientOutputs outputs;
    TF_RETURN_IF_ERROR(outputs.Init(ctx, "unique", "sums"));
    return ForEachTable(ctx, tables.size(), cost_ns, [&](int i) {
      return ToAbsl(tables[i].Deduplicate(
          Data<int64_t>(positions[i]), positions[i].NumElements(),
          Data<float>(grads[i]), outputs.For(i, tables[i].dim())));
    });
  }
};

REGISTER_OP("EmbedraTableAccumulateGradients")
    .Input("table: resource")
    .Input("positions: int64")
    .Input("grads: float")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Adds gradients to those that wait in the table for a later step.
)doc");

class TableAccumulateGradientsOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    const Tensor& positions = ctx->input(1);
    const Tensor& grads = ctx->input(2);
    TF_RETURN_IF_ERROR(CheckGradients(table, positions, grads));
    return ToAbsl(table.AccumulateGradients(
        Data<int64_t>(positions), positions.NumElements(), Data<float>(grads)));
  }
};

REGISTER_OP("EmbedraTableTakeGradients")
    .Input("table: resource")
    .Output("positions: int64")
    .Output("grads: float")
    .Attr("dim: int >= 1")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) -> absl::Status {
      int64_t dim;
      TF_RETURN_IF_ERROR(c->GetAttr("dim", &dim));
      const auto count = c->UnknownDim();
      c->set_output(0, c->Vector(count));
      c->set_output(1, c->Matrix(count, c->MakeDim(dim)));
      return absl::OkStatus();
    })
    .Doc(R"doc(
Takes the waiting gradients out of the table, summed over equal positions.
)doc");

class TableTakeGradientsOp : public TableKernel {
 public:
  using TableKernel::TableKernel;

 protected:
  absl::Status Run(OpKernelContext* ctx, Table& table) override {
    std::vector<int64_t> positions;
    std::vector<float> grads;
    TF_RETURN_IF_ERROR(ToAbsl(table.TakeGradients(&positions, &grads)));
    TF_RETURN_IF_ERROR(SetVectorOutput(ctx, "positions", positions));
    const int64_t count = static_cast<int64_t>(positions.size());
    return SetOutput(ctx, "grads", TensorShape({count, table.dim()}), grads);
  }
};

REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableUpdate").Device(tensorflow::DEVICE_CPU), TableUpdateOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableDeduplicate").Device(tensorflow::DEVICE_CPU),
    TableDeduplicateOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableAccumulateGradients").Device(tensorflow::DEVICE_CPU),
    TableAccumulateGradientsOp);
REGISTER_KERNEL_BUILDER(
    Name("EmbedraTableTakeGradients").Device(tensorflow::DEVICE_CPU),
    TableTakeGradientsOp);

}  // namespace
}  // namespace embedra
