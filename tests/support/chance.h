// Chances for tests that take millions of them: splitmix64 (Steele, Lea, Flood: "Fast splittable
// pseudorandom number generators", OOPSLA 2014). Where a few will do, dice.h.
#ifndef PEN_TESTS_SUPPORT_CHANCE_H
#define PEN_TESTS_SUPPORT_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct chance {
    uint64_t state;
} chance;

static inline uint64_t chance_mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static inline uint64_t chance_next(chance *c) {
    return chance_mix(c->state += 0x9e3779b97f4a7c15u);
}

// Uniform in [0, limit), limit > 0; of limits below 2^32 nearly so.
static inline uint64_t chance_below(chance *c, uint64_t limit) {
    const uint64_t drawn = chance_next(c);
    return limit <= UINT32_MAX ? (drawn >> 32) * limit >> 32 : drawn % limit;
}

// Uniform in [low, high], both included.
static inline uint64_t chance_between(chance *c, uint64_t low, uint64_t high) {
    return low + chance_below(c, high - low + 1);
}

static inline bool chance_one_in(chance *c, uint64_t count) {
    return chance_below(c, count) == 0;
}

#endif // PEN_TESTS_SUPPORT_CHANCE_H
