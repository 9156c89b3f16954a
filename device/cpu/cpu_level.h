// Kernel levels: which instruction sets our kernels and the libraries may use.
//
// Levels are those of the x86-64 ABI: v2 (SSE4.2), v3 (AVX2 and FMA), v4 (AVX-512); other machines
// have `base` alone. Results are the same, bit for bit, at one level with any number of threads;
// another level rounds otherwise, so the level is part of the plan. OpenBLAS and oneDNN choose
// their code once per process, so a process runs at one level.
//
// Threads: any.
#ifndef PEN_DEVICE_CPU_CPU_LEVEL_H
#define PEN_DEVICE_CPU_CPU_LEVEL_H

#include <stdint.h>

#include "base/status.h"

typedef enum pen_cpu_level {
    PEN_CPU_LEVEL_BASE,
    PEN_CPU_LEVEL_V2,
    PEN_CPU_LEVEL_V3,
    PEN_CPU_LEVEL_V4,
    PEN_CPU_LEVEL_COUNT,
} pen_cpu_level;

// "v3"
const char *pen_cpu_level_name(pen_cpu_level level);

// Settles the level of this process: `name`, or the best (or the one settled) when NULL. The
// first call wins.
//   INVALID_INPUT  there is no such level; lists those there are
//   UNSUPPORTED    this machine lacks it, or the process runs at another one
PEN_NODISCARD pen_status pen_cpu_level_settle(const char *name, pen_cpu_level *out_level);

#endif // PEN_DEVICE_CPU_CPU_LEVEL_H
