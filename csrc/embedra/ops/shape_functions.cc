#include "embedra/ops/shape_functions.h"

#include "embedra/ops/checks.h"

namespace embedra {

absl::Status GetDims(InferenceContext* c, std::vector<int64_t>* dims) {
  int64_t num_tables;
  TF_RETURN_IF_ERROR(c->GetAttr("dims", dims));
  TF_RETURN_IF_ERROR(c->GetAttr("N", &num_tables));
  return CheckListLength("dims", static_cast<int64_t>(dims->size()),
                         num_tables);
}

absl::Status CheckScalarInputs(InferenceContext* c, const char* name) {
  std::vector<ShapeHandle> shapes;
  TF_RETURN_IF_ERROR(c->input(name, &shapes));
  for (ShapeHandle& shape : shapes) {
    TF_RETURN_IF_ERROR(c->WithRank(shape, 0, &shape));
  }
  return absl::OkStatus();
}

absl::Status VectorOutputs(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) {
    c->set_output(i, c->Vector(InferenceContext::kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status ScalarOutputs(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->Scalar());
  return absl::OkStatus();
}

absl::Status SummedGradientShapes(InferenceContext* c, const char* unique,
                                  const char* sums) {
  std::vector<int64_t> dims;
  TF_RETURN_IF_ERROR(GetDims(c, &dims));
  std::vector<ShapeHandle> unique_shapes;
  std::vector<ShapeHandle> sum_shapes;
  for (const int64_t dim : dims) {
    const auto count = c->UnknownDim();
    unique_shapes.push_back(c->Vector(count));
    sum_shapes.push_back(c->Matrix(count, c->MakeDim(dim)));
  }
  TF_RETURN_IF_ERROR(c->set_output(unique, unique_shapes));
  return c->set_output(sums, sum_shapes);
}

}  // namespace embedra
