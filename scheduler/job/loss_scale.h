// The scale of the loss in a training whose products are of float16.
//
// Gradients that are small become 0 in float16. So the gradient of the loss begins as a scale S in
// place of 1, which all gradients are then multiples of, and each is multiplied by 1/S before
// anything else is done with it. A step one of whose gradients is not finite is skipped: nothing is
// updated. As torch.amp.GradScaler has it:
//
//   skipped               S ← S * backoff, and counting begins anew
//   `every` good steps    S ← S * growth, where that is finite, and counting begins anew
//
// Unlike there, a training ends in which nothing would be updated any more: where S would fall
// below a floor, or no loss was finite for some steps in a row. A loss is made before it is scaled;
// but the next batch may have a finite one again.
//
// S is a float32, as there. A step of the optimizer (Adam's t) is one that was not skipped; a
// schedule of learning rates counts all steps, as PyTorch's scheduler.step() after scaler.update().
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_JOB_LOSS_SCALE_H
#define PEN_SCHEDULER_JOB_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pen_loss_scale_options {
    double initial;
    double growth;
    double backoff;
    int64_t every; // good steps one after another
    double floor;  // no scale is below
} pen_loss_scale_options;

// Where a training stands. All zero: its loss is not scaled.
typedef struct pen_loss_scale {
    double scale;     // of the step to come; 0: not scaled
    uint64_t good;    // steps since it changed
    uint64_t skipped; // steps in all
    uint64_t bad;     // in a row, the last of those: their losses were not finite
} pen_loss_scale;

#define PEN_LOSS_SCALE_BAD_LIMIT 10 // of losses in a row

// What came of a step.
typedef struct pen_loss_scale_step {
    bool is_skipped;
    bool is_loss_finite;
} pen_loss_scale_step;

typedef enum pen_loss_scale_verdict {
    PEN_LOSS_SCALE_GOES_ON,
    PEN_LOSS_SCALE_SUNK, // the next scale would be below the floor
    PEN_LOSS_SCALE_LOST, // too many losses in a row are not finite
} pen_loss_scale_verdict;

// Before the first step.
pen_loss_scale pen_loss_scale_start(const pen_loss_scale_options *options);
// What the gradient of the loss is multiplied by; 1 where the loss is not scaled.
double pen_loss_scale_factor(const pen_loss_scale *scale);
// What gradients are multiplied by, rounded to float32; 1 where the loss is not scaled.
double pen_loss_scale_inverse(const pen_loss_scale *scale);
// After a step. Where it does not go on, nothing is changed.
pen_loss_scale_verdict pen_loss_scale_advance(pen_loss_scale *scale,
                                              const pen_loss_scale_options *options,
                                              const pen_loss_scale_step *step);

#endif // PEN_SCHEDULER_JOB_LOSS_SCALE_H
