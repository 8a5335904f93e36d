#include "embedra/core/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/row_kernels.h"

namespace embedra {
namespace {

using Kind = InitializerSpec::Kind;

InitializerSpec Spec(Kind kind, std::vector<float> parameters) {
  InitializerSpec spec;
  spec.kind = kind;
  spec.parameters = std::move(parameters);
  return spec;
}

std::vector<float> Row(const RowInitializer& initializer, int64_t key,
                       int64_t dim) {
  std::vector<float> row(static_cast<size_t>(dim));
  initializer.Fill(key, row.data());
  return row;
}

// `count` values of many rows, sorted.
std::vector<float> Sample(const InitializerSpec& spec, int64_t rows) {
  constexpr int64_t kDim = 20;
  const RowInitializer initializer(spec, 11, "sample", kDim);
  std::vector<float> values;
  for (int64_t key = 0; key < rows; ++key) {
    const std::vector<float> row = Row(initializer, key, kDim);
    values.insert(values.end(), row.begin(), row.end());
  }
  std::sort(values.begin(), values.end());
  return values;
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Largest distance between the sample's distribution and `cdf`
// (Kolmogorov-Smirnov), times the root of the sample size.
template <typename Cdf>
double Distance(const std::vector<float>& sorted, const Cdf& cdf) {
  double worst = 0.0;
  const double n = static_cast<double>(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double p = cdf(static_cast<double>(sorted[i]));
    worst = std::max({worst, p - static_cast<double>(i) / n,
                      static_cast<double>(i + 1) / n - p});
  }
  return worst * std::sqrt(n);
}

TEST_CASE("a row depends on seed, table name and key only") {
  const InitializerSpec spec = Spec(Kind::kUniform, {-1.0f, 1.0f});
  const RowInitializer a(spec, 1, "items", 8);
  const RowInitializer again(spec, 1, "items", 8);
  const RowInitializer other_seed(spec, 2, "items", 8);
  const RowInitializer other_name(spec, 1, "users", 8);
  for (const int64_t key : {int64_t{0}, int64_t{-1}, int64_t{5},
                            std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<int64_t>::max()}) {
    CHECK(Row(a, key, 8) == Row(again, key, 8));
    CHECK(Row(a, key, 8) != Row(a, key ^ 1, 8));
    CHECK(Row(a, key, 8) != Row(other_seed, key, 8));
    CHECK(Row(a, key, 8) != Row(other_name, key, 8));
  }
}

// These numbers are a promise: a checkpoint holds no rows of ids that were
// never seen, and they must start the same in every release. They come from an
// independent Philox in Python, checked against the published test vector, and
// from NormalDist.inv_cdf.
TEST_CASE("the random numbers do not change between releases") {
  const RowInitializer uniform(Spec(Kind::kUniform, {0.0f, 1.0f}), 42, "items",
                               5);
  const std::vector<float> row = Row(uniform, 123456789, 5);
  CHECK(row == std::vector<float>{0x1.71fa3cp-1f, 0x1.00c742p-1f, 0x1.c5503p-2f,
                                  0x1.52ffcp-2f, 0x1.82fadp-2f});
  const RowInitializer normal(Spec(Kind::kNormal, {0.0f, 1.0f}), 42, "items",
                              5);
  const std::vector<float> bell = Row(normal, 123456789, 5);
  CHECK(bell == std::vector<float>{0x1.2e65acp-1f, 0x1.f37864p-9f,
                                   -0x1.273b22p-3f, -0x1.bf7e4ap-2f,
                                   -0x1.3e7024p-2f});
}

TEST_CASE("a narrower table starts with the same columns") {
  const InitializerSpec spec = Spec(Kind::kNormal, {0.0f, 1.0f});
  const std::vector<float> wide =
      Row(RowInitializer(spec, 1, "items", 50), 9, 50);
  for (int64_t dim = 1; dim < 50; ++dim) {
    const std::vector<float> row =
        Row(RowInitializer(spec, 1, "items", dim), 9, dim);
    CHECK(std::equal(row.begin(), row.end(), wide.begin()));
  }
}

TEST_CASE("all kernel sets draw the same bits") {
  internal::RandomNumbers numbers = {};
  numbers.stream = 0x123456789abcdefu;
  numbers.scale = 2.0f;
  numbers.shift = -1.0f;
  numbers.last = std::nextafter(1.0f, 0.0f);
  numbers.p_width = 1.0;
  for (const auto distribution : {internal::RowDistribution::kUniform,
                                  internal::RowDistribution::kNormal}) {
    numbers.distribution = distribution;
    for (int64_t key = 0; key < 2000; ++key) {
      constexpr int64_t kDim = 37;
      float expected[kDim];
      internal::RunnableKernels()[0]->random_row(numbers, key, kDim, expected);
      for (auto set = internal::RunnableKernels(); *set != nullptr; ++set) {
        float row[kDim];
        (*set)->random_row(numbers, key, kDim, row);
        REQUIRE(std::memcmp(row, expected, sizeof(row)) == 0);
      }
    }
  }
}

// At 1.95 the chance of a false alarm is 0.1% (and the sample is fixed).
TEST_CASE("samples have their distribution") {
  CHECK(Distance(Sample(Spec(Kind::kUniform, {-2.0f, 6.0f}), 20000),
                 [](double x) { return (x + 2.0) / 8.0; }) < 1.95);
  CHECK(Distance(Sample(Spec(Kind::kNormal, {3.0f, 0.5f}), 20000),
                 [](double x) { return NormalCdf((x - 3.0) / 0.5); }) < 1.95);
  const double low = NormalCdf(-2.0);
  CHECK(Distance(Sample(Spec(Kind::kTruncatedNormal, {1.0f, 2.0f}), 20000),
                 [low](double x) {
                   return (NormalCdf((x - 1.0) / 2.0) - low) / (1.0 - 2 * low);
                 }) < 1.95);
}

TEST_CASE("values stay within their bounds") {
  const std::vector<float> uniform =
      Sample(Spec(Kind::kUniform, {1.0f, 1.0000002f}), 2000);
  CHECK(uniform.front() >= 1.0f);
  CHECK(uniform.back() < 1.0000002f);
  const std::vector<float> truncated =
      Sample(Spec(Kind::kTruncatedNormal, {0.0f, 1.0f}), 20000);
  CHECK(truncated.front() >= -2.0f);
  CHECK(truncated.back() <= 2.0f);
  CHECK(truncated.back() > 1.99f);
  const std::vector<float> normal =
      Sample(Spec(Kind::kNormal, {0.0f, 1.0f}), 20000);
  CHECK(normal.back() > 4.0f);
  CHECK(normal.back() < 6.4f);
}

TEST_CASE("neighbouring keys and columns are uncorrelated") {
  constexpr int64_t kDim = 16;
  constexpr int64_t kRows = 20000;
  const RowInitializer initializer(Spec(Kind::kUniform, {-1.0f, 1.0f}), 0,
                                   "items", kDim);
  double by_key = 0.0;
  double by_column = 0.0;
  std::vector<float> before = Row(initializer, -1, kDim);
  for (int64_t key = 0; key < kRows; ++key) {
    const std::vector<float> row = Row(initializer, key, kDim);
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      by_key += static_cast<double>(row[i] * before[i]);
      by_column += static_cast<double>(row[i] * row[i + 1]);
    }
    before = row;
  }
  // Each product has mean 0 and variance 1/9.
  const double deviation = std::sqrt(kRows * (kDim - 1) / 9.0);
  CHECK(std::abs(by_key) < 4.0 * deviation);
  CHECK(std::abs(by_column) < 4.0 * deviation);
}

TEST_CASE("constants are one for all columns or one for each") {
  CHECK(Row(RowInitializer(Spec(Kind::kConstant, {0.5f}), 0, "t", 3), 1, 3) ==
        std::vector<float>{0.5f, 0.5f, 0.5f});
  CHECK(Row(RowInitializer(Spec(Kind::kConstant, {1, 2, 3}), 0, "t", 3), 1,
            3) == std::vector<float>{1, 2, 3});
}

TEST_CASE("specifications are checked") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(Spec(Kind::kConstant, {1}).Validate(3).ok());
  CHECK(Spec(Kind::kConstant, {1, 2, 3}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kConstant, {1, 2}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kConstant, {}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kConstant, {nan}).Validate(3).ok());
  CHECK(Spec(Kind::kUniform, {1, 1}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kUniform, {2, 1}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kUniform, {1}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kNormal, {0, -1}).Validate(3).ok());
  CHECK_FALSE(Spec(Kind::kTruncatedNormal, {0, 1, 2}).Validate(3).ok());
}

}  // namespace
}  // namespace embedra
