// Fuzzes the reader of IDX files, plain and compressed, down to the elements.
#include "base/memory.h"
#include "scheduler/data/idx_dataset.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_ELEMENTS_LIMIT 65536

static void fuzz_read_first(pen_array_source *source) {
    static int64_t elements[FUZZ_ELEMENTS_LIMIT];
    pen_dataset_field field = {0};
    // the shape may be empty
    if (!fuzz_reads(pen_array_source_open_labels(source, PEN_DATASET_AUTO, &field))) return;
    if (source->shape[0] == 0 || field.element_count > FUZZ_ELEMENTS_LIMIT) return;
    const uint64_t ends[2] = {0, (uint64_t)source->shape[0] - 1};
    for (int i = 0; i < 2; i++)
        pen_array_source_read(source, &ends[i], 1, elements);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_array_source source;
    void *inflated;
    if (fuzz_reads(pen_idx_read(data, size, "fuzz", &source, &inflated))) fuzz_read_first(&source);
    pen_memory_free(inflated);
    return 0;
}
