#include "device/reference/reference_evaluate.h"

#include <string.h>

#include "device/reference/reference_kernel.h"
#include "graph/graph.h"

// Inputs are constants of a graph, but kernels take tensors that may be written: so they get
// copies.
static pen_status evaluate_in(pen_arena *scratch, const pen_graph *graph, pen_node_id id,
                              void *const *out_data) {
    const pen_node *node = pen_graph_node(graph, id);
    pen_tensor *inputs, *outputs;
    PEN_TRY(PEN_NEW(scratch, node->input_count, &inputs));
    PEN_TRY(PEN_NEW(scratch, node->output_count, &outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value *value = pen_graph_value(graph, node->inputs[i]);
        inputs[i].type = value->type;
        if (value->data == NULL) continue;
        // copied: kernels take mutable tensors, and the bytes may be a mapped file's
        char *copy;
        PEN_TRY(PEN_NEW(scratch, value->data_bytes, &copy));
        pen_value_copy_contents(value, 0, copy, value->data_bytes);
        inputs[i].data = copy;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        outputs[i] = (pen_tensor){*pen_value_type(graph, node->outputs[i]), out_data[i]};
    }
    const pen_reference_call call = {
        .graph = graph, .node = node, .inputs = inputs, .outputs = outputs, .scratch = scratch};
    return pen_reference_run(&call, true);
}

pen_status pen_reference_evaluate(void *context, const pen_graph *graph, pen_node_id node,
                                  void *const *out_data) {
    (void)context;
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = evaluate_in(scratch, graph, node, out_data);
    pen_arena_destroy(scratch);
    return status;
}
