// A picture as its decoder gave it, row by row: three bytes a pixel.
#ifndef PEN_TESTS_SUPPORT_TAKEN_IMAGE_H
#define PEN_TESTS_SUPPORT_TAKEN_IMAGE_H

#include "scheduler/data/image/image_decode.h"

typedef struct taken_image {
    pen_image_size size;
    uint32_t row_count;
    uint8_t *pixels; // NULL: nobody wants them
} taken_image;

// What a decoder calls to fill it.
pen_image_taker taken_image_taker(taken_image *image);

// Decodes a file with a decoder of its own; where that goes well, all rows came.
PEN_NODISCARD pen_status taken_image_decode(const uint8_t *bytes, size_t size, const char *name,
                                            taken_image *image);

#endif // PEN_TESTS_SUPPORT_TAKEN_IMAGE_H
