// What is wrong with a `.pt2` file is said: archives that are cut, packed or contradict themselves,
// other versions, weights that lie where they cannot.

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/stored_zip.h"
#include "tests/support/check.h"
#include "tests/support/pt2_text.h"

#define ARCHIVE_FILE "tests/reference/pytorch/tied.pt2"

// A copy of the file, to be damaged.
typedef struct damaged {
    pen_arena *arena;
    uint8_t *bytes;
    size_t length;
    pen_stored_zip archive;
} damaged;

static damaged damaged_open(void) {
    damaged d = {.arena = check_arena()};
    pen_mapping mapping;
    CHECK_OK(pen_mapping_open(ARCHIVE_FILE, &mapping));
    CHECK_OK(PEN_NEW(d.arena, mapping.length, &d.bytes));
    memcpy(d.bytes, mapping.bytes, mapping.length);
    d.length = mapping.length;
    pen_mapping_close(&mapping);
    CHECK_OK(pen_stored_zip_read(d.bytes, d.length, d.arena, &d.archive));
    return d;
}

static const pen_stored_zip_entry *damaged_entry(const damaged *d, const char *name) {
    const pen_stored_zip_entry *entry = pen_stored_zip_find(&d->archive, name);
    CHECK(entry != NULL, "the archive has no '%s'", name);
    return entry;
}

static void damaged_put(damaged *d, uint64_t at, uint64_t number, uint32_t width) {
    memcpy(d->bytes + at, &number, width);
}

// Another text for the first `from` of an entry, filled up with spaces; the checksum follows.
static void damaged_replace(damaged *d, const char *name, const char *from, const char *to) {
    const pen_stored_zip_entry *entry = damaged_entry(d, name);
    uint8_t *text = d->bytes + entry->offset;
    const size_t from_length = strlen(from), to_length = strlen(to);
    uint8_t *found = memmem(text, entry->length, from, from_length);
    CHECK(found != NULL && to_length <= from_length, "'%s' is not in %s, or too short", from, name);
    memset(found, ' ', from_length);
    memcpy(found, to, to_length);
    damaged_put(d, entry->central_offset + 16, pen_stored_zip_checksum(0, text, entry->length), 4);
}

// Opening it fails so, and everything is released.
static void damaged_check(damaged *d, pen_status_code code, const char *text) {
    pen_model *model = NULL;
    const pen_status status = pen_model_open_bytes(d->bytes, d->length, "net.pt2", NULL, &model);
    if (status == PEN_OK) pen_model_destroy(model);
    CHECK_ERROR(status, code, text);
    pen_arena_destroy(d->arena);
}

#define WEIGHTS "data/weights/model_weights_config.json"
#define MODEL "models/model.json"

static void test_whole(void **state) {
    (void)state;
    damaged d = damaged_open();
    pen_model *model;
    CHECK_OK(pen_model_open_bytes(d.bytes, d.length, "net.pt2", NULL, &model));
    assert_string_equal(model->format, "pt2");
    assert_string_equal(model->batch_symbol, "batch");
    pen_value_id weight, gate;
    CHECK_OK(pen_graph_find_value(model->graph, "up.weight", &weight));
    CHECK_ERROR(pen_graph_find_value(model->graph, "gate.weight", &gate), PEN_NOT_FOUND, "gate");
    const pen_value *value = pen_graph_value(model->graph, weight);
    assert_true(value->trainable);
    const pen_stored_zip_entry *entry = damaged_entry(&d, "data/weights/weight_0");
    assert_ptr_equal(value->data, d.bytes + entry->offset); // borrowed
    pen_model_destroy(model);
    pen_arena_destroy(d.arena);
}

static void test_cut(void **state) {
    (void)state;
    static const size_t left_out[] = {1, 22, 300, 4000};
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
        damaged d = damaged_open();
        d.length -= left_out[i];
        damaged_check(&d, PEN_CORRUPT, "the zip archive has no end");
    }
}

static void test_archive(void **state) {
    (void)state;
    damaged whole = damaged_open(), d = damaged_open();
    const pen_stored_zip_entry *first = damaged_entry(&whole, "data/weights/weight_0");
    const pen_stored_zip_entry *second = damaged_entry(&whole, "data/weights/weight_1");
    damaged_put(&d, first->central_offset + 10, 8, 2);
    damaged_check(&d, PEN_UNSUPPORTED, "it is compressed (method 8)");
    d = damaged_open();
    damaged_put(&d, first->central_offset + 8, 1, 2);
    damaged_check(&d, PEN_UNSUPPORTED, "it is encrypted");
    d = damaged_open();
    damaged_put(&d, first->central_offset + 42, 0xfffffff0, 4);
    damaged_check(&d, PEN_CORRUPT, "no file begins at byte");
    d = damaged_open();
    damaged_put(&d, first->central_offset + 20, 0x7fffffff, 4);
    damaged_put(&d, first->central_offset + 24, 0x7fffffff, 4);
    damaged_check(&d, PEN_CORRUPT, "do not lie in the archive");
    d = damaged_open();
    damaged_put(&d, first->central_offset + 20, first->length + 400, 4);
    damaged_put(&d, first->central_offset + 24, first->length + 400, 4);
    damaged_check(&d, PEN_CORRUPT, "'data/weights/weight_0' of the archive lies over");
    d = damaged_open();
    damaged_put(&d, first->central_offset + 42, second->header_offset, 4);
    damaged_check(&d, PEN_CORRUPT, "it has another name at byte");
    d = damaged_open();
    d.bytes[second->central_offset + 46 + strlen("tied/data/weights/weight_")] = '0';
    d.bytes[second->header_offset + 30 + strlen("tied/data/weights/weight_")] = '0';
    damaged_check(&d, PEN_CORRUPT, "two files 'data/weights/weight_0'");
    d = damaged_open();
    d.bytes[damaged_entry(&d, MODEL)->offset] ^= 1;
    damaged_check(&d, PEN_CORRUPT, "has checksum");
    pen_arena_destroy(whole.arena);
}

static void test_versions(void **state) {
    (void)state;
    damaged d = damaged_open();
    damaged_replace(&d, "byteorder", "little", "big   ");
    damaged_check(&d, PEN_UNSUPPORTED, "its byteorder is 'big   ', expected: 'little'");
    d = damaged_open();
    damaged_replace(&d, "archive_format", "pt2", "pt3");
    damaged_check(&d, PEN_UNSUPPORTED, "its archive_format is 'pt3', expected: 'pt2'");
    d = damaged_open();
    damaged_replace(&d, MODEL, "\"major\": 8", "\"major\": 9");
    damaged_check(&d, PEN_UNSUPPORTED, "schema version 9");
    d = damaged_open();
    damaged_replace(&d, MODEL, "\"nodes\"", "\"gnats\"");
    damaged_check(&d, PEN_CORRUPT, "\"nodes\" is nothing, expected: a list");
    d = damaged_open();
    damaged_replace(&d, MODEL, "aten.relu.default", "aten.rely.default");
    damaged_check(&d, PEN_UNSUPPORTED, "aten.rely.default, 1 time");
}

static void test_weights(void **state) {
    (void)state;
    damaged d = damaged_open();
    damaged_replace(&d, WEIGHTS, "\"use_pickle\": false", "\"use_pickle\": true");
    damaged_check(&d, PEN_UNSUPPORTED, "it is a pickle");
    d = damaged_open();
    damaged_replace(&d, WEIGHTS, "\"as_int\": 7", "\"as_int\": 9");
    damaged_check(&d, PEN_CORRUPT, "does not lie in file 'data/weights/weight_0'");
    d = damaged_open();
    damaged_replace(&d, WEIGHTS,
                    "[{\"as_int\": 7}, {\"as_int\": 5}], \"requires_grad\": true, \"device\": "
                    "{\"type\": \"cpu\", \"index\": null},",
                    "[{\"as_int\": 4611686018427387904}, {\"as_int\": 5}],");
    damaged_check(&d, PEN_INVALID_INPUT, "in tensor 'up.weight'");
    d = damaged_open();
    damaged_replace(&d, WEIGHTS, "\"weight_2\"", "\"weight_1\"");
    damaged_check(&d, PEN_CORRUPT, "shares bytes of file 'data/weights/weight_1'");
    d = damaged_open();
    damaged_replace(&d, WEIGHTS, "\"weight_2\"", "\"weight_9\"");
    damaged_check(&d, PEN_NOT_FOUND, "no file 'data/weights/weight_9'");
    d = damaged_open();
    damaged_replace(&d, WEIGHTS, "\"dtype\": 7", "\"dtype\": 9");
    damaged_check(&d, PEN_UNSUPPORTED, "of type complex32");
}

// Strides of 0 let a tensor have more elements than its file.
static void test_copies(void **state) {
    (void)state;
    static const int sizes[][2] = {{7, 5}, {7, 5}, {3, 7}}; // up, gate, down
    damaged d = damaged_open();
    for (size_t i = 0; i < 3; i++) {
        char from[256];
        snprintf(from, sizeof from,
                 "[{\"as_int\": %d}, {\"as_int\": %d}], \"requires_grad\": true, \"device\": "
                 "{\"type\": \"cpu\", \"index\": null}, \"strides\": [{\"as_int\": %d}, "
                 "{\"as_int\": 1}]",
                 sizes[i][0], sizes[i][1], sizes[i][1]);
        damaged_replace(&d, WEIGHTS, from,
                        "[{\"as_int\": 3072}, {\"as_int\": 3072}], \"strides\": "
                        "[{\"as_int\": 0}, {\"as_int\": 0}]");
    }
    damaged_check(&d, PEN_CORRUPT, "tensors up to 'down.weight' have more than");
}

// A few bytes may ask for any number of windows: tables for them are bounded together.
static void test_tables(void **state) {
    (void)state;
    static const char text[] =
        "{\"schema_version\":{\"major\":8},\"graph_module\":{\"graph\":{\"inputs\":[{\"as_tensor\":"
        "{\"name\":\"x\"}}],\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],\"nodes\":[{\"target\":"
        "\"torch.ops.aten.adaptive_avg_pool1d.default\",\"name\":\"y\",\"outputs\":[{\"as_tensor\":"
        "{\"name\":\"y\"}}],\"inputs\":[{\"name\":\"self\",\"arg\":{\"as_tensor\":{\"name\":\"x\"}}"
        "},"
        "{\"name\":\"output_size\",\"arg\":{\"as_ints\":[4000]}}]}],\"tensor_values\":{"
        "\"x\":{\"dtype\":7,\"sizes\":[{\"as_int\":1},{\"as_int\":1},{\"as_int\":4001}],"
        "\"strides\":[{\"as_int\":1},{\"as_int\":1},{\"as_int\":1}],\"storage_offset\":"
        "{\"as_int\":0},\"layout\":7},\"y\":{\"dtype\":7,\"sizes\":[{\"as_int\":1},{\"as_int\":1},"
        "{\"as_int\":4000}],\"strides\":[{\"as_int\":1},{\"as_int\":1},{\"as_int\":1}],"
        "\"storage_offset\":{\"as_int\":0},\"layout\":7}}},\"signature\":{\"input_specs\":[{"
        "\"user_input\":{}}],\"output_specs\":[{\"user_output\":{}}]}}}";
    pen_model *model = NULL;
    size_t length;
    uint8_t *archive = pt2_text_archive((const uint8_t *)text, sizeof text - 1, &length);
    assert_non_null(archive);
    const pen_status status = pen_model_open_bytes(archive, length, "net.pt2", NULL, &model);
    if (status == PEN_OK) pen_model_destroy(model);
    CHECK_ERROR(status, PEN_UNSUPPORTED, "tables of more than 64 MiB");
    free(archive);
}

PEN_TEST_MAIN(cmocka_unit_test(test_whole), cmocka_unit_test(test_cut),
              cmocka_unit_test(test_archive), cmocka_unit_test(test_versions),
              cmocka_unit_test(test_weights), cmocka_unit_test(test_copies),
              cmocka_unit_test(test_tables))
