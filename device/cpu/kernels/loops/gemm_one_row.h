// Products of one row with a matrix, c = alpha * a * op(b) + beta * c with m = 1: what a model of
// language does for each token. All there is to do is to read b, once and in the order in which it
// lies; libraries copy it, or read it in pieces of a few columns.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_GEMM_ONE_ROW_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_GEMM_ONE_ROW_H

#include "base/status.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/gemm.h"

#define gemm_one_row_run PEN_CPU_JOIN(pen_gemm_one_row_run, PEN_CPU_LEVEL)
// m is 1, and the elements of a lie side by side. On the calling thread's team, which shares out
// the columns of c: the order of the additions does not depend on its size.
PEN_NODISCARD pen_status gemm_one_row_run(const pen_gemm *gemm);

#define gemm_one_row_or_library PEN_CPU_JOIN(pen_gemm_one_row_or_library, PEN_CPU_LEVEL)
// On the calling thread alone, which may be one of a team: with one row as above, the same bits,
// else by oneDNN.
PEN_NODISCARD pen_status gemm_one_row_or_library(const pen_gemm *gemm);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_GEMM_ONE_ROW_H
