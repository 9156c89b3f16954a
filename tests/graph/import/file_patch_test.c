// A file with other weights is the file that it was, but for these, and the checksums of the
// entries that they are in.

#include "graph/import/file_patch.h"

#include <string.h>

#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define ARCHIVE_FILE "tests/reference/pytorch/tied.pt2"

// The last byte of a patch stays.
static void fill_letters(void *context, uint32_t index, uint8_t *contents) {
    const pen_file_patches *patches = context;
    memset(contents, 'a' + (int)index, patches->items[index].length - 1);
}

static void put_letters(pen_file_patches *patches, uint8_t *bytes) {
    patches->fill = fill_letters;
    patches->context = patches;
    for (uint32_t i = 0; i < patches->count; i++)
        fill_letters(patches, i, bytes + patches->items[i].offset);
}

// Two stretches of one entry, and all of another.
static void test_archive(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_mapping before, after;
    pen_stored_zip zip, patched;
    const pen_stored_zip_entry *one, *other;
    CHECK_OK(pen_mapping_open(ARCHIVE_FILE, &before));
    CHECK_OK(pen_stored_zip_read(before.bytes, before.length, arena, &zip));
    CHECK_OK(pen_stored_zip_open(&zip, "data/weights/weight_0", &one));
    CHECK_OK(pen_stored_zip_open(&zip, "data/weights/weight_1", &other));
    const pen_file_patch items[] = {{one->offset + 4, 8, one},
                                    {one->offset + 16, 4, one},
                                    {other->offset, other->length, other}};
    pen_file_patches patches = {
        .bytes = before.bytes, .length = before.length, .zip = &zip, .items = items, .count = 3};
    uint8_t *expected;
    CHECK_OK(PEN_NEW(arena, before.length, &expected));
    memcpy(expected, before.bytes, before.length);
    put_letters(&patches, expected);
    CHECK_OK(pen_file_patch_save(&patches, scratch_path("patched.pt2")));

    CHECK_OK(pen_mapping_open(scratch_path("patched.pt2"), &after));
    assert_int_equal(after.length, before.length);
    CHECK_OK(pen_stored_zip_read(after.bytes, after.length, arena, &patched));
    for (uint32_t i = 0; i < patched.count; i++) {
        const pen_stored_zip_entry *entry;
        CHECK_OK(pen_stored_zip_open(&patched, patched.entries[i].name, &entry));
        uint64_t places[PEN_STORED_ZIP_CHECKSUM_PLACES];
        const uint32_t count = pen_stored_zip_checksum_places(&patched, entry, places);
        const bool is_same = entry->checksum == zip.entries[i].checksum;
        CHECK(is_same ==
                  (strcmp(entry->name, one->name) != 0 && strcmp(entry->name, other->name) != 0),
              "%s", entry->name);
        for (uint32_t c = 0; c < count; c++)
            memcpy(expected + places[c], &entry->checksum, sizeof entry->checksum);
    }
    assert_memory_equal(after.bytes, expected, before.length);
    pen_mapping_close(&after);
    pen_mapping_close(&before);
    pen_arena_destroy(arena);
}

static void test_plain_file(void **state) {
    (void)state;
    static const uint8_t bytes[] = "0123456789";
    static const pen_file_patch items[] = {{2, 3, NULL}, {8, 2, NULL}};
    uint8_t expected[sizeof bytes];
    pen_mapping after;
    pen_file_patches patches = {.bytes = bytes, .length = 10, .items = items, .count = 2};
    memcpy(expected, bytes, sizeof bytes);
    put_letters(&patches, expected);
    assert_string_equal((const char *)expected, "01aa4567b9");
    CHECK_OK(pen_file_patch_save(&patches, scratch_path("patched")));
    CHECK_OK(pen_mapping_open(scratch_path("patched"), &after));
    assert_int_equal(after.length, 10);
    assert_memory_equal(after.bytes, expected, 10);
    pen_mapping_close(&after);
    patches.count = 0;
    CHECK_OK(pen_file_patch_save(&patches, scratch_path("patched")));
    CHECK_OK(pen_mapping_open(scratch_path("patched"), &after));
    assert_memory_equal(after.bytes, bytes, 10);
    pen_mapping_close(&after);
}

PEN_TEST_MAIN(cmocka_unit_test(test_archive), cmocka_unit_test(test_plain_file))
