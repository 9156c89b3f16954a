#include "graph/passes/bypass_nodes.h"

#include "graph/graph.h"

// Walks in order, so that a chain of idle nodes leads to what the first of them reads.
pen_status pen_bypass_nodes(pen_graph *graph, const bool *is_idle) {
    pen_value_id *source; // of what an idle node passes on, else the value itself
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_value_count(graph), &source));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        source[v] = (pen_value_id){v};
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (is_idle[n]) source[node->outputs[0].index] = source[node->inputs[0].index];
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id id = {n};
        for (uint32_t i = 0; i < pen_graph_node(graph, id)->input_count; i++) {
            const pen_value_id input = pen_graph_node(graph, id)->inputs[i];
            if (!pen_value_is(input) || pen_value_same(source[input.index], input)) continue;
            pen_graph_set_input(graph, id, i, source[input.index]);
        }
    }
    return PEN_OK;
}
