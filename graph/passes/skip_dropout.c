#include "graph/passes/skip_dropout.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

// Whether a constant operand is there and 0.
static bool skip_is_zero(const pen_graph *graph, const pen_node *node, uint32_t input) {
    if (input >= node->input_count || !pen_value_is(node->inputs[input])) return false;
    const pen_value_id id = node->inputs[input];
    double number = 1;
    const pen_status status = pen_value_read_number(graph, id, &number);
    if (status == PEN_OK) return number == 0;
    pen_status_ignore(status, "then it is for the dropout itself to complain");
    return false;
}

static bool skip_passes_on(const pen_graph *graph, const pen_node *node) {
    if (node->op != PEN_OP(dropout)) return false;
    const bool may_train = node->input_count > 2 && pen_value_is(node->inputs[2]);
    return !may_train || skip_is_zero(graph, node, 2) || skip_is_zero(graph, node, 1);
}

pen_status pen_skip_dropout(pen_graph *graph) {
    pen_value_id *source; // of what a dropout passes on, else the value itself
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_value_count(graph), &source));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        source[v] = (pen_value_id){v};
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id id = {n};
        for (uint32_t i = 0; i < pen_graph_node(graph, id)->input_count; i++) {
            const pen_value_id input = pen_graph_node(graph, id)->inputs[i];
            if (!pen_value_is(input) || pen_value_same(source[input.index], input)) continue;
            pen_graph_set_input(graph, id, i, source[input.index]);
        }
        const pen_node *node = pen_graph_node(graph, id);
        if (skip_passes_on(graph, node)) source[node->outputs[0].index] = node->inputs[0];
    }
    return PEN_OK;
}
