// Changes to the numbers of one picture, in place.
//
// Lifetime: everything is borrowed for the length of a call.
// Threads:  pure functions.
#ifndef PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_PIXELS_H
#define PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_PIXELS_H

#include "scheduler/data/augment/augment_draw.h"

#define PEN_AUGMENT_CHANNELS_LIMIT 4

// How the numbers of a picture lie, and what was done to them before.
typedef struct pen_augment_layout {
    uint32_t channels; // 1, 3 or 4
    uint32_t height;
    uint32_t width;
    uint64_t channel_stride; // numbers from one to the next
    uint64_t row_stride;
    uint64_t pixel_stride;
    uint64_t element_count;
    float mean[PEN_AUGMENT_CHANNELS_LIMIT]; // subtracted, and then divided by
    float deviation[PEN_AUGMENT_CHANNELS_LIMIT];
    bool is_normalized; // else these are 0 and 1
} pen_augment_layout;

// Moves the picture by up to `padding` pixels. `scratch` [element_count].
void pen_augment_move(const pen_augment_layout *layout, const pen_augment_step *step,
                      pen_augment_dice dice, float *values, float *scratch);

void pen_augment_flip_horizontal(const pen_augment_layout *layout, float *values);
void pen_augment_flip_vertical(const pen_augment_layout *layout, float *values);

// Brightness, contrast and saturation in an order that is drawn, before the mean is subtracted.
// Returns false, and a value, where that is no colour: below 0 or above the maximum.
bool pen_augment_jitter(const pen_augment_layout *layout, const pen_augment_step *step,
                        pen_augment_dice dice, float *values, float *out_value);

void pen_augment_erase(const pen_augment_layout *layout, const pen_augment_step *step,
                       pen_augment_box box, float *values);

#endif // PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_PIXELS_H
