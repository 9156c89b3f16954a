// Sequences and optionals, done away with while the graph is built: a name stands for the list of
// its items, and what takes one out of the list stands for that item.

#include <string.h>

#include "base/limits.h"
#include "graph/import/onnx/onnx_importer.h"
#include "graph/import/onnx/onnx_value_reader.h"

typedef struct sequence_op {
    const char *op_type;
    pen_status (*import)(pen_onnx_importer *import, const pen_onnx_node *node);
} sequence_op;

// ---- operands

static bool sequence_has(const pen_onnx_node *node, uint32_t input) {
    return input < node->input_count && node->inputs[input][0] != '\0';
}

static pen_status sequence_read(const pen_onnx_importer *import, const pen_onnx_node *node,
                                uint32_t input, const pen_onnx_name **out_name) {
    PEN_TRY(pen_onnx_importer_read(import, node, input, out_name));
    if ((*out_name)->is_sequence) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "input '%.100s' is no sequence", node->inputs[input]);
}

static pen_status sequence_read_tensor(const pen_onnx_importer *import, const pen_onnx_node *node,
                                       uint32_t input, pen_value_id *out_value) {
    const pen_onnx_name *name;
    PEN_TRY(pen_onnx_importer_read(import, node, input, &name));
    if (name->is_sequence || name->is_empty) {
        return pen_error(PEN_INVALID_INPUT, "input '%.100s' is no tensor", node->inputs[input]);
    }
    *out_value = name->value;
    return PEN_OK;
}

// A list of constants that input `input` holds.
static pen_status sequence_read_ints(pen_onnx_importer *import, const pen_onnx_node *node,
                                     uint32_t input, uint32_t *out_count,
                                     const int64_t **out_integers) {
    const pen_onnx_name *name;
    PEN_TRY(pen_onnx_importer_read(import, node, input, &name));
    const pen_value_id value = pen_value_is(name->constant) ? name->constant : name->value;
    if (name->is_sequence || name->is_empty) {
        return pen_error(PEN_INVALID_INPUT, "input '%.100s' is no tensor", node->inputs[input]);
    }
    PEN_TRY(pen_onnx_importer_fold(import, value));
    return pen_value_read_ints(import->graph, value, out_count, out_integers);
}

// Position of an item, of `count`; negative ones count from the end.
static pen_status sequence_position(pen_onnx_importer *import, const pen_onnx_node *node,
                                    uint32_t input, uint32_t count, uint32_t *out_position) {
    uint32_t read;
    const int64_t *integers;
    PEN_TRY(sequence_read_ints(import, node, input, &read, &integers));
    if (read != 1 || integers[0] < -(int64_t)count || integers[0] >= (int64_t)count) {
        return pen_error(PEN_INVALID_INPUT, "position %lld of a sequence of %u",
                         read > 0 ? (long long)integers[0] : 0, count);
    }
    *out_position = (uint32_t)(integers[0] < 0 ? integers[0] + count : integers[0]);
    return PEN_OK;
}

static pen_status sequence_new(const pen_onnx_importer *import, uint32_t count,
                               pen_value_id **out_items, pen_onnx_name *out_name) {
    if (count > PEN_NODE_ARITY_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "a sequence of %u items, at most %d are possible", count,
                         PEN_NODE_ARITY_LIMIT);
    }
    PEN_TRY(PEN_NEW(import->arena, count, out_items));
    *out_name = (pen_onnx_name){.made = true,
                                .value = PEN_VALUE_NONE,
                                .constant = PEN_VALUE_NONE,
                                .is_sequence = true,
                                .item_count = count,
                                .items = *out_items};
    return PEN_OK;
}

static pen_status sequence_bind(pen_onnx_importer *import, const pen_onnx_node *node,
                                const pen_onnx_name *meaning) {
    if (node->output_count != 1) {
        return pen_error(PEN_INVALID_INPUT, "it has %u outputs, expected one", node->output_count);
    }
    return pen_onnx_importer_bind(import, node->outputs[0], meaning);
}

static pen_status sequence_bind_value(pen_onnx_importer *import, const pen_onnx_node *node,
                                      pen_value_id value) {
    const pen_onnx_name meaning = {.made = true, .value = value, .constant = PEN_VALUE_NONE};
    return sequence_bind(import, node, &meaning);
}

static int64_t sequence_attribute(const pen_onnx_node *node, const char *name, int64_t fallback) {
    const pen_onnx_attribute *given = pen_onnx_attribute_find(node, name);
    return given != NULL && given->type == PEN_ONNX_INT ? given->integer : fallback;
}

// ---- lists of items

static pen_status sequence_empty(pen_onnx_importer *import, const pen_onnx_node *node) {
    pen_value_id *items;
    pen_onnx_name made;
    PEN_TRY(sequence_new(import, 0, &items, &made));
    return sequence_bind(import, node, &made);
}

static pen_status sequence_construct(pen_onnx_importer *import, const pen_onnx_node *node) {
    pen_value_id *items;
    pen_onnx_name made;
    PEN_TRY(sequence_new(import, node->input_count, &items, &made));
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(sequence_read_tensor(import, node, i, &items[i]));
    }
    return sequence_bind(import, node, &made);
}

// Sequences exist only while the model is read: they are lists of values, and no op is made here.
static pen_status sequence_insert(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *from;
    pen_value_id *items, item;
    pen_onnx_name made;
    uint32_t position;
    PEN_TRY(sequence_read(import, node, 0, &from));
    PEN_TRY(sequence_read_tensor(import, node, 1, &item));
    position = from->item_count;
    if (sequence_has(node, 2)) {
        uint32_t read;
        const int64_t *integers;
        PEN_TRY(sequence_read_ints(import, node, 2, &read, &integers));
        const int64_t count = from->item_count;
        if (read != 1 || integers[0] < -count || integers[0] > count) {
            return pen_error(PEN_INVALID_INPUT, "position %lld in a sequence of %lld",
                             read > 0 ? (long long)integers[0] : 0, (long long)count);
        }
        position = (uint32_t)(integers[0] < 0 ? integers[0] + count : integers[0]);
    }
    PEN_TRY(sequence_new(import, from->item_count + 1, &items, &made));
    for (uint32_t i = 0; i < made.item_count; i++) {
        items[i] = i == position ? item : from->items[i < position ? i : i - 1];
    }
    return sequence_bind(import, node, &made);
}

static pen_status sequence_erase(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *from;
    pen_value_id *items;
    pen_onnx_name made;
    uint32_t position;
    PEN_TRY(sequence_read(import, node, 0, &from));
    if (from->item_count == 0) return pen_error(PEN_INVALID_INPUT, "the sequence is empty");
    position = from->item_count - 1;
    if (sequence_has(node, 1)) {
        PEN_TRY(sequence_position(import, node, 1, from->item_count, &position));
    }
    PEN_TRY(sequence_new(import, from->item_count - 1, &items, &made));
    for (uint32_t i = 0; i < made.item_count; i++) {
        items[i] = from->items[i < position ? i : i + 1];
    }
    return sequence_bind(import, node, &made);
}

static pen_status sequence_at(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *from;
    uint32_t position;
    PEN_TRY(sequence_read(import, node, 0, &from));
    PEN_TRY(sequence_position(import, node, 1, from->item_count, &position));
    return sequence_bind_value(import, node, from->items[position]);
}

static pen_status sequence_scalar(pen_onnx_importer *import, const pen_onnx_node *node,
                                  pen_element_type element, int64_t number) {
    const pen_tensor_type type = pen_tensor_type_make(element, 0, NULL);
    const char *name;
    int64_t *data;
    pen_value_id value;
    PEN_TRY(pen_onnx_importer_name(import, node, &name));
    PEN_TRY(PEN_NEW(import->arena, 1, &data));
    *data = number; // a bool is its first byte
    PEN_TRY(pen_graph_constant(import->graph, name, &type, data, &value));
    return sequence_bind_value(import, node, value);
}

static pen_status sequence_length(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *from;
    PEN_TRY(sequence_read(import, node, 0, &from));
    return sequence_scalar(import, node, PEN_INT64, from->item_count);
}

// ---- to and from tensors

static pen_status sequence_constant(pen_onnx_importer *import, const pen_onnx_node *node,
                                    const char *suffix, uint32_t count, const int64_t *integers,
                                    pen_value_id *out_value) {
    const char *name;
    PEN_TRY(pen_onnx_importer_name(import, node, &name));
    PEN_TRY(pen_arena_format(import->arena, &name, "%s/%s", name, suffix));
    return pen_graph_constant_ints(import->graph, name, count, integers, out_value);
}

// The items become operands of one concat, with an axis added before if asked for.
static pen_status sequence_concat(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *from;
    const int64_t axis = sequence_attribute(node, "axis", 0);
    pen_value_id *parts, axes, value;
    PEN_TRY(sequence_read(import, node, 0, &from));
    if (from->item_count == 0) return pen_error(PEN_INVALID_INPUT, "the sequence is empty");
    PEN_TRY(PEN_NEW(import->arena, from->item_count, &parts));
    PEN_TRY(sequence_constant(import, node, "axis", 1, &axis, &axes));
    for (uint32_t i = 0; i < from->item_count; i++) {
        const pen_onnx_extra extra = {"unsqueeze", "part", PEN_INPUTS(from->items[i], axes),
                                      PEN_NO_ATTRIBUTES};
        parts[i] = from->items[i];
        if (sequence_attribute(node, "new_axis", 0) != 0) {
            PEN_TRY(pen_onnx_importer_emit(import, node, &extra, &parts[i]));
        }
    }
    const pen_onnx_extra concat = {
        "concat", "concat", {parts, from->item_count}, PEN_WITH(pen_attribute_int("axis", axis))};
    PEN_TRY(pen_onnx_importer_emit(import, node, &concat, &value));
    return sequence_bind_value(import, node, value);
}

// How many elements the split axis has: as is known, or as the file says. If that is wrong, the
// split that is made of it will not fit.
static pen_status split_size(pen_onnx_importer *import, const pen_onnx_node *node, pen_value_id x,
                             int64_t axis, int64_t *out_dim) {
    pen_onnx_value said;
    uint32_t at;
    const pen_tensor_type *type = pen_value_type(import->graph, x);
    pen_shape shape = type->shape;
    bool is_known = type->element != PEN_ELEMENT_UNKNOWN;
    if (!is_known) {
        PEN_TRY(pen_onnx_value_find(import->model, node->inputs[0], import->arena, &said));
        shape = said.shape;
        is_known = said.has_shape;
    }
    if (!is_known) {
        return pen_error(PEN_UNSUPPORTED, "the shape of its input is not known when the model is "
                                          "read");
    }
    PEN_TRY(pen_shape_axis(shape.rank, axis, &at));
    *out_dim = shape.dims[at];
    if (*out_dim >= 0) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "the size of axis %u is not known when the model is read",
                     at);
}

// The sizes of the parts: given one by one, all equal but the last, or 1.
static pen_status split_sizes(pen_onnx_importer *import, const pen_onnx_node *node, pen_value_id x,
                              uint32_t *out_count, const int64_t **out_sizes) {
    uint32_t read = 0;
    const int64_t *given = NULL;
    int64_t each = 1, dim, *sizes;
    if (sequence_has(node, 1)) {
        const pen_onnx_name *name;
        PEN_TRY(pen_onnx_importer_read(import, node, 1, &name));
        PEN_TRY(sequence_read_ints(import, node, 1, &read, &given));
        const pen_value_id value = pen_value_is(name->constant) ? name->constant : name->value;
        if (pen_value_type(import->graph, value)->shape.rank == 1) {
            *out_count = read;
            *out_sizes = given;
            return PEN_OK;
        }
        each = given[0];
    }
    PEN_TRY(split_size(import, node, x, sequence_attribute(node, "axis", 0), &dim));
    if (each < 1 || (dim + each - 1) / each > PEN_NODE_ARITY_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "%lld elements in parts of %lld; at most %d parts are "
                         "possible",
                         (long long)dim, (long long)each, PEN_NODE_ARITY_LIMIT);
    }
    *out_count = (uint32_t)((dim + each - 1) / each);
    PEN_TRY(PEN_NEW(import->arena, *out_count, &sizes));
    for (uint32_t i = 0; i < *out_count; i++) {
        sizes[i] = (int64_t)i * each + each <= dim ? each : dim - (int64_t)i * each;
    }
    *out_sizes = sizes;
    return PEN_OK;
}

// A split with as many outputs as there will be items, which is why the sizes must be known.
static pen_status sequence_split(pen_onnx_importer *import, const pen_onnx_node *node) {
    pen_value_id x, sizes_value, axes, *items;
    pen_onnx_name made;
    uint32_t count;
    const int64_t *sizes, axis = sequence_attribute(node, "axis", 0);
    PEN_TRY(sequence_read_tensor(import, node, 0, &x));
    PEN_TRY(split_sizes(import, node, x, &count, &sizes));
    if (count == 0) return pen_error(PEN_INVALID_INPUT, "it splits into no parts");
    PEN_TRY(sequence_new(import, count, &items, &made));
    PEN_TRY(sequence_constant(import, node, "sizes", count, sizes, &sizes_value));
    const char *name;
    PEN_TRY(pen_onnx_importer_name(import, node, &name));
    pen_node_spec spec = pen_node_spec_make("split", name);
    spec.source = (pen_source){.file = import->path, .position = node->position};
    spec.output_count = count;
    pen_node_spec_fill(&spec, PEN_INPUTS(x, sizes_value),
                       PEN_WITH(pen_attribute_int("axis", axis)));
    pen_node_id split;
    PEN_TRY(pen_graph_add_node(import->graph, &spec, &split));
    const bool squeezes = !sequence_has(node, 1) && sequence_attribute(node, "keepdims", 1) == 0;
    PEN_TRY(sequence_constant(import, node, "axis", 1, &axis, &axes));
    for (uint32_t i = 0; i < count; i++) {
        items[i] = pen_graph_node(import->graph, split)->outputs[i];
        const pen_onnx_extra extra = {"squeeze", "item", PEN_INPUTS(items[i], axes),
                                      PEN_NO_ATTRIBUTES};
        if (squeezes) PEN_TRY(pen_onnx_importer_emit(import, node, &extra, &items[i]));
    }
    return sequence_bind(import, node, &made);
}

// ---- the body applied to each item

// The body is written out once for each item, as rounds of a loop are.
static pen_status sequence_map(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_attribute *given = pen_onnx_attribute_find(node, "body");
    const pen_onnx_name *first, *other;
    pen_onnx_model body;
    pen_onnx_importer frame;
    pen_onnx_name *arguments, *results, *made;
    pen_value_id **items;
    const char *prefix;
    PEN_TRY(sequence_read(import, node, 0, &first));
    PEN_TRY(pen_onnx_importer_name(import, node, &prefix));
    if (given == NULL || given->type != PEN_ONNX_GRAPH) {
        return pen_error(PEN_INVALID_INPUT, "there is no graph 'body'");
    }
    PEN_TRY(pen_onnx_model_read_body(import->model, given, import->arena, &body));
    if (body.input_count != node->input_count || body.output_count != node->output_count) {
        return pen_error(PEN_INVALID_INPUT, "its body has %u inputs and %u outputs, not %u and %u",
                         body.input_count, body.output_count, node->input_count,
                         node->output_count);
    }
    PEN_TRY(PEN_NEW(import->arena, body.input_count, &arguments));
    PEN_TRY(PEN_NEW(import->arena, body.output_count, &results));
    PEN_TRY(PEN_NEW(import->arena, body.output_count, &made));
    PEN_TRY(PEN_NEW(import->arena, body.output_count, &items));
    for (uint32_t o = 0; o < body.output_count; o++) {
        PEN_TRY(sequence_new(import, first->item_count, &items[o], &made[o]));
    }
    PEN_TRY(pen_onnx_importer_open_body(import, &body, prefix, &frame));
    for (uint32_t round = 0; round < first->item_count; round++) {
        const char *name;
        PEN_TRY(pen_arena_format(import->arena, &name, "%s/%u", prefix, round));
        for (uint32_t i = 0; i < node->input_count; i++) {
            PEN_TRY(pen_onnx_importer_read(import, node, i, &other));
            arguments[i] = *other;
            if (!other->is_sequence) continue;
            if (other->item_count != first->item_count) {
                return pen_error(PEN_INVALID_INPUT, "sequences of %u and %u items",
                                 first->item_count, other->item_count);
            }
            arguments[i] = (pen_onnx_name){
                .made = true, .constant = PEN_VALUE_NONE, .value = other->items[round]};
        }
        PEN_TRY(pen_onnx_importer_run_body(&frame, name, body.input_count, arguments, results));
        for (uint32_t o = 0; o < body.output_count; o++) {
            if (results[o].is_sequence || results[o].is_empty) {
                return pen_error(PEN_UNSUPPORTED, "output %u of its body is no tensor", o);
            }
            items[o][round] = results[o].value;
        }
    }
    for (uint32_t o = 0; o < body.output_count; o++) {
        PEN_TRY(pen_onnx_importer_bind(import, node->outputs[o], &made[o]));
    }
    return PEN_OK;
}

// ---- optionals

static pen_status optional_make(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *given;
    if (!sequence_has(node, 0)) {
        const pen_onnx_name empty = {
            .made = true, .value = PEN_VALUE_NONE, .constant = PEN_VALUE_NONE, .is_empty = true};
        return sequence_bind(import, node, &empty);
    }
    PEN_TRY(pen_onnx_importer_read(import, node, 0, &given));
    return sequence_bind(import, node, given);
}

static pen_status optional_has(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *given;
    PEN_TRY(pen_onnx_importer_read(import, node, 0, &given));
    return sequence_scalar(import, node, PEN_BOOL, !given->is_empty);
}

static pen_status optional_get(pen_onnx_importer *import, const pen_onnx_node *node) {
    const pen_onnx_name *given;
    PEN_TRY(pen_onnx_importer_read(import, node, 0, &given));
    if (given->is_empty) return pen_error(PEN_INVALID_INPUT, "the optional is empty");
    return sequence_bind(import, node, given);
}

static const sequence_op sequence_ops[] = {
    {"ConcatFromSequence", sequence_concat},
    {"Optional", optional_make},
    {"OptionalGetElement", optional_get},
    {"OptionalHasElement", optional_has},
    {"SequenceAt", sequence_at},
    {"SequenceConstruct", sequence_construct},
    {"SequenceEmpty", sequence_empty},
    {"SequenceErase", sequence_erase},
    {"SequenceInsert", sequence_insert},
    {"SequenceLength", sequence_length},
    {"SequenceMap", sequence_map},
    {"SplitToSequence", sequence_split},
};

static const sequence_op *sequence_op_find(const pen_onnx_node *node) {
    for (size_t i = 0; i < sizeof sequence_ops / sizeof *sequence_ops; i++) {
        if (node->domain[0] == '\0' && strcmp(sequence_ops[i].op_type, node->op_type) == 0) {
            return &sequence_ops[i];
        }
    }
    return NULL;
}

bool pen_onnx_is_sequence_op(const pen_onnx_node *node) {
    return sequence_op_find(node) != NULL;
}

pen_status pen_onnx_sequence_import(pen_onnx_importer *import, const pen_onnx_node *node) {
    const sequence_op *op = sequence_op_find(node);
    PEN_ASSERT(op != NULL);
    return op->import(import, node);
}
