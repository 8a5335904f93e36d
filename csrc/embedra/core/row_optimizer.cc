#include "embedra/core/row_optimizer.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "embedra/core/step_numbers.h"
#include "embedra/core/table.h"

namespace embedra {

std::vector<SlotSpec> SlotsOf(const RowOptimizer& optimizer, int64_t dim) {
  const float initial = optimizer.initial_accumulator;
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return {};
    case OptimizerKind::kMomentum:
      return {{"momentum", dim, 0.0f}};
    case OptimizerKind::kAdagrad:
      return {{"accumulator", dim, initial}};
    case OptimizerKind::kRowwiseAdagrad:
      return {{"accumulator", 1, initial}};
    case OptimizerKind::kAdam: {
      std::vector<SlotSpec> slots = {{"momentum", dim, 0.0f},
                                     {"velocity", dim, 0.0f}};
      if (optimizer.amsgrad) slots.push_back({"velocity_hat", dim, 0.0f});
      return slots;
    }
    case OptimizerKind::kFtrl:
      return {{"accumulator", dim, initial}, {"linear", dim, 0.0f}};
    case OptimizerKind::kRmsprop: {
      std::vector<SlotSpec> slots = {{"velocity", dim, 0.0f}};
      if (optimizer.momentum > 0.0f) slots.push_back({"momentum", dim, 0.0f});
      if (optimizer.centered) slots.push_back({"average_gradient", dim, 0.0f});
      return slots;
    }
  }
  return {};
}

namespace internal {
namespace {

// The decimal number that a float32 hyper-parameter was written as: 0.999f
// gives 0.999, not 0.99900001287. Keras computes 1 - beta_2 in float64 from
// what the user wrote; from the rounded value the result would be off by 1e-5.
double AsWritten(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  double widened = 0.0;
  const auto [ptr, error] = std::from_chars(text, end, widened);
  return error == std::errc() && ptr == end ? widened
                                            : static_cast<double>(value);
}

float OneLess(float value) {
  return static_cast<float>(1.0 - AsWritten(value));
}

float AdamAlpha(const RowOptimizer& optimizer) {
  const double step = static_cast<double>(optimizer.step);
  const double power_1 = std::pow(AsWritten(optimizer.beta_1), step);
  const double power_2 = std::pow(AsWritten(optimizer.beta_2), step);
  return static_cast<float>(static_cast<double>(optimizer.learning_rate) *
                            std::sqrt(1.0 - power_2) / (1.0 - power_1));
}

}  // namespace

Status ValidateOptimizer(const RowOptimizer& optimizer,
                         const std::string& table) {
  const std::string where = "table '" + table + "': optimizer ";
  const struct {
    const char* name;
    float value;
  } numbers[] = {
      {"learning_rate", optimizer.learning_rate},
      {"momentum", optimizer.momentum},
      {"beta_1", optimizer.beta_1},
      {"beta_2", optimizer.beta_2},
      {"rho", optimizer.rho},
      {"epsilon", optimizer.epsilon},
      {"initial_accumulator", optimizer.initial_accumulator},
      {"learning_rate_power", optimizer.learning_rate_power},
      {"l1", optimizer.l1},
      {"l2", optimizer.l2},
      {"l2_shrinkage", optimizer.l2_shrinkage},
      {"beta", optimizer.beta},
      {"clipnorm", optimizer.clipnorm},
      {"clipvalue", optimizer.clipvalue},
      {"weight_decay", optimizer.weight_decay},
  };
  for (const auto& number : numbers) {
    if (!std::isfinite(number.value)) {
      return Status::InvalidArgument(where + number.name +
                                     " must be finite, got " +
                                     std::to_string(number.value));
    }
  }
  if (optimizer.clipnorm < 0.0f || optimizer.clipvalue < 0.0f) {
    return Status::InvalidArgument(
        where + "clipnorm and clipvalue must be >= 0 (0 is off), got " +
        std::to_string(optimizer.clipnorm) + " and " +
        std::to_string(optimizer.clipvalue));
  }
  if (optimizer.kind == OptimizerKind::kAdam && optimizer.step < 1) {
    return Status::InvalidArgument(where + "step counts from 1, got " +
                                   std::to_string(optimizer.step));
  }
  return Status();
}

StepRule RuleOf(const RowOptimizer& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return kSgdRule;
    case OptimizerKind::kMomentum:
      return optimizer.nesterov ? kNesterovRule : kMomentumRule;
    case OptimizerKind::kAdagrad:
      return kAdagradRule;
    case OptimizerKind::kRowwiseAdagrad:
      return kRowwiseAdagradRule;
    case OptimizerKind::kAdam:
      return optimizer.amsgrad ? kAmsgradRule : kAdamRule;
    case OptimizerKind::kFtrl:
      return optimizer.learning_rate_power == -0.5f ? kFtrlRule
                                                    : kFtrlPowerRule;
    case OptimizerKind::kRmsprop:
      return kRmspropRule;
  }
  return kSgdRule;
}

StepNumbers NumbersOf(const RowOptimizer& optimizer,
                      const RecordLayout& layout) {
  StepNumbers numbers = {};
  numbers.dim = layout.dim;
  numbers.row_offset = RecordLayout::kRowOffset;
  for (size_t s = 0; s < 3; ++s) {
    const int64_t begin =
        s < layout.slot_begins.size() ? layout.slot_begins[s] : 0;
    numbers.slot_offset[s] =
        layout.slots_offset + static_cast<size_t>(begin) * sizeof(float);
  }
  numbers.gradient_scale = optimizer.gradient_scale;
  numbers.clipvalue = optimizer.clipvalue;
  numbers.weight_decay = optimizer.weight_decay;
  numbers.learning_rate = optimizer.learning_rate;
  if (optimizer.kind == OptimizerKind::kAdam) {
    numbers.alpha = AdamAlpha(optimizer);
  }
  numbers.one_less_beta_1 = OneLess(optimizer.beta_1);
  numbers.one_less_beta_2 = OneLess(optimizer.beta_2);
  numbers.momentum = optimizer.momentum;
  numbers.rho = optimizer.rho;
  numbers.one_less_rho = OneLess(optimizer.rho);
  numbers.epsilon = optimizer.epsilon;
  numbers.negative_power = -optimizer.learning_rate_power;
  numbers.l1 = optimizer.l1;
  numbers.twice_l2 =
      2.0f * (optimizer.l2 + optimizer.beta / (2.0f * optimizer.learning_rate));
  numbers.twice_shrinkage = 2.0f * optimizer.l2_shrinkage;
  numbers.has_momentum = optimizer.momentum > 0.0f;
  numbers.centered = optimizer.centered;
  return numbers;
}

}  // namespace internal
}  // namespace embedra
