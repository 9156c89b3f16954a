// Conversions of the optimizers of ONNX's training domain, into arithmetic.
//
// Each takes a learning rate R, a count of steps T, and for each of n tensors its value X, its
// gradient G and its moments; and gives X and the moments anew. In all, G' = norm_coefficient X +
// G.

#include <string.h>

#include "graph/import/onnx/onnx_mapping.h"

// What one step works with.
typedef struct training_step {
    pen_onnx_draft *draft;
    uint32_t tensor_count;
    pen_value_id rate, steps; // R, and T in the type of R
} training_step;

static pen_status training_apply(const training_step *step, const char *op_name, pen_value_id a,
                                 pen_value_id b, pen_value_id *out_value) {
    pen_onnx_extra extra = {op_name, op_name, PEN_INPUTS(a, b), PEN_NO_ATTRIBUTES};
    if (!pen_value_is(b)) extra.inputs.count = 1;
    return pen_onnx_draft_extra(step->draft, &extra, out_value);
}

static pen_status training_number(const training_step *step, const char *what, double number,
                                  pen_value_id *out_value) {
    const char *name;
    const pen_element_type known = pen_value_type(step->draft->graph, step->rate)->element;
    PEN_TRY(pen_arena_format(pen_graph_arena(step->draft->graph), &name, "%s/%s", step->draft->name,
                             what));
    return pen_graph_constant_number(step->draft->graph, name,
                                     known == PEN_FLOAT64 ? PEN_FLOAT64 : PEN_FLOAT32, number,
                                     out_value);
}

// a times a number.
static pen_status training_scale(const training_step *step, pen_value_id a, double number,
                                 pen_value_id *out_value) {
    pen_value_id factor;
    PEN_TRY(training_number(step, "factor", number, &factor));
    return training_apply(step, "mul", a, factor, out_value);
}

// a + number.
static pen_status training_shift(const training_step *step, pen_value_id a, double number,
                                 pen_value_id *out_value) {
    pen_value_id term;
    PEN_TRY(training_number(step, "term", number, &term));
    return training_apply(step, "add", a, term, out_value);
}

// a * x + b * y
static pen_status training_mix(const training_step *step, double a, pen_value_id x, double b,
                               pen_value_id y, pen_value_id *out_value) {
    pen_value_id first, second;
    PEN_TRY(training_scale(step, x, a, &first));
    PEN_TRY(training_scale(step, y, b, &second));
    return training_apply(step, "add", first, second, out_value);
}

// Where T > 0, `later`, else `first`.
static pen_status training_after_first(const training_step *step, pen_value_id later,
                                       pen_value_id first, pen_value_id *out_value) {
    pen_value_id zero, condition;
    PEN_TRY(training_number(step, "zero", 0, &zero));
    PEN_TRY(training_apply(step, "greater", step->steps, zero, &condition));
    const pen_onnx_extra where = {"where", "where", PEN_INPUTS(condition, later, first),
                                  PEN_NO_ATTRIBUTES};
    return pen_onnx_draft_extra(step->draft, &where, out_value);
}

// Tensor `index` of group `group` (values, gradients, moments).
static pen_value_id training_operand(const training_step *step, uint32_t group, uint32_t index) {
    return step->draft->inputs[2 + group * step->tensor_count + index];
}

static pen_status training_gradient(const training_step *step, uint32_t index,
                                    pen_value_id *out_value) {
    const double norm = pen_onnx_draft_float(step->draft, "norm_coefficient", 0);
    *out_value = training_operand(step, 1, index);
    if (norm == 0) return PEN_OK;
    pen_value_id part;
    PEN_TRY(training_scale(step, training_operand(step, 0, index), norm, &part));
    return training_apply(step, "add", part, *out_value, out_value);
}

// Reads the operands: R, T and `group_count` groups of as many tensors each.
static pen_status training_init(pen_onnx_draft *draft, uint32_t group_count, training_step *step) {
    const uint32_t count = draft->input_count;
    *step = (training_step){.draft = draft};
    if (count < 2 + group_count || (count - 2) % group_count != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "it has %u operands: a rate, a count, and %u for each tensor are needed",
                         count, group_count);
    }
    step->tensor_count = (count - 2) / group_count;
    if (draft->node->output_count != step->tensor_count * (group_count - 1)) {
        return pen_error(PEN_INVALID_INPUT, "it has %u outputs, %u are needed",
                         draft->node->output_count, step->tensor_count * (group_count - 1));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (pen_onnx_draft_has(draft, i)) continue;
        return pen_error(PEN_INVALID_INPUT, "operand %u is left out", i);
    }
    step->rate = draft->inputs[0];
    const bool is_double = pen_value_type(draft->graph, step->rate)->element == PEN_FLOAT64;
    const pen_onnx_extra cast = {
        "cast", "steps", PEN_INPUTS(draft->inputs[1]),
        PEN_WITH(pen_attribute_text("to", is_double ? "float64" : "float32"))};
    PEN_TRY(pen_onnx_draft_extra(draft, &cast, &step->steps));
    draft->value_count = draft->node->output_count;
    return PEN_NEW(pen_graph_arena(draft->graph), draft->value_count, &draft->values);
}

// R / (1 + decay T);  H' = H + G'^2;  X' = X - r G' / (sqrt(H') + epsilon)
pen_status pen_onnx_convert_adagrad(pen_onnx_draft *draft) {
    training_step step;
    pen_value_id rate;
    PEN_TRY(training_init(draft, 3, &step));
    PEN_TRY(
        training_scale(&step, step.steps, pen_onnx_draft_float(draft, "decay_factor", 0), &rate));
    PEN_TRY(training_shift(&step, rate, 1, &rate));
    PEN_TRY(training_apply(&step, "div", step.rate, rate, &rate));
    for (uint32_t i = 0; i < step.tensor_count; i++) {
        pen_value_id gradient, squares, root, change;
        pen_value_id *moment = &draft->values[step.tensor_count + i];
        PEN_TRY(training_gradient(&step, i, &gradient));
        PEN_TRY(training_apply(&step, "mul", gradient, gradient, &squares));
        PEN_TRY(training_apply(&step, "add", training_operand(&step, 2, i), squares, moment));
        PEN_TRY(training_apply(&step, "sqrt", *moment, PEN_VALUE_NONE, &root));
        PEN_TRY(training_shift(&step, root, pen_onnx_draft_float(draft, "epsilon", 1e-6), &root));
        PEN_TRY(training_apply(&step, "mul", rate, gradient, &change));
        PEN_TRY(training_apply(&step, "div", change, root, &change));
        PEN_TRY(
            training_apply(&step, "sub", training_operand(&step, 0, i), change, &draft->values[i]));
    }
    return PEN_OK;
}

// V' = alpha V + (T > 0 ? beta : 1) G';  X' = X - R V', or by Nesterov X - R (G' + alpha V')
pen_status pen_onnx_convert_momentum(pen_onnx_draft *draft) {
    training_step step;
    const double alpha = pen_onnx_draft_float(draft, "alpha", 0);
    const pen_onnx_attribute *mode = pen_onnx_draft_attribute(draft, "mode");
    const char *mode_text = mode != NULL && mode->type == PEN_ONNX_STRING ? mode->text : "standard";
    const bool nesterov = strcmp(mode_text, "nesterov") == 0;
    pen_value_id beta, one;
    if (!nesterov && strcmp(mode_text, "standard") != 0) {
        return pen_error(PEN_INVALID_INPUT, "mode is '%.64s'; there are standard, nesterov",
                         mode_text);
    }
    PEN_TRY(training_init(draft, 3, &step));
    PEN_TRY(training_number(&step, "one", 1, &one));
    PEN_TRY(training_number(&step, "beta", pen_onnx_draft_float(draft, "beta", 0), &beta));
    PEN_TRY(training_after_first(&step, beta, one, &beta));
    for (uint32_t i = 0; i < step.tensor_count; i++) {
        pen_value_id gradient, part, change;
        pen_value_id *moment = &draft->values[step.tensor_count + i];
        PEN_TRY(training_gradient(&step, i, &gradient));
        PEN_TRY(training_apply(&step, "mul", beta, gradient, &part));
        PEN_TRY(training_scale(&step, training_operand(&step, 2, i), alpha, &change));
        PEN_TRY(training_apply(&step, "add", change, part, moment));
        change = *moment;
        if (nesterov) PEN_TRY(training_mix(&step, 1, gradient, alpha, *moment, &change));
        PEN_TRY(training_apply(&step, "mul", step.rate, change, &change));
        PEN_TRY(
            training_apply(&step, "sub", training_operand(&step, 0, i), change, &draft->values[i]));
    }
    return PEN_OK;
}

// R where T = 0, else R sqrt(1 - beta^T) / (1 - alpha^T).
static pen_status training_adam_rate(const training_step *step, double alpha, double beta,
                                     pen_value_id *out_rate) {
    pen_value_id powers[2], rate;
    const double bases[] = {alpha, beta};
    for (uint32_t i = 0; i < 2; i++) {
        pen_value_id base;
        PEN_TRY(training_number(step, "base", bases[i], &base));
        PEN_TRY(training_apply(step, "pow", base, step->steps, &powers[i]));
        PEN_TRY(training_scale(step, powers[i], -1, &powers[i]));
        PEN_TRY(training_shift(step, powers[i], 1, &powers[i]));
    }
    PEN_TRY(training_apply(step, "sqrt", powers[1], PEN_VALUE_NONE, &powers[1]));
    PEN_TRY(training_apply(step, "mul", step->rate, powers[1], &rate));
    PEN_TRY(training_apply(step, "div", rate, powers[0], &rate));
    return training_after_first(step, rate, step->rate, out_rate);
}

// V' = alpha V + (1 - alpha) G';  H' = beta H + (1 - beta) G'^2;
// X' = (1 - norm_coefficient_post) (X - r V' / (sqrt(H') + epsilon))
pen_status pen_onnx_convert_adam(pen_onnx_draft *draft) {
    training_step step;
    const double alpha = pen_onnx_draft_float(draft, "alpha", 0.9);
    const double beta = pen_onnx_draft_float(draft, "beta", 0.999);
    const double after = pen_onnx_draft_float(draft, "norm_coefficient_post", 0);
    pen_value_id rate;
    PEN_TRY(training_init(draft, 4, &step));
    PEN_TRY(training_adam_rate(&step, alpha, beta, &rate));
    for (uint32_t i = 0; i < step.tensor_count; i++) {
        pen_value_id gradient, squares, root, change;
        pen_value_id *first = &draft->values[step.tensor_count + i];
        pen_value_id *second = &draft->values[2 * step.tensor_count + i];
        pen_value_id *value = &draft->values[i];
        PEN_TRY(training_gradient(&step, i, &gradient));
        PEN_TRY(training_apply(&step, "mul", gradient, gradient, &squares));
        PEN_TRY(
            training_mix(&step, alpha, training_operand(&step, 2, i), 1 - alpha, gradient, first));
        PEN_TRY(
            training_mix(&step, beta, training_operand(&step, 3, i), 1 - beta, squares, second));
        PEN_TRY(training_apply(&step, "sqrt", *second, PEN_VALUE_NONE, &root));
        PEN_TRY(training_shift(&step, root, pen_onnx_draft_float(draft, "epsilon", 1e-6), &root));
        PEN_TRY(training_apply(&step, "mul", rate, *first, &change));
        PEN_TRY(training_apply(&step, "div", change, root, &change));
        PEN_TRY(training_apply(&step, "sub", training_operand(&step, 0, i), change, value));
        if (after != 0) PEN_TRY(training_scale(&step, *value, 1 - after, value));
    }
    return PEN_OK;
}
