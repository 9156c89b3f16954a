// Random numbers: counted ones for what is computed, and a quick sequence for searches.
//
// Counter-based: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
//
// There is no state: the numbers are a function of a key and a counter, so they depend neither on
// the order of work nor on where it runs, and nothing needs saving. A stream is named by what it
// is for (dropout of one node, the shuffle of one epoch), and is never shared.
//
// A sequence is xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
// generators, scrambled", 2016): a tenth of the time of a block, for searches that draw some
// numbers at every step and never look one up by its index.
#ifndef PEN_BASE_RANDOM_H
#define PEN_BASE_RANDOM_H

#include <math.h>
#include <stdint.h>

typedef struct pen_random_key {
    uint64_t seed;   // the job's
    uint64_t stream; // what the numbers are for, see pen_random_stream
} pen_random_key;

// A stream for `name` and two numbers that tell uses of the name apart (step and microbatch,
// say). Different arguments give different streams, up to 64-bit hash collisions.
uint64_t pen_random_stream(const char *name, uint64_t first, uint64_t second);

// The block with number `counter`: four independent uniform 32-bit numbers.
void pen_random_block(pen_random_key key, uint64_t counter, uint32_t out_numbers[4]);

// Element `index` of the stream, uniform in [0, 1) with 24 bits.
float pen_random_uniform(pen_random_key key, uint64_t index);

// The smallest k so that k 2^-24 is not below `ratio`, in [0, 1]: elements are multiples of 2^-24,
// so those of k and more are the ones that are not below it.
static inline uint32_t pen_random_threshold(double ratio) {
    return (uint32_t)ceil(ratio * 0x1p24);
}

// Element `index` of the stream, uniform in [0, limit). `limit` > 0; the bias is below
// limit / 2^64.
uint64_t pen_random_below(pen_random_key key, uint64_t index, uint64_t limit);

// Element `index` of the stream, normal with mean 0 and deviation 1 (Box and Muller).
double pen_random_normal(pen_random_key key, uint64_t index);

// One number after another. It belongs to one thread at a time.
typedef struct pen_random_sequence {
    uint64_t state; // never 0
} pen_random_sequence;

// The sequence of a stream (pen_random_stream).
static inline pen_random_sequence pen_random_sequence_of(uint64_t stream) {
    return (pen_random_sequence){stream | 1};
}

// The next number, uniform in 32 bits.
static inline uint32_t pen_random_next(pen_random_sequence *sequence) {
    sequence->state ^= sequence->state >> 12;
    sequence->state ^= sequence->state << 25;
    sequence->state ^= sequence->state >> 27;
    return (uint32_t)((sequence->state * 0x2545f4914f6cdd1du) >> 32);
}

// The next number, uniform in [0, limit). `limit` > 0; the bias is below limit / 2^32.
static inline uint32_t pen_random_next_below(pen_random_sequence *sequence, uint32_t limit) {
    return (uint32_t)(((uint64_t)pen_random_next(sequence) * limit) >> 32);
}

// A number that no other process has, nor this one had before: what the system thinks up. Never 0.
uint64_t pen_random_incarnation(void);

#endif // PEN_BASE_RANDOM_H
