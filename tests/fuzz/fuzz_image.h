// A picture file of any kind: measured, decoded and resized.
#ifndef PEN_TESTS_FUZZ_FUZZ_IMAGE_H
#define PEN_TESTS_FUZZ_FUZZ_IMAGE_H

#include "scheduler/data/image/image_decode.h"
#include "scheduler/data/image/image_resize.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_PIXELS_LIMIT (1u << 18) // larger pictures are slow, and no different
#define FUZZ_SIDE 8

typedef struct fuzz_rows {
    pen_image_resizer *resizer;
    pen_image_size size;
    uint32_t row_count;
    float planes[3 * FUZZ_SIDE * FUZZ_SIDE];
} fuzz_rows;

static inline pen_status fuzz_image_begin(void *context, pen_image_size size) {
    fuzz_rows *rows = context;
    rows->size = size;
    return pen_image_resizer_begin(rows->resizer, size, rows->planes);
}

static inline void fuzz_image_take_row(void *context, const uint8_t *pixels) {
    fuzz_rows *rows = context;
    fuzz_must(rows->row_count < rows->size.height);
    rows->row_count += 1;
    pen_image_resizer_add(rows->resizer, pixels);
}

static inline void fuzz_image_decode(pen_image_decoder *decoder, const uint8_t *data, size_t size) {
    fuzz_rows rows = {.row_count = 0};
    const pen_image_taker taker = {&rows, fuzz_image_begin, fuzz_image_take_row};
    if (!fuzz_works(pen_image_resizer_create(FUZZ_SIDE, FUZZ_SIDE, 3, &rows.resizer))) return;
    if (fuzz_reads(pen_image_decode(decoder, data, size, "fuzz", &taker))) {
        fuzz_must(rows.row_count == rows.size.height);
        for (int i = 0; i < 3 * FUZZ_SIDE * FUZZ_SIDE; i++) {
            fuzz_must(rows.planes[i] > -0.01f && rows.planes[i] < 255.01f);
        }
    }
    pen_image_resizer_destroy(rows.resizer);
}

static inline void fuzz_any_image(const uint8_t *data, size_t size) {
    pen_image_decoder *decoder;
    pen_image_size measured;
    if (!fuzz_works(pen_image_decoder_create(&decoder))) return;
    if (fuzz_reads(pen_image_measure(decoder, data, size, "fuzz", &measured)) &&
        (uint64_t)measured.width * measured.height <= FUZZ_PIXELS_LIMIT) {
        fuzz_image_decode(decoder, data, size);
    }
    pen_image_decoder_destroy(decoder);
}

#endif // PEN_TESTS_FUZZ_FUZZ_IMAGE_H
