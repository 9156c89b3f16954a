#include "base/record/record.h"

#include "tests/support/check.h"

typedef struct leaf {
    const char *name;
    uint32_t owner; // UINT32_MAX: none
    size_t at;
} leaf;

typedef struct tree {
    uint32_t kind;
    bool is_tall;
    uint16_t layers;
    int64_t offset;
    uint64_t seed;
    double share;
    char label[8];
    const void *bytes;
    size_t byte_count;
    bool has_best;
    leaf best;
    const leaf *leaves;
    uint32_t leaf_count;
    int64_t dims[3];
    uint32_t rank;
    const uint32_t *order;
    uint32_t order_count;
} tree;

#define LEAF(kind, number, member, ...)                                                            \
    PEN_RECORD_ROW(kind, number, #member, leaf, member, __VA_ARGS__)
#define TREE(kind, number, member, ...)                                                            \
    PEN_RECORD_ROW(kind, number, #member, tree, member, __VA_ARGS__)

static const char *const kinds[] = {"OAK", "ELM", NULL};
static const pen_record_field leaf_fields[] = {
    LEAF(NAME, 1, name, NULL, .is_required = true),
    LEAF(INDEX, 2, owner, NULL),
};
static const pen_record leaf_record = {
    .name = "Leaf", PEN_RECORD_FIELDS(leaf_fields), .position_offset = offsetof(leaf, at)};
static const pen_record_field tree_fields[] = {
    TREE(NUMBER, 1, kind, NULL, .choices = kinds, .choices_name = "Kind"),
    TREE(NUMBER, 2, is_tall, NULL),
    TREE(NUMBER, 3, layers, NULL, .limit = 1000),
    TREE(SIGNED, 4, offset, NULL),
    TREE(FIXED, 5, seed, NULL),
    TREE(FIXED, 6, share, NULL, .is_real = true),
    TREE(TEXT, 7, label, NULL),
    PEN_RECORD_BYTES_ROW(8, "bytes", tree, bytes, byte_count, NULL, .limit = 10),
    TREE(MESSAGE, 9, best, NULL, .record = &leaf_record, PEN_RECORD_PRESENT(tree, has_best)),
    PEN_RECORD_LIST_ROW(ITEMS, MESSAGE, 10, "leaves", tree, leaves, leaf_count, NULL,
                        .record = &leaf_record, .limit = 4),
    PEN_RECORD_LIST_ROW(ARRAY, NUMBER, 11, "dims", tree, dims, rank, NULL, .limit = 3,
                        .item_limit = INT64_MAX, .is_packed = true),
    PEN_RECORD_LIST_ROW(ITEMS, NUMBER, 12, "order", tree, order, order_count, NULL),
};
static const pen_record tree_record = {
    .name = "Tree", PEN_RECORD_FIELDS(tree_fields), .size = sizeof(tree)};

static const leaf some_leaves[] = {{"a", UINT32_MAX, 0}, {"b", 0, 0}, {"c", 7, 0}};
static const uint32_t some_order[] = {0, 300, 1};
static const tree some_tree = {.kind = 1,
                               .is_tall = true,
                               .layers = 999,
                               .offset = -1,
                               .seed = 0x1122334455667788,
                               .share = 0.5,
                               .label = "label",
                               .bytes = "12345",
                               .byte_count = 5,
                               .has_best = true,
                               .best = {"best", 3, 0},
                               .leaves = some_leaves,
                               .leaf_count = 3,
                               .dims = {2, 3},
                               .rank = 2,
                               .order = some_order,
                               .order_count = 3};

static void comes_back(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const void *bytes, *again;
    uint64_t count, again_count;
    tree read = {0};
    CHECK_OK(pen_record_encode_new(&tree_record, &some_tree, arena, &bytes, &count));
    CHECK_OK(pen_record_decode(&tree_record, bytes, count, arena, &read));
    assert_true(read.kind == 1 && read.is_tall && read.layers == 999 && read.offset == -1);
    assert_true(read.seed == some_tree.seed && read.share == 0.5 && read.has_best);
    assert_string_equal(read.label, "label");
    assert_string_equal(read.best.name, "best");
    assert_true(read.leaf_count == 3 && read.leaves[0].owner == UINT32_MAX);
    assert_true(read.leaves[1].owner == 0 && read.leaves[2].owner == 7);
    assert_true(read.rank == 2 && read.dims[1] == 3 && read.order[1] == 300);
    CHECK_OK(pen_record_encode_new(&tree_record, &read, arena, &again, &again_count));
    CHECK(count == again_count && memcmp(bytes, again, count) == 0, "other bytes");
    for (size_t size = 0; size < count; size++) { // what fits is written, and all is counted
        uint8_t some[256] = {0};
        CHECK(pen_record_encode(&tree_record, &some_tree, some, size) == count, "counts");
        CHECK(memcmp(some, bytes, size) == 0 && some[size] == 0, "the first %zu bytes", size);
    }
    pen_arena_destroy(arena);
}

// Wherever a message is cut into pieces, the same is read of it. Names do not come in pieces.
static void pieces_read_as_one(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    tree plain = some_tree;
    const void *bytes;
    uint64_t count;
    plain.label[0] = '\0';
    plain.has_best = false;
    plain.leaf_count = 0;
    plain.byte_count = 0;
    CHECK_OK(pen_record_encode_new(&tree_record, &plain, arena, &bytes, &count));
    for (uint64_t cut = 0; cut <= count; cut++) {
        const uint8_t *all = bytes;
        const pen_protobuf_piece pieces[] = {{all, cut}, {all, 0}, {all + cut, count - cut}};
        pen_protobuf_reader reader;
        tree read = {0};
        pen_protobuf_init_pieces(&reader, pieces, count);
        CHECK_OK(pen_record_read(&tree_record, &reader, arena, &read));
        assert_true(read.seed == plain.seed && read.share == 0.5 && read.dims[0] == 2);
        assert_true(read.order_count == 3 && read.order[1] == 300 && read.offset == -1);
        assert_int_equal(pen_protobuf_position(&reader), count);
    }
    pen_arena_destroy(arena);
}

static pen_status read_text(const char *bytes, size_t count) {
    pen_arena *arena = check_arena();
    tree read = {0};
    char *alone = malloc(count + 1); // so that reading behind it is seen
    memcpy(alone, bytes, count);
    alone = realloc(alone, count != 0 ? count : 1);
    const pen_status status = pen_record_decode(&tree_record, alone, count, arena, &read);
    free(alone);
    pen_arena_destroy(arena);
    return status;
}
#define WRONG(bytes, text) CHECK_ERROR(read_text(bytes, sizeof bytes - 1), PEN_CORRUPT, text)

static void limits_hold(void **state) {
    (void)state;
    WRONG("\x08\x02", "field 1 (kind) is 2, at most 1 can be");
    WRONG("\x10\x02", "field 2 (is_tall) is 2, at most 1 can be");
    WRONG("\x18\xe9\x07", "at byte 3: field 3 (layers) is 1001, at most 1000 can be");
    WRONG("\x29\x01", "a number of 8 bytes, but only 1 are left");
    WRONG("\x28\x01", "field 5 (seed) has wire type 0, expected 1");
    WRONG("\x3a\x08"
          "12345678",
          "field 7 (label) has 8 bytes, at most 7 can be");
    WRONG("\x3a\x02"
          "a\0",
          "field 7 (label) is a text with a zero byte");
    WRONG("\x42\x0b"
          "12345678901",
          "field 8 (bytes) has 11 bytes, at most 10 can be");
    WRONG("\x4a\x02\x10\x05", "Leaf without field 1 (name)");
    WRONG("\x52\x02\x10\x05", "field 10 (leaves) has 2 bytes, at least 3 are expected");
    WRONG("\x52\x03\x0a\x01x\x52\x03\x0a\x01x\x52\x03\x0a\x01x\x52\x03\x0a\x01x\x52\x03\x0a\x01x",
          "field 10 (leaves) has more than 4 items");
    WRONG("\x5a\x04\x01\x02\x03\x04", "field 11 (dims) has more than 3 items");
    WRONG("\x5a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "field 11 (dims) is 184467440737095");
    WRONG("\x62\x05\xff\xff\xff\xff\x1f", "field 12 (order) is 8589934591");
    CHECK_OK(read_text("\xf8\x07\x05", 3)); // of a later version
}

static void prints_its_fields(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *lines;
    pen_text text;
    pen_text_init(&text, arena);
    pen_record_print(&tree_record, &some_tree, 0, &text);
    CHECK_OK(pen_text_finish(&text, &lines));
    assert_string_equal(lines, "kind: ELM\nis_tall: true\nlayers: 999\n"
                               "offset: -1\nseed: 1122334455667788\n"
                               "share: 0.5\nlabel: label\nbytes: 5 bytes\nbest: \n  name: best\n"
                               "  owner: 3\nleaves: \n  name: a\n  owner: none\nleaves: \n"
                               "  name: b\n  owner: 0\nleaves: \n  name: c\n  owner: 7\n"
                               "dims: 2\ndims: 3\norder: 0\norder: 300\norder: 1\n");
    pen_arena_destroy(arena);
}

typedef struct packed {
    uint32_t small;
    bool flag;
    char label[4];
} packed;

static void packs_without_numbers(void **state) {
    (void)state;
    static const pen_record_field fields[] = {
        PEN_RECORD_ROW(NUMBER, 0, "small", packed, small, NULL, .packed_size = 8),
        PEN_RECORD_ROW(NUMBER, 0, "flag", packed, flag, NULL),
        PEN_RECORD_ROW(TEXT, 0, "label", packed, label, NULL),
    };
    static const pen_record record = {.name = "packed", PEN_RECORD_FIELDS(fields)};
    uint8_t bytes[13];
    packed read = {0};
    assert_int_equal(pen_record_packed_size(&record), sizeof bytes);
    pen_record_pack(&record, &(packed){7, true, "abc"}, bytes);
    assert_memory_equal(bytes, "\7\0\0\0\0\0\0\0\1abc\0", 13);
    CHECK_OK(pen_record_unpack(&record, bytes, &read));
    assert_true(read.small == 7 && read.flag && strcmp(read.label, "abc") == 0);
    bytes[12] = 'd';
    CHECK_ERROR(pen_record_unpack(&record, bytes, &read), PEN_CORRUPT, "label is a text");
    bytes[8] = 2;
    CHECK_ERROR(pen_record_unpack(&record, bytes, &read), PEN_CORRUPT, "flag is 2, at most 1");
    bytes[4] = 1;
    CHECK_ERROR(pen_record_unpack(&record, bytes, &read), PEN_CORRUPT, "small is 4294967303");
}

PEN_TEST_MAIN(cmocka_unit_test(comes_back), cmocka_unit_test(pieces_read_as_one),
              cmocka_unit_test(limits_hold), cmocka_unit_test(prints_its_fields),
              cmocka_unit_test(packs_without_numbers))
