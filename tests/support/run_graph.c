#include "tests/support/run_graph.h"

#include <string.h>

#include "graph/op.h"

pen_status run_graph_init(run_graph *run, const pen_graph *graph, pen_arena *arena) {
    *run = (run_graph){.graph = graph, .arena = arena};
    const uint32_t count = pen_graph_value_count(graph);
    PEN_TRY(PEN_NEW(arena, count, &run->tensors));
    for (uint32_t v = 0; v < count; v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->type.element == PEN_ELEMENT_UNKNOWN) continue;
        char *bytes;
        PEN_TRY(PEN_NEW(arena, pen_tensor_type_bytes(&value->type), &bytes));
        if (value->data != NULL) pen_value_copy_contents(value, 0, bytes, value->data_bytes);
        run->tensors[v] = (pen_tensor){value->type, bytes};
    }
    return PEN_OK;
}

static pen_status run_graph_node(run_graph *run, const pen_node *node, pen_arena *scratch) {
    pen_tensor *inputs, *outputs;
    PEN_TRY(PEN_NEW(scratch, node->input_count, &inputs));
    PEN_TRY(PEN_NEW(scratch, node->output_count, &outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (pen_value_is(node->inputs[i])) inputs[i] = run->tensors[node->inputs[i].index];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) outputs[i] = run->tensors[node->outputs[i].index];
    }
    const pen_reference_call call = {.graph = run->graph,
                                     .node = node,
                                     .inputs = inputs,
                                     .outputs = outputs,
                                     .scratch = scratch,
                                     .seed = run->seed,
                                     .step = run->step,
                                     .microbatch = run->microbatch};
    return pen_status_add_context(pen_reference_run(&call, !run->adds), "while running %s '%s'",
                                  node->op->name, node->name);
}

pen_status run_graph_nodes(run_graph *run, uint32_t first, uint32_t last) {
    for (uint32_t n = first; n < last; n++) {
        const pen_node *node = pen_graph_node(run->graph, (pen_node_id){n});
        pen_arena *scratch;
        PEN_TRY(pen_arena_create(&scratch));
        const pen_status status = run_graph_node(run, node, scratch);
        pen_arena_destroy(scratch);
        PEN_TRY(status);
    }
    return PEN_OK;
}

pen_status run_graph_all(run_graph *run) {
    return run_graph_nodes(run, 0, pen_graph_node_count(run->graph));
}
