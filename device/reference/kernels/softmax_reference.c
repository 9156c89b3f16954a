#include <math.h>

#include "device/reference/reference_compare.h"
#include "graph/op.h"

// One line along the axis: elements first, first + stride, …, [count] of them.
typedef struct softmax_line {
    int64_t first;
    int64_t stride;
    int64_t count;
} softmax_line;

typedef struct softmax_rule {
    void (*run)(const pen_reference_call *call, softmax_line line);
} softmax_rule;

static pen_status softmax_run(const pen_reference_call *call) {
    const softmax_rule *rule = call->rule;
    const pen_shape *shape = &call->outputs[0].type.shape;
    uint32_t axis;
    PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "axis"), &axis));
    const int64_t outer = pen_shape_count(shape, 0, axis);
    const int64_t inner = pen_shape_count(shape, axis + 1, shape->rank);
    const int64_t count = shape->dims[axis];
    for (int64_t o = 0; o < outer && count > 0; o++) {
        for (int64_t i = 0; i < inner; i++) {
            rule->run(call, (softmax_line){o * count * inner + i, inner, count});
        }
    }
    return PEN_OK;
}

// The position of the first largest element.
static int64_t softmax_largest(const pen_tensor *x, softmax_line line) {
    int64_t best = line.first;
    for (int64_t k = 1; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        if (reference_wins(true, x, at, x, best)) best = at;
    }
    return best;
}

// sum of exp(x - largest)
static double softmax_sum(const pen_tensor *x, softmax_line line, double largest) {
    double sum = 0;
    for (int64_t k = 0; k < line.count; k++) {
        sum += exp(pen_tensor_get(x, line.first + k * line.stride) - largest);
    }
    return sum;
}

static void line_softmax(const pen_reference_call *call, softmax_line line) {
    const pen_tensor *x = &call->inputs[0];
    const double largest = pen_tensor_get(x, softmax_largest(x, line));
    const double sum = softmax_sum(x, line, largest);
    for (int64_t k = 0; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        pen_tensor_set(&call->outputs[0], at, exp(pen_tensor_get(x, at) - largest) / sum);
    }
}

static void line_log_softmax(const pen_reference_call *call, softmax_line line) {
    const pen_tensor *x = &call->inputs[0];
    const double largest = pen_tensor_get(x, softmax_largest(x, line));
    const double log_sum = log(softmax_sum(x, line, largest));
    for (int64_t k = 0; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        pen_tensor_set(&call->outputs[0], at, pen_tensor_get(x, at) - largest - log_sum);
    }
}

static void line_hardmax(const pen_reference_call *call, softmax_line line) {
    const int64_t best = softmax_largest(&call->inputs[0], line);
    for (int64_t k = 0; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        pen_tensor_set(&call->outputs[0], at, at == best);
    }
}

static void line_softmax_backward(const pen_reference_call *call, softmax_line line) {
    const pen_tensor *dy = &call->inputs[0], *y = &call->inputs[1];
    double sum = 0;
    for (int64_t k = 0; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        sum += pen_tensor_get(dy, at) * pen_tensor_get(y, at);
    }
    for (int64_t k = 0; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        pen_tensor_set(&call->outputs[0], at,
                       pen_tensor_get(y, at) * (pen_tensor_get(dy, at) - sum));
    }
}

static void line_log_softmax_backward(const pen_reference_call *call, softmax_line line) {
    const pen_tensor *dy = &call->inputs[0], *y = &call->inputs[1];
    double sum = 0;
    for (int64_t k = 0; k < line.count; k++) {
        sum += pen_tensor_get(dy, line.first + k * line.stride);
    }
    for (int64_t k = 0; k < line.count; k++) {
        const int64_t at = line.first + k * line.stride;
        pen_tensor_set(&call->outputs[0], at,
                       pen_tensor_get(dy, at) - exp(pen_tensor_get(y, at)) * sum);
    }
}

#define SOFTMAX(line) softmax_run, PEN_REFERENCE_RULE(softmax_rule, line)

static const pen_reference_kernel softmax_kernels[] = {
    {"softmax", SOFTMAX(line_softmax)},
    {"log_softmax", SOFTMAX(line_log_softmax)},
    {"hardmax", SOFTMAX(line_hardmax)},
    {"softmax_backward", SOFTMAX(line_softmax_backward)},
    {"log_softmax_backward", SOFTMAX(line_log_softmax_backward)},
};

PEN_REFERENCE_FAMILY(softmax);
