// The formulas are at the top of graph/ops/training/optimizer_op.c.

#include <math.h>
#include <string.h>

#include "device/reference/reference_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/training/optimizer_op.h"

// The scalar operand `input`, or `otherwise` where it is left out.
static double optimizer_scalar(const pen_reference_call *call, uint32_t input, double otherwise) {
    if (pen_reference_input(call, input) == NULL) return otherwise;
    return pen_tensor_get(&call->inputs[input], 0);
}

// The gradient of every element of a parameter, of which `gradient` has rows: those that operand
// `rows` says.
static pen_status optimizer_gather_rows(const pen_reference_call *call, const pen_shape *shape,
                                        const pen_tensor *gradient, uint32_t rows,
                                        double **out_gradient) {
    const int64_t row_count = shape->dims[0], length = pen_shape_count(shape, 1, shape->rank);
    PEN_TRY(PEN_NEW(call->scratch, (size_t)(row_count * length), out_gradient));
    for (int64_t i = 0; i < pen_tensor_count(&call->inputs[rows]); i++) {
        const int64_t given = pen_tensor_get_int(&call->inputs[rows], i);
        const int64_t row = given < 0 ? given + row_count : given;
        if (row < 0 || row >= row_count) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s '%s': row %lld at position %lld is outside of [%lld, %lld)",
                             call->node->op->name, call->node->name, (long long)given, (long long)i,
                             (long long)-row_count, (long long)row_count);
        }
        for (int64_t k = 0; k < length; k++) {
            (*out_gradient)[row * length + k] += pen_tensor_get(gradient, i * length + k);
        }
    }
    return PEN_OK;
}

// The same for an update; NULL where it lies in operand 1 as it is, without rows.
static pen_status optimizer_gather(const pen_reference_call *call, double **out_gradient) {
    const uint32_t rows = call->node->op->update.rows;
    *out_gradient = NULL;
    if (pen_reference_input(call, rows) == NULL) return PEN_OK;
    return optimizer_gather_rows(call, &call->inputs[0].type.shape, &call->inputs[1], rows,
                                 out_gradient);
}

static double optimizer_gradient(const pen_reference_call *call, const double *gathered,
                                 int64_t k) {
    return gathered != NULL ? gathered[k] : pen_tensor_get(&call->inputs[1], k);
}

// Where the scale says that there is nothing to apply, what is made is what was there.
static bool optimizer_keeps(const pen_reference_call *call) {
    const pen_op_update *at = &call->node->op->update;
    if (!(optimizer_scalar(call, at->scale, 1) < 0)) return false;
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        const pen_tensor *old = pen_reference_input(call, i == 0 ? 0 : at->state + i - 1);
        const pen_tensor *made = pen_reference_output(call, i);
        if (old == NULL || made == NULL) continue;
        memmove(made->data, old->data, (size_t)pen_tensor_type_bytes(&made->type));
    }
    return true;
}

// In PyTorch's order: scale, decay, velocity, step.
static pen_status sgd_update_run(const pen_reference_call *call) {
    const double momentum = pen_node_float(call->node, "momentum");
    const double weight_decay = pen_node_float(call->node, "weight_decay");
    const bool nesterov = pen_node_int(call->node, "nesterov") != 0;
    const double rate = optimizer_scalar(call, 3, 0);
    const double scale = optimizer_scalar(call, 4, 1);
    const pen_tensor *velocity = &call->inputs[2];
    double *gathered;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &gathered));
    const bool gives_velocity = pen_reference_output(call, 1) != NULL;
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        const double p = pen_tensor_get(&call->inputs[0], k);
        double g = optimizer_gradient(call, gathered, k) * scale;
        g += weight_decay * p;
        if (velocity->data != NULL) {
            const double v = momentum * pen_tensor_get(velocity, k) + g;
            if (gives_velocity) pen_tensor_set(&call->outputs[1], k, v);
            g = nesterov ? g + momentum * v : v;
        }
        pen_tensor_set(&call->outputs[0], k, p - rate * g);
    }
    return PEN_OK;
}

// Adam, or AdamW if decoupled: then the decay does not pass through the moments.
static pen_status adam_update_run(const pen_reference_call *call) {
    const double beta1 = pen_node_float(call->node, "beta1");
    const double beta2 = pen_node_float(call->node, "beta2");
    const double epsilon = pen_node_float(call->node, "epsilon");
    const double weight_decay = pen_node_float(call->node, "weight_decay");
    const bool decoupled = pen_node_int(call->node, "decoupled") != 0;
    const double rate = optimizer_scalar(call, 4, 0);
    const double step = optimizer_scalar(call, 5, 1);
    const double scale = optimizer_scalar(call, 6, 1);
    const double step_size = rate / (1 - pow(beta1, step));
    const double correction = sqrt(1 - pow(beta2, step));
    double *gathered;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &gathered));
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        double p = pen_tensor_get(&call->inputs[0], k);
        double g = optimizer_gradient(call, gathered, k) * scale;
        if (decoupled) {
            p *= 1 - rate * weight_decay;
        } else {
            g += weight_decay * p;
        }
        const double m = beta1 * pen_tensor_get(&call->inputs[2], k) + (1 - beta1) * g;
        const double v = beta2 * pen_tensor_get(&call->inputs[3], k) + (1 - beta2) * g * g;
        pen_tensor_set(&call->outputs[1], k, m);
        pen_tensor_set(&call->outputs[2], k, v);
        pen_tensor_set(&call->outputs[0], k, p - step_size * m / (sqrt(v) / correction + epsilon));
    }
    return PEN_OK;
}

// As PyTorch's, but for the variance below 0 that rounding may make, whose root is no number there.
static pen_status rmsprop_update_run(const pen_reference_call *call) {
    const double alpha = pen_node_float(call->node, "alpha");
    const double epsilon = pen_node_float(call->node, "epsilon");
    const double weight_decay = pen_node_float(call->node, "weight_decay");
    const double momentum = pen_node_float(call->node, "momentum");
    const bool centered = pen_node_int(call->node, "centered") != 0;
    const double rate = optimizer_scalar(call, 5, 0);
    const double scale = optimizer_scalar(call, 6, 1);
    double *gathered;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &gathered));
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        const double p = pen_tensor_get(&call->inputs[0], k);
        const double g = optimizer_gradient(call, gathered, k) * scale + weight_decay * p;
        const double v = alpha * pen_tensor_get(&call->inputs[2], k) + (1 - alpha) * g * g;
        double d = v;
        pen_tensor_set(&call->outputs[1], k, v);
        if (centered) {
            const double a = alpha * pen_tensor_get(&call->inputs[4], k) + (1 - alpha) * g;
            pen_tensor_set(&call->outputs[3], k, a);
            d = v - a * a;
            // below 0 by rounding, of gradients that are all alike; no number where both overflow
            d = d > 0 ? d : 0;
        }
        double u = g / (sqrt(d) + epsilon);
        if (momentum != 0) {
            u += momentum * pen_tensor_get(&call->inputs[3], k);
            pen_tensor_set(&call->outputs[2], k, u);
        }
        pen_tensor_set(&call->outputs[0], k, p - rate * u);
    }
    return PEN_OK;
}

// Added up in the same blocks as the fast kernels do it, for the clipping factor to agree in every
// bit.
static pen_status squared_norm_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    const uint32_t rows = PEN_NORM_ROWS;
    int64_t count = pen_tensor_count(x);
    double *gathered = NULL;
    if (pen_reference_input(call, rows) != NULL) {
        pen_shape shape = {0};
        const int64_t *dims = pen_node_ints(call->node, "shape", &shape.rank);
        for (uint32_t d = 0; d < shape.rank; d++) {
            shape.dims[d] = dims[d];
        }
        count = pen_shape_element_count(&shape);
        PEN_TRY(optimizer_gather_rows(call, &shape, x, rows, &gathered));
    }
    const int64_t block_count = (count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS;
    double *sums;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)block_count, &sums));
    for (int64_t k = 0; k < count; k++) {
        const double element = gathered != NULL ? gathered[k] : pen_tensor_get(x, k);
        sums[k / PEN_NORM_BLOCK_ELEMENTS] += element * element;
    }
    pen_tensor_set(&call->outputs[0], 0, pen_norm_add_pairs(sums, (size_t)block_count));
    return PEN_OK;
}

static pen_status clip_scale_run(const pen_reference_call *call) {
    const double limit = pen_node_float(call->node, "limit");
    double sum = 0;
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        sum += pen_tensor_get(&call->inputs[i], 0);
    }
    // not fmin: a norm that is not a number must stay visible
    const double scale = limit / (sqrt(sum) + 1e-6);
    pen_tensor_set(&call->outputs[0], 0, scale > 1 ? 1 : scale);
    return PEN_OK;
}

static const pen_reference_kernel optimizer_kernels[] = {
    {"sgd_update", sgd_update_run, NULL},         {"adam_update", adam_update_run, NULL},
    {"rmsprop_update", rmsprop_update_run, NULL}, {"squared_norm", squared_norm_run, NULL},
    {"clip_scale", clip_scale_run, NULL},
};

PEN_REFERENCE_FAMILY(optimizer);
