// OpenBLAS. The only home of cblas.h.
//
// The library is loaded at run time and not linked. It chooses its kernels in its constructor, by
// processor or by OPENBLAS_CORETYPE; results depend on that choice, and the kernel level of the
// plan, not an environment, is to decide about them (a wrong one also costs half the speed). So
// the variable is set before loading. Besides, all builds share one soname, and only the OpenMP
// build shares our team; so that one is looked for first.
//
// Threads: loading is done once, by the first device; products may run in any thread.
#ifndef PEN_DEVICE_CPU_BLAS_H
#define PEN_DEVICE_CPU_BLAS_H

#include <stdbool.h>

#include "base/status.h"
#include "base/system/kernel_level.h"
#include "device/cpu/gemm.h"

// To be called for each device. Loads the library for a level, unless it was; overwrites
// OPENBLAS_CORETYPE.
// When there is no OpenBLAS nothing is loaded, and other kernels do the work.
//   OUT_OF_MEMORY  its buffers would not fit, for which it asks for ever while it is loaded
PEN_NODISCARD pen_status pen_blas_load(pen_kernel_level level);
bool pen_blas_is_loaded(void);

// "OpenBLAS 0.3.21 (SkylakeX, OpenMP)", or "no OpenBLAS".
const char *pen_blas_describe(void);

// On the calling thread alone: its bits do not depend on the team. The library must be loaded.
void pen_blas_sgemm(const pen_gemm *gemm);

#endif // PEN_DEVICE_CPU_BLAS_H
