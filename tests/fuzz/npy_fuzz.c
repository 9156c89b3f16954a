// Fuzzes the reader of .npy headers.
#include "base/format/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_npy_header header;
    if (!fuzz_reads(pen_npy_read_header(data, size, "fuzz", &header))) return 0;
    fuzz_must(header.data_offset + header.data_bytes == size);
    fuzz_must(header.data_bytes == header.element_count * pen_npy_element_bytes(header.element));
    return 0;
}
