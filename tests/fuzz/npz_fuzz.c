// Fuzzes the reader of NPZ archives: any bytes give arrays that are as large as they say, or an
// error with a message.
#include "graph/import/npz_file.h"
#include "tests/fuzz/fuzz.h"

static void use_arrays(const pen_npz *npz, size_t size) {
    uint64_t sum = 0, bytes = 0;
    for (uint32_t i = 0; i < npz->count; i++) {
        const pen_npz_array *array = &npz->arrays[i];
        const uint8_t *first = array->data;
        const uint64_t length = pen_tensor_type_bytes(&array->type);
        fuzz_must(array->name[0] != '\0');
        for (uint64_t b = 0; b < length; b++)
            sum += first[b];
        bytes += length;
    }
    fuzz_must(bytes / 1100 <= size && sum <= bytes * 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_npz npz;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_npz_read("fuzz", data, size, arena, &npz))) use_arrays(&npz, size);
    pen_arena_destroy(arena);
    return 0;
}
