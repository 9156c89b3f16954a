// libFuzzer: JPEG and PNG files, decoded and resized.
#include <math.h>
#include <stdlib.h>

#include "scheduler/training/image_decode.h"
#include "scheduler/training/image_resize.h"

#define FUZZ_PIXELS_LIMIT (1u << 20) // larger pictures are slow, and no different
#define FUZZ_SIDE 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pen_status fuzz_decode(const uint8_t *data, size_t size, pen_image_decoder *decoder) {
    float planes[3 * FUZZ_SIDE * FUZZ_SIDE];
    pen_image image;
    pen_image_resizer *resizer;
    PEN_TRY(pen_image_measure(decoder, data, size, "fuzz", &image));
    if ((uint64_t)image.width * image.height > FUZZ_PIXELS_LIMIT) return PEN_OK;
    PEN_TRY(pen_image_decode(decoder, data, size, "fuzz", &image));
    PEN_TRY(pen_image_resizer_create(FUZZ_SIDE, FUZZ_SIDE, 3, &resizer));
    const pen_status status = pen_image_resize(resizer, &image, planes);
    for (int i = 0; status == PEN_OK && i < 3 * FUZZ_SIDE * FUZZ_SIDE; i++) {
        if (!(planes[i] > -0.01f && planes[i] < 255.01f)) abort();
    }
    pen_image_resizer_destroy(resizer);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_image_decoder *decoder;
    if (pen_image_decoder_create(&decoder) != PEN_OK) abort();
    pen_status_ignore(fuzz_decode(data, size, decoder), "most inputs are wrong");
    pen_image_decoder_destroy(decoder);
    return 0;
}
