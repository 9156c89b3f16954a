#include "graph/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

typedef struct verifier {
    const pen_graph *graph;
    const pen_verify_options *options;
    pen_arena *scratch;
} verifier;

static bool verify_node_exists(const verifier *v, pen_node_id node) {
    return node.index < pen_graph_node_count(v->graph);
}

static bool verify_value_exists(const verifier *v, pen_value_id value) {
    return value.index < pen_graph_value_count(v->graph);
}

static pen_status verify_at(pen_status status, const pen_source *source) {
    return source->file == NULL
               ? status
               : pen_status_at_position(status, source->file, source->line, source->column);
}

#define VERIFY_NODE_ERROR(node, ...)                                                               \
    verify_at(pen_error(PEN_INTERNAL, __VA_ARGS__), &(node)->source)

static int verify_compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorts `names` and looks for neighbours that are equal.
static pen_status verify_unique(const char **names, uint32_t count, const char *what) {
    qsort(names, count, sizeof *names, verify_compare_names);
    for (uint32_t i = 0; i < count; i++) {
        if (names[i][0] == '\0') return pen_error(PEN_INTERNAL, "a %s has no name", what);
        if (i > 0 && strcmp(names[i - 1], names[i]) == 0) {
            return pen_error(PEN_INTERNAL, "two %ss are called '%s'", what, names[i]);
        }
    }
    return PEN_OK;
}

static pen_status verify_names(const verifier *v) {
    const uint32_t node_count = pen_graph_node_count(v->graph);
    const uint32_t value_count = pen_graph_value_count(v->graph);
    const char **names;
    PEN_TRY(PEN_NEW(v->scratch, pen_max_u64(node_count, value_count), &names));
    for (uint32_t i = 0; i < node_count; i++) {
        names[i] = pen_graph_node(v->graph, (pen_node_id){i})->name;
        if (names[i] == NULL) return pen_error(PEN_INTERNAL, "node %u has no name", i);
    }
    PEN_TRY(verify_unique(names, node_count, "node"));
    for (uint32_t i = 0; i < value_count; i++) {
        names[i] = pen_graph_value(v->graph, (pen_value_id){i})->name;
        if (names[i] == NULL) return pen_error(PEN_INTERNAL, "value %u has no name", i);
    }
    return verify_unique(names, value_count, "value");
}

static pen_status verify_type(const pen_value *value) {
    if (value->type.element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_INTERNAL, "value '%s' has no type", value->name);
    }
    return pen_status_add_context(pen_tensor_type_check(&value->type), "as the type of value '%s'",
                                  value->name);
}

// Whether node outputs and value producers point at each other.
static bool verify_is_output(const verifier *v, pen_value_id id) {
    const pen_value *value = pen_graph_value(v->graph, id);
    if (!verify_node_exists(v, value->producer)) return false;
    const pen_node *node = pen_graph_node(v->graph, value->producer);
    return value->producer_output < node->output_count &&
           pen_value_same(node->outputs[value->producer_output], id);
}

// What must be so for a value by itself: its producer names it, and a constant has the bytes that
// its type needs.
static pen_status verify_value(const verifier *v, pen_value_id id) {
    const pen_value *value = pen_graph_value(v->graph, id);
    if (v->options->types) PEN_TRY(verify_type(value));
    if (value->kind == PEN_VALUE_COMPUTED) {
        if (!verify_is_output(v, id)) {
            return pen_error(PEN_INTERNAL, "value '%s' is not an output of its producer",
                             value->name);
        }
    } else if (pen_node_is(value->producer)) {
        return pen_error(PEN_INTERNAL, "%s '%s' has a producer", pen_value_kind_name(value->kind),
                         value->name);
    }
    if (value->kind == PEN_VALUE_CONSTANT && value->type.element != PEN_ELEMENT_UNKNOWN) {
        const uint64_t bytes = pen_tensor_type_bytes(&value->type);
        const bool lies_so = value->stored == PEN_ELEMENT_UNKNOWN;
        if (!lies_so || value->data_bytes != bytes || (bytes > 0 && value->data == NULL)) {
            return pen_error(PEN_INTERNAL, "constant '%s' has %llu bytes, its type needs %llu",
                             value->name, (unsigned long long)value->data_bytes,
                             (unsigned long long)bytes);
        }
    }
    return PEN_OK;
}

static pen_status verify_counts(const pen_node *node) {
    const pen_op *op = node->op;
    if (node->input_count < op->input_min || node->input_count > op->input_max) {
        return VERIFY_NODE_ERROR(node, "%s '%s' has %u inputs", op->name, node->name,
                                 node->input_count);
    }
    if (node->output_count < op->output_min || node->output_count > op->output_max) {
        return VERIFY_NODE_ERROR(node, "%s '%s' has %u outputs", op->name, node->name,
                                 node->output_count);
    }
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        if (!op->attributes[i].required || node->attributes[i].present) continue;
        return VERIFY_NODE_ERROR(node, "%s '%s' lacks its attribute '%s'", op->name, node->name,
                                 op->attributes[i].name);
    }
    return PEN_OK;
}

// Nothing reads a value of a later role; transfers carry values of every role.
static pen_status verify_role_read(const verifier *v, const pen_node *reader,
                                   const pen_value *value) {
    const pen_node *producer = pen_graph_node(v->graph, value->producer);
    if (reader->role == PEN_ROLE_TRANSFER || producer->role == PEN_ROLE_TRANSFER) return PEN_OK;
    if (producer->role <= reader->role) return PEN_OK;
    return VERIFY_NODE_ERROR(reader, "%s '%s' is %s, but reads '%s' of '%s', which is %s",
                             reader->op->name, reader->name, pen_role_name(reader->role),
                             value->name, producer->name, pen_role_name(producer->role));
}

// Operands exist, come from earlier nodes, and are constants where the operator's rule was read
// from them.
static pen_status verify_input(const verifier *v, pen_node_id id, uint32_t input) {
    const pen_node *node = pen_graph_node(v->graph, id);
    const pen_value_id operand = node->inputs[input];
    if (!pen_value_is(operand)) {
        if (input >= node->op->input_min) return PEN_OK;
        return VERIFY_NODE_ERROR(node, "%s '%s' lacks its input %u", node->op->name, node->name,
                                 input);
    }
    if (!verify_value_exists(v, operand)) {
        return VERIFY_NODE_ERROR(node, "%s '%s' reads value %u, which is not there", node->op->name,
                                 node->name, operand.index);
    }
    const pen_value *value = pen_graph_value(v->graph, operand);
    const bool steers = input < 64 && (node->op->constant_inputs >> input & 1) != 0;
    if (v->options->types && steers && value->kind != PEN_VALUE_CONSTANT) {
        return VERIFY_NODE_ERROR(node, "%s '%s': input %u, '%s', is not a constant", node->op->name,
                                 node->name, input, value->name);
    }
    if (value->kind != PEN_VALUE_COMPUTED) return PEN_OK;
    if (value->producer.index >= id.index) {
        return VERIFY_NODE_ERROR(node, "%s '%s' reads '%s', which '%s' makes later", node->op->name,
                                 node->name, value->name, pen_node_name(v->graph, value->producer));
    }
    return verify_role_read(v, node, value);
}

// A node and its outputs name each other. A folded output is a constant, which has no producer any
// more.
static pen_status verify_outputs(const verifier *v, pen_node_id id) {
    const pen_node *node = pen_graph_node(v->graph, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const pen_value_id output = node->outputs[i];
        if (!pen_value_is(output)) {
            if (i >= node->op->output_min) continue;
            return VERIFY_NODE_ERROR(node, "%s '%s' lacks its output %u", node->op->name,
                                     node->name, i);
        }
        if (!verify_value_exists(v, output)) {
            return VERIFY_NODE_ERROR(node, "%s '%s' makes value %u, which is not there",
                                     node->op->name, node->name, output.index);
        }
        const pen_value *value = pen_graph_value(v->graph, output);
        const bool folded = value->kind == PEN_VALUE_CONSTANT;
        const bool owned = value->kind == PEN_VALUE_COMPUTED && value->producer.index == id.index &&
                           value->producer_output == i;
        if (!folded && !owned) {
            return VERIFY_NODE_ERROR(node, "%s '%s' does not own its output '%s'", node->op->name,
                                     node->name, value->name);
        }
    }
    return PEN_OK;
}

static pen_status verify_gradient_of(const verifier *v, pen_node_id id) {
    const pen_node *node = pen_graph_node(v->graph, id);
    if (!pen_node_is(node->gradient_of)) return PEN_OK;
    if (!pen_role_is_backward(node->role)) {
        return VERIFY_NODE_ERROR(node, "%s '%s' is %s, but is the gradient of a node",
                                 node->op->name, node->name, pen_role_name(node->role));
    }
    const bool earlier = node->gradient_of.index < id.index;
    if (!earlier || pen_graph_node(v->graph, node->gradient_of)->role != PEN_ROLE_FORWARD) {
        return VERIFY_NODE_ERROR(node, "%s '%s' is the gradient of no earlier forward node",
                                 node->op->name, node->name);
    }
    return PEN_OK;
}

static pen_status verify_node(const verifier *v, pen_node_id id) {
    const pen_node *node = pen_graph_node(v->graph, id);
    if (node->op == NULL) {
        return VERIFY_NODE_ERROR(node, "node '%s' has no operator", node->name);
    }
    PEN_TRY(verify_counts(node));
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(verify_input(v, id, i));
    }
    PEN_TRY(verify_outputs(v, id));
    return verify_gradient_of(v, id);
}

// `replacement[p]` is the value that replaces persistent value p, or NONE.
static pen_status verify_replacement(const verifier *v, pen_value_id id,
                                     pen_value_id *replacement) {
    const pen_value *value = pen_graph_value(v->graph, id);
    if (!pen_value_is(value->replaces)) return PEN_OK;
    if (!verify_value_exists(v, value->replaces)) {
        return pen_error(PEN_INTERNAL, "value '%s' replaces value %u, which is not there",
                         value->name, value->replaces.index);
    }
    const pen_value *old = pen_graph_value(v->graph, value->replaces);
    if (value->kind != PEN_VALUE_COMPUTED ||
        (old->kind != PEN_VALUE_PARAMETER && old->kind != PEN_VALUE_STATE)) {
        return pen_error(PEN_INTERNAL,
                         "%s '%s' replaces %s '%s'; only computed values replace parameters and "
                         "states",
                         pen_value_kind_name(value->kind), value->name,
                         pen_value_kind_name(old->kind), old->name);
    }
    if (!pen_tensor_type_equal(&value->type, &old->type)) {
        char new_text[PEN_SHAPE_TEXT_BYTES], old_text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INTERNAL, "value '%s' is %s, but replaces '%s', which is %s",
                         value->name, pen_tensor_type_format(&value->type, new_text), old->name,
                         pen_tensor_type_format(&old->type, old_text));
    }
    const pen_node *maker = pen_graph_node(v->graph, value->producer);
    if (maker->op->is_view) { // nothing would be written where the old value lies
        return pen_error(PEN_INTERNAL, "'%s' replaces '%s', but %s only looks at its input",
                         value->name, old->name, maker->op->name);
    }
    if (maker->role == PEN_ROLE_UPDATE && old->kind == PEN_VALUE_PARAMETER &&
        !maker->op->is_update && maker->op != PEN_OP(copy)) { // it would escape the guards
        return pen_error(PEN_INTERNAL, "'%s' replaces the parameter '%s', but %s is no update",
                         value->name, old->name, maker->op->name);
    }
    pen_value_id *slot = &replacement[value->replaces.index];
    if (pen_value_is(*slot)) {
        return pen_error(PEN_INTERNAL, "values '%s' and '%s' both replace '%s'",
                         pen_value_name(v->graph, *slot), value->name, old->name);
    }
    *slot = id;
    return PEN_OK;
}

// Every reader of a persistent value comes before the node that replaces it, or is that node.
static pen_status verify_replacements(const verifier *v) {
    const uint32_t value_count = pen_graph_value_count(v->graph);
    pen_value_id *replacement;
    PEN_TRY(PEN_NEW(v->scratch, value_count, &replacement));
    for (uint32_t i = 0; i < value_count; i++) {
        replacement[i] = PEN_VALUE_NONE;
    }
    for (uint32_t i = 0; i < value_count; i++) {
        PEN_TRY(verify_replacement(v, (pen_value_id){i}, replacement));
    }
    for (uint32_t n = 0; n < pen_graph_node_count(v->graph); n++) {
        const pen_node *node = pen_graph_node(v->graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value_id after = replacement[node->inputs[i].index];
            if (!pen_value_is(after)) continue;
            const pen_node_id producer = pen_graph_value(v->graph, after)->producer;
            if (n <= producer.index) continue;
            return VERIFY_NODE_ERROR(
                node, "%s '%s' reads '%s' after '%s' has replaced it", node->op->name, node->name,
                pen_value_name(v->graph, node->inputs[i]), pen_node_name(v->graph, producer));
        }
    }
    return PEN_OK;
}

static pen_status verify_graph(const verifier *v) {
    PEN_TRY(verify_names(v));
    for (uint32_t i = 0; i < pen_graph_value_count(v->graph); i++) {
        PEN_TRY(verify_value(v, (pen_value_id){i}));
    }
    for (uint32_t i = 0; i < pen_graph_node_count(v->graph); i++) {
        PEN_TRY(verify_node(v, (pen_node_id){i}));
    }
    for (uint32_t i = 0; i < pen_graph_output_count(v->graph); i++) {
        if (verify_value_exists(v, pen_graph_output(v->graph, i))) continue;
        return pen_error(PEN_INTERNAL, "output %u of the graph is not there", i);
    }
    return verify_replacements(v);
}

pen_status pen_graph_verify(const pen_graph *graph, const pen_verify_options *options) {
    verifier v = {.graph = graph, .options = options};
    PEN_TRY(pen_arena_create(&v.scratch));
    const pen_status status = verify_graph(&v);
    pen_arena_destroy(v.scratch);
    return pen_status_add_context(status, "while verifying graph '%s'", pen_graph_name(graph));
}
