// PNG files as rows of pixels. The one home of png.h.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_PNG_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_PNG_H

#include "scheduler/data/image/image_format.h"

extern const pen_image_format pen_image_format_png;

// The version of the library.
const char *pen_png_version(void);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_PNG_H
