#define EMBEDRA_KERNELS baseline
#include "embedra/core/row_kernels.inc"
