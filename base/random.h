// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
//
// There is no state: the numbers are a function of a key and a counter, so they depend neither on
// the order of work nor on where it runs, and nothing needs saving. A stream is named by what it
// is for (dropout of one node, the shuffle of one epoch), and is never shared.
#ifndef PEN_BASE_RANDOM_H
#define PEN_BASE_RANDOM_H

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

// Element `index` of the stream, uniform in [0, limit). `limit` > 0; the bias is below
// limit / 2^64.
uint64_t pen_random_below(pen_random_key key, uint64_t index, uint64_t limit);

// Element `index` of the stream, normal with mean 0 and deviation 1 (Box and Muller).
double pen_random_normal(pen_random_key key, uint64_t index);

// A number that no other process has, nor this one had before: what the system thinks up. Never 0.
uint64_t pen_random_incarnation(void);

#endif // PEN_BASE_RANDOM_H
