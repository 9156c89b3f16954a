// Normalisation of float32 inputs: (value * scale - mean) / deviation, a channel at a time.
//
// Each of the three operations is rounded to float32, and multiplying by 1/255 in double gives
// the float32 nearest to value/255, so the numbers are those of value / 255.0f followed by float32
// arithmetic, as other programs do it.
//
// Lifetime: tables live in the arena given.
// Threads:  immutable after pen_normalization_init.
#ifndef PEN_SCHEDULER_DATA_NORMALIZATION_H
#define PEN_SCHEDULER_DATA_NORMALIZATION_H

#include <stdint.h>

#include "base/arena.h"
#include "scheduler/data/dataset.h"

typedef struct pen_normalization {
    double scale;
    uint64_t channel_count; // 1, or as many as the example has
    uint64_t channel_size;  // elements of one channel; all of them if channel_count is 1
    const float *mean;      // [channel_count], NULL: 0
    const float *deviation; // [channel_count], NULL: 1
    const float *table;     // [channel_count][256] for uint8 values; NULL: not made
} pen_normalization;

// For examples of `field`, not flattened yet. `default_scale` stands if the options have none.
// `bytes`: whether pen_normalization_convert_bytes will be called.
//   INVALID_INPUT  the number of means or deviations is not 1 or that of the channels, a value is
//                  not finite, a deviation is 0; names `what`
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_normalization_init(pen_normalization *normalization,
                                                const pen_dataset_options *options,
                                                const pen_dataset_field *field,
                                                double default_scale, bool bytes, pen_arena *arena);

// One example, in place. [channel_count * channel_size]
void pen_normalization_apply(const pen_normalization *normalization, float *values);

// One example of uint8, from `bytes` to `out_values`. Both [channel_count * channel_size].
void pen_normalization_convert_bytes(const pen_normalization *normalization, const uint8_t *bytes,
                                     float *out_values);

#endif // PEN_SCHEDULER_DATA_NORMALIZATION_H
