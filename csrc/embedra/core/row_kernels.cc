#include "embedra/core/row_kernels.h"

namespace embedra {
namespace internal {

namespace baseline {
extern const RowKernels kKernels;
}
#if defined(EMBEDRA_X86_KERNELS)
namespace avx2 {
extern const RowKernels kKernels;
}
namespace avx512 {
extern const RowKernels kKernels;
}
#endif

namespace {

constexpr int kMaxSets = 3;

struct RunnableSets {
  const RowKernels* sets[kMaxSets + 1] = {};

  RunnableSets() {
    int count = 0;
#if defined(EMBEDRA_X86_KERNELS)
    __builtin_cpu_init();
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    if (has_avx2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      sets[count++] = &avx512::kKernels;
    }
    if (has_avx2) sets[count++] = &avx2::kKernels;
#endif
    sets[count] = &baseline::kKernels;
  }
};

}  // namespace

const RowKernels* const* RunnableKernels() {
  static const RunnableSets runnable;
  return runnable.sets;
}

const RowKernels& Kernels() { return *RunnableKernels()[0]; }

}  // namespace internal

const char* KernelSet() { return internal::Kernels().name; }

}  // namespace embedra
