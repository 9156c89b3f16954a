// The way home: a file with other weights is, byte for byte, what Keras writes of that model with
// these weights (tests/reference/keras/make_keras3_references.py), and all else is as it was.

#include "graph/import/keras/keras_export.h"

#include <string.h>

#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/zip_file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define FOLDER "tests/reference/keras/"

// Contents of the tensors of another model that has the same ones.
static const void *find_contents(void *context, const pen_graph *graph, pen_value_id id) {
    const pen_model *other = context;
    pen_value_id found;
    CHECK_OK(pen_graph_find_value(other->graph, pen_value_name(graph, id), &found));
    return pen_graph_value(other->graph, found)->data;
}

static pen_status export_with(const char *name, const char *with, bool as_archive,
                              const char *path) {
    pen_model *model, *other = NULL;
    CHECK_OK(pen_model_open(name, NULL, &model));
    if (with != NULL) CHECK_OK(pen_model_open(with, NULL, &other));
    const pen_keras_export_options options = {
        .as_archive = as_archive,
        .contents = {.find = with != NULL ? find_contents : NULL, .context = other}};
    const pen_status status = pen_keras_export(model, &options, path);
    pen_model_destroy(other);
    pen_model_destroy(model);
    return status;
}

static void read_member(const char *path, const char *member, pen_arena *arena,
                        const uint8_t **out_bytes, size_t *out_length) {
    pen_mapping mapping;
    pen_zip *zip;
    CHECK_OK(pen_mapping_open(path, &mapping));
    CHECK_OK(pen_zip_open(path, mapping.bytes, mapping.length, &zip));
    CHECK_OK(pen_zip_read(zip, member, UINT64_MAX, arena, out_bytes, out_length));
    pen_zip_close(zip);
    pen_mapping_close(&mapping);
}

static void check_member(const char *path, const char *expected_path, const char *member) {
    pen_arena *arena = check_arena();
    const uint8_t *bytes, *expected;
    size_t length, expected_length;
    read_member(path, member, arena, &bytes, &length);
    read_member(expected_path, member, arena, &expected, &expected_length);
    assert_int_equal(length, expected_length);
    assert_memory_equal(bytes, expected, length);
    pen_arena_destroy(arena);
}

static void check_same_files(const char *path, const char *expected_path) {
    pen_mapping one, other;
    CHECK_OK(pen_mapping_open(path, &one));
    CHECK_OK(pen_mapping_open(expected_path, &other));
    assert_int_equal(one.length, other.length);
    assert_memory_equal(one.bytes, other.bytes, one.length);
    pen_mapping_close(&one);
    pen_mapping_close(&other);
}

static void test_archive(void **state) {
    (void)state;
    const char *path = scratch_path("trained.keras"), *back = scratch_path("back.keras");
    CHECK_OK(export_with(FOLDER "home.keras", FOLDER "home_after.keras", true, path));
    check_member(path, FOLDER "home_after.keras", PEN_KERAS_WEIGHTS_MEMBER);
    check_member(path, FOLDER "home.keras", "config.json");
    check_member(path, FOLDER "home.keras", "metadata.json");
    // and back again, to the first byte and the last
    CHECK_OK(export_with(path, FOLDER "home.keras", true, back));
    check_same_files(back, FOLDER "home.keras");
}

// The weights of an .h5 file, changed and changed back.
static void test_whole_file(void **state) {
    (void)state;
    static const char *const names[] = {FOLDER "nested.h5", FOLDER "recurrent.h5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = scratch_path("trained.h5");
        CHECK_OK(export_with(names[i], names[i], false, path));
        check_same_files(path, names[i]);
        CHECK_OK(export_with(names[i], NULL, false, path));
        check_same_files(path, names[i]);
    }
}

static void test_refused(void **state) {
    (void)state;
    const char *path = scratch_path("refused");
    CHECK_ERROR(export_with(FOLDER "home.keras", NULL, false, path), PEN_UNSUPPORTED,
                "home.keras is no .h5 file of Keras; only what came as one is written as one");
    CHECK_ERROR(export_with(FOLDER "nested.h5", NULL, true, path), PEN_UNSUPPORTED,
                "nested.h5 is no .keras file of Keras");
    CHECK_ERROR(export_with("tests/reference/pytorch/tied.pt2", NULL, true, path), PEN_UNSUPPORTED,
                "tied.pt2 is no .keras file of Keras");
    CHECK_ERROR(export_with(FOLDER "home_after.keras", NULL, true, path), PEN_UNSUPPORTED,
                "it is compressed (method 8)");
    CHECK_ERROR(export_with(FOLDER "packed.h5", NULL, false, path), PEN_UNSUPPORTED,
                "dense/kernel' is not stored in one piece");
}

// Where the file says where the contents of a dataset are, it says those of the one before.
static void test_shared_bytes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_keras_export_options options = {.contents = {.find = find_contents}};
    pen_mapping mapping;
    pen_model *model;
    uint8_t *bytes;
    CHECK_OK(pen_mapping_open(FOLDER "compiled.h5", &mapping));
    CHECK_OK(PEN_NEW(arena, mapping.length, &bytes));
    memcpy(bytes, mapping.bytes, mapping.length);
    CHECK_OK(pen_model_open_bytes(bytes, mapping.length, "shared.h5", NULL, &model));
    assert_int_equal(model->keras->dataset_count, 2);
    const uint64_t kernel = model->keras->datasets[0].offset;
    const uint64_t bias = model->keras->datasets[1].offset;
    pen_model_destroy(model);
    uint8_t *place = memmem(bytes, mapping.length, &bias, sizeof bias);
    assert_non_null(place);
    memcpy(place, &kernel, sizeof kernel);
    CHECK_OK(pen_model_open_bytes(bytes, mapping.length, "shared.h5", NULL, &model));
    options.contents.context = model;
    CHECK_ERROR(pen_keras_export(model, &options, NULL), PEN_CORRUPT, "lies over");
    pen_model_destroy(model);
    pen_mapping_close(&mapping);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(test_archive), cmocka_unit_test(test_whole_file),
              cmocka_unit_test(test_shared_bytes), cmocka_unit_test(test_refused))
