#include "base/system/kernel_level.h"

#include <stdatomic.h>

const char *const pen_kernel_level_names[] = {
    [PEN_KERNEL_LEVEL_AUTO] = "auto", [PEN_KERNEL_LEVEL_BASE] = "base",
    [PEN_KERNEL_LEVEL_V2] = "v2",     [PEN_KERNEL_LEVEL_V3] = "v3",
    [PEN_KERNEL_LEVEL_V4] = "v4",     [PEN_KERNEL_LEVEL_COUNT] = NULL,
};

static atomic_int level_settled; // AUTO: none yet

pen_kernel_level pen_kernel_level_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    if (v4) return PEN_KERNEL_LEVEL_V4;
    if (v3) return PEN_KERNEL_LEVEL_V3;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) {
        return PEN_KERNEL_LEVEL_V2;
    }
#endif
    return PEN_KERNEL_LEVEL_BASE;
}

// One process runs at one level, since libraries choose their code once: whoever comes first
// settles it.
pen_status pen_kernel_level_settle(pen_kernel_level wanted, pen_kernel_level *out_level) {
    const pen_kernel_level best = pen_kernel_level_best();
    const pen_kernel_level level = wanted == PEN_KERNEL_LEVEL_AUTO ? best : wanted;
    if (level > best || (level == PEN_KERNEL_LEVEL_BASE && best != PEN_KERNEL_LEVEL_BASE)) {
        return pen_error(PEN_UNSUPPORTED,
                         "kernel level %s cannot run here; this machine's best is %s",
                         pen_kernel_level_names[level], pen_kernel_level_names[best]);
    }
    int settled = PEN_KERNEL_LEVEL_AUTO;
    *out_level = level;
    if (atomic_compare_exchange_strong(&level_settled, &settled, (int)level)) return PEN_OK;
    *out_level = (pen_kernel_level)settled;
    if (wanted == PEN_KERNEL_LEVEL_AUTO || *out_level == wanted) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "kernel level %s was asked for, but this process runs at %s already",
                     pen_kernel_level_names[wanted], pen_kernel_level_names[*out_level]);
}
