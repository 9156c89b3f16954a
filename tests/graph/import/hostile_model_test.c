// Models that ask for more than they give, or for files that are not theirs.

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_tensor.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

// ---- bytes of protobuf messages

typedef struct wire {
    uint8_t *bytes;
    size_t length, capacity;
} wire;

static void wire_put(wire *w, const void *bytes, size_t count) {
    if (w->length + count > w->capacity) {
        w->capacity = 2 * (w->length + count);
        w->bytes = realloc(w->bytes, w->capacity);
        assert_non_null(w->bytes);
    }
    if (count > 0) memcpy(w->bytes + w->length, bytes, count);
    w->length += count;
}

static void wire_varint(wire *w, uint64_t number) {
    do {
        const uint8_t byte = (uint8_t)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        wire_put(w, &byte, 1);
        number >>= 7;
    } while (number != 0);
}

static void wire_number(wire *w, uint32_t field, uint64_t number) {
    wire_varint(w, (uint64_t)field << 3);
    wire_varint(w, number);
}

static void wire_bytes(wire *w, uint32_t field, const void *bytes, size_t count) {
    wire_varint(w, (uint64_t)field << 3 | 2);
    wire_varint(w, count);
    wire_put(w, bytes, count);
}

static void wire_text(wire *w, uint32_t field, const char *text) {
    wire_bytes(w, field, text, strlen(text));
}

// Puts `inner` into `w` and releases it.
static void wire_message(wire *w, uint32_t field, wire *inner) {
    wire_bytes(w, field, inner->bytes, inner->length);
    free(inner->bytes);
    *inner = (wire){0};
}

static void wire_format(wire *w, uint32_t field, const char *format, uint32_t number) {
    char text[64];
    snprintf(text, sizeof text, format, number); // NOLINT: all formats are below
    wire_text(w, field, text);
}

// ---- contents in other files

typedef struct external_case {
    const char *location, *offset, *length;
    uint64_t count; // of floats
    pen_status_code code;
    const char *text;
} external_case;

static pen_status read_external(const char *folder, const external_case *given, uint32_t times) {
    pen_arena *arena = check_arena();
    pen_external_files files;
    pen_status status = PEN_OK;
    pen_external_files_init(&files, folder, arena);
    for (uint32_t i = 0; i < times && status == PEN_OK; i++) {
        const char *const keys[][2] = {
            {"location", given->location}, {"offset", given->offset}, {"length", given->length}};
        wire tensor = {0}, entry = {0};
        pen_protobuf_reader reader;
        pen_onnx_tensor read;
        const void *data;
        char many[PEN_LOCATION_BYTES_LIMIT];
        wire_number(&tensor, 1, given->count);
        wire_number(&tensor, 2, 1);
        for (size_t k = 0; k < 3; k++) {
            if (keys[k][1] == NULL) continue;
            wire_text(&entry, 1, keys[k][0]);
            if (k == 0 && times > 1) { // the same file by many names
                snprintf(many, sizeof many, "%.*s%.*s%s", (int)(i / 64) * 2,
                         "././././././././././././././././././././././././././././././././"
                         "././././././././././././././././././././././././././././././././",
                         (int)(i % 64),
                         "////////////////////////////////////////////////////////"
                         "//////////",
                         given->location);
                memmove(many + 2, many, strlen(many) + 1);
                memcpy(many, "./", 2);
                wire_text(&entry, 2, many);
            } else {
                wire_text(&entry, 2, keys[k][1]);
            }
            wire_message(&tensor, 13, &entry);
        }
        wire_number(&tensor, 14, 1);
        pen_protobuf_init(&reader, tensor.bytes, tensor.length);
        status = pen_onnx_tensor_open(&reader, arena, &read);
        if (status == PEN_OK) status = pen_onnx_tensor_data(&read, &files, arena, &data);
        free(tensor.bytes);
    }
    pen_external_files_deinit(&files);
    pen_arena_destroy(arena);
    return status;
}

static void external_files_stay_in_the_folder(void **state) {
    (void)state;
    static const external_case cases[] = {
        {"weights.bin", NULL, NULL, 64, PEN_CODE_OK, NULL},
        {"weights.bin", "252", "4", 1, PEN_CODE_OK, NULL},
        {"../outside.bin", NULL, NULL, 1, PEN_INVALID_INPUT, "has '..'"},
        {"deep/../../outside.bin", NULL, NULL, 1, PEN_INVALID_INPUT, "has '..'"},
        {"..", NULL, NULL, 1, PEN_INVALID_INPUT, "has '..'"},
        {"/etc/hostname", NULL, NULL, 1, PEN_INVALID_INPUT, "absolute"},
        {"//etc/hostname", NULL, NULL, 1, PEN_INVALID_INPUT, "absolute"},
        {"", NULL, NULL, 1, PEN_INVALID_INPUT, "empty"},
        {"symbolic.bin", NULL, NULL, 1, PEN_INVALID_INPUT, "symbolic link"},
        {"linked/outside.bin", NULL, NULL, 1, PEN_INVALID_INPUT, "symbolic link"},
        {"hard.bin", NULL, NULL, 1, PEN_INVALID_INPUT, "hard links"},
        {"pipe", NULL, NULL, 1, PEN_INVALID_INPUT, "not a regular file"},
        {"deep", NULL, NULL, 1, PEN_INVALID_INPUT, "not a regular file"},
        {".", NULL, NULL, 1, PEN_INVALID_INPUT, "not a regular file"},
        {"device", NULL, NULL, 1, PEN_INVALID_INPUT, "symbolic link"},
        {"none.bin", NULL, NULL, 1, PEN_NOT_FOUND, "none.bin"},
        {"weights.bin/x", NULL, NULL, 1, PEN_NOT_FOUND, "weights.bin/x"},
        {NULL, NULL, NULL, 1, PEN_CORRUPT, "without a location"},
        {"weights.bin", "256", NULL, 1, PEN_CORRUPT, "256"},
        {"weights.bin", "253", NULL, 1, PEN_CORRUPT, "253"},
        {"weights.bin", "18446744073709551615", NULL, 1, PEN_CORRUPT, "18446744073709551615"},
        {"weights.bin", "18446744073709551612", "4", 1, PEN_CORRUPT, "which has 256"},
        {"weights.bin", "18446744073709551616", NULL, 1, PEN_CORRUPT, "expected a count"},
        {"weights.bin", "-4", NULL, 1, PEN_CORRUPT, "expected a count"},
        {"weights.bin", "0x10", NULL, 1, PEN_CORRUPT, "expected a count"},
        {"weights.bin", NULL, "18446744073709551615", 1, PEN_CORRUPT, "18446744073709551615"},
        {"weights.bin", NULL, "8", 1, PEN_CORRUPT, "8 bytes"},
        {"weights.bin", NULL, NULL, 65, PEN_CORRUPT, "260 bytes"},
        {"weights.bin", NULL, NULL, 1ull << 43, PEN_CORRUPT, "which has 256"},
        {"weights.bin", NULL, NULL, 1ull << 62, PEN_INVALID_INPUT, ""},
    };
    static const char contents[256];
    scratch_file("model/weights.bin", contents, sizeof contents);
    scratch_file("model/deep/more.bin", contents, sizeof contents);
    const char *outside = scratch_file("outside.bin", contents, sizeof contents);
    const char *folder = scratch_path("model");
    assert_int_equal(symlink("../outside.bin", scratch_path("model/symbolic.bin")), 0);
    assert_int_equal(symlink("..", scratch_path("model/linked")), 0);
    assert_int_equal(symlink("/dev/zero", scratch_path("model/device")), 0);
    assert_int_equal(link(outside, scratch_path("model/hard.bin")), 0);
    assert_int_equal(mkfifo(scratch_path("model/pipe"), (mode_t)0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pen_status status = read_external(folder, &cases[i], 1);
        if (cases[i].code == PEN_CODE_OK) {
            CHECK_OK(status);
        } else if (cases[i].text[0] != '\0') {
            CHECK_ERROR(status, cases[i].code, cases[i].text);
        } else {
            CHECK(status != PEN_OK, "case %zu", i);
            pen_status_ignore(status, "refused is what it must be");
        }
    }
    CHECK_ERROR(read_external("", &cases[0], 1), PEN_INVALID_INPUT, "no folder");
    CHECK_ERROR(read_external(NULL, &cases[0], 1), PEN_INVALID_INPUT, "no folder");
    CHECK_ERROR(read_external(folder, &cases[0], PEN_EXTERNAL_FILES_LIMIT + 1), PEN_INVALID_INPUT,
                "in more than 4096 files");
}

// ---- graphs that grow

static void put_node(wire *graph, uint32_t field, const char *op, const char *domain,
                     const char *input, const char *output) {
    wire node = {0};
    wire_text(&node, 1, input);
    wire_text(&node, 2, output);
    wire_text(&node, 3, output);
    wire_text(&node, 4, op);
    wire_text(&node, 7, domain);
    wire_message(graph, field, &node);
}

// A value of floats with one dimension.
static void put_value(wire *graph, uint32_t field, const char *name, const char *symbol) {
    wire value = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    wire_text(&dim, 2, symbol);
    wire_message(&shape, 1, &dim);
    wire_number(&tensor, 1, 1);
    wire_message(&tensor, 2, &shape);
    wire_message(&type, 1, &tensor);
    wire_text(&value, 1, name);
    wire_message(&value, 2, &type);
    wire_message(graph, field, &value);
}

static void put_opset(wire *message, uint32_t field) {
    wire opset = {0};
    wire_text(&opset, 1, "");
    wire_number(&opset, 2, 17);
    wire_message(message, field, &opset);
}

static pen_status open_model(wire *graph, const wire *functions) {
    wire model = {0};
    pen_model *opened = NULL;
    wire_number(&model, 1, 8);
    put_opset(&model, 8);
    if (functions != NULL) wire_put(&model, functions->bytes, functions->length);
    wire_message(&model, 7, graph);
    const pen_status status =
        pen_model_open_bytes(model.bytes, model.length, "hostile", NULL, &opened);
    free(model.bytes);
    if (status == PEN_OK) pen_model_destroy(opened);
    return status;
}

// Function f<i> calls f<i+1> four times; the last is a Relu.
static void put_function_bomb(wire *model, uint32_t depth, const char *name) {
    for (uint32_t i = 0; i < depth; i++) {
        wire function = {0};
        char op[16];
        const bool is_last = i + 1 == depth;
        snprintf(op, sizeof op, "f%u", i + 1);
        wire_format(&function, 1, "f%u", i);
        wire_text(&function, 4, "x");
        wire_text(&function, 5, name);
        for (uint32_t n = 0; n < 4; n++) {
            char from[16], to[16];
            snprintf(from, sizeof from, "t%u", n);
            snprintf(to, sizeof to, "t%u", n + 1);
            put_node(&function, 7, is_last ? "Relu" : op, is_last ? "" : "d", n == 0 ? "x" : from,
                     n == 3 ? name : to);
        }
        put_opset(&function, 9);
        wire_text(&function, 10, "d");
        wire_message(model, 25, &function);
    }
}

static void functions_do_not_explode(void **state) {
    (void)state;
    static char name[2000];
    memset(name, 'n', sizeof name - 1);
    wire graph = {0}, functions = {0};
    put_value(&graph, 11, "a", "N");
    put_node(&graph, 1, "f0", "d", "a", "b");
    put_value(&graph, 12, "b", "N");
    put_function_bomb(&functions, 12, "y");
    const wire copy = graph;
    graph = (wire){0};
    wire_put(&graph, copy.bytes, copy.length);
    CHECK_ERROR(open_model(&graph, &functions), PEN_INVALID_INPUT, "more than 262144 nodes");
    free(functions.bytes);
    functions = (wire){0};
    put_function_bomb(&functions, 9, name);
    wire_put(&graph, copy.bytes, copy.length);
    CHECK_ERROR(open_model(&graph, &functions), PEN_INVALID_INPUT, "with its functions inlined");
    free(functions.bytes);
    functions = (wire){0};
    put_function_bomb(&functions, 3, "y");
    wire endless = {0};
    wire_text(&endless, 1, "f3");
    wire_text(&endless, 4, "x");
    wire_text(&endless, 5, "y");
    put_node(&endless, 7, "f3", "d", "x", "y");
    put_opset(&endless, 9);
    wire_text(&endless, 10, "d");
    wire_message(&functions, 25, &endless);
    put_node(&graph, 1, "f3", "d", "a", "c");
    wire_put(&graph, copy.bytes, copy.length);
    CHECK_ERROR(open_model(&graph, &functions), PEN_INVALID_INPUT, "at 'f3', or for ever");
    free(functions.bytes);
    functions = (wire){0};
    put_function_bomb(&functions, 3, "y");
    wire_put(&graph, copy.bytes, copy.length);
    CHECK_OK(open_model(&graph, &functions));
    free(functions.bytes);
    free(copy.bytes);
}

static void lists_have_limits(void **state) {
    (void)state;
    wire graph = {0}, functions = {0};
    for (uint32_t i = 0; i <= PEN_FUNCTION_COUNT_LIMIT; i++) {
        wire function = {0};
        wire_format(&function, 1, "f%u", i);
        wire_message(&functions, 25, &function);
    }
    CHECK_ERROR(open_model(&graph, &functions), PEN_INVALID_INPUT, "4097 functions");
    free(functions.bytes);
    for (uint32_t i = 0; i <= PEN_MODEL_OUTPUTS_LIMIT; i++)
        put_value(&graph, 12, "b", "N");
    CHECK_ERROR(open_model(&graph, NULL), PEN_CORRUPT, "more than 4096 outputs");
    put_node(&graph, 1, "Relu", "", "a0", "b");
    put_value(&graph, 12, "b", "s0");
    for (uint32_t i = 0; i <= PEN_SYMBOL_COUNT_LIMIT; i++) {
        char name[16], symbol[16];
        snprintf(name, sizeof name, "a%u", i);
        snprintf(symbol, sizeof symbol, "s%u", i);
        put_value(&graph, 11, name, symbol);
    }
    CHECK_ERROR(open_model(&graph, NULL), PEN_INVALID_INPUT, "more than 4096 named dimensions");
    wire node = {0};
    for (uint32_t i = 0; i <= PEN_NODE_ATTRIBUTES_LIMIT; i++)
        wire_bytes(&node, 5, "", 0);
    wire_message(&graph, 1, &node);
    CHECK_ERROR(open_model(&graph, NULL), PEN_CORRUPT, "more than 256 attributes");
}

static void put_graphdef_node(wire *message, uint32_t field, const char *name, const char *op) {
    wire node = {0};
    wire_text(&node, 1, name);
    wire_text(&node, 2, op);
    wire_message(message, field, &node);
}

static void nodes_of_a_function_of_tensorflow_have_names_of_their_own(void **state) {
    (void)state;
    wire graph = {0}, library = {0}, function = {0}, signature = {0};
    pen_model *model = NULL;
    wire_text(&signature, 1, "twin");
    wire_message(&function, 1, &signature);
    put_graphdef_node(&function, 3, "one", "NoOp");
    put_graphdef_node(&function, 3, "one", "Abs");
    wire_message(&library, 1, &function);
    put_graphdef_node(&graph, 1, "call", "twin");
    wire_message(&graph, 2, &library);
    CHECK_ERROR(pen_model_open_bytes(graph.bytes, graph.length, "twin.pb", NULL, &model),
                PEN_INVALID_INPUT, "two nodes of function 'twin' are called 'one'");
    free(graph.bytes);
}

// The graph calls f0; function f<i> calls f<i + 1> three times, the last of `depth` calls `last`.
static pen_status open_graphdef_functions(uint32_t depth, const char *last) {
    wire graph = {0}, library = {0};
    pen_model *model = NULL;
    for (uint32_t i = 0; i < depth; i++) {
        wire function = {0}, signature = {0};
        char op[16];
        snprintf(op, sizeof op, "f%u", i + 1);
        wire_format(&signature, 1, "f%u", i);
        wire_message(&function, 1, &signature);
        put_graphdef_node(&function, 3, "a", i + 1 == depth ? last : op);
        put_graphdef_node(&function, 3, "b", i + 1 == depth ? "NoOp" : op);
        put_graphdef_node(&function, 3, "c", i + 1 == depth ? "NoOp" : op);
        wire_message(&library, 1, &function);
    }
    put_graphdef_node(&graph, 1, "call", "f0");
    put_graphdef_node(&graph, 1, "end", "Abs");
    wire_message(&graph, 2, &library);
    const pen_status status =
        pen_model_open_bytes(graph.bytes, graph.length, "calls.pb", NULL, &model);
    free(graph.bytes);
    assert_true(status != PEN_OK); // none of these graphs computes anything
    return status;
}

static void functions_of_tensorflow_do_not_explode(void **state) {
    (void)state;
    const clock_t start = clock();
    for (uint32_t i = 0; i < 100; i++) {
        CHECK_ERROR(open_graphdef_functions(24, "NoOp"), PEN_INVALID_INPUT,
                    "more than 262144 nodes");
        CHECK_ERROR(open_graphdef_functions(12, "f3"), PEN_INVALID_INPUT, "or for ever");
        CHECK_ERROR(open_graphdef_functions(1, "f0"), PEN_INVALID_INPUT, "or for ever");
        CHECK_ERROR(open_graphdef_functions(40, "NoOp"), PEN_INVALID_INPUT, "32 deep at 'f32'");
    }
    assert_true(clock() - start < 10 * CLOCKS_PER_SEC); // nothing was made of what is refused
    CHECK_ERROR(open_graphdef_functions(4, "NoOp"), PEN_INVALID_INPUT, "expected 1");
}

PEN_TEST_MAIN(cmocka_unit_test(external_files_stay_in_the_folder),
              cmocka_unit_test(functions_do_not_explode), cmocka_unit_test(lists_have_limits),
              cmocka_unit_test(nodes_of_a_function_of_tensorflow_have_names_of_their_own),
              cmocka_unit_test(functions_of_tensorflow_do_not_explode))
