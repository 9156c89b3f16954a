// The zip reader on archives that Keras and NumPy wrote, and on damaged ones.

#include "graph/import/zip_file.h"

#include "base/system/file.h"
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
        CHECK_OK(pen_zip_read(zip, "config.json", arena, &bytes, &length));
        CHECK(length > 1000 && bytes[0] == '{' && bytes[length - 1] == '}' && bytes[length] == 0,
              "%zu", length);
        CHECK_OK(pen_zip_read(zip, "model.weights.h5", arena, &bytes, &length));
        assert_memory_equal(bytes, "\x89HDF", 4);
        CHECK_ERROR(pen_zip_read(zip, "config.jso", arena, &bytes, &length), PEN_NOT_FOUND,
                    "has no member 'config.jso'");
        pen_zip_close(zip);
        pen_mapping_close(&mapping);
        pen_arena_destroy(arena);
    }
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
            status = pen_zip_read(zip, "config.json", arena, &bytes, &length);
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

PEN_TEST_MAIN(cmocka_unit_test(members_are_read), cmocka_unit_test(damaged_archives_are_refused))
