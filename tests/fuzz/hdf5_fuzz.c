// Fuzzes what we take from the process that reads an HDF5 file: any stream gives a catalogue that
// can be walked, and contents as large as they say, or an error with a message.
#include <string.h>

#include "base/limits.h"
#include "graph/import/keras/hdf5_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_stream.h"

#define FILE_BYTES 64 // of the file that the stream is about

static void use_group(const pen_hdf5 *file, const char *path) {
    static const char *const attributes[] = {"model_config", "weight_names", "a"};
    uint32_t count;
    const char *const *texts;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (!fuzz_reads(pen_hdf5_read_texts(file, path, attributes[i], &count, &texts))) continue;
        for (uint32_t t = 0; t < count; t++)
            fuzz_must(strlen(texts[t]) <= PEN_HDF5_TEXT_LIMIT);
    }
}

static void use_dataset(pen_hdf5 *file, const char *path, pen_arena *arena) {
    pen_tensor_type type;
    const void *data;
    uint64_t sum = 0;
    if (!fuzz_reads(pen_hdf5_read_dataset(file, path, arena, &type, &data))) return;
    const uint64_t bytes = pen_tensor_type_bytes(&type);
    for (uint64_t b = 0; b < bytes; b++)
        sum += ((const uint8_t *)data)[b];
    fuzz_must(sum <= 255 * bytes);
}

static void walk(pen_hdf5 *file, const char *path, pen_arena *arena, int depth) {
    uint32_t count;
    const pen_hdf5_entry *entries;
    fuzz_must(pen_hdf5_find(file, path) == PEN_HDF5_GROUP);
    use_group(file, path);
    if (!fuzz_works(pen_hdf5_list(file, path, arena, &count, &entries))) return;
    for (uint32_t i = 0; i < count; i++) {
        const char *child;
        if (!fuzz_works(pen_arena_format(arena, &child, "%s/%s", depth == 0 ? "" : path,
                                         entries[i].name))) {
            return;
        }
        fuzz_must(pen_hdf5_find(file, child) == entries[i].kind);
        if (entries[i].kind == PEN_HDF5_DATASET) use_dataset(file, child, arena);
        if (entries[i].kind == PEN_HDF5_GROUP && depth < 4) walk(file, child, arena, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t bytes[FILE_BYTES] = {1, 2, 3};
    pen_arena *arena;
    pen_hdf5 *file;
    fuzz_stream stream = {data, size};
    const pen_hdf5_source source = fuzz_stream_source(&stream);
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    if (fuzz_reads(pen_hdf5_open_stream("fuzz", bytes, sizeof bytes, &source, &file))) {
        walk(file, "/", arena, 0);
        pen_hdf5_close(file);
    }
    pen_arena_destroy(arena);
    return 0;
}
