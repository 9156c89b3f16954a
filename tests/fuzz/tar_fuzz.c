// Fuzzes the index of tar files: what it says of an example lies within the file.
#include "scheduler/data/tar/tar_index.h"
#include "tests/fuzz/fuzz.h"

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
    static const pen_dataset_input inputs[] = {{"x", "jpg", 0}, {"x", "png", 0}, {"y", "npy", 0}};
    const pen_tar_parts parts = {inputs, 3, "cls"};
    const pen_mapping file = {.bytes = data, .length = size};
    fuzz_reads(pen_tar_index_read(&parts, &file, "fuzz", 3, take, &size));
    return 0;
}
