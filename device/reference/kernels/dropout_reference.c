#include "device/reference/reference_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"

static double dropout_number(const pen_reference_call *call, uint32_t input, double absent) {
    if (call->node->input_count <= input || call->inputs[input].data == NULL) return absent;
    return pen_tensor_get(&call->inputs[input], 0);
}

static pen_status dropout_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    const pen_tensor *mask = pen_reference_output(call, 1);
    const bool training = dropout_number(call, 2, 0) != 0;
    const double ratio = training ? dropout_number(call, 1, 0.5) : 0;
    const pen_random_key key = {
        pen_node_has(call->node, "seed") ? (uint64_t)pen_node_int(call->node, "seed") : call->seed,
        pen_random_stream(pen_node_stream(call->node), call->step, call->microbatch),
    };
    for (int64_t i = 0; i < pen_tensor_count(x); i++) {
        const bool keeps = (double)pen_random_uniform(key, (uint64_t)i) >= ratio;
        const double number = pen_tensor_get(x, i);
        pen_tensor_set(&call->outputs[0], i, keeps ? number / (1 - ratio) : 0);
        if (mask != NULL) pen_tensor_set_int(mask, i, keeps);
    }
    return PEN_OK;
}

static pen_status dropout_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0];
    const double ratio = pen_node_float(call->node, "ratio");
    for (int64_t i = 0; i < pen_tensor_count(dy); i++) {
        const bool keeps = pen_tensor_get_int(&call->inputs[1], i) != 0;
        pen_tensor_set(&call->outputs[0], i, keeps ? pen_tensor_get(dy, i) / (1 - ratio) : 0);
    }
    return PEN_OK;
}

static const pen_reference_kernel dropout_kernels[] = {
    {"dropout", dropout_run, NULL},
    {"dropout_backward", dropout_backward_run, NULL},
};

PEN_REFERENCE_FAMILY(dropout);
