#include "tests/support/taken_image.h"

#include <string.h>

#include "tests/support/check.h"

static pen_status taken_begin(void *context, pen_image_size size) {
    taken_image *image = context;
    image->size = size;
    image->row_count = 0;
    return PEN_OK;
}

static void taken_row(void *context, const uint8_t *pixels) {
    taken_image *image = context;
    const size_t bytes = (size_t)image->size.width * 3;
    if (image->pixels != NULL) memcpy(image->pixels + image->row_count * bytes, pixels, bytes);
    image->row_count += 1;
}

pen_image_taker taken_image_taker(taken_image *image) {
    return (pen_image_taker){image, taken_begin, taken_row};
}

pen_status taken_image_decode(const uint8_t *bytes, size_t size, const char *name,
                              taken_image *image) {
    pen_image_decoder *decoder;
    const pen_image_taker taker = taken_image_taker(image);
    CHECK_OK(pen_image_decoder_create(&decoder));
    const pen_status status = pen_image_decode(decoder, bytes, size, name, &taker);
    if (status == PEN_OK) assert_int_equal(image->row_count, image->size.height);
    pen_image_decoder_destroy(decoder);
    return status;
}
