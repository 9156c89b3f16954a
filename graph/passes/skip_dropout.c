#include "graph/passes/skip_dropout.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/bypass_nodes.h"

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
    bool *is_idle;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_node_count(graph), &is_idle));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        is_idle[n] = skip_passes_on(graph, pen_graph_node(graph, (pen_node_id){n}));
    }
    return pen_bypass_nodes(graph, is_idle);
}
