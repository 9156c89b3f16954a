#include <math.h>
#include <string.h>

#include "device/reference/reference_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"

// A gate g(x) and its derivative.
typedef struct gelu_gate {
    double value;
    double slope;
} gelu_gate;

static gelu_gate gelu_exact(double x) {
    const double root_half = 0.70710678118654752, root_2_pi = 2.5066282746310005;
    return (gelu_gate){(1 + erf(x * root_half)) / 2, exp(-x * x / 2) / root_2_pi};
}

static gelu_gate gelu_tanh(double x) {
    const double k = 0.79788456080286536, c = 0.044715; // k = sqrt(2 / pi)
    const double t = tanh(k * (x + c * x * x * x));
    return (gelu_gate){(1 + t) / 2, (1 - t * t) / 2 * k * (1 + 3 * c * x * x)};
}

static gelu_gate gelu_sigmoid(double x, double alpha) {
    const double s = 1 / (1 + exp(-alpha * x));
    return (gelu_gate){s, alpha * s * (1 - s)};
}

static gelu_gate gelu_of(const pen_node *node, double x) {
    if (strncmp(node->op->name, "swish", 5) == 0) {
        return gelu_sigmoid(x, pen_node_float(node, "alpha"));
    }
    return strcmp(pen_node_text(node, "approximate"), "tanh") == 0 ? gelu_tanh(x) : gelu_exact(x);
}

static pen_status gelu_forward(const pen_reference_call *call) {
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        const double x = pen_tensor_get(&call->inputs[0], k);
        pen_tensor_set(&call->outputs[0], k, x * gelu_of(call->node, x).value);
    }
    return PEN_OK;
}

static pen_status gelu_backward(const pen_reference_call *call) {
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        const double dy = pen_tensor_get(&call->inputs[0], k);
        const double x = pen_tensor_get(&call->inputs[1], k);
        const gelu_gate gate = gelu_of(call->node, x);
        pen_tensor_set(&call->outputs[0], k, dy * (gate.value + x * gate.slope));
    }
    return PEN_OK;
}

static const pen_reference_kernel gelu_kernels[] = {
    {"gelu", gelu_forward, NULL},
    {"gelu_backward", gelu_backward, NULL},
    {"swish", gelu_forward, NULL},
    {"swish_backward", gelu_backward, NULL},
};

PEN_REFERENCE_FAMILY(gelu);
