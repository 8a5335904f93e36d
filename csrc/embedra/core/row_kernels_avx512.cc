#define EMBEDRA_KERNELS avx512
#include "embedra/core/row_kernels.inc"
