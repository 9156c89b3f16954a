// Fuzzes the whole way of an HDF5 file: libhdf5 reads any bytes in a process of its own, and may
// crash there; here they give groups, texts and contents, or an error with a message.
#include "graph/import/keras/hdf5_file.h"
#include "tests/fuzz/fuzz.h"

static void walk(pen_hdf5 *file, const char *path, pen_arena *arena, int depth) {
    uint32_t count;
    const pen_hdf5_entry *entries;
    const char *const *texts;
    pen_tensor_type type;
    const void *data;
    if (!fuzz_works(pen_hdf5_list(file, path, arena, &count, &entries))) return;
    for (uint32_t i = 0; i < count; i++) {
        const char *child;
        uint32_t text_count;
        if (!fuzz_works(pen_arena_format(arena, &child, "%s/%s", depth == 0 ? "" : path,
                                         entries[i].name))) {
            return;
        }
        if (entries[i].kind == PEN_HDF5_DATASET) {
            (void)fuzz_reads(pen_hdf5_read_dataset(file, child, arena, &type, &data));
        }
        if (entries[i].kind != PEN_HDF5_GROUP) continue;
        (void)fuzz_reads(pen_hdf5_read_texts(file, child, "weight_names", &text_count, &texts));
        if (depth < 4) walk(file, child, arena, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_hdf5 *file;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_hdf5_open("fuzz", data, size, &file))) {
        walk(file, "/", arena, 0);
        pen_hdf5_close(file);
    }
    pen_arena_destroy(arena);
    return 0;
}
