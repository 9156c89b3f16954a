#include "graph/graph.h"

#include <string.h>

#include "base/limits.h"
#include "base/name_map.h"
#include "graph/op.h"

#define GRAPH_CAPACITY_FIRST 64

struct pen_graph {
    pen_arena *arena;
    pen_arena *tensor_arena; // the first graph's
    const char *name;
    pen_node *nodes;
    uint32_t node_count, node_capacity;
    pen_value *values;
    uint32_t value_count, value_capacity;
    pen_value_id *inputs;
    uint32_t input_count, input_capacity;
    pen_value_id *outputs;
    uint32_t output_count, output_capacity;
    const char **symbols;
    uint32_t symbol_count, symbol_capacity;
    pen_name_map node_names;
    pen_name_map value_names;
};

static pen_status graph_create(pen_arena *arena, pen_arena *tensor_arena, const char *name,
                               pen_graph **out_graph) {
    pen_graph *graph;
    PEN_TRY(PEN_NEW(arena, 1, &graph));
    graph->arena = arena;
    graph->tensor_arena = tensor_arena;
    PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &graph->name));
    pen_name_map_init(&graph->node_names, arena);
    pen_name_map_init(&graph->value_names, arena);
    *out_graph = graph;
    return PEN_OK;
}

pen_status pen_graph_create(pen_arena *arena, const char *name, pen_graph **out_graph) {
    return graph_create(arena, arena, name, out_graph);
}

pen_status pen_graph_create_after(const pen_graph *old, pen_graph **out_graph) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create_beneath(old->tensor_arena, &arena));
    return graph_create(arena, old->tensor_arena, old->name, out_graph);
}

void pen_graph_release(const pen_graph *graph) {
    if (graph->arena != graph->tensor_arena) pen_arena_destroy(graph->arena);
}

// Room for `grown` elements of `size` bytes; the old array stays in the arena.
static pen_status graph_grow(pen_graph *graph, void **array, uint32_t count, uint32_t *capacity,
                             uint32_t grown, size_t size) {
    void *memory = pen_arena_allocate(graph->arena, grown, size, alignof(max_align_t));
    if (memory == NULL) return pen_error_out_of_memory();
    if (count > 0) memcpy(memory, *array, count * size);
    *array = memory;
    *capacity = grown;
    return PEN_OK;
}

// Room for one more.
static pen_status graph_reserve(pen_graph *graph, void **array, uint32_t count, uint32_t *capacity,
                                size_t size) {
    if (count < *capacity) return PEN_OK;
    const uint32_t grown = *capacity == 0 ? GRAPH_CAPACITY_FIRST : *capacity * 2;
    return graph_grow(graph, array, count, capacity, grown, size);
}

pen_status pen_graph_reserve(pen_graph *graph, uint32_t node_count, uint32_t value_count) {
    if (node_count > graph->node_capacity) {
        void *nodes = graph->nodes;
        PEN_TRY(graph_grow(graph, &nodes, graph->node_count, &graph->node_capacity, node_count,
                           sizeof *graph->nodes));
        graph->nodes = nodes;
    }
    if (value_count > graph->value_capacity) {
        void *values = graph->values;
        PEN_TRY(graph_grow(graph, &values, graph->value_count, &graph->value_capacity, value_count,
                           sizeof *graph->values));
        graph->values = values;
    }
    PEN_TRY(pen_name_map_reserve(&graph->node_names, node_count));
    return pen_name_map_reserve(&graph->value_names, value_count);
}

pen_arena *pen_graph_arena(const pen_graph *graph) {
    return graph->arena;
}

pen_arena *pen_graph_tensor_arena(const pen_graph *graph) {
    return graph->tensor_arena;
}

const char *pen_graph_name(const pen_graph *graph) {
    return graph->name;
}

uint32_t pen_graph_node_count(const pen_graph *graph) {
    return graph->node_count;
}

uint32_t pen_graph_value_count(const pen_graph *graph) {
    return graph->value_count;
}

static pen_node *graph_node(pen_graph *graph, pen_node_id node) {
    PEN_ASSERT(node.index < graph->node_count);
    return &graph->nodes[node.index];
}

static pen_value *graph_value(pen_graph *graph, pen_value_id value) {
    PEN_ASSERT(value.index < graph->value_count);
    return &graph->values[value.index];
}

const pen_node *pen_graph_node(const pen_graph *graph, pen_node_id node) {
    PEN_ASSERT(node.index < graph->node_count);
    return &graph->nodes[node.index];
}

const pen_value *pen_graph_value(const pen_graph *graph, pen_value_id value) {
    PEN_ASSERT(value.index < graph->value_count);
    return &graph->values[value.index];
}

const char *pen_node_name(const pen_graph *graph, pen_node_id node) {
    return pen_graph_node(graph, node)->name;
}

const char *pen_value_name(const pen_graph *graph, pen_value_id value) {
    return pen_graph_value(graph, value)->name;
}

const pen_tensor_type *pen_value_type(const pen_graph *graph, pen_value_id value) {
    return &pen_graph_value(graph, value)->type;
}

// Longest common prefix: enough to find the neighbours of a mistyped path.
static uint32_t graph_likeness(const char *a, const char *b) {
    uint32_t length = 0;
    while (a[length] != '\0' && a[length] == b[length]) {
        length++;
    }
    return length;
}

pen_status pen_graph_find_value(const pen_graph *graph, const char *name, pen_value_id *out_value) {
    const uint32_t index = pen_name_map_find(&graph->value_names, name);
    if (index != PEN_NAME_MAP_NONE && strcmp(graph->values[index].name, name) == 0) {
        *out_value = (pen_value_id){index};
        return PEN_OK;
    }
    uint32_t best = 0;
    const char *near = "";
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const uint32_t likeness = graph_likeness(graph->values[i].name, name);
        if (near[0] != '\0' && likeness <= best) continue;
        best = likeness;
        near = graph->values[i].name;
    }
    return pen_error(PEN_NOT_FOUND, "no value is called '%s'; the nearest is '%s'", name, near);
}

pen_status pen_graph_find_node(const pen_graph *graph, const char *name, pen_node_id *out_node) {
    const uint32_t index = pen_name_map_find(&graph->node_names, name);
    if (index != PEN_NAME_MAP_NONE) {
        *out_node = (pen_node_id){index};
        return PEN_OK;
    }
    uint32_t best = 0;
    const char *near = "";
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const uint32_t likeness = graph_likeness(graph->nodes[i].name, name);
        if (near[0] != '\0' && likeness <= best) continue;
        best = likeness;
        near = graph->nodes[i].name;
    }
    return pen_error(PEN_NOT_FOUND, "no node is called '%s'; the nearest is '%s'", name, near);
}

// Appends without looking at the name, which is unique and in the arena.
static pen_status graph_append_value(pen_graph *graph, const pen_value *spec,
                                     pen_value_id *out_value) {
    if (graph->value_count >= PEN_VALUE_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the graph has more than %u values",
                         PEN_VALUE_COUNT_LIMIT);
    }
    void *values = graph->values;
    PEN_TRY(graph_reserve(graph, &values, graph->value_count, &graph->value_capacity,
                          sizeof *graph->values));
    graph->values = values;
    PEN_TRY(pen_name_map_add(&graph->value_names, spec->name, graph->value_count));
    graph->values[graph->value_count] = *spec;
    *out_value = (pen_value_id){graph->value_count};
    graph->value_count += 1;
    return PEN_OK;
}

// Rules of operators multiply sizes as they are, so that these must have a product. Sizes that are
// open are looked at again when they are bound.
static pen_status graph_check_type(const pen_value *spec) {
    pen_tensor_type known = spec->type;
    for (uint32_t d = 0; d < known.shape.rank; d++) {
        if (known.shape.dims[d] < 0) known.shape.dims[d] = 1;
    }
    return pen_status_add_context(pen_tensor_type_check(&known), "as the type of '%.200s'",
                                  spec->name);
}

// Adds a value whose name is free.
static pen_status graph_add_free_value(pen_graph *graph, const pen_value *spec, const char *name,
                                       pen_value_id *out_value) {
    PEN_ASSERT(spec->kind != PEN_VALUE_COMPUTED);
    PEN_TRY(graph_check_type(spec));
    pen_value value = *spec;
    value.name = name;
    value.producer = PEN_NODE_NONE;
    value.producer_output = 0;
    value.replaces = PEN_VALUE_NONE;
    PEN_TRY(pen_tensor_slice_copy(spec->slice, graph->arena, &value.slice)); // of a graph that goes
    PEN_TRY(graph_append_value(graph, &value, out_value));
    if (value.kind != PEN_VALUE_INPUT) return PEN_OK;
    void *inputs = graph->inputs;
    PEN_TRY(graph_reserve(graph, &inputs, graph->input_count, &graph->input_capacity,
                          sizeof *graph->inputs));
    graph->inputs = inputs;
    graph->inputs[graph->input_count++] = *out_value;
    return PEN_OK;
}

pen_status pen_graph_add_value(pen_graph *graph, const pen_value *spec, pen_value_id *out_value) {
    if (pen_name_map_find(&graph->value_names, spec->name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "two values are called '%s'", spec->name);
    }
    return pen_graph_add_own_value(graph, spec, out_value);
}

pen_status pen_graph_add_own_value(pen_graph *graph, const pen_value *spec,
                                   pen_value_id *out_value) {
    const char *name;
    PEN_TRY(pen_name_map_free_name(&graph->value_names, spec->name, &name));
    return graph_add_free_value(graph, spec, name, out_value);
}

pen_status pen_graph_rename_value(pen_graph *graph, pen_value_id value, const char *name) {
    const char *unique;
    PEN_TRY(pen_name_map_free_name(&graph->value_names, name, &unique));
    PEN_TRY(pen_name_map_add(&graph->value_names, unique, value.index));
    graph_value(graph, value)->name = unique;
    return PEN_OK;
}

// Counts and required operands are checked when a node is made, so that shape rules and kernels can
// rely on them.
static pen_status graph_check_counts(const pen_node_spec *spec) {
    const pen_op *op = spec->op;
    if (spec->input_count < op->input_min || spec->input_count > op->input_max ||
        spec->input_count > PEN_NODE_ARITY_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s '%s' takes %u to %u inputs, found %u", op->name,
                         spec->name, op->input_min,
                         op->input_max > PEN_NODE_ARITY_LIMIT ? PEN_NODE_ARITY_LIMIT
                                                              : op->input_max,
                         spec->input_count);
    }
    if (spec->output_count < op->output_min || spec->output_count > op->output_max ||
        spec->output_count > PEN_NODE_ARITY_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s '%s' gives %u to %u outputs, found %u", op->name,
                         spec->name, op->output_min,
                         op->output_max > PEN_NODE_ARITY_LIMIT ? PEN_NODE_ARITY_LIMIT
                                                               : op->output_max,
                         spec->output_count);
    }
    for (uint32_t i = 0; i < op->input_min; i++) {
        if (pen_value_is(spec->inputs[i])) continue;
        return pen_error(PEN_INVALID_INPUT, "%s '%s' needs its input %u", op->name, spec->name, i);
    }
    return PEN_OK;
}

// Texts and lists move into the graph's arena: what the caller gave may be gone when the node is
// read.
static pen_status graph_copy_attribute(pen_graph *graph, const pen_attribute_given *given,
                                       pen_attribute_value *out_value) {
    *out_value = given->value;
    out_value->present = true;
    if (given->kind == PEN_ATTRIBUTE_TEXT) {
        return pen_arena_copy_text(graph->arena, given->value.text, strlen(given->value.text),
                                   &out_value->text);
    }
    if (given->kind == PEN_ATTRIBUTE_INTS) {
        int64_t *integers;
        PEN_TRY(PEN_NEW(graph->arena, given->value.count, &integers));
        for (uint32_t i = 0; i < given->value.count; i++) {
            integers[i] = given->value.integers[i];
        }
        out_value->integers = integers;
    }
    if (given->kind == PEN_ATTRIBUTE_FLOATS) {
        double *numbers;
        PEN_TRY(PEN_NEW(graph->arena, given->value.count, &numbers));
        for (uint32_t i = 0; i < given->value.count; i++) {
            numbers[i] = given->value.numbers[i];
        }
        out_value->numbers = numbers;
    }
    return PEN_OK;
}

static pen_status graph_attribute_unknown(const pen_node_spec *spec, const char *name) {
    pen_status status = pen_error(PEN_INVALID_INPUT, "%s '%s' has no attribute '%s'",
                                  spec->op->name, spec->name, name);
    for (uint32_t i = 0; i < spec->op->attribute_count; i++) {
        status = pen_status_add_context(status, "there is '%s'", spec->op->attributes[i].name);
    }
    return status;
}

// Attributes are stored in the schema's order, whatever order they were given in, so that kernels
// and hashes find them by place.
static pen_status graph_fill_attributes(pen_graph *graph, const pen_node_spec *spec,
                                        pen_attribute_value *values) {
    const pen_op *op = spec->op;
    for (uint32_t g = 0; g < spec->attribute_count; g++) {
        const pen_attribute_given *given = &spec->attributes[g];
        uint32_t i = 0;
        while (i < op->attribute_count && strcmp(op->attributes[i].name, given->name) != 0) {
            i++;
        }
        if (i == op->attribute_count) return graph_attribute_unknown(spec, given->name);
        if (op->attributes[i].kind != given->kind) {
            return pen_error(PEN_INVALID_INPUT, "%s '%s': attribute '%s' is %s, expected %s",
                             op->name, spec->name, given->name,
                             pen_attribute_kind_name(given->kind),
                             pen_attribute_kind_name(op->attributes[i].kind));
        }
        PEN_TRY(graph_copy_attribute(graph, given, &values[i]));
    }
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        const pen_attribute_schema *schema = &op->attributes[i];
        if (values[i].present) continue;
        if (schema->required) {
            return pen_error(PEN_INVALID_INPUT, "%s '%s' needs its attribute '%s'", op->name,
                             spec->name, schema->name);
        }
        if (!schema->has_default) continue;
        values[i].present = true;
        values[i].integer = schema->integer;
        values[i].number = schema->number;
        values[i].text = schema->text;
    }
    return PEN_OK;
}

static bool graph_output_wanted(const pen_node_spec *spec, uint32_t output) {
    if (spec->output_names == NULL || output < spec->op->output_min) return true;
    return spec->output_names[output] != NULL && spec->output_names[output][0] != '\0';
}

static pen_status graph_add_output_value(pen_graph *graph, const pen_node_spec *spec,
                                         const char *node_name, uint32_t output,
                                         pen_value_id *out_value) {
    pen_value value = {.kind = PEN_VALUE_COMPUTED,
                       .producer = {graph->node_count},
                       .producer_output = output,
                       .replaces = PEN_VALUE_NONE,
                       .source = spec->source};
    const char *wanted = spec->output_names != NULL ? spec->output_names[output] : NULL;
    if (wanted == NULL || wanted[0] == '\0') {
        PEN_TRY(pen_arena_format(graph->arena, &wanted, "%s:%u", node_name, output));
    }
    PEN_TRY(pen_name_map_free_name(&graph->value_names, wanted, &value.name));
    return graph_append_value(graph, &value, out_value);
}

static bool graph_inputs_typed(const pen_graph *graph, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_tensor_type *type = pen_value_type(graph, node->inputs[i]);
        if (type->element == PEN_ELEMENT_UNKNOWN) return false;
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            if (type->shape.dims[d] < 0) return false;
        }
        const bool wants_constant = i < 64 && (node->op->constant_inputs >> i & 1) != 0;
        if (wants_constant && pen_graph_value(graph, node->inputs[i])->kind == PEN_VALUE_COMPUTED) {
            return false; // it may become one by folding
        }
    }
    return true;
}

// Makes the name unique and allocates the outputs. Where the types of all inputs are known, those
// of the outputs are inferred at once, so that a shape that is wrong is told at the node that made
// it.
pen_status pen_graph_add_node(pen_graph *graph, const pen_node_spec *spec, pen_node_id *out_node) {
    PEN_TRY(graph_check_counts(spec));
    if (graph->node_count >= PEN_NODE_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the graph has more than %u nodes",
                         PEN_NODE_COUNT_LIMIT);
    }
    void *nodes = graph->nodes;
    PEN_TRY(graph_reserve(graph, &nodes, graph->node_count, &graph->node_capacity,
                          sizeof *graph->nodes));
    graph->nodes = nodes;
    pen_node node = {.op = spec->op,
                     .role = spec->role,
                     .source = spec->source,
                     .gradient_of = spec->gradient_of,
                     .input_count = spec->input_count,
                     .output_count = spec->output_count};
    pen_attribute_value *attributes;
    pen_value_id *inputs, *outputs;
    PEN_TRY(PEN_NEW(graph->arena, spec->op->attribute_count, &attributes));
    PEN_TRY(PEN_NEW(graph->arena, spec->input_count, &inputs));
    PEN_TRY(PEN_NEW(graph->arena, spec->output_count, &outputs));
    PEN_TRY(graph_fill_attributes(graph, spec, attributes));
    PEN_TRY(pen_name_map_free_name(&graph->node_names, spec->name, &node.name));
    for (uint32_t i = 0; i < spec->input_count; i++) {
        PEN_ASSERT(!pen_value_is(spec->inputs[i]) || spec->inputs[i].index < graph->value_count);
        inputs[i] = spec->inputs[i];
    }
    for (uint32_t i = 0; i < spec->output_count; i++) {
        outputs[i] = PEN_VALUE_NONE;
        if (!graph_output_wanted(spec, i)) continue;
        PEN_TRY(graph_add_output_value(graph, spec, node.name, i, &outputs[i]));
    }
    node.attributes = attributes;
    node.inputs = inputs;
    node.outputs = outputs;
    PEN_TRY(pen_name_map_add(&graph->node_names, node.name, graph->node_count));
    graph->nodes[graph->node_count] = node;
    *out_node = (pen_node_id){graph->node_count};
    graph->node_count += 1;
    return graph_inputs_typed(graph, &node) ? pen_graph_infer_node(graph, *out_node) : PEN_OK;
}

pen_status pen_graph_add_simple(pen_graph *graph, const pen_node_spec *spec,
                                pen_value_id *out_output) {
    PEN_ASSERT(spec->output_count == 1);
    pen_node_id node;
    PEN_TRY(pen_graph_add_node(graph, spec, &node));
    *out_output = pen_graph_node(graph, node)->outputs[0];
    return PEN_OK;
}

void pen_graph_set_type(pen_graph *graph, pen_value_id value, const pen_tensor_type *type) {
    graph_value(graph, value)->type = *type;
}

void pen_graph_set_constant(pen_graph *graph, pen_value_id value, const void *data) {
    pen_value *constant = graph_value(graph, value);
    constant->kind = PEN_VALUE_CONSTANT;
    constant->producer = PEN_NODE_NONE;
    constant->data = data;
    constant->data_bytes = pen_tensor_type_bytes(&constant->type);
    constant->stored = PEN_ELEMENT_UNKNOWN;
}

void pen_graph_set_contents(pen_graph *graph, pen_value_id value, pen_element_type stored,
                            const void *data) {
    pen_value *persistent = graph_value(graph, value);
    PEN_ASSERT(persistent->kind == PEN_VALUE_PARAMETER || persistent->kind == PEN_VALUE_STATE);
    persistent->data = data;
    persistent->data_bytes = pen_tensor_type_bytes(&persistent->type);
    persistent->stored = stored == persistent->type.element ? PEN_ELEMENT_UNKNOWN : stored;
}

void pen_graph_set_trainable(pen_graph *graph, pen_value_id value, bool trainable) {
    graph_value(graph, value)->trainable = trainable;
}

void pen_graph_set_layout(pen_graph *graph, pen_value_id value, pen_layout layout) {
    graph_value(graph, value)->layout = layout;
}

void pen_graph_set_replaces(pen_graph *graph, pen_value_id value, pen_value_id persistent) {
    graph_value(graph, value)->replaces = persistent;
}

void pen_graph_set_accumulates(pen_graph *graph, pen_node_id node, bool accumulates) {
    graph_node(graph, node)->accumulates = accumulates;
}

void pen_graph_set_role(pen_graph *graph, pen_node_id node, pen_role role) {
    graph_node(graph, node)->role = role;
}

void pen_graph_set_input(pen_graph *graph, pen_node_id node, uint32_t input, pen_value_id value) {
    pen_node *subject = graph_node(graph, node);
    PEN_ASSERT(input < subject->input_count);
    // written through the arena's own array: pen_node shows it as const to everybody else
    pen_value_id *inputs;
    memcpy(&inputs, &subject->inputs, sizeof inputs);
    inputs[input] = value;
}

// Attribute `name` of the node's schema, which is of that kind, as one that is given.
static pen_attribute_value *graph_attribute(pen_graph *graph, pen_node_id node, const char *name,
                                            pen_attribute_kind kind) {
    const pen_node *subject = graph_node(graph, node);
    pen_attribute_value *attributes;
    memcpy(&attributes, &subject->attributes, sizeof attributes); // as in pen_graph_set_input
    uint32_t i = 0;
    while (i < subject->op->attribute_count && strcmp(subject->op->attributes[i].name, name) != 0) {
        i++;
    }
    PEN_ASSERT(i < subject->op->attribute_count); // an attribute of the schema
    PEN_ASSERT(subject->op->attributes[i].kind == kind);
    attributes[i].present = true;
    return &attributes[i];
}

void pen_graph_set_int(pen_graph *graph, pen_node_id node, const char *name, int64_t integer) {
    graph_attribute(graph, node, name, PEN_ATTRIBUTE_INT)->integer = integer;
}

void pen_graph_settle_type(pen_graph *graph, pen_node_id node) {
    pen_node *subject = graph_node(graph, node);
    const uint32_t input = subject->op->type_input;
    if (input == 0 || subject->input_count <= input) return;
    const pen_element_type element = pen_value_type(graph, subject->outputs[0])->element;
    graph_attribute(graph, node, "to", PEN_ATTRIBUTE_TEXT)->text = pen_element_name(element);
    subject->input_count = input;
}

void pen_graph_drop_output(pen_graph *graph, pen_node_id node, uint32_t output) {
    pen_node *subject = graph_node(graph, node);
    PEN_ASSERT(output >= subject->op->output_min && output < subject->output_count);
    pen_value_id *outputs;
    memcpy(&outputs, &subject->outputs, sizeof outputs); // as in pen_graph_set_input
    outputs[output] = PEN_VALUE_NONE;
    while (!pen_value_is(outputs[subject->output_count - 1])) {
        subject->output_count -= 1; // output 0 is never optional
    }
}

uint32_t pen_graph_input_count(const pen_graph *graph) {
    return graph->input_count;
}

pen_value_id pen_graph_input(const pen_graph *graph, uint32_t index) {
    PEN_ASSERT(index < graph->input_count);
    return graph->inputs[index];
}

uint32_t pen_graph_output_count(const pen_graph *graph) {
    return graph->output_count;
}

pen_value_id pen_graph_output(const pen_graph *graph, uint32_t index) {
    PEN_ASSERT(index < graph->output_count);
    return graph->outputs[index];
}

pen_status pen_graph_add_output(pen_graph *graph, pen_value_id value) {
    void *outputs = graph->outputs;
    PEN_TRY(graph_reserve(graph, &outputs, graph->output_count, &graph->output_capacity,
                          sizeof *graph->outputs));
    graph->outputs = outputs;
    graph->outputs[graph->output_count++] = value;
    return PEN_OK;
}

// Unknown sizes are negative dimensions, -1 for the first symbol. Equal names are one symbol, since
// they stand for one size.
pen_status pen_graph_add_symbol(pen_graph *graph, const char *name, int64_t *out_dimension) {
    for (uint32_t i = 0; i < graph->symbol_count; i++) {
        if (strcmp(graph->symbols[i], name) != 0) continue;
        *out_dimension = -(1 + (int64_t)i);
        return PEN_OK;
    }
    if (graph->symbol_count == PEN_SYMBOL_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the graph has more than %d named dimensions",
                         PEN_SYMBOL_COUNT_LIMIT);
    }
    void *symbols = graph->symbols;
    PEN_TRY(graph_reserve(graph, &symbols, graph->symbol_count, &graph->symbol_capacity,
                          sizeof *graph->symbols));
    graph->symbols = symbols;
    PEN_TRY(pen_arena_copy_text(graph->arena, name, strlen(name),
                                &graph->symbols[graph->symbol_count]));
    graph->symbol_count += 1;
    *out_dimension = -(int64_t)graph->symbol_count;
    return PEN_OK;
}

uint32_t pen_graph_symbol_count(const pen_graph *graph) {
    return graph->symbol_count;
}

const char *pen_graph_symbol_name(const pen_graph *graph, int64_t dimension) {
    if (dimension >= 0 || -(dimension + 1) >= (int64_t)graph->symbol_count) return NULL;
    return graph->symbols[-(dimension + 1)];
}
