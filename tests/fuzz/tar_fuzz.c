// Fuzzes the index of tar files: what it says of an example lies within the file.
#include <math.h>

#include "scheduler/data/tar/tar_index.h"
#include "tests/fuzz/fuzz.h"

static const pen_dataset_input inputs[] = {{"x", "jpg", 0}, {"x", "png", 0}, {"y", "npy", 0}};

// The last number of a row is a weight, where there is one.
static pen_status take_weighed(void *context, const int64_t *row) {
    const pen_tar_parts *parts = context;
    const float weight = pen_tar_row_weight(parts, row);
    fuzz_must(isfinite(weight) && weight >= 0);
    return PEN_OK;
}

static pen_status take(void *context, const int64_t *row) {
    const uint64_t size = *(const size_t *)context;
    fuzz_must(row[0] == 3 && row[1] >= 0);
    for (uint32_t f = 0; f < 2; f++) {
        fuzz_must((uint64_t)row[2 + 2 * f] <= size);
        fuzz_must((uint64_t)row[3 + 2 * f] <= size - (uint64_t)row[2 + 2 * f]);
    }
    return PEN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const pen_tar_parts parts = {inputs, 3, "cls", NULL};
    // weights as text, and in an object
    pen_tar_parts weighed[] = {{inputs, 0, NULL, "cls"}, {inputs, 0, NULL, "json:w"}};
    const pen_mapping file = {.bytes = data, .length = size};
    fuzz_reads(pen_tar_index_read(&parts, &file, "fuzz", 3, take, &size));
    for (uint32_t i = 0; i < 2; i++) {
        fuzz_reads(pen_tar_index_read(&weighed[i], &file, "fuzz", 3, take_weighed, &weighed[i]));
    }
    return 0;
}
