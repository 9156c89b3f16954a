// Graphs of a `.pt2` file: their nodes, where these come from, and what is said of their values.

#include "graph/import/pytorch/pt2_json.h"

#include <string.h>

#include "base/limits.h"

// ---- where a node comes from

// The module is the last entry of "key,path,class;key,path,class". Older files begin paths by the
// model's own variable, and calls of one module after the first have a mark behind "@".
static pen_status node_read_module(const char *stack, pen_arena *arena, pen_pt2_node *node) {
    const char *last = stack == NULL ? NULL : strrchr(stack, ';');
    last = last != NULL ? last + 1 : stack;
    const char *path = last == NULL ? NULL : strchr(last, ',');
    const char *class_name = path == NULL ? NULL : strchr(path + 1, ',');
    if (class_name == NULL || strstr(last, "_empty_nn_module_stack") != NULL) return PEN_OK;
    path++;
    if (strncmp(path, "L['self'].", 10) == 0) path += 10;
    if (strncmp(path, "L__self__.", 10) == 0) path += 10;
    const size_t length = strcspn(path, "@,");
    if (length > PEN_NAME_BYTES_LIMIT || strlen(class_name) > PEN_NAME_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "a module's path has more than %u bytes",
                         PEN_NAME_BYTES_LIMIT);
    }
    PEN_TRY(pen_arena_copy_text(arena, path, length, &node->module));
    return pen_arena_copy_text(arena, class_name + 1, strlen(class_name + 1), &node->class_name);
}

// A frame of a stack trace: `File "net.py", line 16, in forward`, and the line's text below.
typedef struct node_frame {
    const char *file;
    size_t file_length;
    uint32_t line;
    const char *code;
    size_t code_length;
} node_frame;

// Reads the frame that begins at or behind `at`, and returns where it ends; NULL: there is none.
static const char *node_next_frame(const char *at, node_frame *out_frame) {
    const char *file = strstr(at, "File \"");
    const char *end = file == NULL ? NULL : strchr(file + 6, '"');
    if (end == NULL || strncmp(end, "\", line ", 8) != 0) return NULL;
    node_frame frame = {.file = file + 6, .file_length = (size_t)(end - file) - 6};
    const char *digit = end + 8;
    for (; *digit >= '0' && *digit <= '9' && frame.line < 100000000; digit++) {
        frame.line = frame.line * 10 + (uint32_t)(*digit - '0');
    }
    const char *rest = digit + strcspn(digit, "\n");
    const char *code = rest + strspn(rest, "\n ");
    if (strncmp(code, "File \"", 6) != 0) {
        frame.code = code;
        frame.code_length = strcspn(code, "\n");
    }
    *out_frame = frame;
    return frame.code != NULL ? code + frame.code_length : rest;
}

// Whether a file is one of PyTorch's own, or code that it made of a branch or of the body of a
// loop.
static bool node_is_torch(const node_frame *frame) {
    static const char *const within[] = {"site-packages/torch/", "dist-packages/torch/"};
    if (strncmp(frame->file, "torch/", 6) == 0) return true;
    if (strncmp(frame->file, "<eval_with_key>", 15) == 0) return true;
    for (size_t i = 0; i < 2; i++) {
        const char *found = strstr(frame->file, within[i]);
        if (found != NULL && found < frame->file + frame->file_length) return true;
    }
    return false;
}

// The user's own line is the innermost one that is not PyTorch's.
static pen_status node_read_line(const char *trace, pen_arena *arena, pen_pt2_node *node) {
    node_frame own = {0}, frame;
    for (const char *at = trace; at != NULL && (at = node_next_frame(at, &frame)) != NULL;) {
        if (!node_is_torch(&frame)) own = frame;
    }
    if (own.file == NULL || own.file_length > PEN_NAME_BYTES_LIMIT) return PEN_OK;
    node->line = own.line;
    const size_t limit = PEN_NAME_BYTES_LIMIT;
    const size_t code_length = own.code_length < limit ? own.code_length : limit;
    if (own.code != NULL) {
        PEN_TRY(pen_arena_copy_text(arena, own.code, code_length, &node->code));
    }
    PEN_TRY(pen_arena_copy_text(arena, own.file, own.file_length, &node->file));
    const char *package = strstr(node->file, "-packages/"); // its name is enough for those
    if (package != NULL) node->file = package + strlen("-packages/");
    return PEN_OK;
}

// ---- nodes

static pen_status node_read_value(const json_t *from, bool is_named, pen_arena *arena,
                                  pen_pt2_argument *value) {
    value->name = "";
    if (!is_named) return pen_pt2_json_argument(from, arena, value);
    PEN_TRY(pen_pt2_json_name(from, "name", arena, &value->name));
    return pen_status_add_context(pen_pt2_json_argument(json_object_get(from, "arg"), arena, value),
                                  "'%.100s'", value->name);
}

// The arguments of a node, "inputs", which have names, or its results, "outputs", which have none.
static pen_status node_read_values(const json_t *from, const char *key, bool is_named,
                                   pen_arena *arena, uint32_t *out_count,
                                   const pen_pt2_argument **out_values) {
    const json_t *list;
    pen_pt2_argument *values;
    PEN_TRY(pen_pt2_json_get(from, key, JSON_ARRAY, &list));
    *out_count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(arena, *out_count, &values));
    for (uint32_t i = 0; i < *out_count; i++) {
        PEN_TRY(pen_status_add_context(
            node_read_value(json_array_get(list, i), is_named, arena, &values[i]), "in %s %u",
            is_named ? "argument" : "result", i));
    }
    *out_values = values;
    return PEN_OK;
}

static pen_status node_read_signature(const json_t *from, pen_arena *arena, pen_pt2_node *node) {
    PEN_TRY(node_read_values(from, "inputs", true, arena, &node->argument_count, &node->arguments));
    return node_read_values(from, "outputs", false, arena, &node->result_count, &node->results);
}

// Older files do not name nodes: then the first result does.
static pen_status node_read_name(const json_t *from, pen_arena *arena, pen_pt2_node *node) {
    const json_t *name = json_object_get(from, "name");
    if (json_is_string(name)) return pen_pt2_json_text(name, arena, &node->name);
    const bool has = node->result_count > 0 && node->results[0].count > 0;
    if (has && node->results[0].items[0].text[0] != '\0') {
        node->name = node->results[0].items[0].text;
        return PEN_OK;
    }
    return pen_arena_format(arena, &node->name, "node_%u", node->position);
}

static pen_status node_read(const json_t *from, pen_arena *arena, pen_pt2_node *node) {
    const json_t *metadata = json_object_get(from, "metadata");
    const char *stack = json_string_value(json_object_get(metadata, "nn_module_stack"));
    PEN_TRY(pen_pt2_json_name(from, "target", arena, &node->target));
    if (strncmp(node->target, "torch.ops.", 10) == 0) node->target += 10;
    PEN_TRY(
        pen_status_add_context(node_read_signature(from, arena, node), "of %.100s", node->target));
    PEN_TRY(node_read_name(from, arena, node));
    PEN_TRY(node_read_module(stack, arena, node));
    return node_read_line(json_string_value(json_object_get(metadata, "stack_trace")), arena, node);
}

static pen_status graph_read_nodes(const json_t *from, pen_arena *arena,
                                   pen_pt2_graph_part *graph) {
    const json_t *list;
    pen_pt2_node *nodes;
    PEN_TRY(pen_pt2_json_get(from, "nodes", JSON_ARRAY, &list));
    if (json_array_size(list) > PEN_NODE_COUNT_LIMIT) {
        return pen_error(PEN_CORRUPT, "the graph has more than %u nodes", PEN_NODE_COUNT_LIMIT);
    }
    graph->node_count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(arena, graph->node_count, &nodes));
    graph->nodes = nodes;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        nodes[i] = (pen_pt2_node){.position = i, .module = "", .class_name = "", .code = ""};
        PEN_TRY(pen_status_add_context(node_read(json_array_get(list, i), arena, &nodes[i]),
                                       "in node %u", i));
    }
    return PEN_OK;
}

// ---- values

static pen_status graph_read_items(const json_t *from, const char *key, pen_arena *arena,
                                   uint32_t *out_count, const pen_pt2_item **out_items) {
    const json_t *list;
    pen_pt2_item *items;
    pen_pt2_argument argument;
    PEN_TRY(pen_pt2_json_get(from, key, JSON_ARRAY, &list));
    const uint32_t count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(arena, count, &items));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(
            pen_status_add_context(pen_pt2_json_argument(json_array_get(list, i), arena, &argument),
                                   "in \"%s\" %u", key, i));
        items[i].kind = PEN_PT2_OTHER;
        if (!argument.is_list) items[i] = argument.items[0];
    }
    *out_count = count;
    *out_items = items;
    return PEN_OK;
}

// What the file says of tensors comes first: nodes are read by their names alone.
static pen_status graph_read_tensors(const json_t *from, pen_arena *arena,
                                     pen_pt2_graph_part *graph) {
    const json_t *values;
    pen_pt2_tensor_meta *tensors;
    PEN_TRY(pen_pt2_json_get(from, "tensor_values", JSON_OBJECT, &values));
    PEN_TRY(PEN_NEW(arena, json_object_size(values), &tensors));
    pen_name_map_init(&graph->tensor_index, arena);
    json_t *whole = (json_t *)(uintptr_t)values;
    for (void *at = json_object_iter(whole); at != NULL; at = json_object_iter_next(whole, at)) {
        const uint32_t index = graph->tensor_index.count;
        const char *key = json_object_iter_key(at), *name;
        PEN_TRY(pen_arena_copy_text(arena, key, strlen(key), &name));
        PEN_TRY(pen_status_add_context(
            pen_pt2_json_tensor(json_object_iter_value(at), arena, &tensors[index]),
            "in tensor '%.100s'", name));
        PEN_TRY(pen_name_map_add(&graph->tensor_index, name, index));
    }
    graph->tensors = tensors;
    return PEN_OK;
}

// {"as_expr": {"expr_str": …}}, or {"as_int": 2}.
static pen_status graph_read_symbol(const json_t *from, pen_arena *arena,
                                    pen_pt2_symbol_meta *symbol) {
    const char *key;
    const json_t *value;
    PEN_TRY(pen_pt2_json_union(from, &key, &value));
    if (strcmp(key, "as_expr") == 0) {
        return pen_pt2_json_name(value, "expr_str", arena, &symbol->formula);
    }
    symbol->number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    return PEN_OK;
}

static pen_status graph_read_symbols_of(const json_t *values, pen_element_type element,
                                        pen_arena *arena, pen_pt2_graph_part *graph,
                                        pen_pt2_symbol_meta *symbols) {
    json_t *whole = (json_t *)(uintptr_t)values;
    for (void *at = json_object_iter(whole); at != NULL; at = json_object_iter_next(whole, at)) {
        const uint32_t index = graph->symbol_index.count;
        const char *key = json_object_iter_key(at), *name;
        if (pen_name_map_find(&graph->symbol_index, key) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_CORRUPT, "symbol '%.100s' is there twice", key);
        }
        symbols[index].element = element;
        PEN_TRY(pen_arena_copy_text(arena, key, strlen(key), &name));
        PEN_TRY(pen_status_add_context(
            graph_read_symbol(json_object_iter_value(at), arena, &symbols[index]),
            "in symbol '%.100s'", name));
        PEN_TRY(pen_name_map_add(&graph->symbol_index, name, index));
    }
    return PEN_OK;
}

// Integers, numbers and truths are three lists in the file, and one here.
static pen_status graph_read_symbols(const json_t *from, pen_arena *arena,
                                     pen_pt2_graph_part *graph) {
    static const struct {
        const char *key;
        pen_element_type element;
    } kinds[] = {{"sym_int_values", PEN_INT64},
                 {"sym_float_values", PEN_FLOAT64},
                 {"sym_bool_values", PEN_BOOL}};
    pen_pt2_symbol_meta *symbols;
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        count += json_object_size(json_object_get(from, kinds[i].key));
    }
    PEN_TRY(PEN_NEW(arena, count, &symbols));
    pen_name_map_init(&graph->symbol_index, arena);
    for (size_t i = 0; i < 3; i++) {
        PEN_TRY(graph_read_symbols_of(json_object_get(from, kinds[i].key), kinds[i].element, arena,
                                      graph, symbols));
    }
    graph->symbols = symbols;
    return PEN_OK;
}

pen_status pen_pt2_json_graph(const json_t *from, pen_arena *arena, pen_pt2_graph_part *out_graph) {
    pen_pt2_graph_part graph = {0};
    PEN_TRY(graph_read_tensors(from, arena, &graph));
    PEN_TRY(graph_read_symbols(from, arena, &graph));
    PEN_TRY(graph_read_items(from, "inputs", arena, &graph.input_count, &graph.inputs));
    PEN_TRY(graph_read_items(from, "outputs", arena, &graph.output_count, &graph.outputs));
    PEN_TRY(graph_read_nodes(from, arena, &graph));
    *out_graph = graph;
    return PEN_OK;
}
