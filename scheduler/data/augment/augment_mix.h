// Batches whose examples are mixed, two and two: example i with i - 1, and the first with the last.
//
//   mixup   (Zhang and others, 2018)  each becomes own * s + other * (1 - s), inputs and labels
//   cutmix  (Yun and others, 2019)    a box of the other picture is put into each; s is the rest of
//                                     the area, and labels are mixed by it
//
// as torchvision's MixUp and CutMix do, in float32: both factors are rounded, then both products,
// then the sum. s is of Beta(alpha, alpha), one for all of a batch. Numbers of chance are those of
// augment_draw.h with the key (seed, pen_random_stream("mix", epoch, batch)) from counter 0 on:
//   0  the batch is mixed if below the probability       1  with both: cutmix if below 1/2
//   2  s is below 1/2 if below 1/2                       3  1 - u, for s
//   4  where the middle of the box is: across, 5: down   6, 7; 8, 9; …: tries at a point, for s
// s = 1/2 -+ sqrt(t / (1 + t)) / 2, where t = (u ^ (-1 / alpha) - 1) * x^2 / (x^2 + y^2), and (x,
// y) is the first of the points (each number times 2, less 1) within the unit circle, but not its
// middle (Devroye: "Random variate generation in one line of code", 1996). So it depends on the
// whole batch alone: not on microbatches, replicas or who computes; and only on operations that
// IEEE 754 rounds correctly.
//
// Lifetime: from create to destroy; nothing else is needed meanwhile.
// Threads:  one at a time mixes.
#ifndef PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_MIX_H
#define PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_MIX_H

#include <stdbool.h>

#include "base/status.h"
#include "scheduler/data/dataset.h"

typedef struct pen_mix pen_mix;

// What chance says about one batch.
typedef struct pen_mix_share {
    bool is_mixed;
    bool is_cut;   // by cutmix, not mixup
    double own;    // that each example keeps, in [0, 1]
    double across; // where the middle of the box is, of the width, in [0, 1)
    double down;
} pen_mix_share;

//   INVALID_INPUT  an input is not of float32, or no picture that cutmix needs; labels are indices,
//                  or pictures; or a number is out of its range
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_mix_create(const pen_dataset_options *options,
                                        const pen_dataset_info *info, pen_mix **out_mix);
// Accepts NULL.
void pen_mix_destroy(pen_mix *mix);

pen_mix_share pen_mix_draw(const pen_mix *mix, uint64_t epoch, uint64_t batch);

// `count` examples. `inputs` or `labels`, or one of their pointers, may be NULL.
void pen_mix_apply(pen_mix *mix, const pen_mix_share *share, uint64_t count, void *const *inputs,
                   void *const *labels);

#endif // PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_MIX_H
