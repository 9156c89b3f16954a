// Picture files as pixels, row by row: those of PEN_IMAGE_KINDS.
//
// Pixels are red, green, blue, a byte each. Transparency is dropped, 16 bits are made 8, gray is
// three times the same, and four inks (CMYK) are mixed without a profile.
//
// Rows are handed on as they are decoded, so a picture takes the memory of some rows. Some kinds
// are not coded in rows, and take the memory of all of it while they are decoded: interlaced PNG
// (four bytes a pixel), progressive JPEG (six, in libjpeg), WebP (three and one for transparency,
// or seven if it is lossless), 448 MiB at PEN_IMAGE_PIXELS_LIMIT.
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

// The kinds there are, and how names of such files end, for messages.
#define PEN_IMAGE_KINDS "JPEG, PNG, WebP or BMP"
#define PEN_IMAGE_ENDINGS ".jpg, .jpeg, .png, .webp or .bmp"

typedef struct pen_image_decoder pen_image_decoder;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_decoder_create(pen_image_decoder **out_decoder);

// Accepts NULL.
void pen_image_decoder_destroy(pen_image_decoder *decoder);

// Whether the bytes begin as such files do.
bool pen_image_is(const uint8_t *bytes, size_t size);

// Whether a name ends as those of such files, in capitals or not.
bool pen_image_is_named(const char *name);

// Reads the width and height that a file in memory announces. Codes as below.
PEN_NODISCARD pen_status pen_image_measure(pen_image_decoder *decoder, const uint8_t *bytes,
                                           size_t size, const char *path, pen_image_size *out_size);

// Decodes a whole file that is in memory. After an error, some rows may have been taken. Messages
// name `path`.
//   CORRUPT      cut short or damaged, also where a decoder would go on with pixels missing
//   UNSUPPORTED  of no kind that is read, a side above PEN_IMAGE_SIDE_LIMIT, more pixels than a
//                file of so few bytes is trusted with
//   OUT_OF_MEMORY, and what the taker says
PEN_NODISCARD pen_status pen_image_decode(pen_image_decoder *decoder, const uint8_t *bytes,
                                          size_t size, const char *path,
                                          const pen_image_taker *taker);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_DECODE_H
