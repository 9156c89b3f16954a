// JPEG and PNG files as pixels. The one home of turbojpeg.h and png.h.
//
// Pixels are rows of red, green, blue, a byte each. Transparency is dropped, 16 bits are made 8,
// and gray is three times the same.
//
// Lifetime: a decoder owns memory for the pixels, which grows with the largest picture so far.
// Threads:  a decoder belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_DECODE_H
#define PEN_SCHEDULER_DATA_IMAGE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_image {
    const uint8_t *pixels; // [height][width][3], the decoder's
    uint32_t width;        // 1 to PEN_IMAGE_SIDE_LIMIT
    uint32_t height;
} pen_image;

typedef struct pen_image_decoder pen_image_decoder;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_decoder_create(pen_image_decoder **out_decoder);

// Accepts NULL.
void pen_image_decoder_destroy(pen_image_decoder *decoder);

// Whether the bytes begin as JPEG or PNG files do.
bool pen_image_is(const uint8_t *bytes, size_t size);

// Reads the width and height that a file in memory announces; pixels are NULL. Codes as below.
PEN_NODISCARD pen_status pen_image_measure(pen_image_decoder *decoder, const uint8_t *bytes,
                                           size_t size, const char *path, pen_image *out_image);

// Decodes a whole file that is in memory. The pixels are good until the next call. Messages name
// `path`.
//   CORRUPT      cut short or damaged, also where the decoder would go on with pixels missing
//   UNSUPPORTED  neither JPEG nor PNG, a JPEG of four inks, a side above PEN_IMAGE_SIDE_LIMIT
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_decode(pen_image_decoder *decoder, const uint8_t *bytes,
                                          size_t size, const char *path, pen_image *out_image);

// The versions of libpng, and of the turbojpeg that was compiled with.
const char *pen_png_version(void);
const char *pen_turbojpeg_version(void);

#endif // PEN_SCHEDULER_DATA_IMAGE_DECODE_H
