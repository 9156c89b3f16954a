// Bilinear resizing to a fixed size, from bytes to float32 planes.
//
// Each axis is weighed by a triangle around the centre of the output pixel, as wide as one input
// pixel to each side when enlarging, and as one output pixel when reducing, so that no input pixel
// is skipped (in PyTorch: mode bilinear, antialias, align_corners false). Horizontal first; sums in
// float32 in the order of the pixels.
//
// Rows of a picture are taken one by one, and added to what they are a part of, so that a picture
// takes no memory but that of a row.
//
// Lifetime: from create to destroy; scratch grows with the widest picture so far.
// Threads:  a resizer belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_RESIZE_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/image/image_decode.h"

typedef struct pen_image_resizer pen_image_resizer;

// `channel_count` is 3, or 1 for gray: 0.299 red + 0.587 green + 0.114 blue, in 1/65536, rounded to
// whole values before resizing. All sizes are at least 1. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_resizer_create(uint32_t width, uint32_t height,
                                                  uint32_t channel_count,
                                                  pen_image_resizer **out_resizer);

// Accepts NULL.
void pen_image_resizer_destroy(pen_image_resizer *resizer);

// Begins a picture. Values from 0 to 255 are written to out_planes [channel_count][height][width],
// which is good once all rows were added. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_resizer_begin(pen_image_resizer *resizer, pen_image_size size,
                                                 float *out_planes);
// Adds the next row, from the top: [width][3].
void pen_image_resizer_add(pen_image_resizer *resizer, const uint8_t *pixels);
// The same of numbers: those of channel c of pixel x are at c * channel_stride + x * pixel_stride.
void pen_image_resizer_add_colours(pen_image_resizer *resizer, const float *pixels,
                                   size_t channel_stride, size_t pixel_stride);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_RESIZE_H
