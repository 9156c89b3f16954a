// JPEG files as rows of pixels. The one home of jpeglib.h.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_JPEG_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_JPEG_H

#include "scheduler/data/image/image_format.h"

extern const pen_image_format pen_image_format_jpeg;

// The version of the library.
const char *pen_libjpeg_version(void);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_JPEG_H
