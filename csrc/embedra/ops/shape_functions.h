// Shape inference shared by the ops.

#ifndef EMBEDRA_OPS_SHAPE_FUNCTIONS_H_
#define EMBEDRA_OPS_SHAPE_FUNCTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace embedra {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Reads `dims` and checks that it has one entry for each of the N tables.
absl::Status GetDims(InferenceContext* c, std::vector<int64_t>* dims);

// Fails unless the named input is a scalar, or a list of scalars.
absl::Status CheckScalarInputs(InferenceContext* c, const char* name);

// Every output is a vector of unknown length.
absl::Status VectorOutputs(InferenceContext* c);

// Every output is a scalar.
absl::Status ScalarOutputs(InferenceContext* c);

// Outputs `unique` [u_i] and `sums` [u_i, dims[i]], as of ops that sum
// gradients over equal positions. The names are those in the op's definition.
absl::Status SummedGradientShapes(InferenceContext* c, const char* unique,
                                  const char* sums);

}  // namespace embedra

#endif  // EMBEDRA_OPS_SHAPE_FUNCTIONS_H_
