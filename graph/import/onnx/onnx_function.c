#include "graph/import/onnx/onnx_function.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/name_map.h"

// The functions of a model by domain and name.
typedef struct function_list {
    const pen_onnx_model *model;
    pen_name_map index;
    uint64_t bytes_before; // of the arena
    uint64_t *sizes;       // [model's functions], nodes that a call becomes; 0: not counted yet
} function_list;

#define FUNCTION_BEING_MEASURED UINT64_MAX

typedef struct function_key {
    char text[2 * PEN_NAME_BYTES_LIMIT + 16];
} function_key;

// A name has no zero byte, and two that differ make two keys: the domain's length goes first.
static const char *function_write_key(const char *domain, const char *name, function_key *out_key) {
    snprintf(out_key->text, sizeof out_key->text, "%zx%s:%s", strlen(domain), domain, name);
    return out_key->text;
}

static pen_status function_list_init(const pen_onnx_model *model, pen_arena *arena,
                                     function_list *list) {
    function_key key;
    *list = (function_list){.model = model};
    pen_name_map_init(&list->index, arena);
    PEN_TRY(PEN_NEW(arena, model->function_count, &list->sizes));
    for (uint32_t i = 0; i < model->function_count; i++) {
        const pen_onnx_function *function = &model->functions[i];
        const char *kept;
        function_write_key(function->domain, function->name, &key);
        if (pen_name_map_find(&list->index, key.text) != PEN_NAME_MAP_NONE) continue;
        PEN_TRY(pen_arena_copy_text(arena, key.text, strlen(key.text), &kept));
        PEN_TRY(pen_name_map_add(&list->index, kept, i));
    }
    return PEN_OK;
}

// The first of that name; NULL: there is none.
static const pen_onnx_function *function_find(const function_list *list,
                                              const pen_onnx_node *node) {
    function_key key;
    const uint32_t found =
        pen_name_map_find(&list->index, function_write_key(node->domain, node->op_type, &key));
    return found == PEN_NAME_MAP_NONE ? NULL : &list->model->functions[found];
}

static pen_status function_too_many(void) {
    return pen_error(PEN_INVALID_INPUT,
                     "with its functions inlined the model has more than %u "
                     "nodes",
                     PEN_INLINED_NODES_LIMIT);
}

// How many nodes a call becomes. What is refused is refused before any of it is made: a small file
// can ask for very much.
static pen_status function_measure(function_list *list, const pen_onnx_function *function,
                                   uint32_t depth, uint64_t *out_size) {
    uint64_t *size = &list->sizes[function - list->model->functions];
    if (*size == FUNCTION_BEING_MEASURED || depth > PEN_NESTING_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "functions call one another more than %d deep at '%.100s', or for ever",
                         PEN_NESTING_LIMIT, function->name);
    }
    if (*size == 0) {
        uint64_t total = 0;
        *size = FUNCTION_BEING_MEASURED;
        for (uint32_t n = 0; n < function->node_count; n++) {
            const pen_onnx_function *callee = function_find(list, &function->nodes[n]);
            uint64_t inner = 1;
            if (callee != NULL) PEN_TRY(function_measure(list, callee, depth + 1, &inner));
            total = pen_min_u64(total + inner, PEN_INLINED_NODES_LIMIT + 1);
        }
        *size = total;
    }
    *out_size = *size;
    return PEN_OK;
}

static pen_status function_measure_all(function_list *list) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < list->model->node_count; i++) {
        const pen_onnx_function *function = function_find(list, &list->model->nodes[i]);
        uint64_t size = 0;
        if (function == NULL) continue;
        PEN_TRY(function_measure(list, function, 1, &size));
        total += size;
        if (total > PEN_INLINED_NODES_LIMIT) return function_too_many();
    }
    return PEN_OK;
}

// One call being replaced.
typedef struct function_call {
    const pen_onnx_function *function;
    const pen_onnx_node *caller;
    const char *prefix;
    pen_name_map formals; // inputs, then outputs
    pen_arena *arena;
} function_call;

// Nodes of the function are named behind the caller, so that two calls do not collide.
static pen_status function_call_init(function_call *call, const pen_onnx_function *function,
                                     const pen_onnx_node *caller, pen_arena *arena) {
    *call = (function_call){.function = function, .caller = caller, .arena = arena};
    if (caller->input_count > function->input_count ||
        caller->output_count > function->output_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "node '%s' has %u inputs and %u outputs, function '%s' %u and %u",
                         caller->name, caller->input_count, caller->output_count, function->name,
                         function->input_count, function->output_count);
    }
    if (caller->name[0] != '\0') {
        call->prefix = caller->name;
    } else {
        PEN_TRY(pen_arena_format(arena, &call->prefix, "%s_%u", caller->op_type, caller->position));
    }
    pen_name_map_init(&call->formals, arena);
    for (uint32_t i = 0; i < function->input_count + function->output_count; i++) {
        const char *name = i < function->input_count ? function->inputs[i]
                                                     : function->outputs[i - function->input_count];
        if (pen_name_map_find(&call->formals, name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "function '%s' has two operands called '%s'",
                             function->name, name);
        }
        PEN_TRY(pen_name_map_add(&call->formals, name, i));
    }
    return PEN_OK;
}

static pen_status function_rename(const function_call *call, const char *name,
                                  const char **out_name) {
    *out_name = "";
    if (name[0] == '\0') return PEN_OK;
    const uint32_t index = pen_name_map_find(&call->formals, name);
    const uint32_t input_count = call->function->input_count;
    if (index != PEN_NAME_MAP_NONE && index < input_count) {
        if (index < call->caller->input_count) *out_name = call->caller->inputs[index];
        return PEN_OK;
    }
    if (index != PEN_NAME_MAP_NONE && index - input_count < call->caller->output_count) {
        *out_name = call->caller->outputs[index - input_count];
        if ((*out_name)[0] != '\0') return PEN_OK;
    }
    return pen_arena_format(call->arena, out_name, "%s/%s", call->prefix, name);
}

static pen_status function_copy_names(const function_call *call, uint32_t count,
                                      const char *const *names, const char ***out_names) {
    PEN_TRY(PEN_NEW(call->arena, count, out_names));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(function_rename(call, names[i], &(*out_names)[i]));
    }
    return PEN_OK;
}

// An attribute that refers to one of the function's takes the caller's value, or is left out.
static pen_status function_copy_attributes(const function_call *call, const pen_onnx_node *node,
                                           pen_onnx_node *copy) {
    PEN_TRY(PEN_NEW(call->arena, node->attribute_count, &copy->attributes));
    copy->attribute_count = 0;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        pen_onnx_attribute attribute = node->attributes[i];
        if (attribute.reference != NULL) {
            const pen_onnx_attribute *given =
                pen_onnx_attribute_find(call->caller, attribute.reference);
            if (given == NULL) continue;
            attribute = *given;
            attribute.name = node->attributes[i].name;
        }
        if (attribute.type == PEN_ONNX_GRAPH) {
            return pen_error(PEN_UNSUPPORTED, "function '%s' has a node with a body, %s '%s'",
                             call->function->name, node->op_type, node->name);
        }
        copy->attributes[copy->attribute_count++] = attribute;
    }
    return PEN_OK;
}

static pen_status function_copy_node(const function_call *call, const pen_onnx_node *node,
                                     pen_onnx_node *out_copy) {
    pen_onnx_node copy = *node;
    copy.position = call->caller->position;
    PEN_TRY(function_copy_names(call, node->input_count, node->inputs, &copy.inputs));
    PEN_TRY(function_copy_names(call, node->output_count, node->outputs, &copy.outputs));
    PEN_TRY(function_copy_attributes(call, node, &copy));
    PEN_TRY(pen_arena_format(call->arena, &copy.name, "%s/%s", call->prefix,
                             node->name[0] != '\0' ? node->name : node->op_type));
    *out_copy = copy;
    return PEN_OK;
}

// One round: every call in `model` is replaced by its function's nodes, calls among them included.
static pen_status function_round(pen_onnx_model *model, const function_list *list, pen_arena *arena,
                                 bool *out_more) {
    uint64_t count = 0;
    *out_more = false;
    for (uint32_t i = 0; i < model->node_count; i++) {
        const pen_onnx_function *function = function_find(list, &model->nodes[i]);
        count += function == NULL ? 1 : function->node_count;
        *out_more = *out_more || function != NULL;
    }
    if (!*out_more) return PEN_OK;
    if (count > PEN_INLINED_NODES_LIMIT) return function_too_many();
    pen_onnx_node *nodes;
    uint32_t filled = 0;
    PEN_TRY(PEN_NEW(arena, count, &nodes));
    for (uint32_t i = 0; i < model->node_count; i++) {
        const pen_onnx_function *function = function_find(list, &model->nodes[i]);
        if (function == NULL) {
            nodes[filled++] = model->nodes[i];
            continue;
        }
        function_call call;
        PEN_TRY(function_call_init(&call, function, &model->nodes[i], arena));
        for (uint32_t n = 0; n < function->node_count; n++) {
            PEN_TRY(function_copy_node(&call, &function->nodes[n], &nodes[filled++]));
        }
        if (pen_arena_bytes(arena) - list->bytes_before <= PEN_INLINED_BYTES_LIMIT) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "the model needs more than %u bytes with its functions inlined",
                         PEN_INLINED_BYTES_LIMIT);
    }
    model->nodes = nodes;
    model->node_count = filled;
    return PEN_OK;
}

pen_status pen_onnx_functions_inline(pen_onnx_model *model, pen_arena *arena) {
    if (model->function_count == 0) return PEN_OK;
    function_list list;
    PEN_TRY(function_list_init(model, arena, &list));
    PEN_TRY(function_measure_all(&list));
    list.bytes_before = pen_arena_bytes(arena);
    for (uint32_t round = 0; round < PEN_NESTING_LIMIT; round++) {
        bool more = false;
        PEN_TRY(function_round(model, &list, arena, &more));
        if (!more) return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "functions call one another more than %d deep",
                     PEN_NESTING_LIMIT);
}
