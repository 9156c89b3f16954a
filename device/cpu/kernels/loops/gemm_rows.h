// Products of a few rows with a transposed matrix, c = alpha * a * b^T + beta * c, without copying
// b: both operands are read along their rows.
//
// Libraries copy b into blocks first, which costs as much as the product itself when a has only
// some dozens of rows: the forward product of a linear layer at a small batch.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_GEMM_ROWS_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_GEMM_ROWS_H

#include "base/status.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/gemm.h"

#define gemm_rows_run PEN_CPU_JOIN(pen_gemm_rows_run, PEN_CPU_LEVEL)
// a as it lies, b transposed. On the calling thread's team, which shares out the columns of c: the
// order of the additions does not depend on its size.
PEN_NODISCARD pen_status gemm_rows_run(const pen_gemm *gemm);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_GEMM_ROWS_H
