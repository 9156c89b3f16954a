// What chance says about one example in one epoch.
//
// Number k of change t is made of two numbers of Philox4x32-10 (base/random.h):
//   key      (seed, pen_random_stream("augment", epoch, t))
//   counter  example * 64 + k / 2, its first two numbers for even k, the others for odd k
//   value    the upper 53 of their 64 bits, as a fraction of 2^53
// So it depends neither on who reads, nor on what was read before. Only operations that IEEE 754
// rounds correctly follow, so boxes are the same on any machine.
//
// Threads: pure functions.
#ifndef PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_DRAW_H
#define PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_DRAW_H

#include <stdbool.h>

#include "base/random.h"
#include "scheduler/data/augment/augment_options.h"

// The numbers of one change to one example.
typedef struct pen_augment_dice {
    pen_random_key key;
    uint64_t first; // counter
} pen_augment_dice;

pen_augment_dice pen_augment_dice_of(uint64_t seed, uint64_t epoch, uint32_t step,
                                     uint64_t example);

// Number `k`, in [0, 1). Below 128.
double pen_augment_uniform(pen_augment_dice dice, uint32_t k);
// Number `k`, a whole one below `limit`, which is at least 1.
uint32_t pen_augment_below(pen_augment_dice dice, uint32_t k, uint32_t limit);

// `base` to the power of `exponent`, at least 0 and below 2^32, of which 24 binary places count: a
// product of repeated squares and square roots. Libraries' own pow and exp differ in the last bit.
double pen_augment_power(double base, double exponent);

// A part of a picture. Width and height are at least 1.
typedef struct pen_augment_box {
    uint32_t left;
    uint32_t top;
    uint32_t width;
    uint32_t height;
} pen_augment_box;

// The part that a random resized crop takes of a picture of this size: of ten tries, the first that
// fits, else the largest in the middle whose ratio is allowed.
pen_augment_box pen_augment_draw_crop(const pen_augment_step *step, pen_augment_dice dice,
                                      uint32_t width, uint32_t height);

// The part that is erased, of ten tries. False: none.
bool pen_augment_draw_erasing(const pen_augment_step *step, pen_augment_dice dice, uint32_t width,
                              uint32_t height, pen_augment_box *out_box);

#endif // PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_DRAW_H
