#include "graph/passes/set_inference.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

// Whether a node reads the value, or the model gives it out.
static bool inference_is_read(const pen_graph *graph, pen_value_id value) {
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        if (pen_value_same(pen_graph_output(graph, i), value)) return true;
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_same(node->inputs[i], value)) return true;
        }
    }
    return false;
}

// What an evaluation leaves of a running statistic is that statistic: so for a layer that the model
// calls a second time.
static void inference_keep_statistic(pen_graph *graph, pen_value_id before, pen_value_id after) {
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id id = {n};
        for (uint32_t i = 0; i < pen_graph_node(graph, id)->input_count; i++) {
            if (!pen_value_same(pen_graph_node(graph, id)->inputs[i], after)) continue;
            pen_graph_set_input(graph, id, i, before);
        }
    }
}

pen_status pen_set_inference_normalization(pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    pen_graph_set_int(graph, id, "training_mode", 0);
    for (uint32_t i = 1; i < 3 && i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        inference_keep_statistic(graph, node->inputs[i + 2], node->outputs[i]);
    }
    for (uint32_t i = node->output_count; i-- > 1;) {
        if (pen_value_is(node->outputs[i]) && inference_is_read(graph, node->outputs[i])) {
            return pen_error(PEN_UNSUPPORTED,
                             "%s '%s': its output '%s', a statistic of training, is used by the "
                             "model, which has no such value in inference",
                             node->op->name, node->name, pen_value_name(graph, node->outputs[i]));
        }
        pen_graph_drop_output(graph, id, i);
    }
    return PEN_OK;
}

// Leaves out outputs that nothing reads: what is saved for a gradient, and states.
static void inference_drop_unread(pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = node->output_count; i-- > 1;) {
        if (!pen_value_is(node->outputs[i]) || inference_is_read(graph, node->outputs[i])) continue;
        pen_graph_drop_output(graph, id, i);
    }
}

pen_status pen_set_inference(pen_graph *graph) {
    pen_value_id off = PEN_VALUE_NONE;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node_id id = {n};
        const pen_node *node = pen_graph_node(graph, id);
        if (node->op == PEN_OP(batch_normalization)) {
            PEN_TRY(pen_set_inference_normalization(graph, id));
        }
        if (node->op->work == PEN_WORK_RECURRENT) inference_drop_unread(graph, id);
        if (node->op != PEN_OP(dropout) || node->input_count < 3) continue;
        if (!pen_value_is(off)) {
            PEN_TRY(pen_graph_constant_number(graph, "inference", PEN_BOOL, 0, &off));
        }
        pen_graph_set_input(graph, id, 2, off);
    }
    return PEN_OK;
}
