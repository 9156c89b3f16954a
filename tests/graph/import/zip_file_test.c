// The zip reader on archives that Keras and NumPy wrote, and on damaged ones.

#include "graph/import/zip_file.h"

#include "base/system/file.h"
#include "graph/import/npz_file.h"
#include "tests/support/check.h"

#define STORED "tests/reference/keras/sequential_cnn.keras"
#define DEFLATED "tests/reference/keras/nested.keras"

static void members_are_read(void **state) {
    (void)state;
    static const char *const paths[] = {STORED, DEFLATED};
    for (int i = 0; i < 2; i++) {
        pen_arena *arena = check_arena();
        pen_mapping mapping;
        pen_zip *zip;
        const uint8_t *bytes;
        size_t length;
        CHECK_OK(pen_mapping_open(paths[i], &mapping));
        CHECK_OK(pen_zip_open(paths[i], mapping.bytes, mapping.length, &zip));
        assert_int_equal(pen_zip_count(zip), 3);
        assert_string_equal(pen_zip_member_name(zip, 1), "config.json");
        CHECK_OK(pen_zip_read(zip, "config.json", UINT64_MAX, arena, &bytes, &length));
        CHECK(length > 1000 && bytes[0] == '{' && bytes[length - 1] == '}' && bytes[length] == 0,
              "%zu", length);
        CHECK_OK(pen_zip_read(zip, "model.weights.h5", UINT64_MAX, arena, &bytes, &length));
        assert_memory_equal(bytes, "\x89HDF", 4);
        CHECK_ERROR(pen_zip_read(zip, "config.jso", UINT64_MAX, arena, &bytes, &length),
                    PEN_NOT_FOUND, "has no member 'config.jso'");
        pen_zip_close(zip);
        pen_mapping_close(&mapping);
        pen_arena_destroy(arena);
    }
}

// numpy.savez stores its arrays: they are used where they lie, and a changed byte is seen.
static void stored_arrays_are_borrowed(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_npz npz;
    const void *data;
    CHECK_OK(pen_mapping_open("tests/fuzz/corpus/npz/stored.npz", &mapping));
    uint8_t *copy = malloc(mapping.length);
    memcpy(copy, mapping.bytes, mapping.length);
    CHECK_OK(pen_npz_open("stored.npz", copy, mapping.length, arena, &npz));
    assert_string_equal(npz.arrays[0].name, "a");
    CHECK_OK(pen_npz_read(&npz, 0, arena, &data));
    const size_t at = (size_t)((const uint8_t *)data - copy);
    CHECK(at < mapping.length, "it was copied");
    copy[at] ^= 1;
    CHECK_ERROR(pen_npz_read(&npz, 0, arena, &data), PEN_CORRUPT, "checksum");
    pen_npz_close(&npz);
    free(copy);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

// What is read of a member is what its reader says, whatever the member has.
static void members_are_read_as_far_as_wanted(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_zip *zip;
    pen_zip_size size;
    const uint8_t *bytes;
    uint8_t start[8000];
    size_t length;
    CHECK_OK(pen_mapping_open(DEFLATED, &mapping));
    CHECK_OK(pen_zip_open("x.keras", mapping.bytes, mapping.length, &zip));
    CHECK_OK(pen_zip_measure(zip, "config.json", &size));
    CHECK(size.bytes == 3126 && size.packed < 3126 && !size.is_stored, "a packed member");
    CHECK_ERROR(pen_zip_read(zip, "config.json", 3125, arena, &bytes, &length), PEN_INVALID_INPUT,
                "x.keras: 'config.json' has 3126 bytes, at most 3125 can be");
    CHECK_OK(pen_zip_read(zip, "config.json", 3126, arena, &bytes, &length));
    for (size_t wanted = 0; wanted <= sizeof start; wanted += 1000) {
        CHECK_OK(pen_zip_read_start(zip, "config.json", start, wanted, &length));
        assert_int_equal(length, wanted < 3126 ? wanted : 3126);
        if (length > 0) assert_memory_equal(start, bytes, length);
    }
    CHECK_ERROR(pen_zip_measure(zip, "none", &size), PEN_NOT_FOUND, "has no member 'none'");
    CHECK_ERROR(pen_zip_read_start(zip, "none", start, 1, &length), PEN_NOT_FOUND, "'none'");
    pen_zip_close(zip);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

// Every byte of a small archive changed in turn: what is read is what was written, or refused.
static void damaged_archives_are_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping mapping;
    pen_zip *zip;
    uint32_t refused = 0;
    CHECK_OK(pen_mapping_open(DEFLATED, &mapping));
    uint8_t *copy = malloc(mapping.length);
    memcpy(copy, mapping.bytes, mapping.length);
    CHECK_ERROR(pen_zip_open("x.keras", copy, mapping.length - 1, &zip), PEN_CORRUPT,
                "cannot be read as a zip archive");
    CHECK_ERROR(pen_zip_open("x.keras", copy, 0, &zip), PEN_CORRUPT,
                "0 bytes are too few for a zip archive");
    for (size_t i = 0; i < mapping.length; i++) {
        const uint8_t *bytes;
        size_t length;
        copy[i] ^= 0x55;
        pen_status status = pen_zip_open("x.keras", copy, mapping.length, &zip);
        if (status == PEN_OK) {
            status = pen_zip_read(zip, "config.json", UINT64_MAX, arena, &bytes, &length);
            if (status == PEN_OK) {
                CHECK(length == 3126 && bytes[0] == '{' && bytes[length - 1] == '}', "byte %zu", i);
            }
            pen_zip_close(zip);
        }
        if (status != PEN_OK) refused++;
        pen_status_ignore(status, "any is fine");
        copy[i] ^= 0x55;
        pen_arena_reset(arena);
    }
    CHECK(refused > 100, "%u", refused);
    free(copy);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(members_are_read), cmocka_unit_test(stored_arrays_are_borrowed),
              cmocka_unit_test(members_are_read_as_far_as_wanted),
              cmocka_unit_test(damaged_archives_are_refused))
