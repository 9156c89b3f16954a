// Fuzzes the reader of a model's tensors, with their contents in other files: any bytes give a
// tensor whose contents can be read, or an error with a message. The model is in tests/fuzz/folder,
// where weights.bin has 256 bytes.
#include "graph/import/onnx/onnx_tensor.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_FOLDER "tests/fuzz/folder"

static void read_contents(const pen_onnx_tensor *tensor, pen_arena *arena) {
    pen_external_files files;
    const void *data;
    uint64_t sum = 0;
    pen_external_files_init(&files, FUZZ_FOLDER, arena);
    if (fuzz_reads(pen_onnx_tensor_data(tensor, &files, arena, &data))) {
        const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
        const uint8_t *first = data;
        for (uint64_t b = 0; b < bytes; b++)
            sum += first[b];
        fuzz_must(sum <= bytes * 255);
    }
    pen_external_files_deinit(&files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_protobuf_reader message;
    pen_onnx_tensor tensor;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    pen_protobuf_init(&message, data, size);
    if (fuzz_reads(pen_onnx_tensor_open(&message, arena, &tensor))) read_contents(&tensor, arena);
    pen_arena_destroy(arena);
    return 0;
}
