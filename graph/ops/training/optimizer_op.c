// Updates of parameters, and the global norm that gradients are clipped by. Formulas and the order
// of their terms are PyTorch's, so that the numbers are too.
//
// Per element, in the order written. With a clip_value above 0, every `gradient * scale` is brought
// into [-clip_value, clip_value]. The rate is the learning rate times lr_scale.
//   sgd_update
//     g  = gradient * scale + weight_decay * p
//     v' = momentum * v + g
//     g  = nesterov ? g + momentum * v' : v'
//     p' = p - rate * g
//   adam_update
//     g  = gradient * scale
//     p  = p * (1 - rate * weight_decay), if decoupled (AdamW)
//     g  = g + weight_decay * p, if not (Adam)
//     m' = beta1 * m + (1 - beta1) * g
//     v' = beta2 * v + (1 - beta2) * g * g
//     d  = sqrt(v') / sqrt(1 - beta2^step) + epsilon
//     p' = p - rate / (1 - beta1^step) * m' / d
//   rmsprop_update
//     g  = gradient * scale + weight_decay * p
//     v' = alpha * v + (1 - alpha) * g * g
//     a' = alpha * a + (1 - alpha) * g, if centered
//     d  = centered ? v' - a' * a', at least 0 : v'
//     u  = g / (sqrt(d) + epsilon)
//     b' = momentum * b + u, and u = b', with momentum
//     p' = p - rate * u
//   adagrad_update
//     g  = gradient * scale + weight_decay * p
//     s' = s + g * g
//     p' = p - rate / (1 + (step - 1) * lr_decay) * g / (sqrt(s') + epsilon)
//   adadelta_update
//     g  = gradient * scale + weight_decay * p
//     v' = rho * v + (1 - rho) * g * g
//     u  = sqrt(d + epsilon) / sqrt(v' + epsilon) * g
//     d' = rho * d + (1 - rho) * u * u
//     p' = p - rate * u
//   adamax_update
//     g  = gradient * scale + weight_decay * p
//     m' = beta1 * m + (1 - beta1) * g
//     n' = max(beta2 * n, |g| + epsilon)
//     p' = p - rate / (1 - beta1^step) * m' / n'
//   nadam_update: p, g, m', v' and d as adam_update's
//     u  = beta1 * (1 - 0.96^(step * momentum_decay) / 2), u" the same of step + 1
//     w  = product of u of all steps until this one
//     p' = p - rate * ((1 - u) / (1 - w) * g + u" / (1 - w * u") * m') / d
//   radam_update: p, g, m', v' as adam_update's
//     l  = 2 / (1 - beta2) - 1
//     k  = l - 2 * step * beta2^step / (1 - beta2^step)
//     r  = sqrt((k - 4) * (k - 2) * l / ((l - 4) * (l - 2) * k))
//     u  = sqrt(1 - beta2^step) / (sqrt(v') + epsilon) * r, if k > 5
//     p' = p - rate / (1 - beta1^step) * m' * u, without u if not
//   lion_update
//     g  = gradient * scale
//     p' = p * (1 - rate * weight_decay) - rate * sign(beta1 * m + (1 - beta1) * g)
//     m' = beta2 * m + (1 - beta2) * g
//   lamb_update: g, m', v' and d as adam_update's without decay
//     u  = m' / (1 - beta1^step) / d + weight_decay * p
//     r  = norm(p) / norm(u), of all elements; 1 if one of them is 0
//     p' = p - rate * r * u
//   adafactor_update, of a parameter with rows and columns: its last two dimensions
//     g  = gradient * scale
//     s  = step^beta2_decay
//     R' = R + s * (mean of g * g over a row - R)
//     C' = C + s * (mean of g * g over a column - C)
//     v  = R' * C' / max(mean of R', epsilon); of a vector, v' = v + s * (g * g - v)
//     u  = g / sqrt(max(v, epsilon * epsilon))
//     a  = min(rate, 1 / sqrt(step)) * max(epsilon2, rms(p)) / max(1, rms(u) / clip_threshold)
//     p' = p * (1 - rate * weight_decay) - a * u
//   average_update
//     w  = step <= from + 1 ? 1 : 1 - decay
//     e' = w < 0.5 ? e + w * (p - e) : p - (p - e) * (1 - w), with p as it is after the step
//     With a scale below 0, e' = e.
//   A scale below 0: nothing is applied, the parameter and its states stay as they are.
//   With rows (the last operand, indices), row i of the gradient is of row rows[i] of the
//   parameter, and rows of one index add up, in order; the gradient of all others is 0.
//   squared_norm
//     sum of squares, in blocks (graph/ops/training/optimizer_op.h); with rows (operand 1), of
//     what a parameter of the shape `shape` has for a gradient
//   clip_scale
//     min(1, limit / (sqrt(sum of its inputs) + 1e-6)); with `skips`, -1 where the sum is not
//     finite
//
// Flops an element: SGD 2 + 1 + 2 + 2 (+ 2 with Nesterov), squared_norm 2, others in their entries.

#include "graph/ops/training/optimizer_op.h"

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/shared/shape_rule.h"
#include "graph/ops/training/optimizer.h"

// Checks input `input`, called `what`, against the type of the parameter.
static pen_status optimizer_check_like(const pen_infer_context *context, uint32_t input,
                                       const char *what) {
    const pen_tensor_type *parameter = pen_infer_input(context, 0);
    const pen_tensor_type *other = pen_infer_input(context, input);
    if (pen_tensor_type_equal(parameter, other)) return PEN_OK;
    char text_parameter[PEN_SHAPE_TEXT_BYTES], text_other[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT, "the %s is %s, but the parameter is %s",
                           what, pen_tensor_type_format(other, text_other),
                           pen_tensor_type_format(parameter, text_parameter));
}

// Checks that input `input`, if there, is a float32 or float64 scalar.
static pen_status optimizer_check_scalar(const pen_infer_context *context, uint32_t input,
                                         const char *what) {
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    const pen_tensor_type *type = pen_infer_input(context, input);
    if (type->shape.rank == 0 && (type->element == PEN_FLOAT32 || type->element == PEN_FLOAT64)) {
        return PEN_OK;
    }
    char text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the %s is %s, it must be a float32 or float64 scalar", what,
                           pen_tensor_type_format(type, text));
}

// With rows: one row of the gradient an index, in whatever dimensions the indices come.
static pen_status optimizer_check_rows(const pen_infer_context *context,
                                       const pen_tensor_type *parameter,
                                       const pen_tensor_type *gradient, uint32_t rows) {
    const pen_tensor_type *indices = pen_infer_input(context, rows);
    char texts[3][PEN_SHAPE_TEXT_BYTES];
    const pen_shape *whole = &parameter->shape, *given = &gradient->shape;
    const bool is_index = indices->element == PEN_INT32 || indices->element == PEN_INT64;
    bool fits = is_index && whole->rank > 0 && gradient->element == parameter->element &&
                given->rank == indices->shape.rank + whole->rank - 1;
    for (uint32_t d = 0; fits && d < given->rank; d++) {
        const uint32_t rank = indices->shape.rank;
        fits = given->dims[d] == (d < rank ? indices->shape.dims[d] : whole->dims[d - rank + 1]);
    }
    if (fits) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "a gradient of rows %s with indices %s does not fit the parameter %s",
                           pen_tensor_type_format(gradient, texts[0]),
                           pen_tensor_type_format(indices, texts[1]),
                           pen_tensor_type_format(parameter, texts[2]));
}

static pen_status optimizer_check_parameter_type(const pen_infer_context *context) {
    const pen_tensor_type *parameter = pen_infer_input(context, 0);
    if (pen_element_is_float(parameter->element)) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "the parameter is %s; only floating types can be trained",
                           pen_element_name(parameter->element));
}

static pen_status optimizer_check_parameter(const pen_infer_context *context) {
    const uint32_t rows = pen_infer_node(context)->op->update.rows;
    const pen_tensor_type *parameter = pen_infer_input(context, 0);
    PEN_TRY(optimizer_check_parameter_type(context));
    if (pen_infer_has_input(context, rows)) {
        return optimizer_check_rows(context, parameter, pen_infer_input(context, 1), rows);
    }
    return optimizer_check_like(context, 1, "gradient");
}

static pen_status sgd_update_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    PEN_TRY(optimizer_check_parameter(context));
    const bool has_velocity = pen_infer_has_input(context, 2);
    const bool gives_velocity = node->output_count > 1 && pen_value_is(node->outputs[1]);
    if (has_velocity) PEN_TRY(optimizer_check_like(context, 2, "velocity"));
    if (!has_velocity && (pen_node_float(node, "momentum") != 0 || gives_velocity)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "momentum needs a velocity");
    }
    if (!pen_infer_has_input(context, 3)) { // behind an optional operand, so not counted before
        return pen_infer_error(context, PEN_INVALID_INPUT, "there is no learning rate (input 3)");
    }
    PEN_TRY(optimizer_check_scalar(context, 3, "learning rate"));
    PEN_TRY(optimizer_check_scalar(context, 4, "gradient scale"));
    PEN_TRY(pen_infer_set(context, 0, pen_infer_input(context, 0)));
    return gives_velocity ? pen_infer_set(context, 1, pen_infer_input(context, 0)) : PEN_OK;
}

static pen_status adam_update_infer(pen_infer_context *context) {
    PEN_TRY(optimizer_check_parameter(context));
    PEN_TRY(optimizer_check_like(context, 2, "first moment"));
    PEN_TRY(optimizer_check_like(context, 3, "second moment"));
    PEN_TRY(optimizer_check_scalar(context, 4, "learning rate"));
    PEN_TRY(optimizer_check_scalar(context, 5, "step"));
    PEN_TRY(optimizer_check_scalar(context, 6, "gradient scale"));
    for (uint32_t i = 0; i < 3; i++) {
        PEN_TRY(pen_infer_set(context, i, pen_infer_input(context, 0)));
    }
    return PEN_OK;
}

// A state that a setting asks for must come in and go out; where it does not, neither.
static pen_status optimizer_check_state(const pen_infer_context *context, uint32_t input,
                                        const char *what, bool is_needed) {
    const bool comes = pen_infer_has_input(context, input);
    if (comes == is_needed && pen_infer_has_output(context, input - 1) == is_needed) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "its %s is %s", what,
                           is_needed ? "needed, as operand and result" : "not asked for");
}

static pen_status rmsprop_check_state(const pen_infer_context *context, uint32_t input,
                                      const char *what, bool is_needed) {
    PEN_TRY(optimizer_check_state(context, input, what, is_needed));
    return is_needed ? optimizer_check_like(context, input, what) : PEN_OK;
}

static pen_status rmsprop_update_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    PEN_TRY(optimizer_check_parameter(context));
    PEN_TRY(optimizer_check_like(context, 2, "average of squares"));
    PEN_TRY(rmsprop_check_state(context, 3, "momentum", pen_node_float(node, "momentum") != 0));
    PEN_TRY(rmsprop_check_state(context, 4, "average", pen_node_int(node, "centered") != 0));
    if (!pen_infer_has_input(context, 5)) { // behind optional operands, so not counted before
        return pen_infer_error(context, PEN_INVALID_INPUT, "there is no learning rate (input 5)");
    }
    PEN_TRY(optimizer_check_scalar(context, 5, "learning rate"));
    PEN_TRY(optimizer_check_scalar(context, 6, "gradient scale"));
    for (uint32_t i = 0; i < 4; i++) {
        PEN_TRY(pen_infer_set(context, i, pen_infer_input(context, 0)));
    }
    return PEN_OK;
}

// An update that keeps all its states, and has no rules of its own.
static pen_status whole_update_infer(pen_infer_context *context) {
    const pen_op_update *at = &pen_infer_node(context)->op->update;
    PEN_TRY(optimizer_check_parameter(context));
    for (uint32_t i = at->state; i < at->rate; i++) {
        PEN_TRY(optimizer_check_like(context, i, "state"));
    }
    PEN_TRY(optimizer_check_scalar(context, at->rate, "learning rate"));
    if (at->step != 0) PEN_TRY(optimizer_check_scalar(context, at->step, "step"));
    PEN_TRY(optimizer_check_scalar(context, at->scale, "gradient scale"));
    for (uint32_t i = 0; i < 1 + at->rate - at->state; i++) {
        PEN_TRY(pen_infer_set(context, i, pen_infer_input(context, 0)));
    }
    return PEN_OK;
}

// Rows and columns come and go together; a vector has neither.
static pen_status adafactor_update_infer(pen_infer_context *context) {
    static const pen_optimizer_shape shapes[] = {PEN_OPTIMIZER_ROWS, PEN_OPTIMIZER_COLUMNS,
                                                 PEN_OPTIMIZER_VECTOR};
    const pen_tensor_type *parameter = pen_infer_input(context, 0);
    const pen_op_update *at = &pen_infer_node(context)->op->update;
    PEN_TRY(optimizer_check_parameter(context));
    for (uint32_t i = 0; i < 3; i++) {
        pen_tensor_type type;
        const uint32_t input = at->state + i;
        const bool is_needed = pen_optimizer_state_type(shapes[i], parameter, &type);
        PEN_TRY(optimizer_check_state(context, input, "variance", is_needed));
        if (!is_needed) continue;
        if (!pen_tensor_type_equal(pen_infer_input(context, input), &type)) {
            char found[PEN_SHAPE_TEXT_BYTES], expected[PEN_SHAPE_TEXT_BYTES];
            return pen_infer_error(context, PEN_INVALID_INPUT, "a variance is %s, expected %s",
                                   pen_tensor_type_format(pen_infer_input(context, input), found),
                                   pen_tensor_type_format(&type, expected));
        }
        PEN_TRY(pen_infer_set(context, i + 1, &type));
    }
    if (!pen_infer_has_input(context, at->rate) || !pen_infer_has_input(context, at->step)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "there is no learning rate (input 5), or no step (input 6)");
    }
    PEN_TRY(optimizer_check_scalar(context, at->rate, "learning rate"));
    PEN_TRY(optimizer_check_scalar(context, at->step, "step"));
    PEN_TRY(optimizer_check_scalar(context, at->scale, "gradient scale"));
    return pen_infer_set(context, 0, parameter);
}

static pen_status average_update_infer(pen_infer_context *context) {
    const double decay = pen_node_float(pen_infer_node(context), "decay");
    PEN_TRY(optimizer_check_parameter_type(context));
    PEN_TRY(optimizer_check_like(context, PEN_AVERAGE_OLD, "average"));
    PEN_TRY(optimizer_check_scalar(context, PEN_AVERAGE_STEP, "step"));
    PEN_TRY(optimizer_check_scalar(context, PEN_AVERAGE_SCALE, "gradient scale"));
    if (!(decay >= 0 && decay < 1)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "decay is %g, it must be at least 0 and below 1", decay);
    }
    return pen_infer_set(context, 0, pen_infer_input(context, PEN_AVERAGE_PARAMETER));
}

// Without rows, any shape; with rows, those must lie in a parameter of the shape that is given.
static pen_status squared_norm_infer(pen_infer_context *context) {
    const pen_element_type element = pen_infer_input(context, 0)->element;
    if (!pen_element_is_float(element)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the input is %s, not a floating type",
                               pen_element_name(element));
    }
    if (pen_infer_has_input(context, PEN_NORM_ROWS)) {
        uint32_t rank;
        const int64_t *dims = pen_node_ints(pen_infer_node(context), "shape", &rank);
        if (rank > PEN_RANK_LIMIT) {
            return pen_infer_error(context, PEN_INVALID_INPUT,
                                   "the shape has %u dimensions, at most %d are possible", rank,
                                   PEN_RANK_LIMIT);
        }
        const pen_tensor_type whole = pen_tensor_type_make(element, rank, dims);
        PEN_TRY(optimizer_check_rows(context, &whole, pen_infer_input(context, 0), PEN_NORM_ROWS));
    }
    const pen_tensor_type type =
        pen_tensor_type_make(element == PEN_FLOAT64 ? PEN_FLOAT64 : PEN_FLOAT32, 0, NULL);
    return pen_infer_set(context, 0, &type);
}

static pen_status clip_scale_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 0, NULL);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_infer_has_input(context, i)) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "squared norm %u is left out", i);
        }
        PEN_TRY(optimizer_check_scalar(context, i, "squared norm"));
        if (pen_infer_input(context, i)->element == PEN_FLOAT64) type.element = PEN_FLOAT64;
    }
    if (!(pen_node_float(node, "limit") > 0)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "limit is %g, it must be above 0",
                               pen_node_float(node, "limit"));
    }
    return pen_infer_set(context, 0, &type);
}

static uint64_t optimizer_elements(const pen_graph *graph, pen_node_id node) {
    const pen_value_id first = pen_graph_node(graph, node)->inputs[0];
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, first)->shape);
}

static uint64_t sgd_update_flops(const pen_graph *graph, pen_node_id node) {
    const bool nesterov = pen_node_int(pen_graph_node(graph, node), "nesterov") != 0;
    return (nesterov ? 9u : 7u) * optimizer_elements(graph, node);
}

// What every update has.
#define EVERY_UPDATE PEN_FLOAT_OR("clip_value", 0), PEN_FLOAT_OR("lr_scale", 1)
#define MOMENTS                                                                                    \
    PEN_FLOAT_OR("beta1", 0.9), PEN_FLOAT_OR("beta2", 0.999), PEN_FLOAT_OR("epsilon", 1e-8),       \
        PEN_FLOAT_OR("weight_decay", 0), EVERY_UPDATE

static const pen_attribute_schema sgd_update_attributes[] = {
    PEN_FLOAT_OR("momentum", 0),
    PEN_INT_OR("nesterov", 0),
    PEN_FLOAT_OR("weight_decay", 0),
    EVERY_UPDATE,
};
static const pen_attribute_schema adam_update_attributes[] = {
    MOMENTS, PEN_INT_OR("decoupled", 0), // RAdam's, too
};
static const pen_attribute_schema moments_update_attributes[] = {MOMENTS};
static const pen_attribute_schema nadam_update_attributes[] = {
    MOMENTS,
    PEN_INT_OR("decoupled", 0),
    PEN_FLOAT_OR("momentum_decay", 0.004),
};
static const pen_attribute_schema adagrad_update_attributes[] = {
    PEN_FLOAT_OR("lr_decay", 0),
    PEN_FLOAT_OR("epsilon", 1e-10),
    PEN_FLOAT_OR("weight_decay", 0),
    EVERY_UPDATE,
};
static const pen_attribute_schema adadelta_update_attributes[] = {
    PEN_FLOAT_OR("rho", 0.9),
    PEN_FLOAT_OR("epsilon", 1e-6),
    PEN_FLOAT_OR("weight_decay", 0),
    EVERY_UPDATE,
};
static const pen_attribute_schema lion_update_attributes[] = {
    PEN_FLOAT_OR("beta1", 0.9),
    PEN_FLOAT_OR("beta2", 0.99),
    PEN_FLOAT_OR("weight_decay", 0),
    EVERY_UPDATE,
};
static const pen_attribute_schema rmsprop_update_attributes[] = {
    PEN_FLOAT_OR("alpha", 0.99), PEN_FLOAT_OR("epsilon", 1e-8), PEN_FLOAT_OR("weight_decay", 0),
    PEN_FLOAT_OR("momentum", 0), PEN_INT_OR("centered", 0),     EVERY_UPDATE,
};
static const pen_attribute_schema adafactor_update_attributes[] = {
    PEN_FLOAT_OR("beta2_decay", -0.8), PEN_FLOAT_OR("epsilon", 1.1920928955078125e-07),
    PEN_FLOAT_OR("epsilon2", 1e-3),    PEN_FLOAT_OR("clip_threshold", 1),
    PEN_FLOAT_OR("weight_decay", 0),   EVERY_UPDATE,
};
static const pen_attribute_schema average_update_attributes[] = {
    PEN_MUST("decay", FLOAT),
    PEN_INT_OR("from", 0),
};
static const pen_attribute_schema clip_scale_attributes[] = {
    PEN_MUST("limit", FLOAT),
    PEN_INT_OR("skips", 0),
};

static const pen_attribute_schema squared_norm_attributes[] = {
    PEN_MAY("shape", INTS), // with rows
};

// One that has the operands of Adam.
#define MOMENTS_UPDATE(op, text, names, flops)                                                     \
    {                                                                                              \
        op,                                                                                        \
            text ": parameter, gradient, two states, learning rate, step, scale or none, rows or " \
                 "none",                                                                           \
            PEN_TAKES(6, 8), PEN_GIVES(3, 3), PEN_ATTRIBUTES(names),                               \
            .in_place_inputs = 1, .infer = whole_update_infer, .input_flops = flops,               \
            .wants_positive = true, .is_update = true, .update = {                                 \
                .gradient = 1,                                                                     \
                .state = 2,                                                                        \
                .rate = 4,                                                                         \
                .step = 5,                                                                         \
                .scale = 6,                                                                        \
                .rows = 7                                                                          \
            }                                                                                      \
    }

static const pen_op optimizer_ops[] = {
    {"sgd_update",
     "stochastic gradient descent: parameter, gradient, velocity or none, learning "
     "rate, gradient scale or none, rows or none",
     PEN_TAKES(2, 6), PEN_GIVES(1, 2), PEN_ATTRIBUTES(sgd_update_attributes), .in_place_inputs = 1,
     .infer = sgd_update_infer, .flops = sgd_update_flops, .is_update = true,
     .update = {.gradient = 1, .state = 2, .rate = 3, .scale = 4, .rows = 5}},
    {"adam_update",
     "Adam and AdamW: parameter, gradient, two moments, learning rate, step from 1, "
     "gradient scale or none, rows or none",
     PEN_TAKES(6, 8), PEN_GIVES(3, 3), PEN_ATTRIBUTES(adam_update_attributes), .in_place_inputs = 1,
     .infer = adam_update_infer, .input_flops = 16, .wants_positive = true, .is_update = true,
     .update = {.gradient = 1, .state = 2, .rate = 4, .step = 5, .scale = 6, .rows = 7}},
    {"rmsprop_update",
     "RMSprop: parameter, gradient, square average, momentum or none, average or none, rate, scale "
     "or none, rows or none",
     PEN_TAKES(3, 8), PEN_GIVES(2, 4), PEN_ATTRIBUTES(rmsprop_update_attributes),
     .in_place_inputs = 1, .infer = rmsprop_update_infer, .input_flops = 10, .wants_positive = true,
     .is_update = true, .update = {.gradient = 1, .state = 2, .rate = 5, .scale = 6, .rows = 7}},
    {"adagrad_update",
     "Adagrad: parameter, gradient, sum of squares, learning rate, step, scale or none, rows or "
     "none",
     PEN_TAKES(5, 7), PEN_GIVES(2, 2), PEN_ATTRIBUTES(adagrad_update_attributes),
     .in_place_inputs = 1, .infer = whole_update_infer, .input_flops = 9, .wants_positive = true,
     .is_update = true,
     .update = {.gradient = 1, .state = 2, .rate = 3, .step = 4, .scale = 5, .rows = 6}},
    {"adadelta_update",
     "Adadelta: parameter, gradient, averages of squares of gradients and of steps, learning rate, "
     "scale or none, rows or none",
     PEN_TAKES(5, 7), PEN_GIVES(3, 3), PEN_ATTRIBUTES(adadelta_update_attributes),
     .in_place_inputs = 1, .infer = whole_update_infer, .input_flops = 17, .wants_positive = true,
     .is_update = true, .update = {.gradient = 1, .state = 2, .rate = 4, .scale = 5, .rows = 6}},
    MOMENTS_UPDATE("adamax_update", "Adamax", moments_update_attributes, 11),
    MOMENTS_UPDATE("nadam_update", "NAdam", nadam_update_attributes, 18),
    MOMENTS_UPDATE("radam_update", "RAdam", adam_update_attributes, 16),
    {"lion_update",
     "Lion: parameter, gradient, first moment, learning rate, scale or none, rows or none",
     PEN_TAKES(4, 6), PEN_GIVES(2, 2), PEN_ATTRIBUTES(lion_update_attributes), .in_place_inputs = 1,
     .infer = whole_update_infer, .input_flops = 11, .is_update = true,
     .update = {.gradient = 1, .state = 2, .rate = 3, .scale = 4, .rows = 5}},
    MOMENTS_UPDATE("lamb_update", "LAMB", moments_update_attributes, 24),
    {"adafactor_update",
     "Adafactor: parameter, gradient, variances of rows, columns, elements or none, rate, step, "
     "scale "
     "or none, rows or none",
     PEN_TAKES(2, 9), PEN_GIVES(1, 4), PEN_ATTRIBUTES(adafactor_update_attributes),
     .in_place_inputs = 1, .infer = adafactor_update_infer, .input_flops = 20,
     .wants_positive = true, .is_update = true,
     .update = {.gradient = 1, .state = 2, .rate = 5, .step = 6, .scale = 7, .rows = 8}},
    {"average_update",
     "moving average: parameter after the step, average, step from 1, scale or none",
     PEN_TAKES(3, 4), PEN_GIVES(1, 1), PEN_ATTRIBUTES(average_update_attributes),
     .in_place_inputs = 1u << PEN_AVERAGE_OLD, .infer = average_update_infer, .input_flops = 3},
    {"squared_norm", "sum of squares, in fixed blocks; rows or none", PEN_TAKES(1, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(squared_norm_attributes), .infer = squared_norm_infer,
     .input_flops = 2},
    {"clip_scale", "the factor that brings gradients of these squared norms under a limit",
     PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1), PEN_ATTRIBUTES(clip_scale_attributes),
     .infer = clip_scale_infer},
};

PEN_OP_FAMILY(optimizer);
