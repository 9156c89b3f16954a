// Fuzzes what counts the streams that a client of HTTP/2 opens. The first byte says in how many
// pieces the rest comes: the count is the same, and there is no more than a stream for each head.
#include <stdlib.h>
#include <string.h>

#include "base/system/stream_count.h"
#include "tests/fuzz/fuzz.h"

#define HEAD_BYTES 9

static uint32_t count_in_pieces(const uint8_t *data, size_t size, size_t pieces) {
    pen_stream_count at = pen_stream_count_begin();
    uint32_t opened = 0;
    for (size_t i = 0; i < pieces; i++) {
        const size_t from = size * i / pieces, to = size * (i + 1) / pieces;
        uint8_t *piece = malloc(to - from + (to == from)); // alone, so that each overrun is seen
        fuzz_must(piece != NULL);
        memcpy(piece, data + from, to - from);
        opened += pen_stream_count_add(&at, piece, to - from);
        free(piece);
    }
    return opened;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const uint32_t whole = count_in_pieces(data + 1, size - 1, 1);
    fuzz_must(whole <= size / HEAD_BYTES);
    fuzz_must(count_in_pieces(data + 1, size - 1, (size_t)data[0] + 1) == whole);
    return 0;
}
