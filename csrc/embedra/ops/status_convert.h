// ToAbsl: translates a core Status, once, where the core meets TensorFlow.

#ifndef EMBEDRA_OPS_STATUS_CONVERT_H_
#define EMBEDRA_OPS_STATUS_CONVERT_H_

#include "absl/status/status.h"
#include "embedra/core/status.h"

namespace embedra {

inline absl::Status ToAbsl(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return absl::OkStatus();
    case StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(status.message());
    case StatusCode::kFailedPrecondition:
      return absl::FailedPreconditionError(status.message());
    case StatusCode::kResourceExhausted:
      return absl::ResourceExhaustedError(status.message());
    case StatusCode::kInternal:
      break;
  }
  return absl::InternalError(status.message());
}

}  // namespace embedra

#endif  // EMBEDRA_OPS_STATUS_CONVERT_H_
