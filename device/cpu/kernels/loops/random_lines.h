// The numbers of pen_random_uniform, a line of them at a time: sixteen blocks of Philox side by
// side.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_RANDOM_LINES_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_RANDOM_LINES_H

#include <stdint.h>

#include "base/random.h"

#define RANDOM_LANES 16
#define RANDOM_LINE (4 * RANDOM_LANES) // a block has four numbers

// The smallest number that is not below `ratio`, exactly.
static inline float random_threshold(double ratio) {
    return (float)pen_random_threshold(ratio) * 0x1p-24f;
}

// Blocks first_block … first_block + RANDOM_LANES - 1 of base/random.c's generator, as uniform
// numbers in order.
static inline void random_line(pen_random_key key, uint64_t first_block, float *out) {
    uint32_t c0[RANDOM_LANES], c1[RANDOM_LANES], c2[RANDOM_LANES], c3[RANDOM_LANES];
    for (uint32_t lane = 0; lane < RANDOM_LANES; lane++) {
        c0[lane] = (uint32_t)(first_block + lane);
        c1[lane] = (uint32_t)((first_block + lane) >> 32);
        c2[lane] = (uint32_t)key.stream;
        c3[lane] = (uint32_t)(key.stream >> 32);
    }
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int lane = 0; lane < RANDOM_LANES; lane++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[lane];
            const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2[lane];
            c0[lane] = (uint32_t)(p1 >> 32) ^ c1[lane] ^ k0;
            c2[lane] = (uint32_t)(p0 >> 32) ^ c3[lane] ^ k1;
            c1[lane] = (uint32_t)p1;
            c3[lane] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int lane = 0; lane < RANDOM_LANES; lane++) {
        out[4 * lane] = (float)(c0[lane] >> 8) * 0x1p-24f;
        out[4 * lane + 1] = (float)(c1[lane] >> 8) * 0x1p-24f;
        out[4 * lane + 2] = (float)(c2[lane] >> 8) * 0x1p-24f;
        out[4 * lane + 3] = (float)(c3[lane] >> 8) * 0x1p-24f;
    }
}

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_RANDOM_LINES_H
