// Fuzzes the reader of safetensors files: any bytes give tensors that lie in them, each found by
// its name, or an error with a message.
#include "scheduler/store/safetensors.h"
#include "tests/fuzz/fuzz.h"

static void use_tensors(const pen_safetensors *file, const uint8_t *data, size_t size) {
    uint64_t sum = 0, bytes = 0;
    for (uint32_t i = 0; i < pen_safetensors_count(file); i++) {
        const pen_safetensors_entry *entry = pen_safetensors_at(file, i);
        const uint8_t *first = entry->data;
        const uint64_t length = pen_tensor_type_bytes(&entry->type);
        fuzz_must(pen_safetensors_find(file, entry->name) == entry);
        fuzz_must(first >= data && length <= size && first + length <= data + size);
        for (uint64_t b = 0; b < length; b++)
            sum += first[b];
        bytes += length;
    }
    fuzz_must(bytes <= size && sum <= bytes * 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_safetensors *file;
    if (!fuzz_reads(pen_safetensors_parse("fuzz", data, size, &file))) return 0;
    use_tensors(file, data, size);
    pen_safetensors_close(file);
    return 0;
}
