// Status: the outcome of a core call. The core never throws.

#ifndef EMBEDRA_CORE_STATUS_H_
#define EMBEDRA_CORE_STATUS_H_

#include <string>
#include <utility>

namespace embedra {

enum class StatusCode {
  kOk,
  kInvalidArgument,
  kFailedPrecondition,
  kResourceExhausted,
  kInternal,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  static Status InvalidArgument(std::string message) {
    return Status(StatusCode::kInvalidArgument, std::move(message));
  }
  static Status ResourceExhausted(std::string message) {
    return Status(StatusCode::kResourceExhausted, std::move(message));
  }
  static Status FailedPrecondition(std::string message) {
    return Status(StatusCode::kFailedPrecondition, std::move(message));
  }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

}  // namespace embedra

#endif  // EMBEDRA_CORE_STATUS_H_
