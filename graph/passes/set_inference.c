#include "graph/passes/set_inference.h"

#include <string.h>

#include "graph/op.h"

pen_status pen_set_inference(pen_graph *graph) {
    pen_value_id off = PEN_VALUE_NONE;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id id = {n};
        const pen_node *node = pen_graph_node(graph, id);
        if (strcmp(node->op->name, "batch_normalization") == 0) {
            pen_graph_set_int(graph, id, "training_mode", 0);
            for (uint32_t i = node->output_count; i-- > 1;) {
                pen_graph_drop_output(graph, id, i);
            }
        }
        if (strcmp(node->op->name, "dropout") != 0 || node->input_count < 3) continue;
        if (!pen_value_is(off)) {
            PEN_TRY(pen_graph_constant_number(graph, "inference", PEN_BOOL, 0, &off));
        }
        pen_graph_set_input(graph, id, 2, off);
    }
    return PEN_OK;
}
