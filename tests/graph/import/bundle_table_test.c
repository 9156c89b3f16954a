// The index of a SavedModel's variables: what the order of its blocks may be.

#include "base/checksum.h"
#include "graph/import/tensorflow/bundle_table.h"
#include "tests/support/check.h"

typedef struct table {
    uint8_t bytes[512];
    size_t length;
} table;

static void put_fixed32(table *t, uint32_t number) {
    for (uint32_t i = 0; i < 4; i++) {
        t->bytes[t->length++] = (uint8_t)(number >> 8 * i);
    }
}

// A block of entries without restart points, and its trailer; returns where it begins.
static size_t put_block(table *t, const void *entries, size_t length, size_t *out_size) {
    const size_t start = t->length;
    memcpy(t->bytes + start, entries, length);
    t->length += length;
    put_fixed32(t, 0);
    *out_size = length + 4;
    t->bytes[t->length++] = 0;
    const uint32_t sum = pen_checksum(t->bytes + start, *out_size + 1);
    put_fixed32(t, ((sum >> 15) | (sum << 17)) + 0xa282ead8u);
    return start;
}

static void put_footer(table *t, size_t start, size_t size) {
    const uint8_t handles[40] = {0, 0, (uint8_t)start, (uint8_t)size};
    assert_true(start < 128 && size < 128);
    memcpy(t->bytes + t->length, handles, sizeof handles);
    t->length += sizeof handles;
    put_fixed32(t, 0x8b80fb57u);
    put_fixed32(t, 0xdb477524u);
}

// A header that says one shard, then a tensor 'w' of two floats.
static const uint8_t header_entries[] = {0, 0, 2, 0x08, 1};
static const uint8_t tensor_entries[] = {0, 1, 8, 'w', 0x08, 1, 0x12, 4, 0x12, 2, 0x08, 2};

static pen_status read_blocks(const uint32_t *order, uint32_t count, pen_arena *arena,
                              pen_bundle *out_bundle) {
    table t = {.length = 0};
    size_t starts[2], sizes[2], index_size;
    uint8_t index[64];
    size_t length = 0;
    starts[0] = put_block(&t, header_entries, sizeof header_entries, &sizes[0]);
    starts[1] = put_block(&t, tensor_entries, sizeof tensor_entries, &sizes[1]);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t entry[] = {
            0, 1, 2, (uint8_t)('a' + i), (uint8_t)starts[order[i]], (uint8_t)sizes[order[i]]};
        memcpy(index + length, entry, sizeof entry);
        length += sizeof entry;
    }
    const size_t index_start = put_block(&t, index, length, &index_size);
    put_footer(&t, index_start, index_size);
    return pen_bundle_read(t.bytes, t.length, arena, out_bundle);
}

static void blocks_are_read_in_their_order(void **state) {
    (void)state;
    const uint32_t order[] = {0, 1};
    pen_arena *arena = check_arena();
    pen_bundle bundle;
    CHECK_OK(read_blocks(order, 2, arena, &bundle));
    assert_int_equal(bundle.count, 1);
    const pen_bundle_entry *entry = pen_bundle_find(&bundle, "w");
    assert_non_null(entry);
    assert_int_equal(entry->type.shape.rank, 1);
    assert_int_equal(entry->type.shape.dims[0], 2);
    CHECK_ERROR(read_blocks(order + 1, 1, arena, &bundle), PEN_CORRUPT, "has no header");
    pen_arena_destroy(arena);
}

// An index may not name a block many times: the work would grow as the square of the file.
static void no_block_is_read_twice(void **state) {
    (void)state;
    const uint32_t twice[] = {0, 0}, back[] = {1, 0};
    pen_arena *arena = check_arena();
    pen_bundle bundle;
    CHECK_ERROR(read_blocks(twice, 2, arena, &bundle), PEN_CORRUPT, "not behind the one before it");
    CHECK_ERROR(read_blocks(back, 2, arena, &bundle), PEN_CORRUPT, "not behind the one before it");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(blocks_are_read_in_their_order),
              cmocka_unit_test(no_block_is_read_twice))
