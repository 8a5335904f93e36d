// RowKernels: the inner loops, compiled for several instruction sets.
//
// One source (row_kernels.inc and the files it includes) is compiled for the
// baseline of the platform, for AVX2 and for AVX-512; the best set that the
// processor runs is chosen once, at first use. All sets give the same bits:
// they do the same IEEE operations in the same order on each element, and
// contraction to fused multiply-add is off. So a model trains alike, and an id
// starts alike, on every machine of a cluster.

#ifndef EMBEDRA_CORE_ROW_KERNELS_H_
#define EMBEDRA_CORE_ROW_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace embedra {

// Name of the kernel set in use: "baseline", "avx2" or "avx512".
const char* KernelSet();

namespace internal {

// Number of row types; RowType is the index into the arrays below.
constexpr int kRowTypes = 3;

// Update rules after the choices that do not vary within a step.
enum StepRule {
  kSgdRule,
  kMomentumRule,
  kNesterovRule,
  kAdagradRule,
  kRowwiseAdagradRule,
  kAdamRule,
  kAmsgradRule,
  kFtrlRule,       // learning_rate_power of -0.5
  kFtrlPowerRule,  // any other
  kRmspropRule,
  kNumStepRules,
};

// One optimizer step in numbers that do not vary from row to row.
struct StepNumbers {
  int64_t dim;
  size_t row_offset;      // of the row, from the start of a record, in bytes
  size_t slot_offset[3];  // of the slots, in the order of SlotsOf()
  float gradient_scale;   // with the factor of clipnorm
  float clipvalue;        // 0: off
  float weight_decay;     // 0: off
  float learning_rate;
  float alpha;  // Adam: learning rate with bias correction
  float one_less_beta_1;
  float one_less_beta_2;
  float momentum;
  float rho;
  float one_less_rho;
  float epsilon;
  float negative_power;  // Ftrl: -learning_rate_power
  float l1;
  float twice_l2;         // Ftrl: 2 * (l2 + beta / (2 * learning_rate))
  float twice_shrinkage;  // Ftrl: 2 * l2_shrinkage
  bool has_momentum;      // RMSprop
  bool centered;          // RMSprop
};

// Random rows: see initializer.h.
enum class RowDistribution { kUniform, kNormal };
struct RandomNumbers {
  uint64_t stream;
  RowDistribution distribution;
  float scale;   // width of the interval, or standard deviation
  float shift;   // low, or mean
  float last;    // uniform: largest value, just below the upper end
  double p_low;  // normal: the range of probabilities that is inverted
  double p_width;
};

struct RowKernels {
  const char* name;

  // Copies `bytes` from each `sources[i]` to `target + i * bytes`. Null sources
  // are skipped.
  void (*copy_rows)(const char* const* sources, int64_t n, size_t bytes,
                    char* target);

  // sum[0, dim) += weights[i] * rows[i], for i in order.
  void (*add_rows[kRowTypes])(const void* const* rows, const float* weights,
                              int64_t n, int64_t dim, float* sum);

  // Rows to float32 and back, rounding to nearest even.
  void (*to_float[kRowTypes])(const void* row, int64_t dim, float* values);
  void (*from_float[kRowTypes])(const float* values, int64_t dim, void* row);

  // Applies one step to `records[i]` with `gradients[i]` (dim elements).
  // `scratch` has 2 * dim elements.
  void (*step[kNumStepRules][kRowTypes])(const StepNumbers& numbers,
                                         char* const* records,
                                         const float* const* gradients,
                                         int64_t n, float* scratch);

  // Sum of squares of scale * values[0, dim), in float64.
  double (*square_sum)(const float* values, int64_t dim, float scale);

  // The initial row of `key`.
  void (*random_row)(const RandomNumbers& numbers, int64_t key, int64_t dim,
                     float* row);
};

// The set in use.
const RowKernels& Kernels();

// All sets that this processor runs, best first, ending in null.
const RowKernels* const* RunnableKernels();

}  // namespace internal
}  // namespace embedra

#endif  // EMBEDRA_CORE_ROW_KERNELS_H_
