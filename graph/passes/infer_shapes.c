#include "graph/passes/infer_shapes.h"

#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"

#define INFER_FOLD_FLOPS_LIMIT (UINT64_C(1) << 33) // of one node: a few bytes may ask for any work

// Replaces symbolic dimensions of the inputs by numbers.
static pen_status infer_bind(pen_graph *graph, const pen_infer_options *options) {
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        const pen_value_id input = pen_graph_input(graph, i);
        pen_tensor_type type = *pen_value_type(graph, input);
        for (uint32_t d = 0; d < type.shape.rank; d++) {
            const char *symbol = pen_graph_symbol_name(graph, type.shape.dims[d]);
            if (symbol == NULL) continue;
            uint32_t b = 0;
            while (b < options->binding_count && strcmp(options->bindings[b].symbol, symbol) != 0) {
                b++;
            }
            if (b == options->binding_count) {
                return pen_error(PEN_INVALID_INPUT,
                                 "dimension %u of input '%s' is '%s', for which no size is given",
                                 d, pen_value_name(graph, input), symbol);
            }
            type.shape.dims[d] = options->bindings[b].size;
        }
        PEN_TRY(pen_status_add_context(pen_tensor_type_check(&type), "as input '%s'",
                                       pen_value_name(graph, input)));
        pen_graph_set_type(graph, input, &type);
    }
    return PEN_OK;
}

// Whether the node's result is known now: constants in, or only a shape asked for.
static bool infer_is_constant(const pen_graph *graph, const pen_node *node) {
    if (node->op->is_random) return false;
    if (node->op->reads_no_data) return true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        if (pen_graph_value(graph, node->inputs[i])->kind != PEN_VALUE_CONSTANT) return false;
    }
    return true;
}

// Whether what is folded stays small: the node's work, its outputs, and all of the graph with them.
static bool infer_output_fits(const pen_graph *graph, pen_node_id id, uint64_t *folded) {
    const pen_node *node = pen_graph_node(graph, id);
    uint64_t total = *folded;
    if (pen_node_flops(graph, id) > INFER_FOLD_FLOPS_LIMIT) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_tensor_type *type = pen_value_type(graph, node->outputs[i]);
        if (pen_tensor_type_bytes(type) > PEN_FOLD_BYTES_LIMIT) return false;
        total += pen_tensor_type_bytes(type);
    }
    if (total > PEN_FOLD_TOTAL_BYTES_LIMIT) return false;
    *folded = total;
    return true;
}

// `folded`: bytes of the constants made so far.
static pen_status infer_fold(pen_graph *graph, pen_node_id id, const pen_infer_options *options,
                             uint64_t *folded) {
    const pen_node *node = pen_graph_node(graph, id);
    if (!infer_is_constant(graph, node) || !infer_output_fits(graph, id, folded)) return PEN_OK;
    void **data;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), node->output_count, &data));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(graph, node->outputs[i]));
        char *memory;
        PEN_TRY(PEN_NEW(pen_graph_tensor_arena(graph), bytes, &memory));
        data[i] = memory;
    }
    PEN_TRY(pen_status_add_context(options->evaluate(options->evaluate_context, graph, id, data),
                                   "while folding %s '%s'", node->op->name, node->name));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) {
            pen_graph_set_constant(graph, node->outputs[i], data[i]);
        }
    }
    return PEN_OK;
}

pen_status pen_infer_shapes(pen_graph *graph, const pen_infer_options *options) {
    uint64_t folded = 0;
    PEN_TRY(pen_status_add_context(infer_bind(graph, options), "while binding sizes"));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id node = {n};
        PEN_TRY(
            pen_status_add_context(pen_graph_infer_node(graph, node), "while inferring shapes"));
        pen_graph_settle_type(graph, node);
        if (options->evaluate != NULL) PEN_TRY(infer_fold(graph, node, options, &folded));
    }
    return PEN_OK;
}
