#include "base/random.h"

#include <math.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

#define RANDOM_ROUND_COUNT 10

uint64_t pen_random_stream(const char *name, uint64_t first, uint64_t second) {
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a, then finished as in SplitMix64
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    }
    const uint64_t parts[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        hash += parts[i] * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
        hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
        hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
        hash ^= hash >> 31;
    }
    return hash;
}

// Philox4x32-10 as in the paper, section 3.3: ten rounds of two 32-bit products, keys raised by the
// Weyl constants.
void pen_random_block(pen_random_key key, uint64_t counter, uint32_t out_numbers[4]) {
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)key.stream, c3 = (uint32_t)(key.stream >> 32);
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int round = 0; round < RANDOM_ROUND_COUNT; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out_numbers[0] = c0;
    out_numbers[1] = c1;
    out_numbers[2] = c2;
    out_numbers[3] = c3;
}

float pen_random_uniform(pen_random_key key, uint64_t index) {
    uint32_t numbers[4];
    pen_random_block(key, index / 4, numbers);
    return (float)(numbers[index % 4] >> 8) * 0x1p-24f;
}

uint64_t pen_random_below(pen_random_key key, uint64_t index, uint64_t limit) {
    uint32_t numbers[4];
    pen_random_block(key, index, numbers);
    const uint64_t number = (uint64_t)numbers[0] << 32 | numbers[1];
    return (uint64_t)(((__extension__(unsigned __int128) number) * limit) >> 64);
}

double pen_random_normal(pen_random_key key, uint64_t index) {
    uint32_t numbers[4];
    pen_random_block(key, index, numbers);
    const double u = ((double)((uint64_t)numbers[0] << 21 | numbers[1] >> 11) + 0.5) * 0x1p-53;
    const double v = (double)numbers[2] * 0x1p-32;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t pen_random_incarnation(void) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number || number == 0) {
        // a system without it: time and process tell apart as well
        number = ((uint64_t)(pen_clock_seconds() * 1e9) ^ ((uint64_t)getpid() << 40)) | 1;
    }
    return number;
}
