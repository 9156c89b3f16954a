// Fuzzes the index of a SavedModel's variables: any bytes give a list of tensors or an error.
//
// An input that begins with 0 is an index as it is. Any other is the entries of one block, put into
// an index whose checksums are right: so the fuzzer gets behind them.

#include <string.h>

#include "base/checksum.h"
#include "graph/import/tensorflow/bundle_table.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_BLOCK_LIMIT 16384

static size_t fuzz_put_fixed32(uint8_t *at, uint32_t number) {
    for (uint32_t i = 0; i < 4; i++) {
        at[i] = (uint8_t)(number >> 8 * i);
    }
    return 4;
}

static size_t fuzz_put_varint(uint8_t *at, uint64_t number) {
    size_t count = 0;
    while (number > 127) {
        at[count++] = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    at[count++] = (uint8_t)number;
    return count;
}

// A block of those entries, without restart points; returns its size without the trailer.
static size_t fuzz_put_block(uint8_t *at, const uint8_t *entries, size_t length) {
    memcpy(at, entries, length);
    fuzz_put_fixed32(at + length, 0);
    at[length + 4] = 0;
    const uint32_t sum = pen_checksum(at, length + 5);
    fuzz_put_fixed32(at + length + 5, ((sum >> 15) | (sum << 17)) + 0xa282ead8u);
    return length + 4;
}

static size_t fuzz_wrap(const uint8_t *entries, size_t length, uint8_t *out_bytes) {
    uint8_t index[32] = {0, 1, 0, 'z'};
    const size_t size = fuzz_put_block(out_bytes, entries, length);
    size_t at = size + 5, count = 4;
    count += fuzz_put_varint(index + count, 0);
    count += fuzz_put_varint(index + count, size);
    index[2] = (uint8_t)(count - 4); // bytes of the value
    const size_t index_at = at;
    const size_t index_size = fuzz_put_block(out_bytes + at, index, count);
    at += index_size + 5;
    memset(out_bytes + at, 0, 48);
    size_t footer = at;
    footer += fuzz_put_varint(out_bytes + footer, 0); // the index of other things: not read
    footer += fuzz_put_varint(out_bytes + footer, 0);
    footer += fuzz_put_varint(out_bytes + footer, index_at);
    fuzz_put_varint(out_bytes + footer, index_size);
    fuzz_put_fixed32(out_bytes + at + 40, 0x8b80fb57u);
    fuzz_put_fixed32(out_bytes + at + 44, 0xdb477524u);
    return at + 48;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static uint8_t wrapped[FUZZ_BLOCK_LIMIT + 256];
    pen_arena *arena = NULL;
    pen_bundle bundle;
    if (length == 0 || length > FUZZ_BLOCK_LIMIT) return 0;
    if (!fuzz_reads(pen_arena_create(&arena))) return 0;
    const uint8_t *index = bytes + 1;
    size_t index_length = length - 1;
    if (bytes[0] != 0) {
        index_length = fuzz_wrap(bytes + 1, length - 1, wrapped);
        index = wrapped;
    }
    if (fuzz_reads(pen_bundle_read(index, index_length, arena, &bundle))) {
        for (uint32_t i = 0; i < bundle.count; i++) {
            fuzz_must(pen_bundle_find(&bundle, bundle.entries[i].name) == &bundle.entries[i]);
        }
    }
    pen_arena_destroy(arena);
    return 0;
}
