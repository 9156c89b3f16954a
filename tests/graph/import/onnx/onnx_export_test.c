// Models written as ONNX and read back.

#include "graph/import/onnx/onnx_export.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/import/import.h"
#include "graph/op.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define MODELS "tests/graph/import/models/"

static pen_model *open_path(const char *path) {
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(path, NULL, &model));
    return model;
}

static pen_model *open_model(const char *name) {
    char path[256];
    snprintf(path, sizeof path, MODELS "%s.onnx", name);
    return open_path(path);
}

static void export_to(const pen_model *model, pen_onnx_export_options options, const char *path) {
    options.output_types = model->output_types;
    CHECK_OK(pen_onnx_export(model->graph, &options, path));
}

static void check_equal_values(const pen_model *a, const pen_model *b) {
    for (uint32_t v = 0; v < pen_graph_value_count(b->graph); v++) {
        const pen_value *second = pen_graph_value(b->graph, (pen_value_id){v});
        pen_value_id id;
        CHECK_OK(pen_graph_find_value(a->graph, second->name, &id));
        const pen_value *first = pen_graph_value(a->graph, id);
        assert_int_equal(first->kind, second->kind);
        assert_int_equal(first->trainable, second->trainable);
        CHECK(pen_tensor_type_equal(&first->type, &second->type), "%s", first->name);
        assert_int_equal(first->data == NULL, second->data == NULL);
        if (first->data != NULL) assert_memory_equal(first->data, second->data, first->data_bytes);
    }
}

static void check_equal_nodes(const pen_model *a, const pen_model *b) {
    assert_int_equal(pen_graph_node_count(a->graph), pen_graph_node_count(b->graph));
    for (uint32_t n = 0; n < pen_graph_node_count(a->graph); n++) {
        const pen_node *first = pen_graph_node(a->graph, (pen_node_id){n});
        const pen_node *second = pen_graph_node(b->graph, (pen_node_id){n});
        assert_ptr_equal(first->op, second->op);
        assert_string_equal(first->name, second->name);
        assert_int_equal(first->input_count, second->input_count);
        for (uint32_t i = 0; i < first->input_count; i++) {
            if (!pen_value_is(first->inputs[i])) continue;
            assert_string_equal(pen_value_name(a->graph, first->inputs[i]),
                                pen_value_name(b->graph, second->inputs[i]));
        }
        for (uint32_t i = 0; i < first->op->attribute_count; i++) {
            assert_int_equal(first->attributes[i].present, second->attributes[i].present);
            assert_int_equal(first->attributes[i].integer, second->attributes[i].integer);
            assert_true((float)first->attributes[i].number == (float)second->attributes[i].number);
            const char *text = first->attributes[i].text;
            if (text != NULL) assert_string_equal(text, second->attributes[i].text);
            assert_int_equal(first->attributes[i].count, second->attributes[i].count);
        }
    }
}

static const char *const exported[] = {"aliases",  "training", "initializer_input",
                                       "function", "external", "recurrent"};

static void what_is_written_reads_back_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof exported / sizeof exported[0]; i++) {
        pen_model *model = open_model(exported[i]);
        const char *path = scratch_path("again.onnx");
        export_to(model, (pen_onnx_export_options){0}, path);
        pen_model *again = open_path(path);
        check_equal_nodes(model, again);
        check_equal_values(model, again);
        assert_string_equal(pen_graph_name(again->graph), exported[i]);
        pen_model_destroy(again);
        pen_model_destroy(model);
        assert_int_equal(unlink(path), 0);
    }
}

static void symbols_are_kept(void **state) {
    (void)state;
    pen_model *model = open_model("training");
    const char *path = scratch_path("symbolic.onnx");
    export_to(model, (pen_onnx_export_options){0}, path);
    pen_model *again = open_path(path);
    assert_string_equal(again->batch_symbol, "n");
    assert_int_equal(again->output_types[0].shape.dims[0],
                     pen_value_type(again->graph, pen_graph_input(again->graph, 0))->shape.dims[0]);
    pen_model_destroy(again);
    pen_model_destroy(model);
}

static const void *contents_of(void *context, const pen_graph *graph, pen_value_id value) {
    return strcmp(pen_value_name(graph, value), "w") == 0 ? context : NULL;
}

static void new_contents_are_written(void **state) {
    (void)state;
    float contents[4] = {9, 8, 7, 6};
    pen_model *model = open_model("aliases");
    const char *path = scratch_path("trained.onnx");
    export_to(model,
              (pen_onnx_export_options){.contents = {.find = contents_of, .context = contents}},
              path);
    pen_model *again = open_path(path);
    pen_value_id w, second;
    CHECK_OK(pen_graph_find_value(again->graph, "w", &w));
    CHECK_OK(pen_graph_find_value(again->graph, "second.weight", &second));
    assert_memory_equal(pen_graph_value(again->graph, w)->data, contents, sizeof contents);
    assert_true(((const float *)pen_graph_value(again->graph, second)->data)[0] == 1);
    pen_model_destroy(again);
    pen_model_destroy(model);
}

static void large_contents_go_to_a_file_of_their_own(void **state) {
    (void)state;
    pen_model *model = open_model("aliases");
    const char *path = scratch_path("large.onnx");
    export_to(model, (pen_onnx_export_options){.inline_bytes_limit = 31}, path);
    pen_mapping data = {0};
    CHECK_OK(pen_mapping_open(scratch_path("large.onnx.data"), &data));
    assert_int_equal(data.length, 64 + 16);
    pen_mapping_close(&data);
    pen_model *again = open_path(path);
    check_equal_values(model, again);
    pen_model_destroy(again);
    export_to(model, (pen_onnx_export_options){.inline_bytes_limit = 32}, scratch_path("in.onnx"));
    assert_int_not_equal(access(scratch_path("in.onnx.data"), F_OK), 0);
    pen_model_destroy(model);
}

// A graph after inference: shapes are numbers, and what was folded is a constant.
static void an_inferred_graph_is_written_too(void **state) {
    (void)state;
    pen_model *model = open_model("constants");
    const pen_infer_options options = {.evaluate = pen_reference_evaluate};
    CHECK_OK(pen_infer_shapes(model->graph, &options));
    const char *path = scratch_path("inferred.onnx");
    CHECK_OK(pen_onnx_export(model->graph, NULL, path));
    pen_model *again = open_path(path);
    assert_int_equal(pen_graph_node_count(again->graph), 1); // the cast; the rest is folded
    pen_value_id filled;
    CHECK_OK(pen_graph_find_value(again->graph, "filled", &filled));
    assert_int_equal(((const int64_t *)pen_graph_value(again->graph, filled)->data)[503], 5);
    pen_model_destroy(again);
    pen_model_destroy(model);
}

static void what_onnx_has_not_is_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "own", &graph));
    const int64_t dims[] = {2, 2};
    const pen_value spec = {
        .name = "x", .kind = PEN_VALUE_INPUT, .type = pen_tensor_type_make(PEN_FLOAT32, 2, dims)};
    pen_value_id x, y;
    CHECK_OK(pen_graph_add_value(graph, &spec, &x));
    const pen_value_id inputs[] = {x, x};
    const pen_attribute_given transposed = pen_attribute_int("transA", 1);
    pen_node_spec node = pen_node_spec_make("matmul", "turned");
    node.inputs = inputs;
    node.input_count = 2;
    node.attributes = &transposed;
    node.attribute_count = 1;
    CHECK_OK(pen_graph_add_simple(graph, &node, &y));
    CHECK_OK(pen_graph_add_output(graph, y));
    CHECK_ERROR(pen_onnx_export(graph, NULL, scratch_path("own.onnx")), PEN_UNSUPPORTED,
                "no form for 1 of the nodes, as they are: matmul 'turned'");
    assert_int_not_equal(access(scratch_path("own.onnx"), F_OK), 0);
    pen_arena_destroy(arena);
}

static void an_output_without_a_type_is_refused(void **state) {
    (void)state;
    pen_model *model = open_model("aliases");
    CHECK_ERROR(pen_onnx_export(model->graph, NULL, scratch_path("untyped.onnx")),
                PEN_INVALID_INPUT, "the type of output 'y' is not known");
    CHECK_ERROR(pen_onnx_export(model->graph,
                                &(pen_onnx_export_options){.output_types = model->output_types},
                                scratch_path("no/such/folder.onnx")),
                PEN_NOT_FOUND, "folder.onnx");
    pen_model_destroy(model);
}

// 0 passed, 77 python3-onnx is not there.
static int run_checker(const char *path) {
    static const char program[] = "import sys\n"
                                  "try:\n    import onnx\nexcept ImportError:\n    sys.exit(77)\n"
                                  "onnx.checker.check_model(sys.argv[1], full_check=True)\n";
    const pid_t child = fork();
    if (child == 0) {
        execl("/usr/bin/python3", "python3", "-c", program, path, (char *)NULL);
        _exit(77);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void onnx_accepts_what_is_written(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof exported / sizeof exported[0]; i++) {
        pen_model *model = open_model(exported[i]);
        const char *path = scratch_path("checked.onnx");
        export_to(model, (pen_onnx_export_options){.for_inference = i % 2 == 0}, path);
        pen_model_destroy(model);
        const int result = run_checker(path);
        if (result == 77) skip();
        CHECK(result == 0, "%s is refused", exported[i]);
    }
}

// Counts a text in a file, which must have it as often.
static void check_count(const char *path, const char *text, uint32_t expected) {
    pen_mapping mapping;
    uint32_t count = 0;
    CHECK_OK(pen_mapping_open(path, &mapping));
    for (size_t i = 0; i + strlen(text) <= mapping.length; i++)
        count += memcmp(mapping.bytes + i, text, strlen(text)) == 0;
    pen_mapping_close(&mapping);
    CHECK(count == expected, "'%s' is there %u times, expected %u", text, count, expected);
}

// In the file nothing trains; who reads it back has what was written.
static void inference_uses_running_statistics(void **state) {
    (void)state;
    pen_model *model = open_model("training");
    const char *path = scratch_path("inference.onnx");
    uint32_t trained = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        const char *op = pen_graph_node(model->graph, (pen_node_id){n})->op->name;
        trained += strcmp(op, "batch_normalization") == 0 || strcmp(op, "dropout") == 0;
    }
    CHECK(trained > 0, "nothing trains");
    export_to(model, (pen_onnx_export_options){0}, path);
    check_count(path, "training_mode\x18\x01", 1);
    check_count(path, "penstock.training", 0);
    export_to(model, (pen_onnx_export_options){.for_inference = true}, path);
    check_count(path, "training_mode\x18\x01", 0);
    check_count(path, "\x0a\x11penstock.training\x12\x01\x31", trained);
    pen_model *again = open_path(path);
    assert_int_equal(pen_graph_node_count(again->graph), pen_graph_node_count(model->graph));
    for (uint32_t n = 0; n < pen_graph_node_count(model->graph); n++) {
        const pen_node *node = pen_graph_node(again->graph, (pen_node_id){n});
        if (strcmp(node->op->name, "batch_normalization") == 0) {
            assert_int_equal(pen_node_int(node, "training_mode"), 1);
            assert_int_equal(node->output_count, 5);
        }
        if (strcmp(node->op->name, "dropout") != 0) continue;
        assert_int_equal(node->output_count, 2);
        const pen_value *mode = pen_graph_value(again->graph, node->inputs[2]);
        assert_int_equal(*(const uint8_t *)mode->data, 1);
    }
    pen_model_destroy(again);
    pen_model_destroy(model);
}

// The first node is placed by name, the others follow their inputs; reading the file back gives
// the same graph.
static void places_are_metadata_of_nodes(void **state) {
    (void)state;
    pen_model *model = open_model("training");
    const char *path = scratch_path("placed.onnx");
    const uint32_t count = pen_graph_node_count(model->graph);
    pen_node_place place = {pen_node_name(model->graph, (pen_node_id){0}), "left", 3};
    const pen_node_places places = pen_node_places_make(&place, 1);
    const pen_node_place *const *found;
    uint32_t placed = 0;
    CHECK_OK(pen_node_places_resolve(&places, model->graph, model->arena, &found));
    for (uint32_t n = 0; n < count; n++)
        placed += found[n] != NULL;
    CHECK(placed > 0, "nothing is placed");
    export_to(model, (pen_onnx_export_options){.places = &places}, path);
    check_count(path, "\x0a\x0fpenstock.device\x12\x04left", placed);
    check_count(path, "\x0a\x0epenstock.stage\x12\x01\x33", placed);
    pen_model *back = open_path(path);
    check_equal_nodes(model, back);
    check_equal_values(model, back);
    pen_model_destroy(back);
    pen_model_destroy(model);
    assert_int_equal(unlink(path), 0);
}

PEN_TEST_MAIN(cmocka_unit_test(places_are_metadata_of_nodes),
              cmocka_unit_test(what_is_written_reads_back_the_same),
              cmocka_unit_test(symbols_are_kept), cmocka_unit_test(new_contents_are_written),
              cmocka_unit_test(large_contents_go_to_a_file_of_their_own),
              cmocka_unit_test(inference_uses_running_statistics),
              cmocka_unit_test(an_inferred_graph_is_written_too),
              cmocka_unit_test(what_onnx_has_not_is_named),
              cmocka_unit_test(an_output_without_a_type_is_refused),
              cmocka_unit_test(onnx_accepts_what_is_written))
