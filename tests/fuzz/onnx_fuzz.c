// Fuzzes the reading of ONNX: any bytes give a graph or an error. No file is opened: external data
// is refused of a model in memory.

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    fuzz_read_model(bytes, length, "fuzz");
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    return fuzz_change_message(bytes, length, limit, seed);
}
