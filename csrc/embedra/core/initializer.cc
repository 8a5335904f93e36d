#include "embedra/core/initializer.h"

#include <cmath>
#include <string>

#include "embedra/core/hash.h"
#include "embedra/core/row_kernels.h"

namespace embedra {
namespace {

// Probability below two standard deviations under the mean.
constexpr double kTruncatedTail = 0.022750131948179207;

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
    return Status::InvalidArgument(
        "initializer " + name + " needs a standard deviation >= 0, got " +
        std::to_string(parameters[1]));
  }
  return Status();
}

RowInitializer::RowInitializer(const InitializerSpec& spec, uint64_t seed,
                               const std::string& table_name, int64_t dim)
    : spec_(spec), stream_(StreamOf(seed, table_name)), dim_(dim) {}

void RowInitializer::Fill(int64_t key, float* row) const {
  const std::vector<float>& p = spec_.parameters;
  if (spec_.kind == InitializerSpec::Kind::kConstant) {
    for (int64_t i = 0; i < dim_; ++i) {
      row[i] = p.size() == 1 ? p[0] : p[static_cast<size_t>(i)];
    }
    return;
  }
  internal::RandomNumbers numbers = {};
  numbers.stream = stream_;
  numbers.shift = p[0];
  if (spec_.kind == InitializerSpec::Kind::kUniform) {
    numbers.distribution = internal::RowDistribution::kUniform;
    numbers.scale = p[1] - p[0];
    numbers.last = std::nextafter(p[1], p[0]);
  } else {
    const bool truncated = spec_.kind == InitializerSpec::Kind::kTruncatedNormal;
    numbers.distribution = internal::RowDistribution::kNormal;
    numbers.scale = p[1];
    numbers.p_low = truncated ? kTruncatedTail : 0.0;
    numbers.p_width = truncated ? 1.0 - 2.0 * kTruncatedTail : 1.0;
  }
  internal::Kernels().random_row(numbers, key, dim_, row);
}

}  // namespace embedra
