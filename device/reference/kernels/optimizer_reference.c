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

// The learning rate of a parameter.
static double optimizer_rate(const pen_reference_call *call) {
    return optimizer_scalar(call, call->node->op->update.rate, 0) *
           pen_node_float(call->node, "lr_scale");
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

// Where the gradient of an update comes from.
typedef struct optimizer_source {
    const pen_tensor *tensor;
    const double *gathered; // in place of it, where it has rows
    double scale, clip_value;
} optimizer_source;

static pen_status optimizer_gather(const pen_reference_call *call, optimizer_source *out_source) {
    const pen_op_update *at = &call->node->op->update;
    double *gathered = NULL;
    if (pen_reference_input(call, at->rows) != NULL) {
        PEN_TRY(optimizer_gather_rows(call, &call->inputs[0].type.shape, &call->inputs[1], at->rows,
                                      &gathered));
    }
    *out_source = (optimizer_source){.tensor = &call->inputs[1],
                                     .gathered = gathered,
                                     .scale = optimizer_scalar(call, at->scale, 1),
                                     .clip_value = pen_node_float(call->node, "clip_value")};
    return PEN_OK;
}

// What is no number stays so.
static double optimizer_gradient(const optimizer_source *source, int64_t k) {
    const double found =
        source->gathered != NULL ? source->gathered[k] : pen_tensor_get(source->tensor, k);
    const double g = found * source->scale, most = source->clip_value;
    if (!(most > 0)) return g;
    return g > most ? most : g < -most ? -most : g;
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
    const double rate = optimizer_rate(call);
    const pen_tensor *velocity = &call->inputs[2];
    optimizer_source source;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &source));
    const bool gives_velocity = pen_reference_output(call, 1) != NULL;
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        const double p = pen_tensor_get(&call->inputs[0], k);
        double g = optimizer_gradient(&source, k);
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
    const double rate = optimizer_rate(call);
    const double step = optimizer_scalar(call, 5, 1);
    const double step_size = rate / (1 - pow(beta1, step));
    const double correction = sqrt(1 - pow(beta2, step));
    optimizer_source source;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &source));
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        double p = pen_tensor_get(&call->inputs[0], k);
        double g = optimizer_gradient(&source, k);
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
    const double rate = optimizer_rate(call);
    optimizer_source source;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &source));
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        const double p = pen_tensor_get(&call->inputs[0], k);
        const double g = optimizer_gradient(&source, k) + weight_decay * p;
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

// ---- updates that keep all their states

// What elements of an update share. Letters as in graph/ops/training/optimizer_op.c.
typedef struct optimizer_numbers {
    double rate, step; // rate: with what is the same for all elements
    double beta1, beta2, epsilon;
    double decay, keep; // of the parameter: added to the gradient, and multiplied by it
    double own;         // NAdam: of the gradient itself; RAdam: 0, the variance is not known
    double correction;  // of the second moment's root
} optimizer_numbers;

// The new value of an element p with gradient g. s: its states, made new.
typedef double (*optimizer_element)(const optimizer_numbers *n, double p, double g, double *s);

// A decay that is added to the gradient is the same in all of them.
static pen_status optimizer_each(const pen_reference_call *call, const optimizer_numbers *n,
                                 optimizer_element element) {
    const pen_op_update *at = &call->node->op->update;
    const uint32_t count = at->rate - at->state;
    optimizer_source source;
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &source));
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        double states[2] = {0};
        const double p = pen_tensor_get(&call->inputs[0], k);
        const double g = optimizer_gradient(&source, k) + n->decay * p;
        for (uint32_t i = 0; i < count; i++) {
            states[i] = pen_tensor_get(&call->inputs[at->state + i], k);
        }
        const double made = element(n, p * n->keep, g, states);
        for (uint32_t i = 0; i < count; i++) {
            pen_tensor_set(&call->outputs[1 + i], k, states[i]);
        }
        pen_tensor_set(&call->outputs[0], k, made);
    }
    return PEN_OK;
}

// What most have: a rate, a step, and a decay that is added to the gradient or apart from it.
static optimizer_numbers optimizer_read(const pen_reference_call *call, bool decoupled) {
    const pen_op_update *at = &call->node->op->update;
    const double decay = pen_node_float(call->node, "weight_decay");
    const double rate = optimizer_rate(call);
    return (optimizer_numbers){.rate = rate,
                               .step = at->step == 0 ? 0 : optimizer_scalar(call, at->step, 1),
                               .decay = decoupled ? 0 : decay,
                               .keep = decoupled ? 1 - rate * decay : 1};
}

static optimizer_numbers optimizer_read_moments(const pen_reference_call *call, bool decoupled) {
    optimizer_numbers n = optimizer_read(call, decoupled);
    n.beta1 = pen_node_float(call->node, "beta1");
    n.beta2 = pen_node_float(call->node, "beta2");
    n.epsilon = pen_node_float(call->node, "epsilon");
    n.correction = sqrt(1 - pow(n.beta2, n.step));
    return n;
}

static void optimizer_moments(const optimizer_numbers *n, double g, double *s) {
    s[0] = n->beta1 * s[0] + (1 - n->beta1) * g;
    s[1] = n->beta2 * s[1] + (1 - n->beta2) * g * g;
}

static double adagrad_element(const optimizer_numbers *n, double p, double g, double *s) {
    s[0] += g * g;
    return p - n->rate * g / (sqrt(s[0]) + n->epsilon);
}

static pen_status adagrad_update_run(const pen_reference_call *call) {
    optimizer_numbers n = optimizer_read(call, false);
    n.epsilon = pen_node_float(call->node, "epsilon");
    n.rate /= 1 + (n.step - 1) * pen_node_float(call->node, "lr_decay");
    return optimizer_each(call, &n, adagrad_element);
}

static double adadelta_element(const optimizer_numbers *n, double p, double g, double *s) {
    s[0] = n->beta2 * s[0] + (1 - n->beta2) * g * g;
    const double u = sqrt(s[1] + n->epsilon) / sqrt(s[0] + n->epsilon) * g;
    s[1] = n->beta2 * s[1] + (1 - n->beta2) * u * u;
    return p - n->rate * u;
}

static pen_status adadelta_update_run(const pen_reference_call *call) {
    optimizer_numbers n = optimizer_read(call, false);
    n.epsilon = pen_node_float(call->node, "epsilon");
    n.beta2 = pen_node_float(call->node, "rho");
    return optimizer_each(call, &n, adadelta_element);
}

static double adamax_element(const optimizer_numbers *n, double p, double g, double *s) {
    const double old = n->beta2 * s[1], own = fabs(g) + n->epsilon;
    s[0] = n->beta1 * s[0] + (1 - n->beta1) * g;
    s[1] = old > own ? old : own; // not fmax: what is no number must stay visible
    return p - n->rate * s[0] / s[1];
}

static pen_status adamax_update_run(const pen_reference_call *call) {
    optimizer_numbers n = optimizer_read_moments(call, false);
    n.rate /= 1 - pow(n.beta1, n.step);
    return optimizer_each(call, &n, adamax_element);
}

static double nadam_element(const optimizer_numbers *n, double p, double g, double *s) {
    optimizer_moments(n, g, s);
    const double d = sqrt(s[1]) / n->correction + n->epsilon;
    return p - n->own * g / d - n->rate * s[0] / d;
}

static pen_status nadam_update_run(const pen_reference_call *call) {
    const bool decoupled = pen_node_int(call->node, "decoupled") != 0;
    optimizer_numbers n = optimizer_read_moments(call, decoupled);
    const pen_nadam_momentum u =
        pen_nadam_momentum_of(n.beta1, pen_node_float(call->node, "momentum_decay"), n.step);
    n.own = n.rate * (1 - u.now) / (1 - u.product);
    n.rate *= u.next / (1 - u.product * u.next);
    return optimizer_each(call, &n, nadam_element);
}

static double radam_element(const optimizer_numbers *n, double p, double g, double *s) {
    optimizer_moments(n, g, s);
    const double u = n->own == 0 ? 1 : n->correction / (sqrt(s[1]) + n->epsilon) * n->own;
    return p - n->rate * s[0] * u;
}

static pen_status radam_update_run(const pen_reference_call *call) {
    const bool decoupled = pen_node_int(call->node, "decoupled") != 0;
    optimizer_numbers n = optimizer_read_moments(call, decoupled);
    n.own = pen_radam_rectifier(n.beta2, n.step);
    n.rate /= 1 - pow(n.beta1, n.step);
    return optimizer_each(call, &n, radam_element);
}

static double lion_element(const optimizer_numbers *n, double p, double g, double *s) {
    const double u = n->beta1 * s[0] + (1 - n->beta1) * g;
    s[0] = n->beta2 * s[0] + (1 - n->beta2) * g;
    const double sign = u > 0 ? 1 : u < 0 ? -1 : u; // what is no number stays so
    return p - n->rate * sign;
}

static pen_status lion_update_run(const pen_reference_call *call) {
    optimizer_numbers n = optimizer_read(call, true);
    n.beta1 = pen_node_float(call->node, "beta1");
    n.beta2 = pen_node_float(call->node, "beta2");
    return optimizer_each(call, &n, lion_element);
}

// p' is p at first.
static double lamb_element(const optimizer_numbers *n, double p, double g, double *s) {
    optimizer_moments(n, g, s);
    return p;
}

// Moments as they are kept give the direction, once for the norms and once for the step.
static pen_status lamb_update_run(const pen_reference_call *call) {
    optimizer_numbers n = optimizer_read_moments(call, false);
    const double decay = n.decay, correction1 = 1 - pow(n.beta1, n.step);
    const int64_t count = pen_tensor_count(&call->inputs[0]);
    const size_t blocks = (size_t)((count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS);
    double *steps, *sums[2];
    if (optimizer_keeps(call)) return PEN_OK;
    n.decay = 0;
    PEN_TRY(optimizer_each(call, &n, lamb_element));
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &steps));
    PEN_TRY(PEN_NEW(call->scratch, blocks, &sums[0]));
    PEN_TRY(PEN_NEW(call->scratch, blocks, &sums[1]));
    for (int64_t k = 0; k < count; k++) {
        const double p = pen_tensor_get(&call->outputs[0], k);
        const double m = pen_tensor_get(&call->outputs[1], k);
        const double v = pen_tensor_get(&call->outputs[2], k);
        steps[k] = m / correction1 / (sqrt(v) / n.correction + n.epsilon) + decay * p;
        sums[0][k / PEN_NORM_BLOCK_ELEMENTS] += p * p;
        sums[1][k / PEN_NORM_BLOCK_ELEMENTS] += steps[k] * steps[k];
    }
    const double ratio =
        pen_lamb_ratio(pen_norm_add_pairs(sums[0], blocks), pen_norm_add_pairs(sums[1], blocks));
    for (int64_t k = 0; k < count; k++) {
        const double p = pen_tensor_get(&call->outputs[0], k);
        pen_tensor_set(&call->outputs[0], k, p - n.rate * ratio * steps[k]);
    }
    return PEN_OK;
}

// Means of squares over rows and columns of the last two dimensions, or squares; made new. s: how
// much of them is of this step.
static void adafactor_variances(const pen_reference_call *call, pen_adafactor_shape shape, double s,
                                const double *g) {
    const bool is_factored = pen_reference_output(call, 3) == NULL;
    for (int64_t i = 0; !is_factored && i < shape.columns; i++) {
        const double old = pen_tensor_get(&call->inputs[PEN_ADAFACTOR_VARIANCE], i);
        pen_tensor_set(&call->outputs[3], i, old + s * (g[i] * g[i] - old));
    }
    for (int64_t i = 0; is_factored && i < shape.batches * shape.rows; i++) {
        double sum = 0;
        for (int64_t c = 0; c < shape.columns; c++) {
            sum += g[i * shape.columns + c] * g[i * shape.columns + c];
        }
        const double old = pen_tensor_get(&call->inputs[PEN_ADAFACTOR_ROWS], i);
        pen_tensor_set(&call->outputs[1], i, old + s * (sum / (double)shape.columns - old));
    }
    for (int64_t i = 0; is_factored && i < shape.batches * shape.columns; i++) {
        const double *first =
            g + i / shape.columns * shape.rows * shape.columns + i % shape.columns;
        double sum = 0;
        for (int64_t r = 0; r < shape.rows; r++) {
            sum += first[r * shape.columns] * first[r * shape.columns];
        }
        const double old = pen_tensor_get(&call->inputs[PEN_ADAFACTOR_COLUMNS], i);
        pen_tensor_set(&call->outputs[2], i, old + s * (sum / (double)shape.rows - old));
    }
}

// What is expected of the square of an element.
static double adafactor_variance(const pen_reference_call *call, pen_adafactor_shape shape,
                                 double epsilon, int64_t k) {
    if (pen_reference_output(call, 3) != NULL) return pen_tensor_get(&call->outputs[3], k);
    const int64_t row = k / shape.columns, batch = row / shape.rows;
    double mean = 0;
    for (int64_t r = 0; r < shape.rows; r++) {
        mean += pen_tensor_get(&call->outputs[1], batch * shape.rows + r);
    }
    mean /= (double)shape.rows;
    return pen_tensor_get(&call->outputs[1], row) *
           pen_tensor_get(&call->outputs[2], batch * shape.columns + k % shape.columns) /
           (mean < epsilon ? epsilon : mean);
}

// The gradient is gathered once: rows of one index add up before they are squared.
static pen_status adafactor_update_run(const pen_reference_call *call) {
    const pen_adafactor_shape shape = pen_adafactor_shape_of(&call->inputs[0].type.shape);
    const int64_t count = pen_tensor_count(&call->inputs[0]);
    const size_t blocks = (size_t)((count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS);
    const double epsilon = pen_node_float(call->node, "epsilon"), rate = optimizer_rate(call);
    const double step = optimizer_scalar(call, call->node->op->update.step, 1);
    const double keep = 1 - rate * pen_node_float(call->node, "weight_decay");
    optimizer_source source;
    double *g, *sums[2];
    if (optimizer_keeps(call)) return PEN_OK;
    PEN_TRY(optimizer_gather(call, &source));
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &g));
    PEN_TRY(PEN_NEW(call->scratch, blocks, &sums[0]));
    PEN_TRY(PEN_NEW(call->scratch, blocks, &sums[1]));
    for (int64_t k = 0; k < count; k++) {
        g[k] = optimizer_gradient(&source, k);
    }
    adafactor_variances(call, shape, pow(step, pen_node_float(call->node, "beta2_decay")), g);
    for (int64_t k = 0; k < count; k++) {
        const double p = pen_tensor_get(&call->inputs[0], k);
        const double v = adafactor_variance(call, shape, epsilon, k);
        g[k] /= sqrt(v < epsilon * epsilon ? epsilon * epsilon : v);
        sums[0][k / PEN_NORM_BLOCK_ELEMENTS] += p * p;
        sums[1][k / PEN_NORM_BLOCK_ELEMENTS] += g[k] * g[k];
    }
    const double totals[2] = {pen_norm_add_pairs(sums[0], blocks),
                              pen_norm_add_pairs(sums[1], blocks)};
    const double size =
        pen_adafactor_size(rate, step, pen_node_float(call->node, "epsilon2"),
                           pen_node_float(call->node, "clip_threshold"), totals, (double)count);
    for (int64_t k = 0; k < count; k++) {
        const double p = pen_tensor_get(&call->inputs[0], k);
        pen_tensor_set(&call->outputs[0], k, p * keep - size * g[k]);
    }
    return PEN_OK;
}

static pen_status average_update_run(const pen_reference_call *call) {
    const double weight = pen_average_weight(pen_node_float(call->node, "decay"),
                                             (double)pen_node_int(call->node, "from"),
                                             optimizer_scalar(call, PEN_AVERAGE_STEP, 1));
    const bool is_skipped = optimizer_scalar(call, PEN_AVERAGE_SCALE, 1) < 0;
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[0]); k++) {
        const double p = pen_tensor_get(&call->inputs[PEN_AVERAGE_PARAMETER], k);
        const double old = pen_tensor_get(&call->inputs[PEN_AVERAGE_OLD], k);
        const double most = p - (p - old) * (1 - weight);
        const double after = weight < 0.5 ? old + weight * (p - old) : most;
        pen_tensor_set(&call->outputs[0], k, is_skipped ? old : after);
    }
    return PEN_OK;
}

// ---- norms

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
    double scale = limit / (sqrt(sum) + 1e-6);
    if (scale > 1) scale = 1;
    if (pen_node_int(call->node, "skips") != 0 && !isfinite(sum)) scale = -1;
    pen_tensor_set(&call->outputs[0], 0, scale);
    return PEN_OK;
}

static const pen_reference_kernel optimizer_kernels[] = {
    {"sgd_update", sgd_update_run, NULL},
    {"adam_update", adam_update_run, NULL},
    {"rmsprop_update", rmsprop_update_run, NULL},
    {"squared_norm", squared_norm_run, NULL},
    {"clip_scale", clip_scale_run, NULL},
    {"adagrad_update", adagrad_update_run, NULL},
    {"adadelta_update", adadelta_update_run, NULL},
    {"adamax_update", adamax_update_run, NULL},
    {"nadam_update", nadam_update_run, NULL},
    {"radam_update", radam_update_run, NULL},
    {"average_update", average_update_run, NULL},
    {"adafactor_update", adafactor_update_run, NULL},
    {"lion_update", lion_update_run, NULL},
    {"lamb_update", lamb_update_run, NULL},
};

PEN_REFERENCE_FAMILY(optimizer);
