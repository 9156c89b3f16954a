// ONNX models of tests/graph/import/models (made by make_models.py there), read as graphs.

#include "base/system/file_beneath.h"
#include "graph/import/import.h"

#include <unistd.h>

#include "base/memory.h"
#include "base/system/file.h"
#include "graph/import/onnx/onnx_mapping.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define MODELS "tests/graph/import/models/"

static pen_model *open_model(const char *name) {
    char path[256];
    pen_model *model = NULL;
    snprintf(path, sizeof path, MODELS "%s.onnx", name);
    CHECK_OK(pen_model_open(path, NULL, &model));
    return model;
}

static void check_refused(const char *name, pen_status_code code, const char *text) {
    char path[256];
    pen_model *model = NULL;
    snprintf(path, sizeof path, MODELS "%s.onnx", name);
    CHECK_ERROR(pen_model_open(path, NULL, &model), code, text);
}

static const pen_value *find_value(const pen_model *model, const char *name) {
    pen_value_id id;
    CHECK_OK(pen_graph_find_value(model->graph, name, &id));
    return pen_graph_value(model->graph, id);
}

static const pen_node *find_node(const pen_model *model, const char *name) {
    pen_node_id id;
    CHECK_OK(pen_graph_find_node(model->graph, name, &id));
    return pen_graph_node(model->graph, id);
}

static const char *input_name(const pen_model *model, const pen_node *node, uint32_t input) {
    return pen_value_name(model->graph, node->inputs[input]);
}

// ---- tensors

static void every_encoding_gives_the_same_bytes(void **state) {
    (void)state;
    pen_model *model = open_model("encodings");
    for (int e = PEN_ELEMENT_UNKNOWN + 1; e < PEN_ELEMENT_TYPE_COUNT; e++) {
        const char *element = pen_element_name((pen_element_type)e);
        char name[64];
        snprintf(name, sizeof name, "raw_%s", element);
        const pen_value *raw = find_value(model, name);
        snprintf(name, sizeof name, "typed_%s", element);
        const pen_value *typed = find_value(model, name);
        assert_int_equal(raw->type.element, e);
        assert_int_equal(typed->type.element, e);
        assert_int_equal(raw->type.shape.rank, 2);
        assert_int_equal(raw->data_bytes, 4 * pen_element_bytes((pen_element_type)e));
        assert_int_equal(typed->data_bytes, raw->data_bytes);
        if (e != PEN_BOOL) assert_memory_equal(raw->data, typed->data, raw->data_bytes);
        assert_int_equal((uintptr_t)raw->data % pen_element_bytes((pen_element_type)e), 0);
        assert_int_equal(raw->kind, pen_element_is_float((pen_element_type)e) ? PEN_VALUE_PARAMETER
                                                                              : PEN_VALUE_CONSTANT);
    }
    const uint8_t *truth = find_value(model, "typed_bool")->data;
    assert_memory_equal(truth, "\0\1\1\1", 4);
    const float *numbers = find_value(model, "typed_float32")->data;
    assert_true(numbers[0] == 0 && numbers[1] == 1 && numbers[2] == 2 && numbers[3] == 3);
    pen_model_destroy(model);
}

static void aligned_contents_are_borrowed(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *bytes;
    size_t length;
    CHECK_OK(pen_file_read(MODELS "encodings.onnx", 1 << 20, arena, &bytes, &length));
    uint32_t borrowed = 0, copied = 0;
    for (size_t shift = 0; shift < 8; shift++) {
        char *copy = pen_arena_allocate(arena, length + 8, 1, 64);
        memcpy(copy + shift, bytes, length);
        pen_model *model = NULL;
        CHECK_OK(pen_model_open_bytes(copy + shift, length, "bytes", NULL, &model));
        const char *data = find_value(model, "raw_float64")->data;
        const bool inside = data >= copy && data < copy + length + 8;
        borrowed += inside;
        copied += !inside;
        const char *single = find_value(model, "raw_int8")->data;
        assert_true(single >= copy && single < copy + length + 8); // never misaligned
        pen_model_destroy(model);
    }
    assert_int_equal(borrowed, 1); // one shift of eight aligns it
    assert_int_equal(copied, 7);
    pen_arena_destroy(arena);
}

static void external_data_is_mapped(void **state) {
    (void)state;
    pen_model *model = open_model("external");
    const float *first = find_value(model, "first")->data;
    const float *second = find_value(model, "second")->data;
    assert_true(first[0] == 0 && first[5] == 5);
    assert_true(second[0] == 100 && second[3] == 103);
    assert_ptr_equal((const char *)first + 32, second); // one mapping
    pen_model_destroy(model);
}

static void external_data_stays_in_the_folder(void **state) {
    (void)state;
    check_refused("external_parent", PEN_INVALID_INPUT, "has '..'");
    check_refused("external_absolute", PEN_INVALID_INPUT, "is absolute");
    check_refused("external_missing", PEN_NOT_FOUND, "nothing.data");
    check_refused("external_folder", PEN_INVALID_INPUT, "not a regular file");
    check_refused("external_short", PEN_CORRUPT, "24 bytes from byte 30 of 'external.data' on");
    check_refused("external_length", PEN_CORRUPT, "20 bytes of external data, expected 24");
    check_refused("external_number", PEN_CORRUPT, "offset is '-4'");
}

static const char *copy_to_scratch(const char *name) {
    pen_arena *arena = check_arena();
    char path[256];
    const char *bytes;
    size_t length;
    snprintf(path, sizeof path, MODELS "%s", name);
    CHECK_OK(pen_file_read(path, 1 << 20, arena, &bytes, &length));
    const char *copy = scratch_file(name, bytes, length);
    pen_arena_destroy(arena);
    return copy;
}

static void external_data_follows_no_link(void **state) {
    (void)state;
    pen_model *model = NULL;
    const char *path = copy_to_scratch("external_link.onnx");
    copy_to_scratch("external.data");
    const char *link = scratch_path("link.data");
    assert_int_equal(symlink("external.data", link), 0);
    CHECK_ERROR(pen_model_open(path, NULL, &model), PEN_INVALID_INPUT, "symbolic link");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rename(scratch_path("external.data"), link), 0);
    CHECK_OK(pen_model_open(path, NULL, &model)); // the same name, and no link
    pen_model_destroy(model);
}

static void a_folder_that_is_a_link_is_refused(void **state) {
    (void)state;
    pen_mapping mapping = {0};
    const char *inside = scratch_file("real/deep/file", "abc", 3);
    (void)inside;
    const char *folder = scratch_path("real");
    CHECK_OK(pen_mapping_open_beneath(folder, "deep/file", &mapping));
    assert_int_equal(mapping.length, 3);
    pen_mapping_close(&mapping);
    CHECK_OK(pen_mapping_open_beneath(folder, "./deep//file", &mapping));
    pen_mapping_close(&mapping);
    assert_int_equal(symlink("deep", scratch_path("real/shallow")), 0);
    CHECK_ERROR(pen_mapping_open_beneath(folder, "shallow/file", &mapping), PEN_INVALID_INPUT,
                "symbolic link");
    CHECK_ERROR(pen_mapping_open_beneath(folder, "deep/../deep/file", &mapping), PEN_INVALID_INPUT,
                "has '..'");
    CHECK_ERROR(pen_mapping_open_beneath(folder, "", &mapping), PEN_INVALID_INPUT, "empty");
    CHECK_ERROR(pen_mapping_open_beneath(folder, "deep/other", &mapping), PEN_NOT_FOUND, "other");
    assert_int_equal(unlink(scratch_path("real/shallow")), 0);
}

static void a_file_beyond_2_gib_is_mapped(void **state) {
    (void)state;
    // a hole: it takes no room on the disk
    const char *path = copy_to_scratch("external.onnx");
    const char *data = copy_to_scratch("external.data");
    pen_model *model = NULL;
    FILE *file = fopen(data, "r+b");
    assert_non_null(file);
    assert_int_equal(fseeko(file, (off_t)3 << 30, SEEK_SET), 0);
    assert_int_equal(fputc('x', file), 'x');
    assert_int_equal(fclose(file), 0);
    CHECK_OK(pen_model_open(path, NULL, &model));
    const float *second = find_value(model, "second")->data;
    assert_true(second[3] == 103);
    pen_model_destroy(model);
}

static void memory_has_no_external_data(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *bytes;
    size_t length;
    pen_model *model = NULL;
    CHECK_OK(pen_file_read(MODELS "external.onnx", 1 << 20, arena, &bytes, &length));
    CHECK_ERROR(pen_model_open_bytes(bytes, length, "bytes", NULL, &model), PEN_INVALID_INPUT,
                "the model is no file");
    pen_arena_destroy(arena);
}

// ---- names, kinds, symbols

static void dimensions_without_a_number_are_symbols(void **state) {
    (void)state;
    pen_model *model = open_model("symbols");
    const pen_value *x = find_value(model, "x");
    const pen_value *z = find_value(model, "z");
    assert_string_equal(pen_graph_symbol_name(model->graph, x->type.shape.dims[0]), "batch");
    assert_string_equal(pen_graph_symbol_name(model->graph, x->type.shape.dims[1]), "x_1");
    assert_int_equal(x->type.shape.dims[2], 3);
    assert_int_equal(z->type.shape.dims[0], x->type.shape.dims[0]);
    assert_string_equal(pen_graph_symbol_name(model->graph, z->type.shape.dims[1]), "z_1");
    assert_string_equal(model->batch_symbol, "batch");
    assert_int_equal(model->output_types[0].shape.dims[0], x->type.shape.dims[0]);
    assert_true(model->output_types[0].shape.dims[1] == PEN_DIMENSION_UNKNOWN);
    assert_int_equal(model->output_types[1].element, PEN_ELEMENT_UNKNOWN);
    pen_model_destroy(model);
}

static void an_input_with_an_initializer_is_a_parameter(void **state) {
    (void)state;
    pen_model *model = open_model("initializer_input");
    assert_int_equal(pen_graph_input_count(model->graph), 1);
    const pen_value *w = find_value(model, "w");
    assert_int_equal(w->kind, PEN_VALUE_PARAMETER);
    assert_true(w->trainable);
    assert_null(model->batch_symbol); // a number here
    pen_model_destroy(model);
}

static void aliases_are_parameters_of_their_own(void **state) {
    (void)state;
    pen_model *model = open_model("aliases");
    const pen_value *w = find_value(model, "w");
    const pen_value *second = find_value(model, "second.weight");
    assert_int_equal(w->kind, PEN_VALUE_PARAMETER);
    assert_int_equal(second->kind, PEN_VALUE_PARAMETER);
    assert_memory_equal(w->data, second->data, 16);
    assert_string_equal(input_name(model, find_node(model, "first"), 1), "w");
    assert_string_equal(input_name(model, find_node(model, "second"), 1), "second.weight");
    assert_string_equal(input_name(model, find_node(model, "tied"), 1),
                        "w"); // tied by name stays so
    assert_int_equal(pen_graph_node_count(model->graph), 3);
    pen_model_destroy(model);
}

// Numbers that stand in formulas are no weights; parameters of no dimensions have names of
// programs.
static void single_numbers_train_by_their_names(void **state) {
    (void)state;
    pen_model *model = open_model("scalars");
    uint32_t count = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++)
        count += pen_graph_value(model->graph, (pen_value_id){v})->kind == PEN_VALUE_PARAMETER;
    assert_int_equal(count, 2);
    assert_true(find_value(model, "logit_scale")->trainable);
    assert_true(find_value(model, "blocks.3.gain")->trainable);
    assert_int_equal(find_value(model, "onnx::Mul_37")->kind, PEN_VALUE_CONSTANT);
    pen_model_destroy(model);
}

static void running_statistics_are_replaced(void **state) {
    (void)state;
    pen_model *model = open_model("training");
    const pen_node *node = find_node(model, "bn");
    assert_int_equal(find_value(model, "mean")->kind, PEN_VALUE_STATE);
    assert_int_equal(find_value(model, "variance")->kind, PEN_VALUE_STATE);
    assert_int_equal(find_value(model, "scale")->kind, PEN_VALUE_PARAMETER);
    assert_int_equal(pen_node_int(node, "training_mode"), 1);
    assert_int_equal(pen_node_int(node, "unbiased"), 1);
    const pen_value *mean = find_value(model, "mean_out");
    assert_string_equal(pen_value_name(model->graph, mean->replaces), "mean");
    assert_string_equal(pen_value_name(model->graph, find_value(model, "variance_out")->replaces),
                        "variance");
    pen_model_destroy(model);
    check_refused("shared_statistics", PEN_UNSUPPORTED, "'mean' is updated by two nodes");
}

static void a_weight_that_is_a_constant_too_is_split(void **state) {
    (void)state;
    pen_model *model = open_model("two_ways");
    assert_int_equal(find_value(model, "c")->kind, PEN_VALUE_PARAMETER);
    assert_int_equal(find_value(model, "c/constant")->kind, PEN_VALUE_CONSTANT);
    assert_int_equal(find_value(model, "pads")->kind, PEN_VALUE_CONSTANT);
    pen_model_destroy(model);
}

static void constants_are_read(void **state) {
    (void)state;
    pen_model *model = open_model("constants");
    const pen_value *k = find_value(model, "k");
    assert_int_equal(k->kind, PEN_VALUE_CONSTANT);
    assert_true(((const float *)k->data)[1] == 2.5f);
    assert_true(((const float *)find_value(model, "f")->data)[0] == 0.5f);
    assert_int_equal(((const int64_t *)find_value(model, "i")->data)[0], 7);
    assert_true(((const float *)find_value(model, "fs")->data)[1] == 1.5f);
    assert_int_equal(((const int64_t *)find_value(model, "is")->data)[2], 9);
    const pen_node *filled = pen_graph_node(model->graph, find_value(model, "filled")->producer);
    assert_string_equal(pen_node_text(filled, "element"), "int64");
    assert_true(pen_node_float(filled, "value") == 5);
    const pen_node *cast = pen_graph_node(model->graph, find_value(model, "y")->producer);
    assert_string_equal(pen_node_text(cast, "to"), "float64");
    assert_int_equal(cast->source.position, 6);
    pen_model_destroy(model);
}

static void functions_are_inlined(void **state) {
    (void)state;
    pen_model *model = open_model("function");
    assert_int_equal(pen_graph_node_count(model->graph), 6);
    const pen_node *leaky = find_node(model, "two/Twice/LeakyRelu");
    assert_true(pen_node_float(leaky, "alpha") == 0.25);
    assert_string_equal(pen_value_name(model->graph, pen_graph_output(model->graph, 0)), "y");
    pen_model_destroy(model);
    check_refused("function_endless", PEN_INVALID_INPUT, "more than 32 deep");
}

// ---- what is refused

static void everything_unsupported_is_listed_at_once(void **state) {
    (void)state;
    static const char *const lines[] = {
        "6 of the model's features are not supported",
        "com.microsoft.Gelu (operator set 1): 5 at 'layer0/gelu', 'layer1/gelu', 'layer2/gelu', …",
        "MaxPool (operator set 17): storage_order=1: 1 at 'pool'",
        "Constant (operator set 17): value of element type string: 1 at 'text'",
        "StringNormalizer (operator set 17): 1 at 'normal'",
        "initializer of element type string: 1 at 'words'",
        "input of element type string: 1 at 't'",
        "unsupported.onnx: error: ",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        check_refused("unsupported", PEN_UNSUPPORTED, lines[i]);
    }
}

static void wrong_models_are_refused_by_name(void **state) {
    (void)state;
    check_refused("opset_too_new", PEN_UNSUPPORTED, "operator set 99; 1 to 28 are possible");
    check_refused("not_ordered", PEN_INVALID_INPUT, "it reads 'h', which no node before it");
    check_refused("not_ordered", PEN_INVALID_INPUT, "in node 0, Identity 'reader'");
    check_refused("made_twice", PEN_INVALID_INPUT, "value 'y' is made twice");
    check_refused("no_output", PEN_INVALID_INPUT, "output 'y' is made by no node");
    check_refused("short_tensor", PEN_CORRUPT, "12 bytes of raw data, expected 16");
    check_refused("short_tensor", PEN_CORRUPT, "in tensor 'w'");
    check_refused("bad_bool", PEN_CORRUPT, "element 1 is 2, expected a bool");
    check_refused("there_is_none", PEN_NOT_FOUND, "there_is_none.onnx");
}

static void other_kinds_of_file_are_named(void **state) {
    (void)state;
    pen_model *model = NULL;
    CHECK_ERROR(pen_model_open("model.pth", NULL, &model), PEN_UNSUPPORTED,
                "what torch.save writes by its name: a pickle");
    CHECK_ERROR(pen_model_open("a.b/model", NULL, &model), PEN_UNSUPPORTED, "which is ''");
    CHECK_ERROR(pen_model_open("a.b/model", NULL, &model), PEN_UNSUPPORTED, "(.onnx)");
    const char *text = scratch_file("text.onnx", "hello, world", 12);
    CHECK_ERROR(pen_model_open(text, NULL, &model), PEN_CORRUPT, "text.onnx: error: at byte");
    const char *empty = scratch_file("empty.onnx", "", 0);
    CHECK_ERROR(pen_model_open(empty, NULL, &model), PEN_INVALID_INPUT, "is it ONNX?");
    // archives, as Keras' files are, that their names tell from these
    const char *pickle = scratch_file("state.pth", "PK\3\4 and more", 13);
    CHECK_ERROR(pen_model_open(pickle, NULL, &model), PEN_UNSUPPORTED,
                "torch.export.save writes a model");
    CHECK_ERROR(pen_model_open("state.pth", NULL, &model), PEN_UNSUPPORTED,
                "\n    model.load_state_dict(torch.load('state.pth'))  # of a whole model: ");
    const char *weights = scratch_file("weights.npz", "PK\3\4 and more", 13);
    CHECK_ERROR(pen_model_open(weights, NULL, &model), PEN_UNSUPPORTED, "weights: FILE}");
}

static void the_table_is_sorted_and_finds_its_entries(void **state) {
    (void)state;
    for (uint32_t i = 0; pen_onnx_mapping_at(i) != NULL; i++) {
        const pen_onnx_mapping *mapping = pen_onnx_mapping_at(i);
        assert_ptr_equal(pen_onnx_mapping_find(mapping->op_type), mapping);
        assert_non_null(pen_onnx_mapping_of_op(mapping->op_name));
    }
    assert_null(pen_onnx_mapping_find("Nothing"));
}

// ---- hostile bytes and short memory

static void a_model_cut_anywhere_is_an_error(void **state) {
    (void)state;
    static const char *const names[] = {"opset_7.onnx", "function.onnx", "constants.onnx",
                                        "training.onnx", "recurrent.onnx"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        pen_arena *arena = check_arena();
        char path[256];
        const char *bytes;
        size_t length;
        snprintf(path, sizeof path, MODELS "%s", names[n]);
        CHECK_OK(pen_file_read(path, 1 << 20, arena, &bytes, &length));
        for (size_t cut = 0; cut < length; cut++) {
            char *exact =
                malloc(cut + 1); // of its own size, so that the sanitizer sees a step over
            assert_non_null(exact);
            memcpy(exact, bytes, cut);
            exact = realloc(exact, cut > 0 ? cut : 1);
            pen_model *model = NULL;
            const pen_status status = pen_model_open_bytes(exact, cut, "cut", NULL, &model);
            CHECK(status != PEN_OK, "%s cut at %zu of %zu is read", names[n], cut, length);
            pen_status_ignore(status, "expected");
            free(exact);
        }
        pen_arena_destroy(arena);
    }
}

static void every_refused_allocation_is_an_error(void **state) {
    (void)state;
    static const char *const names[] = {"opset_7",  "function",    "external",
                                        "training", "unsupported", "recurrent"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        char path[256];
        snprintf(path, sizeof path, MODELS "%s.onnx", names[n]);
        pen_model *whole = NULL;
        const pen_status unhurt = pen_model_open(path, NULL, &whole);
        const pen_status_code own = pen_status_get_code(unhurt);
        pen_status_ignore(unhurt, "only its code counts");
        pen_model_destroy(whole);
        for (uint64_t call = 1;; call++) {
            pen_model *model = NULL;
            const uint64_t before = pen_memory_call_count();
            pen_memory_fail_at(call, 1);
            const pen_status status = pen_model_open(path, NULL, &model);
            pen_memory_fail_at(0, 0);
            const bool was_hit = pen_memory_call_count() - before >= call;
            pen_model_destroy(status == PEN_OK ? model : NULL);
            const pen_status_code code = pen_status_get_code(status);
            const bool is_own = code != PEN_CODE_OK && code == own; // it only lacks its position
            CHECK(!was_hit || is_own || code == PEN_OUT_OF_MEMORY, "%s, call %d: %s", names[n],
                  (int)call, pen_status_message(status));
            pen_status_ignore(status, "expected");
            if (!was_hit) break;
            CHECK(call < 100000, "%s never ends", names[n]);
        }
    }
}

// The list of activations is one text; initial states are data; what a gradient needs is saved.
static void recurrent_nodes_save_their_gates(void **state) {
    (void)state;
    pen_model *model = open_model("recurrent");
    const pen_node *lstm = find_node(model, "lstm");
    assert_string_equal(pen_node_text(lstm, "activations"), "HardSigmoid Tanh Softsign");
    assert_true((float)pen_node_float(lstm, "clip") == 3.0f);
    assert_int_equal(lstm->input_count, 5);
    assert_false(pen_value_is(lstm->inputs[3]));
    assert_string_equal(input_name(model, lstm, 4), "lengths");
    assert_int_equal(lstm->output_count, 5);
    assert_string_equal(pen_value_name(model->graph, lstm->outputs[1]), "last");
    assert_false(pen_value_is(lstm->outputs[2]));
    assert_string_equal(pen_value_name(model->graph, lstm->outputs[3]), "lstm/gates");
    assert_string_equal(pen_value_name(model->graph, lstm->outputs[4]), "lstm/cells");
    const pen_node *gru = find_node(model, "gru");
    assert_false(pen_node_has(gru, "activations"));
    assert_int_equal(pen_node_int(gru, "linear_before_reset"), 1);
    assert_int_equal(gru->output_count, 3);
    assert_false(pen_value_is(gru->outputs[1]));
    assert_string_equal(pen_value_name(model->graph, gru->outputs[2]), "gru/gates");
    const pen_node *rnn = find_node(model, "rnn");
    assert_int_equal(rnn->output_count, 1);
    assert_int_equal(find_value(model, "h")->kind, PEN_VALUE_CONSTANT);
    assert_int_equal(find_value(model, "rnn.r")->kind, PEN_VALUE_PARAMETER);
    pen_model_destroy(model);
}

PEN_TEST_MAIN(cmocka_unit_test(every_encoding_gives_the_same_bytes),
              cmocka_unit_test(aligned_contents_are_borrowed),
              cmocka_unit_test(external_data_is_mapped),
              cmocka_unit_test(external_data_stays_in_the_folder),
              cmocka_unit_test(external_data_follows_no_link),
              cmocka_unit_test(a_folder_that_is_a_link_is_refused),
              cmocka_unit_test(a_file_beyond_2_gib_is_mapped),
              cmocka_unit_test(memory_has_no_external_data),
              cmocka_unit_test(dimensions_without_a_number_are_symbols),
              cmocka_unit_test(an_input_with_an_initializer_is_a_parameter),
              cmocka_unit_test(aliases_are_parameters_of_their_own),
              cmocka_unit_test(running_statistics_are_replaced),
              cmocka_unit_test(single_numbers_train_by_their_names),
              cmocka_unit_test(a_weight_that_is_a_constant_too_is_split),
              cmocka_unit_test(constants_are_read), cmocka_unit_test(functions_are_inlined),
              cmocka_unit_test(recurrent_nodes_save_their_gates),
              cmocka_unit_test(everything_unsupported_is_listed_at_once),
              cmocka_unit_test(wrong_models_are_refused_by_name),
              cmocka_unit_test(other_kinds_of_file_are_named),
              cmocka_unit_test(the_table_is_sorted_and_finds_its_entries),
              cmocka_unit_test(a_model_cut_anywhere_is_an_error),
              cmocka_unit_test(every_refused_allocation_is_an_error))
