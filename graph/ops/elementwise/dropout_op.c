// Dropout.
//
//   dropout(x, ratio, training_mode; seed) → y, mask
//   dropout_backward(dy, mask; ratio) → dx
//
// In training, element i is dropped (0, mask false) when number i of the node's random stream is
// below `ratio`, and is otherwise divided by 1 - ratio; else y is x and the mask all true. The
// stream is {seed, pen_random_stream(pen_node_stream(node), step, microbatch)}, and `seed` the
// attribute where given, else the job's: so the mask depends neither on placement nor on schedule.
//
// The gradient rule needs the mask: whoever makes a node in training mode to be trained gives it
// both outputs.

#include "graph/graph.h"
#include "graph/ops/shared/infer_checks.h"

// The ratio, which is 0 where nothing is dropped.
static pen_status dropout_read(const pen_graph *graph, const pen_node *node, double *out_ratio) {
    double training = 0;
    *out_ratio = 0;
    if (node->input_count > 2 && pen_value_is(node->inputs[2])) {
        PEN_TRY(pen_value_read_number(graph, node->inputs[2], &training));
    }
    if (training == 0) return PEN_OK;
    *out_ratio = 0.5;
    if (node->input_count < 2 || !pen_value_is(node->inputs[1])) return PEN_OK;
    return pen_value_read_number(graph, node->inputs[1], out_ratio);
}

// Ratio and mode have to be known: whether there is a mask depends on them.
static pen_status dropout_infer(pen_infer_context *context) {
    double ratio;
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    for (uint32_t i = 1; i < 3; i++) {
        if (!pen_infer_has_input(context, i)) continue;
        if (pen_shape_element_count(&pen_infer_input(context, i)->shape) == 1) continue;
        return pen_infer_error(context, PEN_INVALID_INPUT, "%s is not a scalar",
                               i == 1 ? "ratio" : "training_mode");
    }
    PEN_TRY(pen_infer_wrap(
        context, dropout_read(pen_infer_graph(context), pen_infer_node(context), &ratio)));
    if (!(ratio >= 0 && ratio < 1)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "ratio is %g; it may be 0 or more, and below 1", ratio);
    }
    const pen_tensor_type *x = pen_infer_input(context, 0);
    const pen_tensor_type mask = {PEN_BOOL, x->shape};
    PEN_TRY(pen_infer_set(context, 0, x));
    return pen_infer_node(context)->output_count > 1 ? pen_infer_set(context, 1, &mask) : PEN_OK;
}

static pen_status dropout_backward_infer(pen_infer_context *context) {
    const double ratio = pen_node_float(pen_infer_node(context), "ratio");
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENT_BIT(PEN_BOOL)));
    PEN_TRY(pen_infer_check_shape(context, 1, &pen_infer_input(context, 0)->shape));
    if (!(ratio >= 0 && ratio < 1)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "ratio is %g; it may be 0 or more, and below 1", ratio);
    }
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

// One multiplication per element.
static uint64_t dropout_flops(const pen_graph *graph, pen_node_id node) {
    const pen_value_id x = pen_graph_node(graph, node)->inputs[0];
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, x)->shape);
}

// With ratio 0 nothing was dropped, and the gradient passes through.
static pen_status dropout_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    double ratio;
    PEN_TRY(dropout_read(pen_gradient_graph(context), node, &ratio));
    if (ratio == 0) {
        pen_gradient_set(context, 0, pen_gradient_of_output(context, 0));
        return PEN_OK;
    }
    if (node->output_count < 2 || !pen_value_is(node->outputs[1])) {
        return pen_error(PEN_UNSUPPORTED, "dropout '%s' does not keep its mask", node->name);
    }
    const pen_attribute_given attribute = pen_attribute_float("ratio", ratio);
    const pen_gradient_emission emission = {
        .op_name = "dropout_backward",
        .inputs = (const pen_value_id[]){pen_gradient_of_output(context, 0), node->outputs[1]},
        .input_count = 2,
        .attributes = &attribute,
        .attribute_count = 1,
    };
    return pen_gradient_emit_set(context, &emission);
}

static const pen_attribute_schema dropout_attributes[] = {
    PEN_MAY("seed", INT),
    PEN_MAY("stream", TEXT),
};

static const pen_attribute_schema dropout_backward_attributes[] = {
    PEN_MUST("ratio", FLOAT),
};

static const pen_op dropout_ops[] = {
    {"dropout", "set random elements to 0 in training, and scale the others up", PEN_TAKES(1, 3),
     PEN_GIVES(1, 2), PEN_ATTRIBUTES(dropout_attributes), .constant_inputs = 6,
     .in_place_inputs = 1, .is_random = true, .infer = dropout_infer, .gradient = dropout_gradient,
     .flops = dropout_flops},
    {"dropout_backward", "gradient of dropout from dy and the mask", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(dropout_backward_attributes), .in_place_inputs = 1,
     .infer = dropout_backward_infer, .flops = dropout_flops},
};

PEN_OP_FAMILY(dropout);
