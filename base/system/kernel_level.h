// Kernel levels: which instruction sets our kernels and the libraries may use.
//
// Levels are those of the x86-64 ABI: v2 (SSE4.2), v3 (AVX2 and FMA), v4 (AVX-512); other machines
// have `base` alone. Results are the same, bit for bit, at one level with any number of threads;
// another level rounds otherwise, so the level belongs to a job's numbers. OpenBLAS and oneDNN
// choose their code once per process, so a process runs at one level.
//
// Threads: any.
#ifndef PEN_BASE_SYSTEM_KERNEL_LEVEL_H
#define PEN_BASE_SYSTEM_KERNEL_LEVEL_H

#include "base/status.h"

typedef enum pen_kernel_level {
    PEN_KERNEL_LEVEL_AUTO, // that which is settled, else the best; no device runs at it
    PEN_KERNEL_LEVEL_BASE,
    PEN_KERNEL_LEVEL_V2,
    PEN_KERNEL_LEVEL_V3,
    PEN_KERNEL_LEVEL_V4,
    PEN_KERNEL_LEVEL_COUNT,
} pen_kernel_level;

// "auto", "base", "v2", "v3", "v4", NULL: by the numbers above.
extern const char *const pen_kernel_level_names[];

// The best level of this machine.
pen_kernel_level pen_kernel_level_best(void);

// Settles the level of this process; the first call wins, be it of a device that is opened.
//   UNSUPPORTED    this machine lacks it, or the process runs at another one
PEN_NODISCARD pen_status pen_kernel_level_settle(pen_kernel_level wanted,
                                                 pen_kernel_level *out_level);

#endif // PEN_BASE_SYSTEM_KERNEL_LEVEL_H
