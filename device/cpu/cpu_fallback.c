
#include "device/cpu/cpu_kernel_list.h"
#include "device/reference/reference_device.h"
#include "graph/graph.h"
#include "graph/op.h"

static bool fallback_is_plain(const pen_graph *graph, pen_value_id value) {
    return !pen_value_is(value) || pen_graph_value(graph, value)->layout == PEN_LAYOUT_PLAIN;
}

static bool fallback_is_all_plain(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!fallback_is_plain(request->graph, node->inputs[i])) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!fallback_is_plain(request->graph, node->outputs[i])) return false;
    }
    return true;
}

static bool fallback_supports(const pen_cpu_request *request) {
    return fallback_is_all_plain(request) &&
           pen_reference_kernel_find(request->node->op->name) != NULL;
}

static pen_status fallback_prepare(const pen_cpu_request *request, void **out_state,
                                   uint64_t *out_workspace_bytes) {
    if (!fallback_is_all_plain(request)) {
        return pen_error(PEN_UNSUPPORTED, "%s '%s': no kernel for the layouts of its operands",
                         request->node->op->name, request->node->name);
    }
    pen_reference_node *node;
    PEN_TRY(pen_reference_node_make(request->graph, request->node_id, request->arena, &node));
    *out_state = node;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status fallback_run(const pen_cpu_call *call) {
    // the state is this kernel's own, written only between prepare and the end of a run
    const pen_reference_node *node = call->state;
    for (uint32_t i = 0; i < node->node->input_count; i++) {
        if (call->inputs[i] != NULL) node->inputs[i].data = call->inputs[i];
    }
    for (uint32_t i = 0; i < node->node->output_count; i++) {
        node->outputs[i].data = call->outputs[i];
    }
    return pen_reference_node_run(node, node->inputs, node->outputs, call->run, call->accumulate);
}

const pen_cpu_kernel pen_cpu_fallback_kernel = {
    .op_name = "",
    .name = "reference",
    .can_accumulate = true,
    .supports = fallback_supports,
    .prepare = fallback_prepare,
    .run = fallback_run,
};
