// RowOptimizer: one optimizer's rule and numbers for one step.
//
// The rules are those of Keras 3; each is applied to touched rows only.

#ifndef EMBEDRA_CORE_ROW_OPTIMIZER_H_
#define EMBEDRA_CORE_ROW_OPTIMIZER_H_

#include <cstdint>
#include <vector>

namespace embedra {

enum class OptimizerKind {
  kSgd,             // no slots
  kMomentum,        // momentum; `nesterov` selects the look-ahead form
  kAdagrad,         // accumulator
  kRowwiseAdagrad,  // accumulator of width 1: mean of squares over the row
  kAdam,            // momentum, velocity; velocity_hat with `amsgrad`
  kFtrl,            // accumulator, linear
  kRmsprop,         // velocity; momentum if > 0; average if `centered`
};

struct RowOptimizer {
  OptimizerKind kind = OptimizerKind::kSgd;
  float learning_rate = 0.0f;
  int64_t step = 1;  // 1 for the first update; Adam's bias correction
  float momentum = 0.0f;
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float rho = 0.9f;
  float epsilon = 1e-7f;
  float initial_accumulator = 0.0f;
  float learning_rate_power = -0.5f;  // Ftrl
  float l1 = 0.0f;
  float l2 = 0.0f;
  float l2_shrinkage = 0.0f;
  float beta = 0.0f;
  bool nesterov = false;
  bool amsgrad = false;
  bool centered = false;

  // Applied to the summed gradients, in this order.
  float gradient_scale = 1.0f;  // e.g. 1 / loss scale, or a global-norm factor
  float clipnorm = 0.0f;   // over all rows of the table in this step; 0: off
  float clipvalue = 0.0f;  // per element; 0: off
  // Decoupled: row -= row * weight_decay * learning_rate, before the rule.
  float weight_decay = 0.0f;
};

// A slot an optimizer keeps; see SlotSpec in table.h.
struct SlotSpec;

// The slots that `optimizer` needs beside rows of `dim` elements.
std::vector<SlotSpec> SlotsOf(const RowOptimizer& optimizer, int64_t dim);

}  // namespace embedra

#endif  // EMBEDRA_CORE_ROW_OPTIMIZER_H_
