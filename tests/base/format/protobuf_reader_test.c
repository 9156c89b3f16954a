// The wire reader on bytes written by hand, and what the writer makes read back.

#include "base/format/protobuf_reader.h"

#include "base/format/protobuf_writer.h"
#include "base/limits.h"
#include "tests/support/check.h"

static pen_protobuf_reader reader_over(const void *bytes, size_t length) {
    pen_protobuf_reader reader;
    pen_protobuf_init(&reader, bytes, length);
    return reader;
}

static pen_status reader_walk(const void *bytes, size_t length) {
    pen_protobuf_reader reader = reader_over(bytes, length);
    pen_protobuf_field field;
    do {
        PEN_TRY(pen_protobuf_next(&reader, &field));
    } while (field.number != 0);
    return PEN_OK;
}

static void fields_of_every_wire_type_are_read(void **state) {
    (void)state;
    const uint8_t bytes[] = {
        0x08, 0x96, 0x01,                                                 // field 1, varint 150
        0x11, 1,    0,    0,    0,    0,    0,    0,    128,              // field 2, fixed64
        0x1a, 3,    'a',  'b',  'c',                                      // field 3, bytes
        0x25, 0,    0,    0x80, 0x3f,                                     // field 4, fixed32: 1.0f
        0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, // field 5: -1
    };
    pen_protobuf_reader reader = reader_over(bytes, sizeof bytes);
    pen_protobuf_field field;
    int64_t integer;
    float number;
    const uint8_t *text;
    size_t length;
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_int(&reader, &field, &integer));
    assert_int_equal(integer, 150);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    assert_true(field.integer == 0x8000000000000001u);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_bytes(&reader, &field, &text, &length));
    assert_int_equal(length, 3);
    assert_memory_equal(text, "abc", 3);
    CHECK_ERROR(pen_protobuf_int(&reader, &field, &integer), PEN_CORRUPT,
                "wire type 2, expected 0");
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_float(&reader, &field, &number));
    assert_true(number == 1.0f);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_int(&reader, &field, &integer));
    assert_int_equal(integer, -1);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    assert_int_equal(field.number, 0);
}

static void what_contradicts_itself_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *text;
    } cases[] = {
        {"\x08", 1, "ends inside a number"},
        {"\x08\x80", 2, "ends inside a number"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "over 64 bits"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x01", 12, "over 64 bits"},
        {"\x11\0\0\0\0\0\0\0", 8, "a number of 8 bytes, but only 7 are left"},
        {"\x15\0\0\0", 4, "a number of 4 bytes, but only 3 are left"},
        {"\x0a\x02x", 3, "field 1 has 2 bytes, but only 1 are left"},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "18446744073709551615 bytes"},
        {"\x0b", 1, "wire type 3"}, // a group begins
        {"\x0c", 1, "wire type 4"},
        {"\x0e", 1, "wire type 6"},
        {"\x00", 1, "field number 0 is not possible"},
        {"\x80\x80\x80\x80\x10\x00", 6, "field number 536870912 is not possible"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_ERROR(reader_walk(cases[i].bytes, cases[i].length), PEN_CORRUPT, cases[i].text);
    }
}

static void an_error_names_the_byte(void **state) {
    (void)state;
    CHECK_ERROR(reader_walk("\x08\x01\x0b", 3), PEN_CORRUPT, "at byte 3: ");
}

// Opens field 1 of each message until there is none.
static pen_status reader_descend(const void *bytes, size_t length, uint32_t *out_depth) {
    pen_protobuf_reader reader = reader_over(bytes, length);
    for (*out_depth = 0;; *out_depth += 1) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        PEN_TRY(pen_protobuf_open(&reader, &field, &reader));
    }
}

static void messages_nest_up_to_the_limit(void **state) {
    (void)state;
    uint8_t bytes[2 * (PEN_NESTING_LIMIT + 1)];
    const size_t size = sizeof bytes;
    for (size_t i = 0; i < size; i += 2) {
        bytes[i] = 0x0a;
        bytes[i + 1] = (uint8_t)(size - i - 2);
    }
    uint32_t depth;
    CHECK_ERROR(reader_descend(bytes, size, &depth), PEN_CORRUPT, "messages nest deeper than 32");
    assert_int_equal(depth, PEN_NESTING_LIMIT - 1);
    const size_t inner = size - 2 * (PEN_NESTING_LIMIT - 1);
    CHECK_OK(reader_descend(bytes + inner, size - inner, &depth));
    assert_int_equal(depth, PEN_NESTING_LIMIT - 1);
}

static void scalars_are_read_packed_or_not(void **state) {
    (void)state;
    static const char bytes[] = "\x0a\x04\x01\x96\x01\x02\x08\x07"; // packed 1, 150, 2; then 7
    static const uint64_t expected[] = {1, 150, 2, 7};
    pen_protobuf_reader reader = reader_over(bytes, sizeof bytes - 1);
    uint32_t seen = 0;
    uint64_t total = 0;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_scalars list;
        uint64_t count, bits;
        bool more;
        CHECK_OK(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        CHECK_OK(pen_protobuf_scalars_open(&reader, &field, PEN_PROTOBUF_VARINT, &list));
        CHECK_OK(pen_protobuf_scalars_count(&list, &count));
        total += count;
        CHECK_OK(pen_protobuf_scalars_next(&list, &bits, &more));
        while (more) {
            assert_int_equal(bits, expected[seen++]);
            CHECK_OK(pen_protobuf_scalars_next(&list, &bits, &more));
        }
    }
    assert_int_equal(seen, 4);
    assert_int_equal(total, 4);
}

static void packed_numbers_must_be_whole(void **state) {
    (void)state;
    static const char bytes[] = "\x0a\x05\0\0\0\0\0";
    pen_protobuf_reader reader = reader_over(bytes, sizeof bytes - 1);
    pen_protobuf_field field;
    pen_protobuf_scalars list;
    uint64_t count;
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_scalars_open(&reader, &field, PEN_PROTOBUF_FIXED32, &list));
    CHECK_ERROR(pen_protobuf_scalars_count(&list, &count), PEN_CORRUPT, "5 bytes are no whole");
}

static void names_are_bounded(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    static char bytes[PEN_NAME_BYTES_LIMIT + 4] = {0x0a, (char)0x81, 0x20}; // 4097
    memset(bytes + 3, 'x', sizeof bytes - 3);
    pen_protobuf_reader reader = reader_over(bytes, sizeof bytes);
    pen_protobuf_field field;
    const char *name;
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_ERROR(pen_protobuf_name(&reader, &field, arena, &name), PEN_CORRUPT,
                "a name has 4097 bytes");
    reader = reader_over("\x0a\x03"
                         "a\0b",
                         5);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_ERROR(pen_protobuf_name(&reader, &field, arena, &name), PEN_CORRUPT, "a zero byte");
    pen_arena_destroy(arena);
}

static void write_inner(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_text(writer, 1, context);
    pen_protobuf_write_bytes(writer, 2, NULL, 200); // zeros
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    char *bytes = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&bytes, &length);
    pen_protobuf_writer writer;
    pen_protobuf_writer_init(&writer, stream);
    pen_protobuf_write_int(&writer, 1, -5);
    pen_protobuf_write_message(&writer, 1000, write_inner, "inner");
    pen_protobuf_write_float(&writer, 3, 0.5f);
    CHECK_OK(pen_protobuf_writer_finish(&writer));
    fclose(stream);
    assert_int_equal(writer.length, length);
    pen_protobuf_reader reader = reader_over(bytes, length), inner;
    pen_protobuf_field field;
    int64_t integer;
    float number;
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_int(&reader, &field, &integer));
    assert_int_equal(integer, -5);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    assert_int_equal(field.number, 1000);
    CHECK_OK(pen_protobuf_open(&reader, &field, &inner));
    CHECK_OK(pen_protobuf_next(&inner, &field));
    assert_int_equal(field.length, 5);
    CHECK_OK(pen_protobuf_next(&inner, &field));
    assert_int_equal(field.length, 200);
    assert_int_equal(field.bytes[199], 0);
    CHECK_OK(pen_protobuf_next(&reader, &field));
    CHECK_OK(pen_protobuf_float(&reader, &field, &number));
    assert_true(number == 0.5f);
    free(bytes);
}

static void a_full_disk_is_noticed(void **state) {
    (void)state;
    FILE *full = fopen("/dev/full", "wb");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    pen_protobuf_writer writer;
    pen_protobuf_writer_init(&writer, full);
    pen_protobuf_write_text(&writer, 1, "text");
    CHECK_ERROR(pen_protobuf_writer_finish(&writer), PEN_IO, "cannot write");
    fclose(full);
}

PEN_TEST_MAIN(cmocka_unit_test(fields_of_every_wire_type_are_read),
              cmocka_unit_test(what_contradicts_itself_is_refused),
              cmocka_unit_test(an_error_names_the_byte),
              cmocka_unit_test(messages_nest_up_to_the_limit),
              cmocka_unit_test(scalars_are_read_packed_or_not),
              cmocka_unit_test(packed_numbers_must_be_whole), cmocka_unit_test(names_are_bounded),
              cmocka_unit_test(what_is_written_reads_back),
              cmocka_unit_test(a_full_disk_is_noticed))
