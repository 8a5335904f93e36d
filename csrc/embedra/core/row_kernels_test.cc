#include "embedra/core/row_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "doctest/doctest.h"

namespace embedra::internal {
namespace {

constexpr int kFloat16 = 2;
constexpr int kBFloat16 = 1;

std::vector<const RowKernels*> Sets() {
  std::vector<const RowKernels*> sets;
  for (const RowKernels* const* set = RunnableKernels(); *set != nullptr;
       ++set) {
    sets.push_back(*set);
  }
  return sets;
}

const RowKernels& Baseline() { return *Sets().back(); }

std::vector<float> RandomFloats(int64_t n, int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::normal_distribution<float> value(0.0f, 1.0f);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = value(random);
  return values;
}

float Widen(const RowKernels& set, int type, uint16_t bits) {
  float value;
  set.to_float[type](&bits, 1, &value);
  return value;
}

uint16_t Narrow(const RowKernels& set, int type, float value) {
  uint16_t bits;
  set.from_float[type](&value, 1, &bits);
  return bits;
}

TEST_CASE("the set in use is the best one, and the baseline is always there") {
  CHECK(std::string(KernelSet()) == Sets().front()->name);
  CHECK(std::string(Baseline().name) == "baseline");
}

TEST_CASE("every half survives the way to float32 and back") {
  for (const RowKernels* set : Sets()) {
    CAPTURE(set->name);
    for (const int type : {kBFloat16, kFloat16}) {
      int wrong = 0;
      int differ = 0;
      for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const uint16_t half = static_cast<uint16_t>(bits);
        const float value = Widen(*set, type, half);
        const float baseline = Widen(Baseline(), type, half);
        differ += std::memcmp(&value, &baseline, sizeof(value)) != 0;
        if (!std::isnan(value)) wrong += Narrow(*set, type, value) != half;
      }
      CHECK(wrong == 0);
      CHECK(differ == 0);
    }
  }
}

TEST_CASE("halves round to nearest, ties to even") {
  for (const RowKernels* set : Sets()) {
    CAPTURE(set->name);
    CHECK(Narrow(*set, kBFloat16, 1.0f) == 0x3f80);
    CHECK(Narrow(*set, kBFloat16, 1.0f + 0x1p-8f) == 0x3f80);      // tie
    CHECK(Narrow(*set, kBFloat16, 1.0f + 3 * 0x1p-8f) == 0x3f82);  // tie
    CHECK(Narrow(*set, kBFloat16, 1.0f + 0x1.2p-8f) == 0x3f81);
    CHECK(Narrow(*set, kFloat16, 1.0f + 0x1p-11f) == 0x3c00);      // tie
    CHECK(Narrow(*set, kFloat16, 1.0f + 3 * 0x1p-11f) == 0x3c02);  // tie
    CHECK(Narrow(*set, kFloat16, 65504.0f) == 0x7bff);
    CHECK(Narrow(*set, kFloat16, 65519.0f) == 0x7bff);
    CHECK(Narrow(*set, kFloat16, 65520.0f) == 0x7c00);
    CHECK(Narrow(*set, kFloat16, 0x1p-24f) == 0x0001);
    CHECK(Narrow(*set, kFloat16, 0x1p-25f) == 0x0000);    // tie
    CHECK(Narrow(*set, kFloat16, 0x1.8p-24f) == 0x0002);  // tie
    CHECK(Narrow(*set, kFloat16, -0.0f) == 0x8000);
    CHECK(std::isnan(
        Widen(*set, kBFloat16, Narrow(*set, kBFloat16, std::nanf("")))));
    CHECK(std::isnan(
        Widen(*set, kFloat16, Narrow(*set, kFloat16, std::nanf("")))));
    CHECK(std::isinf(
        Widen(*set, kBFloat16,
              Narrow(*set, kBFloat16, std::numeric_limits<float>::max()))));
  }
}

TEST_CASE("all sets round random floats to the same halves") {
  std::mt19937 random(1);
  std::vector<float> values(200000);
  for (float& value : values) {
    const uint32_t bits = random();
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isnan(value)) value = 0.0f;
  }
  const int64_t n = static_cast<int64_t>(values.size());
  for (const RowKernels* set : Sets()) {
    CAPTURE(set->name);
    for (const int type : {kBFloat16, kFloat16}) {
      std::vector<uint16_t> expected(values.size());
      std::vector<uint16_t> got(values.size());
      Baseline().from_float[type](values.data(), n, expected.data());
      set->from_float[type](values.data(), n, got.data());
      CHECK(got == expected);
    }
  }
}

TEST_CASE("copying skips null sources and touches nothing else") {
  for (const RowKernels* set : Sets()) {
    for (size_t bytes = 1; bytes < 200; ++bytes) {
      std::vector<char> a(bytes, 'a');
      std::vector<char> c(bytes, 'c');
      const char* sources[] = {a.data(), nullptr, c.data()};
      std::vector<char> target(3 * bytes + 1, '.');
      set->copy_rows(sources, 3, bytes, target.data());
      CHECK(std::string(target.begin(), target.end()) ==
            std::string(bytes, 'a') + std::string(bytes, '.') +
                std::string(bytes, 'c') + ".");
    }
  }
}

TEST_CASE("sums of rows are in order and alike in all sets") {
  constexpr int kRows = 37;
  for (const RowKernels* set : Sets()) {
    CAPTURE(set->name);
    for (int type = 0; type < kRowTypes; ++type) {
      for (int64_t dim = 1; dim < 150; ++dim) {
        std::vector<std::vector<float>> rows;
        std::vector<std::vector<char>> stored;
        std::vector<const void*> pointers;
        const std::vector<float> weights = RandomFloats(kRows, 99);
        std::vector<float> expected(static_cast<size_t>(dim), 0.5f);
        for (int r = 0; r < kRows; ++r) {
          std::vector<float> row = RandomFloats(dim, r);
          stored.emplace_back(static_cast<size_t>(dim) * 4);
          set->from_float[type](row.data(), dim, stored.back().data());
          set->to_float[type](stored.back().data(), dim, row.data());
          for (size_t i = 0; i < row.size(); ++i) {
            expected[i] += weights[static_cast<size_t>(r)] * row[i];
          }
        }
        for (const auto& row : stored) pointers.push_back(row.data());
        std::vector<float> sum(static_cast<size_t>(dim), 0.5f);
        set->add_rows[type](pointers.data(), weights.data(), kRows, dim,
                            sum.data());
        REQUIRE(sum == expected);
      }
    }
  }
}

TEST_CASE("square sums are alike in all sets") {
  for (int64_t dim = 1; dim < 100; ++dim) {
    const std::vector<float> values = RandomFloats(dim, 4);
    double reference = 0.0;
    for (const float v : values) reference += 4.0 * v * v;
    const double baseline = Baseline().square_sum(values.data(), dim, 2.0f);
    CHECK(baseline == doctest::Approx(reference).epsilon(1e-12));
    for (const RowKernels* set : Sets()) {
      CHECK(set->square_sum(values.data(), dim, 2.0f) == baseline);
    }
  }
}

// One step of every rule on every row type, over widths with and without
// remainders.
TEST_CASE("optimizer steps give the same bits in all sets") {
  StepNumbers numbers = {};
  numbers.gradient_scale = 0.7f;
  numbers.clipvalue = 1.0f;
  numbers.weight_decay = 0.01f;
  numbers.learning_rate = 0.1f;
  numbers.alpha = 0.09f;
  numbers.one_less_beta_1 = 0.1f;
  numbers.one_less_beta_2 = 0.001f;
  numbers.momentum = 0.9f;
  numbers.rho = 0.9f;
  numbers.one_less_rho = 0.1f;
  numbers.epsilon = 1e-7f;
  numbers.negative_power = 0.4f;
  numbers.l1 = 0.01f;
  numbers.twice_l2 = 0.02f;
  numbers.twice_shrinkage = 0.03f;
  numbers.has_momentum = true;
  numbers.centered = true;
  for (const int64_t dim : {1, 3, 8, 16, 17, 31, 64, 100}) {
    const size_t width = static_cast<size_t>(dim);
    numbers.dim = dim;
    numbers.row_offset = 0;
    for (size_t s = 0; s < 3; ++s) numbers.slot_offset[s] = 4 * width * (s + 1);
    const std::vector<float> gradient = RandomFloats(dim, 8);
    std::vector<float> start(4 * width, 0.25f);
    for (size_t i = 0; i < width; ++i) start[i] = gradient[i] * 0.5f + 0.1f;
    for (int rule = 0; rule < kNumStepRules; ++rule) {
      for (int type = 0; type < kRowTypes; ++type) {
        CAPTURE(rule);
        CAPTURE(type);
        std::vector<float> expected;
        for (const RowKernels* set : Sets()) {
          std::vector<float> record = start;
          set->from_float[type](start.data(), dim, record.data());
          char* records[] = {reinterpret_cast<char*>(record.data())};
          const float* gradients[] = {gradient.data()};
          std::vector<float> scratch(2 * width);
          set->step[rule][type](numbers, records, gradients, 1, scratch.data());
          if (expected.empty()) expected = record;
          REQUIRE(std::memcmp(record.data(), expected.data(),
                              record.size() * sizeof(float)) == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace embedra::internal
