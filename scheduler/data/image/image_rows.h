// Pictures as they are decoded: a size, then rows of pixels.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_ROWS_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_ROWS_H

#include <stdint.h>

#include "base/status.h"

typedef struct pen_image_size {
    uint32_t width; // 1 to PEN_IMAGE_SIDE_LIMIT
    uint32_t height;
} pen_image_size;

// Who takes the pixels.
typedef struct pen_image_taker {
    void *context;
    // Before the first row. An error ends the decoding.
    pen_status (*begin)(void *context, pen_image_size size);
    // The next row, from the top: [width][3], good during the call. May not fail.
    void (*row)(void *context, const uint8_t *pixels);
} pen_image_taker;

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_ROWS_H
