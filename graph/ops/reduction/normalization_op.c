// Normalisation over batches and over neighbouring channels.
//
//   batch_normalization(x, scale, bias, mean, variance; epsilon, momentum, training_mode, unbiased)
//       → y, running_mean, running_variance, saved_mean, saved_inverse_deviation, batch_mean,
//       batch_variance
//   batch_normalization_backward(dy, x, scale, saved_mean, saved_inverse_deviation; …)
//       → dx, dscale, dbias, dmean, dvariance
//   lrn(x; alpha, beta, bias, size), lrn_backward(dy, x; …)
//
// In training mode (training_mode = 1) the statistics are the batch's:
//   y = (x - mean_c) / sqrt(variance_c + epsilon) * scale_c + bias_c
//   running = running * momentum + batch's * (1 - momentum)
// The variance divides by the count of elements; the running one too, or by the count less one if
// `unbiased` (as PyTorch has it; ONNX has not). Outputs 3 and 4, an extension, hold the batch's
// mean and 1 / sqrt(variance + epsilon) for the gradient rule, which needs them: whoever makes a
// node in training mode to be trained gives it all five outputs, and makes outputs 1 and 2 replace
// the states that are inputs 3 and 4. Otherwise there is one output. Outputs 5 and 6, of float64,
// are what the running ones are made of, not rounded: for who makes those elsewhere
// (graph/passes/cut/replicate.h).
//
// Backward is one op, in the input half, because dx is made from the same two sums that are dscale
// and dbias. With training_mode = 0 (frozen statistics) its last inputs are the running mean and
// variance themselves, and dx = dy * scale / sqrt(variance + epsilon). Only then may it have the
// last two outputs, for statistics that are computed, as of standardized weights:
//   dmean = -scale * inverse * dbias, dvariance = -scale * inverse^2 * dscale / 2
//
// Fused with what often follows, by graph/passes/fuse/fuse_normalization.c; they have no gradient
// rule, because fusing comes last:
//   batch_normalization_relu(x, scale, bias, mean, variance; …)         y = relu(…), outputs as
//   above batch_normalization_add_relu(x, scale, bias, mean, variance, residual; …)
//       y = relu(… + residual), outputs as above
//   batch_normalization_relu_backward(dy, x, scale, bias, saved_mean, saved_inverse_deviation; …)
//       → dx, dscale, dbias, dmean, dvariance; what relu let through is found from x again, so y
//       may be forgotten
//   batch_normalization_add_relu_backward(dy, y, x, scale, saved_mean, saved_inverse_deviation,
//                                         dy_2; …)
//       → dresidual, dx, dscale, dbias, dmean, dvariance; the gradient is dy, or dy + dy_2 where
//       that is given; dresidual is the gradient where y > 0
//
// flops per element of x: forward 2, in training 6; backward 9, frozen 5; lrn 2 * size + 3,
// backward 2 * size + 8.

#include <inttypes.h>

#include "graph/graph.h"
#include "graph/ops/shared/infer_checks.h"

// Inputs `first` to `last` are vectors of a number a channel.
static pen_status batch_normalization_check(const pen_infer_context *context, uint32_t first,
                                            uint32_t last, const pen_shape *x) {
    if (x->rank < 2) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the input is %s; expected a batch and channels",
                               pen_shape_format(x, text));
    }
    const pen_shape channels = {1, {x->dims[1]}};
    for (uint32_t i = first; i <= last; i++) {
        PEN_TRY(pen_infer_check_element(context, i, PEN_ELEMENTS_FLOAT));
        PEN_TRY(pen_infer_check_shape(context, i, &channels));
    }
    return PEN_OK;
}

// A batch of one value per channel has no unbiased variance, which is said here and not by a NaN
// later.
static pen_status batch_normalization_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_tensor_type *x = pen_infer_input(context, 0);
    const pen_node *node = pen_infer_node(context);
    PEN_TRY(batch_normalization_check(context, 1, 4, &x->shape));
    PEN_TRY(pen_infer_check_same_element(context, 4, 3));
    const bool training = pen_node_int(node, "training_mode") != 0;
    if (!training && node->output_count > 1) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "%" PRIu32 " outputs without training_mode; expected 1",
                               node->output_count);
    }
    const int64_t channel_count = x->shape.dims[1];
    if (training && channel_count > 0 && pen_shape_element_count(&x->shape) == channel_count &&
        pen_node_int(node, "unbiased") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "one value a channel has no unbiased variance");
    }
    PEN_TRY(pen_infer_set(context, 0, x));
    const pen_tensor_type statistic = *pen_infer_input(context, 3);
    pen_tensor_type whole = statistic;
    whole.element = PEN_FLOAT64;
    for (uint32_t i = 1; i < node->output_count; i++) {
        PEN_TRY(pen_infer_set(context, i, i < 5 ? &statistic : &whole));
    }
    return PEN_OK;
}

// Sets the outputs of a backward op from `first` on, dscale to dvariance: as many as there are, of
// the types of inputs `scale` and `mean`. Gradients of statistics are of frozen ones alone.
static pen_status batch_normalization_set_gradients(pen_infer_context *context, uint32_t first,
                                                    uint32_t scale, uint32_t mean) {
    const pen_node *node = pen_infer_node(context);
    if (node->output_count > first + 2 && pen_node_int(node, "training_mode") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "%" PRIu32 " outputs with training_mode; expected at most %" PRIu32,
                               node->output_count, first + 2);
    }
    const pen_tensor_type weight = *pen_infer_input(context, scale);
    const pen_tensor_type statistic = *pen_infer_input(context, mean);
    for (uint32_t i = first; i < node->output_count; i++) {
        PEN_TRY(pen_infer_set(context, i, i < first + 2 ? &weight : &statistic));
    }
    return PEN_OK;
}

static pen_status batch_normalization_backward_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    const pen_tensor_type *dy = pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_shape(context, 1, &dy->shape));
    PEN_TRY(batch_normalization_check(context, 2, 4, &dy->shape));
    PEN_TRY(pen_infer_set(context, 0, dy));
    return batch_normalization_set_gradients(context, 1, 2, 3);
}

static pen_status batch_normalization_add_relu_infer(pen_infer_context *context) {
    PEN_TRY(batch_normalization_infer(context));
    PEN_TRY(pen_infer_check_same_element(context, 5, 0));
    return pen_infer_check_shape(context, 5, &pen_infer_input(context, 0)->shape);
}

// Inputs `scale` to `scale_last` are vectors, the others like dy; so are the first `whole_outputs`
// outputs, and the others like scale.
static pen_status batch_normalization_fused_backward_infer(pen_infer_context *context,
                                                           uint32_t scale, uint32_t scale_last,
                                                           uint32_t whole_outputs) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type *dy = pen_infer_input(context, 0);
    for (uint32_t i = 1; i < node->input_count; i++) {
        if ((i >= scale && i <= scale_last) || !pen_infer_has_input(context, i)) continue;
        PEN_TRY(pen_infer_check_same_element(context, i, 0));
        PEN_TRY(pen_infer_check_shape(context, i, &dy->shape));
    }
    PEN_TRY(batch_normalization_check(context, scale, scale_last, &dy->shape));
    for (uint32_t i = 0; i < whole_outputs; i++) {
        PEN_TRY(pen_infer_set(context, i, pen_infer_input(context, 0)));
    }
    return batch_normalization_set_gradients(context, whole_outputs, scale, scale_last - 1);
}

static pen_status batch_normalization_relu_backward_infer(pen_infer_context *context) {
    return batch_normalization_fused_backward_infer(context, 2, 5, 1);
}

static pen_status batch_normalization_add_relu_backward_infer(pen_infer_context *context) {
    return batch_normalization_fused_backward_infer(context, 3, 5, 2);
}

static uint64_t normalization_count(const pen_graph *graph, pen_node_id node) {
    const pen_value_id x = pen_graph_node(graph, node)->inputs[0];
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, x)->shape);
}

static uint64_t batch_normalization_flops(const pen_graph *graph, pen_node_id node) {
    const bool training = pen_node_int(pen_graph_node(graph, node), "training_mode") != 0;
    return (training ? 6 : 2) * normalization_count(graph, node);
}

static uint64_t batch_normalization_backward_flops(const pen_graph *graph, pen_node_id node) {
    const bool training = pen_node_int(pen_graph_node(graph, node), "training_mode") != 0;
    return (training ? 9 : 5) * normalization_count(graph, node);
}

// While training, the gradient reads the moments that the forward pass kept, and the statistics
// that are states are not differentiated.
static pen_status batch_normalization_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    const bool training = pen_node_int(node, "training_mode") != 0;
    const bool is_saved =
        node->output_count == 5 && pen_value_is(node->outputs[3]) && pen_value_is(node->outputs[4]);
    if (training && !is_saved) {
        return pen_error(PEN_UNSUPPORTED,
                         "batch_normalization '%s' in training mode does not save the batch's mean "
                         "and inverse deviation",
                         node->name);
    }
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    if (!pen_value_is(dy)) return PEN_OK; // the statistics are not differentiated
    const pen_attribute_given attributes[] = {
        pen_attribute_float("epsilon", pen_node_float(node, "epsilon")),
        pen_attribute_int("training_mode", training),
    };
    uint32_t output_count = 1;
    for (uint32_t i = 1; i < (training ? 3 : 5); i++) {
        if (pen_gradient_needed(context, i)) output_count = i < 3 ? 3 : 5;
    }
    const pen_gradient_emission emission = {
        .op_name = "batch_normalization_backward",
        .for_input = 0, // the input half, also for the others
        .inputs = (const pen_value_id[]){dy, node->inputs[0], node->inputs[1],
                                         training ? node->outputs[3] : node->inputs[3],
                                         training ? node->outputs[4] : node->inputs[4]},
        .input_count = 5,
        .attributes = attributes,
        .attribute_count = 2,
        .output_count = output_count,
    };
    pen_value_id gradients[5];
    PEN_TRY(pen_gradient_emit(context, &emission, gradients));
    for (uint32_t i = 0; i < emission.output_count; i++) {
        if (pen_gradient_needed(context, i)) pen_gradient_set(context, i, gradients[i]);
    }
    return PEN_OK;
}

static pen_status lrn_check(const pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_shape *x = &pen_infer_input(context, 0)->shape;
    const int64_t size = pen_node_int(pen_infer_node(context), "size");
    if (x->rank < 3) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the input is %s; expected a batch, channels and spatial dimensions",
                               pen_shape_format(x, text));
    }
    if (size < 1 || size > INT32_MAX) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "size is %" PRId64 "; it may be 1 to %d",
                               size, INT32_MAX);
    }
    return PEN_OK;
}

static pen_status lrn_infer(pen_infer_context *context) {
    PEN_TRY(lrn_check(context));
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

static pen_status lrn_backward_infer(pen_infer_context *context) {
    PEN_TRY(lrn_check(context));
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    PEN_TRY(pen_infer_check_shape(context, 1, &pen_infer_input(context, 0)->shape));
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

static uint64_t lrn_flops(const pen_graph *graph, pen_node_id node) {
    const uint64_t size = (uint64_t)pen_node_int(pen_graph_node(graph, node), "size");
    return (2 * size + 3) * normalization_count(graph, node);
}

static uint64_t lrn_backward_flops(const pen_graph *graph, pen_node_id node) {
    const uint64_t size = (uint64_t)pen_node_int(pen_graph_node(graph, node), "size");
    return (2 * size + 8) * normalization_count(graph, node);
}

static const pen_attribute_schema batch_normalization_attributes[] = {
    PEN_FLOAT_OR("epsilon", 1e-5),
    PEN_FLOAT_OR("momentum", 0.9),
    PEN_INT_OR("training_mode", 0),
    PEN_INT_OR("unbiased", 0),
};

static const pen_attribute_schema batch_normalization_backward_attributes[] = {
    PEN_FLOAT_OR("epsilon", 1e-5),
    PEN_INT_OR("training_mode", 0),
};

static const pen_attribute_schema lrn_attributes[] = {
    PEN_FLOAT_OR("alpha", 1e-4),
    PEN_FLOAT_OR("beta", 0.75),
    PEN_FLOAT_OR("bias", 1),
    PEN_MUST("size", INT),
};

static const pen_op normalization_ops[] = {
    {"batch_normalization", "normalise each channel by its mean and variance over the batch",
     PEN_TAKES(5, 5), PEN_GIVES(1, 7), PEN_ATTRIBUTES(batch_normalization_attributes),
     .in_place_inputs = 1, .statistics_inputs = 1u << 3 | 1u << 4, .statistics_if = "training_mode",
     .infer = batch_normalization_infer, .gradient = batch_normalization_gradient,
     .flops = batch_normalization_flops, .alike_inputs = 1, .alike_outputs = 1},
    {"batch_normalization_backward", "gradients of batch_normalization's inputs", PEN_TAKES(5, 5),
     PEN_GIVES(1, 5), PEN_ATTRIBUTES(batch_normalization_backward_attributes), .in_place_inputs = 3,
     .infer = batch_normalization_backward_infer, .flops = batch_normalization_backward_flops,
     .alike_inputs = 3, .alike_outputs = 1},
    {"batch_normalization_relu", "batch_normalization, then relu", PEN_TAKES(5, 5), PEN_GIVES(1, 7),
     PEN_ATTRIBUTES(batch_normalization_attributes), .in_place_inputs = 1,
     .statistics_inputs = 1u << 3 | 1u << 4, .statistics_if = "training_mode",
     .infer = batch_normalization_infer, .flops = batch_normalization_flops, .alike_inputs = 1,
     .alike_outputs = 1, .rectifies = true},
    {"batch_normalization_add_relu", "batch_normalization, then relu of the sum with a residual",
     PEN_TAKES(6, 6), PEN_GIVES(1, 7), PEN_ATTRIBUTES(batch_normalization_attributes),
     .in_place_inputs = 1 | 1 << 5, .statistics_inputs = 1u << 3 | 1u << 4,
     .statistics_if = "training_mode", .infer = batch_normalization_add_relu_infer,
     .flops = batch_normalization_flops, .alike_inputs = 1 | 1 << 5, .alike_outputs = 1,
     .rectifies = true},
    {"batch_normalization_relu_backward", "gradients of batch_normalization_relu's inputs",
     PEN_TAKES(6, 6), PEN_GIVES(1, 5), PEN_ATTRIBUTES(batch_normalization_backward_attributes),
     .in_place_inputs = 3, .infer = batch_normalization_relu_backward_infer,
     .flops = batch_normalization_backward_flops, .alike_inputs = 3, .alike_outputs = 1},
    {"batch_normalization_add_relu_backward",
     "gradients of batch_normalization_add_relu's residual and other inputs", PEN_TAKES(6, 7),
     PEN_GIVES(2, 6), PEN_ATTRIBUTES(batch_normalization_backward_attributes),
     .in_place_inputs = 3 | 1 << 6, .infer = batch_normalization_add_relu_backward_infer,
     .flops = batch_normalization_backward_flops, .alike_inputs = 7 | 1 << 6, .alike_outputs = 3},
    {"lrn", "normalise by the squares of neighbouring channels", PEN_TAKES(1, 1), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(lrn_attributes), .infer = lrn_infer, .gradient = pen_gradient_from_input,
     .flops = lrn_flops},
    {"lrn_backward", "gradient of lrn from dy and x", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(lrn_attributes), .infer = lrn_backward_infer, .flops = lrn_backward_flops},
};

PEN_OP_FAMILY(normalization);
