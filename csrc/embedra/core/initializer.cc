#include "embedra/core/initializer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "embedra/core/hash.h"

namespace embedra {
namespace {

// Probability below two standard deviations under the mean.
constexpr double kTruncatedTail = 0.022750131948179207;

// The seed of a table's random numbers. Part of what "the same id starts the
// same" means: never change it.
uint64_t StreamOf(uint64_t seed, const std::string& table_name) {
  uint64_t stream = internal::Mix64(seed);
  for (const char c : table_name) {
    stream = internal::Mix64(stream ^ static_cast<unsigned char>(c));
  }
  return internal::Mix64(stream ^ table_name.size());
}

}  // namespace

const char* NameOf(InitializerSpec::Kind kind) {
  switch (kind) {
    case InitializerSpec::Kind::kConstant:
      return "constant";
    case InitializerSpec::Kind::kUniform:
      return "uniform";
    case InitializerSpec::Kind::kNormal:
      return "normal";
    case InitializerSpec::Kind::kTruncatedNormal:
      return "truncated_normal";
  }
  return "unknown";
}

Status InitializerSpec::Validate(int64_t dim) const {
  const std::string given = std::to_string(parameters.size());
  const std::string name = NameOf(kind);
  for (const float parameter : parameters) {
    if (!std::isfinite(parameter)) {
      return Status::InvalidArgument("initializer " + name +
                                     " needs finite parameters, got " +
                                     std::to_string(parameter));
    }
  }
  if (kind == Kind::kConstant) {
    const int64_t count = static_cast<int64_t>(parameters.size());
    if (count == 1 || count == dim) return Status();
    return Status::InvalidArgument(
        "initializer constant needs 1 value, or one for each of the " +
        std::to_string(dim) + " columns, got " + given);
  }
  if (parameters.size() != 2) {
    return Status::InvalidArgument("initializer " + name +
                                   " needs 2 parameters, got " + given);
  }
  if (kind == Kind::kUniform && parameters[0] > parameters[1]) {
    return Status::InvalidArgument(
        "initializer uniform needs low <= high, got low " +
        std::to_string(parameters[0]) + ", high " +
        std::to_string(parameters[1]));
  }
  if (kind != Kind::kUniform && parameters[1] < 0.0f) {
    return Status::InvalidArgument("initializer " + name +
                                   " needs a standard deviation >= 0, got " +
                                   std::to_string(parameters[1]));
  }
  return Status();
}

RowInitializer::RowInitializer(const InitializerSpec& spec, uint64_t seed,
                               const std::string& table_name, int64_t dim)
    : dim_(dim) {
  const std::vector<float>& p = spec.parameters;
  if (spec.kind == InitializerSpec::Kind::kConstant) {
    constant_ = p;
    constant_.resize(static_cast<size_t>(dim), p[0]);
    return;
  }
  random_.stream = StreamOf(seed, table_name);
  random_.shift = p[0];
  if (spec.kind == InitializerSpec::Kind::kUniform) {
    random_.distribution = internal::RowDistribution::kUniform;
    random_.scale = p[1] - p[0];
    random_.last = std::nextafter(p[1], p[0]);
    return;
  }
  const bool truncated = spec.kind == InitializerSpec::Kind::kTruncatedNormal;
  random_.distribution = internal::RowDistribution::kNormal;
  random_.scale = p[1];
  random_.p_low = truncated ? kTruncatedTail : 0.0;
  random_.p_width = truncated ? 1.0 - 2.0 * kTruncatedTail : 1.0;
}

void RowInitializer::Fill(int64_t key, float* row) const {
  if (constant_.empty()) {
    internal::Kernels().random_row(random_, key, dim_, row);
  } else {
    std::copy(constant_.begin(), constant_.end(), row);
  }
}

}  // namespace embedra
