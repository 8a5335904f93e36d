// The one place where TensorFlow's dtypes meet the core's row types.

#ifndef EMBEDRA_OPS_ROW_DTYPE_H_
#define EMBEDRA_OPS_ROW_DTYPE_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "embedra/core/table.h"
#include "tensorflow/core/framework/types.h"

namespace embedra {

inline tensorflow::DataType ToDataType(RowType type) {
  switch (type) {
    case RowType::kBFloat16:
      return tensorflow::DT_BFLOAT16;
    case RowType::kFloat16:
      return tensorflow::DT_HALF;
    case RowType::kFloat32:
      break;
  }
  return tensorflow::DT_FLOAT;
}

inline absl::Status ToRowType(tensorflow::DataType dtype, RowType* type) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      *type = RowType::kFloat32;
      return absl::OkStatus();
    case tensorflow::DT_BFLOAT16:
      *type = RowType::kBFloat16;
      return absl::OkStatus();
    case tensorflow::DT_HALF:
      *type = RowType::kFloat16;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "Rows must be float32, bfloat16 or float16. Received: dtype=",
          tensorflow::DataTypeString(dtype), "."));
  }
}

}  // namespace embedra

#endif  // EMBEDRA_OPS_ROW_DTYPE_H_
