#include "embedra/ops/checks.h"

#include "absl/strings/str_cat.h"
#include "embedra/ops/row_dtype.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace embedra {
namespace {

std::string Quoted(const Table& table) {
  return absl::StrCat("Table '", table.options().name, "': ");
}

}  // namespace

absl::Status CheckListLength(absl::string_view attribute, int64_t length,
                             int64_t num_tables) {
  if (length == num_tables) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "`", attribute, "` must have one entry for each table. ",
      "Received: ", length, " entries for ", num_tables, " tables."));
}

absl::Status CheckTableMatches(const Table& table, int64_t dim,
                               tensorflow::DataType dtype) {
  const tensorflow::DataType table_dtype = ToDataType(table.row_type());
  const bool dim_matches = dim == 0 || dim == table.dim();
  const bool dtype_matches =
      dtype == tensorflow::DT_INVALID || dtype == table_dtype;
  if (dim_matches && dtype_matches) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(table), "its rows have dim=", table.dim(),
      " and dtype=", tensorflow::DataTypeString(table_dtype),
      ", and this op must be made for the same. Received: dim=",
      dim == 0 ? table.dim() : dim, ", dtype=",
      tensorflow::DataTypeString(dtype == tensorflow::DT_INVALID ? table_dtype
                                                                 : dtype),
      "."));
}

absl::Status CheckShape(const Table& table, absl::string_view name,
                        const tensorflow::Tensor& input,
                        const tensorflow::TensorShape& expected) {
  if (input.shape() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(table), "`", name, "` must have shape ", expected.DebugString(),
      ". Received: shape=", input.shape().DebugString(), "."));
}

absl::Status CheckRank(const Table& table, absl::string_view name,
                       const tensorflow::Tensor& input, int rank) {
  if (input.dims() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(table), "`", name, "` must have rank ", rank,
                   ". Received: shape=", input.shape().DebugString(), "."));
}

absl::Status CheckOptional(const Table& table, absl::string_view name,
                           const tensorflow::Tensor& input,
                           const tensorflow::TensorShape& expected,
                           bool* given) {
  *given = input.NumElements() > 0;
  if (!*given || input.shape() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(table), "`", name, "` must have shape ", expected.DebugString(),
      " or no elements. Received: shape=", input.shape().DebugString(), "."));
}

absl::Status CheckScalar(absl::string_view name,
                         const tensorflow::Tensor& input) {
  if (input.dims() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`", name, "` must be a scalar. Received: shape=",
                   input.shape().DebugString(), "."));
}

absl::Status CheckRowSplits(const Table& table,
                            const tensorflow::Tensor& row_splits,
                            int64_t num_keys) {
  TF_RETURN_IF_ERROR(CheckRank(table, "row_splits", row_splits, 1));
  const auto splits = row_splits.vec<int64_t>();
  const int64_t n = splits.size();
  bool valid = n > 0 && splits(0) == 0 && splits(n - 1) == num_keys;
  for (int64_t i = 1; valid && i < n; ++i) valid = splits(i - 1) <= splits(i);
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(table),
      "`row_splits` must start at 0, never fall, and end at the ",
      "number of keys, ", num_keys,
      ". Received: row_splits=", row_splits.SummarizeValue(16), "."));
}

}  // namespace embedra
