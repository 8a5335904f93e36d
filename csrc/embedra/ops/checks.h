// Checks of inputs. Every message names the table, what was expected and what
// was given.

#ifndef EMBEDRA_OPS_CHECKS_H_
#define EMBEDRA_OPS_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "embedra/core/table.h"
#include "tensorflow/core/framework/tensor.h"

namespace embedra {

// An attribute list has one entry for each table.
absl::Status CheckListLength(absl::string_view attribute, int64_t length,
                             int64_t num_tables);

// `table` has rows of `dim` elements of `dtype`. A `dim` of 0 and a dtype of
// DT_INVALID match everything.
absl::Status CheckTableMatches(const Table& table, int64_t dim,
                               tensorflow::DataType dtype);

// `input` has exactly the shape `expected`.
absl::Status CheckShape(const Table& table, absl::string_view name,
                        const tensorflow::Tensor& input,
                        const tensorflow::TensorShape& expected);

// `input` has any shape of the given rank.
absl::Status CheckRank(const Table& table, absl::string_view name,
                       const tensorflow::Tensor& input, int rank);

// `input` has the shape `expected`, or no elements, which stands for "not
// given". Sets `*given`.
absl::Status CheckOptional(const Table& table, absl::string_view name,
                           const tensorflow::Tensor& input,
                           const tensorflow::TensorShape& expected,
                           bool* given);

// `input` is a scalar.
absl::Status CheckScalar(absl::string_view name,
                         const tensorflow::Tensor& input);

// `row_splits` starts at 0, never falls and ends at `num_keys`.
absl::Status CheckRowSplits(const Table& table,
                            const tensorflow::Tensor& row_splits,
                            int64_t num_keys);

}  // namespace embedra

#endif  // EMBEDRA_OPS_CHECKS_H_
