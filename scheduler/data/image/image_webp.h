// WebP files as rows of pixels. The one home of libwebp's header.
//
// Still pictures, lossy and lossless. An animated one is refused: it is no picture but several.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_WEBP_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_WEBP_H

#include "scheduler/data/image/image_format.h"

extern const pen_image_format pen_image_format_webp;

// The version of the library. Good until the thread asks again.
const char *pen_libwebp_version(void);

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_WEBP_H
