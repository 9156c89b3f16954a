#include "graph/passes/gradient/weighted_loss.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/gradient/loss_nodes.h"

#define WEIGHTED_LEAST 1e-37 // a target below is told from 0 by the factor before its logarithm

static pen_element_type weighted_element(const pen_graph *graph, pen_value_id value) {
    return pen_value_type(graph, value)->element;
}

// c (d - c / 2), times `factor`: inside of the bounds half a square, outside a straight line.
static pen_status weighted_smooth(pen_graph *graph, double beta, double factor,
                                  pen_value_id distance, pen_value_id *out_losses) {
    const pen_element_type element = weighted_element(graph, distance);
    pen_value_id operands[3] = {distance}, held, half;
    PEN_TRY(pen_graph_constant_number(graph, "loss/least", element, -beta, &operands[1]));
    PEN_TRY(pen_graph_constant_number(graph, "loss/most", element, beta, &operands[2]));
    PEN_TRY(pen_loss_node(graph, PEN_OP(clip), 3, operands, &held));
    half = held;
    PEN_TRY(pen_loss_multiply(graph, "loss/half", 0.5, &half));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(sub), distance, half, out_losses));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(mul), held, *out_losses, out_losses));
    if (factor == 1) return PEN_OK;
    return pen_loss_multiply(graph, "loss/slope", factor, out_losses);
}

// Losses of the distance to the target alone.
static pen_status weighted_distance(pen_graph *graph, const pen_loss_spec *spec,
                                    const pen_value_id operands[2], pen_value_id *out_losses) {
    const bool is_huber = spec->kind == PEN_LOSS_HUBER;
    const bool is_smooth = is_huber || (spec->kind == PEN_LOSS_SMOOTH_L1 && spec->beta > 0);
    pen_value_id distance;
    PEN_TRY(pen_loss_pair(graph, PEN_OP(sub), operands[0], operands[1], &distance));
    if (spec->kind == PEN_LOSS_MEAN_SQUARED_ERROR) {
        return pen_loss_pair(graph, PEN_OP(mul), distance, distance, out_losses);
    }
    if (!is_smooth) return pen_loss_node(graph, PEN_OP(abs), 1, &distance, out_losses);
    return weighted_smooth(graph, spec->beta, is_huber ? 1 : 1 / spec->beta, distance, out_losses);
}

// log(1 + exp(x)) - t x, in a form that is exact for large x, too.
static pen_status weighted_logits(pen_graph *graph, const pen_value_id operands[2],
                                  pen_value_id *out_losses) {
    pen_value_id all, own;
    PEN_TRY(pen_loss_node(graph, PEN_OP(softplus), 1, operands, &all));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(mul), operands[0], operands[1], &own));
    return pen_loss_pair(graph, PEN_OP(sub), all, own, out_losses);
}

// A sigmoid before its loss is left out of the loss. Of other probabilities there is no formula
// here that stays finite at 0 and 1.
static pen_status weighted_chances(pen_graph *graph, const pen_value_id operands[2],
                                   pen_value_id *out_losses) {
    const pen_node_id producer = pen_graph_value(graph, operands[0])->producer;
    const pen_node *node = pen_node_is(producer) ? pen_graph_node(graph, producer) : NULL;
    if (node == NULL || node->op != PEN_OP(sigmoid)) {
        return pen_error(PEN_UNSUPPORTED,
                         "the data have weights of examples, but output '%s' of "
                         "binary_cross_entropy is not made by a sigmoid; expected one, or "
                         "binary_cross_entropy_with_logits",
                         pen_value_name(graph, operands[0]));
    }
    return weighted_logits(graph, (const pen_value_id[]){node->inputs[0], operands[1]}, out_losses);
}

// t (log t - x). The logarithm is of labels, so no gradient flows through it.
static pen_status weighted_divergence(pen_graph *graph, const pen_value_id operands[2],
                                      pen_value_id *out_losses) {
    pen_value_id least, logs;
    const pen_element_type element = weighted_element(graph, operands[1]);
    PEN_TRY(pen_graph_constant_number(graph, "loss/least", element, WEIGHTED_LEAST, &least));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(max), operands[1], least, &logs));
    PEN_TRY(pen_loss_node(graph, PEN_OP(log), 1, &logs, &logs));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(sub), logs, operands[0], &logs));
    return pen_loss_pair(graph, PEN_OP(mul), operands[1], logs, out_losses);
}

// Losses over classes have an operator that tells each by itself, so they are not made here.
pen_status pen_weighted_loss_elements(pen_graph *graph, const pen_loss_spec *spec,
                                      pen_value_id output, pen_value_id labels,
                                      pen_value_id *out_losses) {
    const pen_value_id operands[2] = {output, labels};
    switch (spec->kind) {
    case PEN_LOSS_MEAN_SQUARED_ERROR:
    case PEN_LOSS_L1:
    case PEN_LOSS_SMOOTH_L1:
    case PEN_LOSS_HUBER:
        return weighted_distance(graph, spec, operands, out_losses);
    case PEN_LOSS_BINARY_CROSS_ENTROPY:
        return weighted_chances(graph, operands, out_losses);
    case PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS:
        return weighted_logits(graph, operands, out_losses);
    case PEN_LOSS_KL_DIVERGENCE:
        return weighted_divergence(graph, operands, out_losses);
    case PEN_LOSS_SOFTMAX_CROSS_ENTROPY:
    case PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD:
    case PEN_LOSS_OUTPUT:
    case PEN_LOSS_KIND_COUNT:
        break;
    }
    return pen_error(PEN_INTERNAL, "a loss over classes has no elements");
}

// Labels and outputs lie example by example, so a row of the reshaped losses is an example.
pen_status pen_weighted_loss_sum(pen_graph *graph, pen_value_id losses, pen_value_id scale,
                                 double factor, pen_value_id *out_loss) {
    const pen_tensor_type type = *pen_value_type(graph, losses);
    const int64_t count = pen_value_type(graph, scale)->shape.dims[0];
    const int64_t all = pen_shape_element_count(&type.shape);
    if (count == 0 || all % count != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "the data have weights of examples, but the loss has %lld elements for "
                         "%lld examples",
                         (long long)all, (long long)count);
    }
    pen_value_id sum;
    PEN_TRY(pen_loss_reshape(graph, losses, "loss/examples", 2,
                             (const int64_t[]){count, all / count}, &losses));
    PEN_TRY(pen_loss_reshape(graph, scale, "loss/scales", 2, (const int64_t[]){count, 1}, &scale));
    if (type.element != PEN_FLOAT32) {
        PEN_TRY(pen_loss_cast(graph, scale, pen_element_name(type.element), &scale));
    }
    PEN_TRY(pen_loss_pair(graph, PEN_OP(mul), losses, scale, &sum));
    PEN_TRY(pen_loss_total(graph, sum, &sum));
    PEN_TRY(pen_loss_multiply(graph, "loss/share", factor, &sum));
    *out_loss = sum;
    return PEN_OK;
}
