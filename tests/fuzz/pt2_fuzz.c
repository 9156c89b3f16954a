// Fuzzes the reading of PyTorch's `.pt2` files: any bytes give a graph or an error.
//
// Most changes are made to headers of the archive, which are the smaller part of its bytes; changes
// of contents break a checksum, and what comes behind it is left to the fuzzers of texts, pt2_json,
// pt2_arguments and pt2_shapes.

#include "base/random.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_HEADER_BYTES 64 // that are changed from its mark on
#define FUZZ_ANYWHERE_OF 8   // one change in so many is of any bytes

// libFuzzer's own changes of bytes; not there in readers_test, which changes nothing this way.
extern size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t limit) __attribute__((weak));

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    fuzz_read_model(bytes, length, "fuzz.pt2", NULL);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    const pen_random_key key = {.seed = seed};
    size_t at = length == 0 ? 0 : (size_t)pen_random_below(key, 0, length);
    if (LLVMFuzzerMutate == NULL) return length;
    while (at < length && (bytes[at] != 'P' || at + 1 == length || bytes[at + 1] != 'K')) {
        at++;
    }
    if (at == length || pen_random_below(key, 1, FUZZ_ANYWHERE_OF) == 0) {
        return LLVMFuzzerMutate(bytes, length, limit);
    }
    const size_t left = length - at;
    const size_t count = left < FUZZ_HEADER_BYTES ? left : FUZZ_HEADER_BYTES;
    LLVMFuzzerMutate(bytes + at, count, count);
    return length;
}
