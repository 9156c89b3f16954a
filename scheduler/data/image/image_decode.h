// JPEG and PNG files as pixels, row by row.
//
// Pixels are red, green, blue, a byte each. Transparency is dropped, 16 bits are made 8, gray is
// three times the same, and four inks (CMYK) are mixed without a profile.
//
// Rows are handed on as they are decoded, so a picture takes the memory of some rows. Two kinds are
// not coded in rows, and take the memory of all of it while they are decoded: interlaced PNG (four
// bytes a pixel) and progressive JPEG (six in libjpeg), 384 MiB at PEN_IMAGE_PIXELS_LIMIT.
//
// Lifetime: a decoder owns memory for rows, which grows with the widest picture so far.
// Threads:  a decoder belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_DECODE_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/image/image_rows.h"

typedef struct pen_image_decoder pen_image_decoder;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_decoder_create(pen_image_decoder **out_decoder);

// Accepts NULL.
void pen_image_decoder_destroy(pen_image_decoder *decoder);

// Whether the bytes begin as JPEG or PNG files do.
bool pen_image_is(const uint8_t *bytes, size_t size);

// Reads the width and height that a file in memory announces. Codes as below.
PEN_NODISCARD pen_status pen_image_measure(pen_image_decoder *decoder, const uint8_t *bytes,
                                           size_t size, const char *path, pen_image_size *out_size);

// Decodes a whole file that is in memory. After an error, some rows may have been taken. Messages
// name `path`.
//   CORRUPT      cut short or damaged, also where a decoder would go on with pixels missing
//   UNSUPPORTED  neither JPEG nor PNG, a side above PEN_IMAGE_SIDE_LIMIT
//   OUT_OF_MEMORY, and what the taker says
PEN_NODISCARD pen_status pen_image_decode(pen_image_decoder *decoder, const uint8_t *bytes,
                                          size_t size, const char *path,
                                          const pen_image_taker *taker);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_DECODE_H
