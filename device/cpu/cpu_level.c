#include "device/cpu/cpu_level.h"

#include <stdatomic.h>
#include <string.h>

static const char *const cpu_level_names[PEN_CPU_LEVEL_COUNT] = {"base", "v2", "v3", "v4"};

// The level settled, plus 1; 0: none yet.
static atomic_int cpu_level_settled;

const char *pen_cpu_level_name(pen_cpu_level level) {
    return cpu_level_names[level];
}

// The best level of this machine.
static pen_cpu_level level_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    if (v4) return PEN_CPU_LEVEL_V4;
    if (v3) return PEN_CPU_LEVEL_V3;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) {
        return PEN_CPU_LEVEL_V2;
    }
#endif
    return PEN_CPU_LEVEL_BASE;
}

static pen_status cpu_level_find(const char *name, pen_cpu_level *out_level) {
    for (int level = 0; level < PEN_CPU_LEVEL_COUNT; level++) {
        if (strcmp(cpu_level_names[level], name) == 0) {
            *out_level = (pen_cpu_level)level;
            return PEN_OK;
        }
    }
    return pen_error(PEN_INVALID_INPUT,
                     "no kernel level is called '%s'; there are base, v2, v3, v4", name);
}

// One process runs at one level, since libraries choose their code once: whoever comes first
// settles it.
pen_status pen_cpu_level_settle(const char *name, pen_cpu_level *out_level) {
    const pen_cpu_level best = level_best();
    pen_cpu_level wanted = best;
    if (name != NULL) PEN_TRY(cpu_level_find(name, &wanted));
    if (wanted > best || (wanted == PEN_CPU_LEVEL_BASE && best != PEN_CPU_LEVEL_BASE)) {
        return pen_error(PEN_UNSUPPORTED,
                         "kernel level %s cannot run here; this machine's best is %s",
                         pen_cpu_level_name(wanted), pen_cpu_level_name(best));
    }
    int settled = 0;
    if (!atomic_compare_exchange_strong(&cpu_level_settled, &settled, (int)wanted + 1)) {
        const pen_cpu_level level = (pen_cpu_level)(settled - 1);
        if (name != NULL && level != wanted) {
            return pen_error(PEN_UNSUPPORTED,
                             "kernel level %s was asked for, but this process runs at %s already",
                             pen_cpu_level_name(wanted), pen_cpu_level_name(level));
        }
        wanted = level;
    }
    *out_level = wanted;
    return PEN_OK;
}
