// Fuzzes the reader of BMP pictures. What begins otherwise is left out, so that all of the time
// goes to these.
#include "tests/fuzz/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || data[0] != 'B' || data[1] != 'M') return -1;
    fuzz_any_image(data, size);
    return 0;
}
