// BMP files as rows of pixels.
//
// Read are headers of OS/2 (12, 16 and 64 bytes) and of Windows (40, 52, 56, 108 and 124 bytes);
// 1, 4 and 8 bits a pixel with a palette, also packed as RLE4 and RLE8; 16, 24 and 32 bits with the
// usual places of the colours or with masks; from the bottom up or from the top down. A colour of
// n bits becomes value * 255 / (2^n - 1), rounded down, as Pillow does. Pixels that packed rows
// leave out have the first colour of the palette.
//
// What else there is (JPEG or PNG within a BMP, Huffman and 24-bit packing of OS/2) is refused by
// its name. Source of the form: Microsoft, "Bitmap Storage"; OS/2: GpiLoadBitmap.
#ifndef PEN_SCHEDULER_DATA_IMAGE_IMAGE_BMP_H
#define PEN_SCHEDULER_DATA_IMAGE_IMAGE_BMP_H

#include "scheduler/data/image/image_format.h"

extern const pen_image_format pen_image_format_bmp;

#endif // PEN_SCHEDULER_DATA_IMAGE_IMAGE_BMP_H
