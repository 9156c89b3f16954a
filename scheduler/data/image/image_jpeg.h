// JPEG files as rows of pixels. The one home of jpeglib.h.
//
// A file is begun, then read, then ended, also after an error.
//
// Lifetime: the file's bytes and its path are borrowed until it is ended.
// Threads:  a reader belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_JPEG_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_JPEG_H

#include "scheduler/data/image/image_rows.h"

typedef struct pen_image_jpeg pen_image_jpeg;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_jpeg_create(pen_image_jpeg **out_jpeg);
// Accepts NULL.
void pen_image_jpeg_destroy(pen_image_jpeg *jpeg);

// Reads the head. CORRUPT, UNSUPPORTED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_jpeg_begin(pen_image_jpeg *jpeg, const uint8_t *bytes,
                                              size_t size, const char *path,
                                              pen_image_size *out_size);
// Hands on all rows. CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_image_jpeg_read(pen_image_jpeg *jpeg, const pen_image_taker *taker);
void pen_image_jpeg_end(pen_image_jpeg *jpeg);

// The version of the library.
const char *pen_libjpeg_version(void);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_JPEG_H
