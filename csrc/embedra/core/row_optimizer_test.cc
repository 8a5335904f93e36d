// Every optimizer against its rule in float64, over several steps.

#include "embedra/core/row_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "embedra/core/test_util.h"

namespace embedra {
namespace {

using testing::MakeTable;

constexpr int64_t kDim = 19;  // odd: vectors and remainders
constexpr int64_t kRows = 5;
constexpr int kSteps = 6;

// A row and its slots in float64.
struct Reference {
  std::vector<double> row;
  std::vector<std::vector<double>> slots;
};

using Rule = void (*)(const RowOptimizer& o, int64_t step, double lr, double g,
                      double& w, std::vector<double>& s);

void Sgd(const RowOptimizer&, int64_t, double lr, double g, double& w,
         std::vector<double>&) {
  w -= lr * g;
}

void Momentum(const RowOptimizer& o, int64_t, double lr, double g, double& w,
              std::vector<double>& s) {
  s[0] = 0.9 * s[0] - lr * g;
  w += o.nesterov ? 0.9 * s[0] - lr * g : s[0];
}

void Adagrad(const RowOptimizer& o, int64_t, double lr, double g, double& w,
             std::vector<double>& s) {
  s[0] += g * g;
  w -= lr * g / std::sqrt(s[0] + static_cast<double>(o.epsilon));
}

void Adam(const RowOptimizer& o, int64_t step, double lr, double g, double& w,
          std::vector<double>& s) {
  const double t = static_cast<double>(step);
  const double alpha =
      lr * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
  s[0] += (g - s[0]) * (1 - 0.9);
  s[1] += (g * g - s[1]) * (1 - 0.999);
  double scale = s[1];
  if (o.amsgrad) scale = s[2] = std::max(s[2], s[1]);
  w -= s[0] * alpha / (std::sqrt(scale) + static_cast<double>(o.epsilon));
}

void Ftrl(const RowOptimizer& o, int64_t, double lr, double g, double& w,
          std::vector<double>& s) {
  const double power = -static_cast<double>(o.learning_rate_power);
  const double l1 = static_cast<double>(o.l1);
  const double l2 =
      static_cast<double>(o.l2) + static_cast<double>(o.beta) / (2 * lr);
  const double shrunk = g + 2 * static_cast<double>(o.l2_shrinkage) * w;
  const double sum = s[0] + g * g;
  s[1] += shrunk - (std::pow(sum, power) - std::pow(s[0], power)) / lr * w;
  const double quadratic = std::pow(sum, power) / lr + 2 * l2;
  w = (std::clamp(s[1], -l1, l1) - s[1]) / quadratic;
  s[0] = sum;
}

void Rmsprop(const RowOptimizer& o, int64_t, double lr, double g, double& w,
             std::vector<double>& s) {
  s[0] = 0.9 * s[0] + 0.1 * g * g;
  double denominator = s[0] + static_cast<double>(o.epsilon);
  if (o.centered) {
    double& average = s.back();
    average = 0.9 * average + 0.1 * g;
    denominator -= average * average;
  }
  const double increment = lr * g / std::sqrt(denominator);
  if (o.momentum > 0) {
    s[1] = static_cast<double>(o.momentum) * s[1] + increment;
    w -= s[1];
  } else {
    w -= increment;
  }
}

// Summed gradients after scale and clipping.
std::vector<double> Prepared(const RowOptimizer& o,
                             const std::vector<float>& grads) {
  std::vector<double> g(grads.begin(), grads.end());
  double norm = 0.0;
  for (double& v : g) {
    v *= static_cast<double>(o.gradient_scale);
    norm += v * v;
  }
  const double clipnorm = static_cast<double>(o.clipnorm);
  const double clipvalue = static_cast<double>(o.clipvalue);
  norm = std::sqrt(norm);
  for (double& v : g) {
    if (clipnorm > 0) v *= clipnorm / std::max(norm, clipnorm);
    if (clipvalue > 0) v = std::clamp(v, -clipvalue, clipvalue);
  }
  return g;
}

void CheckAgainst(Rule rule, RowOptimizer optimizer) {
  const auto table = MakeTable(kDim);
  const std::vector<int64_t> keys = testing::Range(100, kRows);
  const testing::Lookup start = testing::FindOrInsert(*table, keys);
  const std::vector<float> rows = start.floats();
  const std::vector<SlotSpec> specs = SlotsOf(optimizer, kDim);
  std::vector<double> w(rows.begin(), rows.end());
  std::vector<std::vector<double>> slots(w.size());
  for (auto& s : slots) {
    for (const SlotSpec& spec : specs) {
      s.push_back(static_cast<double>(spec.initial));
    }
  }
  std::mt19937 random(17);
  std::normal_distribution<float> normal(0.0f, 0.3f);
  const double lr = static_cast<double>(optimizer.learning_rate);
  for (int64_t step = 1; step <= kSteps; ++step) {
    std::vector<float> grads(w.size());
    for (float& g : grads) g = normal(random);
    optimizer.step = step;
    EMBEDRA_REQUIRE_OK(table->Update(optimizer, start.positions.data(), kRows,
                                     grads.data(), Serial(), nullptr));
    const std::vector<double> g = Prepared(optimizer, grads);
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] -= w[i] * static_cast<double>(optimizer.weight_decay) * lr;
      rule(optimizer, step, lr, g[i], w[i], slots[i]);
    }
  }
  const std::vector<float> got = testing::Find(*table, keys).floats();
  const RecordBatch records = testing::ExportAll(*table);
  for (size_t i = 0; i < w.size(); ++i) {
    CHECK(static_cast<double>(got[i]) ==
          doctest::Approx(w[i]).epsilon(2e-6).scale(0.1));
  }
  // Slots, by key: an export is in order of position.
  for (size_t r = 0; r < records.keys.size(); ++r) {
    const size_t row = static_cast<size_t>(records.keys[r] - keys[0]);
    for (size_t s = 0; s < specs.size(); ++s) {
      for (size_t i = 0; i < static_cast<size_t>(kDim); ++i) {
        const float slot =
            records.slots[r * specs.size() * kDim + s * kDim + i];
        CHECK(
            static_cast<double>(slot) ==
            doctest::Approx(slots[row * kDim + i][s]).epsilon(2e-6).scale(0.1));
      }
    }
  }
}

RowOptimizer Make(OptimizerKind kind, float learning_rate) {
  RowOptimizer optimizer;
  optimizer.kind = kind;
  optimizer.learning_rate = learning_rate;
  return optimizer;
}

TEST_CASE("sgd") { CheckAgainst(Sgd, Make(OptimizerKind::kSgd, 0.1f)); }

TEST_CASE("sgd with scale, clipping and decay") {
  RowOptimizer o = Make(OptimizerKind::kSgd, 0.1f);
  o.gradient_scale = 0.5f;
  SUBCASE("clipnorm") { o.clipnorm = 0.7f; }
  SUBCASE("clipnorm that does not bite") { o.clipnorm = 1000.0f; }
  SUBCASE("clipvalue") { o.clipvalue = 0.1f; }
  SUBCASE("norm, then value") {
    o.clipnorm = 1.0f;
    o.clipvalue = 0.1f;
  }
  SUBCASE("weight decay") { o.weight_decay = 0.2f; }
  CheckAgainst(Sgd, o);
}

TEST_CASE("momentum") {
  RowOptimizer o = Make(OptimizerKind::kMomentum, 0.1f);
  o.momentum = 0.9f;
  SUBCASE("plain") {}
  SUBCASE("nesterov") { o.nesterov = true; }
  CheckAgainst(Momentum, o);
}

TEST_CASE("adagrad") {
  RowOptimizer o = Make(OptimizerKind::kAdagrad, 0.1f);
  SUBCASE("from 0.1") { o.initial_accumulator = 0.1f; }
  SUBCASE("from 0") {}
  SUBCASE("large epsilon") { o.epsilon = 1.0f; }
  CheckAgainst(Adagrad, o);
}

TEST_CASE("adam") {
  RowOptimizer o = Make(OptimizerKind::kAdam, 0.01f);
  SUBCASE("plain") {}
  SUBCASE("amsgrad") { o.amsgrad = true; }
  SUBCASE("adamw") { o.weight_decay = 0.1f; }
  CheckAgainst(Adam, o);
}

TEST_CASE("ftrl") {
  RowOptimizer o = Make(OptimizerKind::kFtrl, 0.1f);
  o.initial_accumulator = 0.1f;
  SUBCASE("plain") {}
  SUBCASE("regularised") {
    o.l1 = 0.01f;
    o.l2 = 0.02f;
    o.l2_shrinkage = 0.03f;
    o.beta = 0.04f;
  }
  SUBCASE("another power") { o.learning_rate_power = -0.3f; }
  CheckAgainst(Ftrl, o);
}

TEST_CASE("rmsprop") {
  RowOptimizer o = Make(OptimizerKind::kRmsprop, 0.01f);
  SUBCASE("plain") {}
  SUBCASE("momentum") { o.momentum = 0.8f; }
  SUBCASE("centered") { o.centered = true; }
  SUBCASE("both") {
    o.momentum = 0.8f;
    o.centered = true;
  }
  CheckAgainst(Rmsprop, o);
}

TEST_CASE("row-wise adagrad keeps one accumulator a row") {
  RowOptimizer o = Make(OptimizerKind::kRowwiseAdagrad, 0.1f);
  o.initial_accumulator = 0.1f;
  const auto table = MakeTable(kDim);
  const testing::Lookup start = testing::FindOrInsert(*table, {1});
  std::vector<float> before = start.floats();
  std::vector<double> w(before.begin(), before.end());
  double accumulator = static_cast<double>(0.1f);
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.0f, 0.3f);
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<float> grads(static_cast<size_t>(kDim));
    double squares = 0.0;
    for (float& g : grads) {
      g = normal(random);
      squares += static_cast<double>(g) * static_cast<double>(g);
    }
    EMBEDRA_REQUIRE_OK(table->Update(o, start.positions.data(), 1, grads.data(),
                                     Serial(), nullptr));
    accumulator += squares / kDim;
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] -= 0.1 * static_cast<double>(grads[i]) /
              std::sqrt(accumulator + static_cast<double>(o.epsilon));
    }
  }
  const std::vector<float> got = testing::Find(*table, {1}).floats();
  for (size_t i = 0; i < w.size(); ++i) {
    CHECK(static_cast<double>(got[i]) == doctest::Approx(w[i]).epsilon(2e-6));
  }
  const RecordBatch records = testing::ExportAll(*table);
  REQUIRE(records.slots.size() == 1);
  CHECK(static_cast<double>(records.slots[0]) ==
        doctest::Approx(accumulator).epsilon(1e-6));
}

TEST_CASE("slots are those that Keras keeps, in its order") {
  const auto names = [](const RowOptimizer& optimizer) {
    std::string joined;
    for (const SlotSpec& s : SlotsOf(optimizer, 4)) {
      joined += s.name + ":" + std::to_string(s.width) + " ";
    }
    return joined;
  };
  RowOptimizer rmsprop = Make(OptimizerKind::kRmsprop, 0.1f);
  rmsprop.momentum = 0.5f;
  rmsprop.centered = true;
  RowOptimizer amsgrad = Make(OptimizerKind::kAdam, 0.1f);
  amsgrad.amsgrad = true;
  CHECK(names(Make(OptimizerKind::kSgd, 0.1f)).empty());
  CHECK(names(Make(OptimizerKind::kMomentum, 0.1f)) == "momentum:4 ");
  CHECK(names(Make(OptimizerKind::kAdagrad, 0.1f)) == "accumulator:4 ");
  CHECK(names(Make(OptimizerKind::kRowwiseAdagrad, 0.1f)) == "accumulator:1 ");
  CHECK(names(amsgrad) == "momentum:4 velocity:4 velocity_hat:4 ");
  CHECK(names(Make(OptimizerKind::kFtrl, 0.1f)) == "accumulator:4 linear:4 ");
  CHECK(names(rmsprop) == "velocity:4 momentum:4 average_gradient:4 ");
}

TEST_CASE("half rows are stepped in float32 and rounded once") {
  for (const RowType type : {RowType::kBFloat16, RowType::kFloat16}) {
    const auto table = MakeTable(testing::UniformOptions(kDim, type));
    const testing::Lookup start = testing::FindOrInsert(*table, {1});
    std::vector<float> before(static_cast<size_t>(kDim));
    EMBEDRA_REQUIRE_OK(table->ReadRecords(start.positions.data(), 1, {},
                                          before.data(), {}, Serial()));
    const RowOptimizer sgd = Make(OptimizerKind::kSgd, 0.1f);
    const std::vector<float> grads(static_cast<size_t>(kDim), 0.01f);
    EMBEDRA_REQUIRE_OK(table->Update(sgd, start.positions.data(), 1,
                                     grads.data(), Serial(), nullptr));
    std::vector<float> after(static_cast<size_t>(kDim));
    EMBEDRA_REQUIRE_OK(table->ReadRecords(start.positions.data(), 1, {},
                                          after.data(), {}, Serial()));
    const double unit = type == RowType::kBFloat16 ? 0x1p-8 : 0x1p-11;
    for (size_t i = 0; i < after.size(); ++i) {
      const double exact = static_cast<double>(before[i]) - 0.001;
      CHECK(std::abs(static_cast<double>(after[i]) - exact) <=
            unit * std::abs(exact) * 1.01);
    }
  }
}

TEST_CASE("numbers with which no step can be made are refused") {
  const auto table = MakeTable(2);
  const testing::Lookup start = testing::FindOrInsert(*table, {1});
  const std::vector<float> before = start.floats();
  const float grads[2] = {1.0f, 1.0f};
  RowOptimizer o = Make(OptimizerKind::kAdam, 0.1f);
  SUBCASE("step") { o.step = 0; }
  SUBCASE("learning rate") {
    o.learning_rate = std::numeric_limits<float>::quiet_NaN();
  }
  SUBCASE("clipnorm") { o.clipnorm = -1.0f; }
  SUBCASE("clipvalue") { o.clipvalue = -1.0f; }
  const Status status =
      table->Update(o, start.positions.data(), 1, grads, Serial(), nullptr);
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message().find("'items'") != std::string::npos);
  CHECK(table->slots().empty());
  CHECK(testing::Find(*table, {1}).floats() == before);
}

}  // namespace
}  // namespace embedra
