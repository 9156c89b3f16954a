// Fuzzes the reader of pictures: measured, decoded and resized.
#include "scheduler/data/image_decode.h"
#include "scheduler/data/image_resize.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_PIXELS_LIMIT (1u << 18) // larger pictures are slow, and no different
#define FUZZ_SIDE 8

static void fuzz_resize(const pen_image *image) {
    float planes[3 * FUZZ_SIDE * FUZZ_SIDE];
    pen_image_resizer *resizer;
    if (!fuzz_works(pen_image_resizer_create(FUZZ_SIDE, FUZZ_SIDE, 3, &resizer))) return;
    if (fuzz_works(pen_image_resize(resizer, image, planes))) {
        for (int i = 0; i < 3 * FUZZ_SIDE * FUZZ_SIDE; i++) {
            fuzz_must(planes[i] > -0.01f && planes[i] < 255.01f);
        }
    }
    pen_image_resizer_destroy(resizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_image_decoder *decoder;
    pen_image image;
    if (!fuzz_works(pen_image_decoder_create(&decoder))) return 0;
    if (fuzz_reads(pen_image_measure(decoder, data, size, "fuzz", &image)) &&
        (uint64_t)image.width * image.height <= FUZZ_PIXELS_LIMIT &&
        fuzz_reads(pen_image_decode(decoder, data, size, "fuzz", &image))) {
        fuzz_resize(&image);
    }
    pen_image_decoder_destroy(decoder);
    return 0;
}
