// Fuzzes the reader of WebP pictures. What begins otherwise is left out, so that all of the time
// goes to these.
#include <string.h>

#include "tests/fuzz/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 12 || memcmp(data, "RIFF", 4) != 0 || memcmp(data + 8, "WEBP", 4) != 0) return -1;
    fuzz_any_image(data, size);
    return 0;
}
