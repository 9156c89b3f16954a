// One matrix product in parts, each computed by a library on one thread over the whole of k.
//
// Libraries divide a product by the number of threads, and so the order of its sums. These parts
// follow from the shape alone: the bits are those of one thread on any team.
//
// Threads: any; the calling thread's team shares out the parts.
#ifndef PEN_DEVICE_CPU_GEMM_PARTS_H
#define PEN_DEVICE_CPU_GEMM_PARTS_H

#include "base/status.h"
#include "device/cpu/gemm.h"

// A product of a library, on the calling thread alone.
typedef pen_status (*pen_gemm_fn)(const pen_gemm *gemm);

// Errors are those of `multiply`.
PEN_NODISCARD pen_status pen_gemm_in_parts(const pen_gemm *gemm, pen_gemm_fn multiply);

#endif // PEN_DEVICE_CPU_GEMM_PARTS_H
