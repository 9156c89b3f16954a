// PNG files as rows of pixels. The one home of png.h.
//
// A file is begun, then read, then ended, also after an error.
//
// Lifetime: the file's bytes and its path are borrowed until it is ended.
// Threads:  a reader belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_PNG_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_PNG_H

#include "scheduler/data/image/image_rows.h"

typedef struct pen_image_png pen_image_png;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_png_create(pen_image_png **out_png);
// Accepts NULL.
void pen_image_png_destroy(pen_image_png *png);

// Reads the head. CORRUPT, UNSUPPORTED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_png_begin(pen_image_png *png, const uint8_t *bytes, size_t size,
                                             const char *path, pen_image_size *out_size);
// Hands on all rows. CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_png_read(pen_image_png *png, const pen_image_taker *taker);
void pen_image_png_end(pen_image_png *png);

// The version of the library.
const char *pen_png_version(void);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_PNG_H
