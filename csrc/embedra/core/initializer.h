// InitializerSpec: how the first row of a key is made.
//
// A row is a pure function of (seed, table name, key, column): the same id
// starts the same in any batch, order, shard, worker or restart. Numbers come
// from Philox 4x32-10 counters (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011); normal ones by inverting the normal distribution
// (Wichura, algorithm AS 241, 1988), which needs one uniform number each.

#ifndef EMBEDRA_CORE_INITIALIZER_H_
#define EMBEDRA_CORE_INITIALIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "embedra/core/row_kernels.h"
#include "embedra/core/status.h"

namespace embedra {

struct InitializerSpec {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal };

  Kind kind = Kind::kConstant;
  // kConstant: one value, or one for each column. kUniform: low, high (high is
  // left out). kNormal and kTruncatedNormal: mean, standard deviation; the
  // truncated one is cut at two standard deviations.
  std::vector<float> parameters = {0.0f};

  Status Validate(int64_t dim) const;
};

// What a kind is called: "constant", "uniform" and so on.
const char* NameOf(InitializerSpec::Kind kind);

// Draws initial rows.
class RowInitializer {
 public:
  RowInitializer(const InitializerSpec& spec, uint64_t seed,
                 const std::string& table_name, int64_t dim);

  // Writes the `dim` float32 elements of the initial row of `key`.
  void Fill(int64_t key, float* row) const;

 private:
  std::vector<float> constant_;  // the row, where all keys start alike
  internal::RandomNumbers random_ = {};
  int64_t dim_;
};

}  // namespace embedra

#endif  // EMBEDRA_CORE_INITIALIZER_H_
