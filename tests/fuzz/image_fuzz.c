// Fuzzes the reader of pictures.
#include "tests/fuzz/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_any_image(data, size);
    return 0;
}
