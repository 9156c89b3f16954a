#include "graph/import/pytorch/pt2_model.h"

#include <string.h>

#include "base/format/json_reader.h"
#include "base/limits.h"
#include "base/text.h"
#include "graph/import/pytorch/pt2_json.h"

#define MODEL_SCHEMA_MAJOR 8 // the version of the form that is read, with any minor one

// ---- element types

typedef struct model_element {
    int64_t number; // in PyTorch's files
    pen_element_type element;
    const char *name;
} model_element;

static const model_element model_elements[] = {
    {1, PEN_UINT8, "uint8"},
    {2, PEN_INT8, "int8"},
    {3, PEN_INT16, "int16"},
    {4, PEN_INT32, "int32"},
    {5, PEN_INT64, "int64"},
    {6, PEN_FLOAT16, "float16"},
    {7, PEN_FLOAT32, "float32"},
    {8, PEN_FLOAT64, "float64"},
    {9, PEN_ELEMENT_UNKNOWN, "complex32"},
    {10, PEN_ELEMENT_UNKNOWN, "complex64"},
    {11, PEN_ELEMENT_UNKNOWN, "complex128"},
    {12, PEN_BOOL, "bool"},
    {13, PEN_BFLOAT16, "bfloat16"},
    {28, PEN_UINT16, "uint16"},
    {29, PEN_ELEMENT_UNKNOWN, "float8_e4m3fn"},
    {30, PEN_ELEMENT_UNKNOWN, "float8_e5m2"},
    {31, PEN_ELEMENT_UNKNOWN, "float8_e4m3fnuz"},
    {32, PEN_ELEMENT_UNKNOWN, "float8_e5m2fnuz"},
    {33, PEN_ELEMENT_UNKNOWN, "float8_e8m0fnu"},
    {34, PEN_UINT32, "uint32"},
    {35, PEN_UINT64, "uint64"},
};

static const model_element *model_find_element(int64_t number) {
    static const model_element none = {0, PEN_ELEMENT_UNKNOWN, "an unknown type"};
    for (size_t i = 0; i < sizeof model_elements / sizeof model_elements[0]; i++) {
        if (model_elements[i].number == number) return &model_elements[i];
    }
    return &none;
}

pen_element_type pen_pt2_element_of(int64_t number, bool widens) {
    const pen_element_type element = model_find_element(number)->element;
    return widens && pen_element_is_half(element) ? PEN_FLOAT32 : element;
}

const char *pen_pt2_element_name(int64_t number) {
    return model_find_element(number)->name;
}

// ---- finding

const pen_pt2_tensor_meta *pen_pt2_graph_tensor(const pen_pt2_graph_part *graph, const char *name) {
    const uint32_t index = pen_name_map_find(&graph->tensor_index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &graph->tensors[index];
}

const pen_pt2_symbol_meta *pen_pt2_graph_symbol(const pen_pt2_graph_part *graph, const char *name) {
    const uint32_t index = pen_name_map_find(&graph->symbol_index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &graph->symbols[index];
}

const pen_pt2_argument *pen_pt2_node_argument(const pen_pt2_node *node, const char *name) {
    for (uint32_t i = 0; i < node->argument_count; i++) {
        if (strcmp(node->arguments[i].name, name) == 0) return &node->arguments[i];
    }
    return NULL;
}

// ---- the signature

// The name of a tensor that a port is for; NULL when it is for none.
static pen_status model_read_port(const json_t *from, pen_arena *arena, pen_pt2_port *port) {
    static const struct {
        const char *key;
        pen_pt2_role role;
        const char *name_key;
    } roles[] = {{"parameter", PEN_PT2_PARAMETER, "parameter_name"},
                 {"buffer", PEN_PT2_BUFFER, "buffer_name"},
                 {"tensor_constant", PEN_PT2_CONSTANT, "tensor_constant_name"},
                 {"constant_input", PEN_PT2_FIXED, "name"},
                 {"user_input", PEN_PT2_USER_INPUT, NULL}};
    const char *key;
    const json_t *value;
    PEN_TRY(pen_pt2_json_union(from, &key, &value));
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(roles[i].key, key) != 0) continue;
        port->role = roles[i].role;
        port->name = NULL;
        if (roles[i].name_key == NULL) return PEN_OK;
        return pen_pt2_json_name(value, roles[i].name_key, arena, &port->name);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "an input of the graph is of kind \"%.40s\", which Penstock "
                     "has not",
                     key);
}

static pen_status model_read_ports(const json_t *signature, pen_arena *arena,
                                   pen_pt2_model *model) {
    const json_t *list;
    pen_pt2_port *ports;
    PEN_TRY(pen_pt2_json_get(signature, "input_specs", JSON_ARRAY, &list));
    if (json_array_size(list) != model->graph.input_count) {
        return pen_error(PEN_CORRUPT, "the signature has %zu inputs, the graph %u",
                         json_array_size(list), model->graph.input_count);
    }
    PEN_TRY(PEN_NEW(arena, model->graph.input_count, &ports));
    for (uint32_t i = 0; i < model->graph.input_count; i++) {
        PEN_TRY(model_read_port(json_array_get(list, i), arena, &ports[i]));
        if (ports[i].role == PEN_PT2_USER_INPUT) ports[i].name = model->graph.inputs[i].text;
    }
    model->ports = ports;
    return PEN_OK;
}

// ---- names of outputs

// Leaves of what forward() returns, in the order of the graph's outputs.
typedef struct model_leaves {
    pen_arena *arena;
    const char **names; // [capacity]
    uint32_t count, capacity;
} model_leaves;

// The keys of a dict or of a dataclass stand as JSON in its "context".
static json_t *model_load_keys(const json_t *from) {
    const char *context = json_string_value(json_object_get(from, "context"));
    json_t *keys = NULL;
    if (context == NULL) return NULL;
    const pen_status status =
        pen_json_load("context", context, strlen(context), PEN_CORRUPT, &keys);
    pen_status_ignore(status, "outputs are numbered then");
    return keys;
}

static pen_status model_walk(const json_t *from, const char *path, model_leaves *leaves);

static pen_status model_walk_children(const json_t *from, const json_t *keys, const char *path,
                                      model_leaves *leaves) {
    const json_t *children = json_object_get(from, "children_spec");
    for (size_t i = 0; i < json_array_size(children); i++) {
        const char *key = json_string_value(json_array_get(keys, i)), *inner = key;
        const char *dot = path[0] == '\0' ? "" : ".";
        if (key == NULL) {
            PEN_TRY(pen_arena_format(leaves->arena, &inner, "%s%s%zu", path, dot, i));
        } else {
            PEN_TRY(pen_arena_format(leaves->arena, &inner, "%s%s%.200s", path, dot, key));
        }
        PEN_TRY(model_walk(json_array_get(children, i), inner, leaves));
    }
    return PEN_OK;
}

// A leaf has no type; its name is the way to it.
static pen_status model_walk(const json_t *from, const char *path, model_leaves *leaves) {
    if (!json_is_string(json_object_get(from, "type"))) {
        if (leaves->count < leaves->capacity) leaves->names[leaves->count] = path;
        leaves->count++;
        return PEN_OK;
    }
    json_t *keys = model_load_keys(from);
    const pen_status status = model_walk_children(from, keys, path, leaves);
    json_decref(keys);
    return status;
}

// "[1, {…}]", a text of JSON: the version of that form, and the tree.
static pen_status model_walk_text(const char *text, model_leaves *leaves) {
    json_t *root;
    PEN_TRY(pen_json_load("out_spec", text, strlen(text), PEN_CORRUPT, &root));
    const pen_status status = model_walk(json_array_get(root, 1), "", leaves);
    json_decref(root);
    return status;
}

// Where the tree does not have as many leaves as there are outputs, these are numbered.
static pen_status model_name_outputs(const json_t *module, pen_arena *arena, pen_pt2_model *model) {
    const json_t *entry = json_array_get(json_object_get(module, "module_call_graph"), 0);
    const char *text =
        json_string_value(json_object_get(json_object_get(entry, "signature"), "out_spec"));
    model_leaves leaves = {.arena = arena, .capacity = model->graph.output_count};
    PEN_TRY(PEN_NEW(arena, leaves.capacity, &leaves.names));
    if (text != NULL) PEN_TRY(model_walk_text(text, &leaves));
    uint32_t user_count = 0;
    for (uint32_t i = 0; i < model->graph.output_count; i++) {
        user_count += model->output_buffers[i] == NULL;
    }
    for (uint32_t i = 0, user = 0; i < model->graph.output_count; i++) {
        if (model->output_buffers[i] != NULL) continue;
        model->output_names[i] = leaves.names[user];
        if (leaves.count != user_count) { // the tree is not of these outputs
            PEN_TRY(pen_arena_format(arena, &model->output_names[i], "%u", user));
        }
        user++;
    }
    return PEN_OK;
}

// Outputs are the caller's, or what buffers become.
static pen_status model_read_outputs(const json_t *signature, pen_arena *arena,
                                     pen_pt2_model *model) {
    const json_t *list, *value;
    const char *key;
    PEN_TRY(pen_pt2_json_get(signature, "output_specs", JSON_ARRAY, &list));
    if (json_array_size(list) != model->graph.output_count) {
        return pen_error(PEN_CORRUPT, "the signature has %zu outputs, the graph %u",
                         json_array_size(list), model->graph.output_count);
    }
    PEN_TRY(PEN_NEW(arena, model->graph.output_count, &model->output_names));
    PEN_TRY(PEN_NEW(arena, model->graph.output_count, &model->output_buffers));
    for (uint32_t i = 0; i < model->graph.output_count; i++) {
        PEN_TRY(pen_pt2_json_union(json_array_get(list, i), &key, &value));
        if (strcmp(key, "user_output") == 0) continue;
        if (strcmp(key, "buffer_mutation") != 0) {
            return pen_error(PEN_UNSUPPORTED,
                             "an output of the graph is of kind \"%.40s\", which Penstock has not",
                             key);
        }
        PEN_TRY(pen_pt2_json_name(value, "buffer_name", arena, &model->output_buffers[i]));
    }
    return PEN_OK;
}

// ---- ranges, versions

static pen_status model_read_ranges(const json_t *root, pen_arena *arena, pen_pt2_model *model) {
    json_t *ranges = json_object_get(root, "range_constraints");
    pen_pt2_range *read;
    PEN_TRY(PEN_NEW(arena, json_object_size(ranges), &read));
    for (void *at = json_object_iter(ranges); at != NULL; at = json_object_iter_next(ranges, at)) {
        const json_t *least = json_object_get(json_object_iter_value(at), "min_val");
        const json_t *most = json_object_get(json_object_iter_value(at), "max_val");
        pen_pt2_range *range = &read[model->range_count++];
        const char *symbol = json_object_iter_key(at);
        PEN_TRY(pen_arena_copy_text(arena, symbol, strlen(symbol), &range->symbol));
        range->least = json_is_integer(least) ? json_integer_value(least) : 0;
        range->most = json_is_integer(most) ? json_integer_value(most) : INT64_MAX;
    }
    model->ranges = read;
    return PEN_OK;
}

static pen_status model_check_version(const json_t *root, pen_pt2_model *model, pen_arena *arena) {
    const json_t *version = json_object_get(root, "schema_version");
    const json_t *major = json_object_get(version, "major");
    const char *torch = json_string_value(json_object_get(root, "torch_version"));
    if (torch == NULL) torch = "not said";
    PEN_TRY(pen_arena_copy_text(arena, torch, strcspn(torch, "+"), &model->torch_version));
    if (json_integer_value(major) == MODEL_SCHEMA_MAJOR) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "the file has schema version %lld.%lld (written by PyTorch %.40s); version "
                     "%d can be read, which PyTorch 2.8 and later write: export the model again "
                     "with one of these",
                     (long long)json_integer_value(major),
                     (long long)json_integer_value(json_object_get(version, "minor")),
                     model->torch_version, MODEL_SCHEMA_MAJOR);
}

static pen_status model_read_root(const json_t *root, pen_arena *arena, pen_pt2_model *model) {
    const json_t *module, *graph, *signature;
    PEN_TRY(model_check_version(root, model, arena));
    const char *verifier = json_string_value(json_array_get(json_object_get(root, "verifiers"), 0));
    model->is_decomposed = verifier != NULL && strcmp(verifier, "TRAINING") != 0;
    PEN_TRY(pen_pt2_json_get(root, "graph_module", JSON_OBJECT, &module));
    PEN_TRY(pen_pt2_json_get(module, "graph", JSON_OBJECT, &graph));
    PEN_TRY(pen_pt2_json_get(module, "signature", JSON_OBJECT, &signature));
    PEN_TRY(pen_pt2_json_graph(graph, arena, &model->graph));
    PEN_TRY(model_read_ports(signature, arena, model));
    PEN_TRY(model_read_outputs(signature, arena, model));
    PEN_TRY(model_name_outputs(module, arena, model));
    return model_read_ranges(root, arena, model);
}

pen_status pen_pt2_model_read(const void *bytes, size_t length, pen_arena *arena,
                              pen_pt2_model *out_model) {
    json_t *root;
    PEN_TRY(pen_json_load("models/model.json", bytes, length, PEN_CORRUPT, &root));
    *out_model = (pen_pt2_model){0};
    const pen_status status = model_read_root(root, arena, out_model);
    json_decref(root);
    return status;
}
