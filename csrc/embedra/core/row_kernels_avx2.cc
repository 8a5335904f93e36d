#define EMBEDRA_KERNELS avx2
#include "embedra/core/row_kernels.inc"
