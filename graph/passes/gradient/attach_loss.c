#include "graph/passes/gradient/attach_loss.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/gradient/loss_mask.h"
#include "graph/passes/gradient/loss_nodes.h"
#include "graph/passes/gradient/weighted_loss.h"

#define LOSS_IGNORED (-100) // a label that is no class

static const pen_known_op loss_ops[PEN_LOSS_KIND_COUNT] = {
    [PEN_LOSS_SOFTMAX_CROSS_ENTROPY] = PEN_KNOWN_softmax_cross_entropy_loss,
    [PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD] = PEN_KNOWN_negative_log_likelihood_loss,
    [PEN_LOSS_MEAN_SQUARED_ERROR] = PEN_KNOWN_mean_squared_error,
    [PEN_LOSS_BINARY_CROSS_ENTROPY] = PEN_KNOWN_binary_cross_entropy,
    [PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS] = PEN_KNOWN_binary_cross_entropy_with_logits,
    [PEN_LOSS_L1] = PEN_KNOWN_l1,
    [PEN_LOSS_SMOOTH_L1] = PEN_KNOWN_smooth_l1,
    [PEN_LOSS_HUBER] = PEN_KNOWN_smooth_l1, // times delta
    [PEN_LOSS_KL_DIVERGENCE] = PEN_KNOWN_kl_divergence,
    [PEN_LOSS_OUTPUT] = PEN_KNOWN_COUNT, // the model computes it
};

const char *const pen_loss_kind_names[] = {
    [PEN_LOSS_SOFTMAX_CROSS_ENTROPY] = "softmax_cross_entropy",
    [PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD] = "negative_log_likelihood",
    [PEN_LOSS_MEAN_SQUARED_ERROR] = "mean_squared_error",
    [PEN_LOSS_BINARY_CROSS_ENTROPY] = "binary_cross_entropy",
    [PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS] = "binary_cross_entropy_with_logits",
    [PEN_LOSS_L1] = "l1",
    [PEN_LOSS_SMOOTH_L1] = "smooth_l1",
    [PEN_LOSS_HUBER] = "huber",
    [PEN_LOSS_KL_DIVERGENCE] = "kl_divergence",
    [PEN_LOSS_OUTPUT] = "output",
    NULL,
};

static pen_status loss_add_input(pen_graph *graph, const char *name, const pen_tensor_type *type,
                                 pen_value_id *out_input) {
    const pen_value input = {.name = name, .kind = PEN_VALUE_INPUT, .type = *type};
    return pen_graph_add_own_value(graph, &input, out_input);
}

// What a softmax over the classes reads: a model that ends with one, as Keras' do, is trained by
// its logits. Else the output itself.
static pen_value_id loss_find_logits(const pen_graph *graph, pen_value_id output, uint32_t axis) {
    const pen_value *value = pen_graph_value(graph, output);
    if (!pen_node_is(value->producer)) return output;
    const pen_node *node = pen_graph_node(graph, value->producer);
    if (node->op != PEN_OP(softmax)) return output;
    const int64_t along = pen_node_int(node, "axis");
    const int64_t dimension = along < 0 ? along + (int64_t)value->type.shape.rank : along;
    return dimension == (int64_t)axis ? node->inputs[0] : output;
}

// ---- masks

// Of numbers that are compared: what the mask leaves out becomes a target that is met. The mask
// gets the shape of the numbers.
static pen_status loss_mask_elements(pen_graph *graph, const pen_loss_place *place, double met,
                                     pen_value_id operands[2], pen_value_id *out_mask) {
    const uint32_t rank = pen_value_type(graph, place->output)->shape.rank;
    *out_mask = place->mask;
    PEN_TRY(pen_loss_shape_mask(graph, place->output, rank, out_mask));
    PEN_TRY(pen_loss_where(graph, *out_mask, operands[0], met, &operands[0]));
    return pen_loss_where(graph, *out_mask, operands[1], 0, &operands[1]);
}

pen_status pen_attach_share(pen_graph *graph, pen_value_id value, pen_value_id share,
                            pen_value_id *out_part) {
    const pen_element_type element = pen_value_type(graph, value)->element;
    if (pen_value_type(graph, share)->element != element) {
        PEN_TRY(pen_loss_cast(graph, share, pen_element_name(element), &share));
    }
    return pen_loss_pair(graph, PEN_OP(mul), value, share, out_part);
}

// ---- the divisor

static pen_status loss_add_scale(pen_graph *graph, const pen_loss_place *place,
                                 pen_attached_loss *out_loss) {
    const int64_t count = (int64_t)place->example_count;
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 1, &count);
    return loss_add_input(graph, place->scale, &type, &out_loss->scale);
}

// loss = sum * scale / examples, where the scale is fed for each example, always the same.
static pen_status loss_scale(pen_graph *graph, const pen_loss_place *place, pen_value_id sum,
                             pen_attached_loss *out_loss) {
    const pen_element_type element = pen_value_type(graph, sum)->element;
    pen_value_id scale, share;
    PEN_TRY(loss_add_scale(graph, place, out_loss));
    PEN_TRY(pen_loss_map(graph, PEN_OP(reduce_max), "loss/scale", out_loss->scale,
                         pen_attribute_int("keepdims", 0), &scale));
    if (element != PEN_FLOAT32) {
        PEN_TRY(pen_loss_cast(graph, scale, pen_element_name(element), &scale));
    }
    PEN_TRY(pen_graph_constant_number(graph, "loss/share", element,
                                      1 / (double)place->example_count, &share));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(mul), scale, share, &scale));
    return pen_loss_pair(graph, PEN_OP(mul), sum, scale, &out_loss->loss);
}

// loss = factor * the sum over examples of scale * their losses, where scales differ.
static pen_status loss_scale_each(pen_graph *graph, const pen_loss_place *place,
                                  pen_value_id losses, double factor, pen_attached_loss *out_loss) {
    PEN_TRY(loss_add_scale(graph, place, out_loss));
    return pen_weighted_loss_sum(graph, losses, out_loss->scale, factor, &out_loss->loss);
}

// A mask says anew in each microbatch which targets count; what the model computes has no examples.
static pen_status loss_check_weighing(const pen_graph *graph, const pen_loss_spec *spec,
                                      const pen_loss_place *place) {
    const bool has_mask = pen_value_is(place->mask);
    if (!spec->weighs_examples || (!has_mask && spec->kind != PEN_LOSS_OUTPUT)) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "the data have weights of examples, but output '%s' %s",
                     pen_value_name(graph, place->output),
                     has_mask ? "has a mask; expected one of the two"
                              : "is the loss itself, in which they cannot be told apart");
}

pen_status pen_attach_weighted(pen_graph *graph, pen_value_id loss, double weight,
                               pen_value_id *io_sum) {
    const pen_element_type element = pen_value_type(graph, loss)->element;
    pen_value_id factor;
    if (weight != 1) {
        PEN_TRY(pen_graph_constant_number(graph, "loss/weight", element, weight, &factor));
        PEN_TRY(pen_loss_pair(graph, PEN_OP(mul), loss, factor, &loss));
    }
    if (!pen_value_is(*io_sum)) {
        *io_sum = loss;
        return PEN_OK;
    }
    const pen_element_type sum = pen_value_type(graph, *io_sum)->element;
    if (element != sum) PEN_TRY(pen_loss_cast(graph, loss, pen_element_name(sum), &loss));
    return pen_loss_pair(graph, PEN_OP(add), *io_sum, loss, io_sum);
}

// ---- losses over classes

bool pen_loss_is_over_classes(pen_loss_kind kind) {
    return kind == PEN_LOSS_SOFTMAX_CROSS_ENTROPY || kind == PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD;
}

bool pen_loss_takes_indices(const pen_loss_spec *spec) {
    return pen_loss_is_over_classes(spec->kind) && !spec->has_probabilities;
}

bool pen_loss_is_scaled(const pen_loss_spec *spec) {
    if (spec->weighs_examples) return true;
    return pen_loss_takes_indices(spec) && (spec->ignores || spec->class_weights != NULL);
}

// A loss over classes on its way: `scores` and `targets` as the operators take them.
typedef struct class_loss {
    pen_graph *graph;
    const pen_loss_spec *spec;
    const pen_loss_place *place;
    pen_value_id output; // the logits, if a softmax made it
    uint32_t axis;
    bool has_mask;
    bool ignores; // a label that is in the data, or that the mask puts there
    int64_t ignore_index;
    pen_value_id scores;  // (…, classes, …), the classes second
    pen_value_id targets; // as scores, without the classes
} class_loss;

static pen_status class_loss_check(class_loss *loss) {
    const pen_tensor_type *type = pen_value_type(loss->graph, loss->place->output);
    const char *name = pen_value_name(loss->graph, loss->place->output);
    const int64_t rank = type->shape.rank, given = loss->spec->class_axis;
    const int64_t axis = given < 0 ? given + rank : given;
    char text[PEN_SHAPE_TEXT_BYTES];
    if (axis > 0 && axis < rank) {
        loss->axis = (uint32_t)axis;
        return PEN_OK;
    }
    if (given == -1) {
        return pen_error(PEN_INVALID_INPUT, "output '%s' is %s, expected (examples, …, classes)",
                         name, pen_tensor_type_format(type, text));
    }
    return pen_error(PEN_INVALID_INPUT,
                     "class_axis is %lld, but output '%s' is %s; expected one of its dimensions "
                     "behind the first",
                     (long long)given, name, pen_tensor_type_format(type, text));
}

static pen_status class_loss_check_weights(const class_loss *loss, int64_t class_count) {
    const pen_loss_spec *spec = loss->spec;
    if (spec->class_weights == NULL || spec->class_weight_count == class_count) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "class_weights has %u numbers, but output '%s' has %lld classes",
                     spec->class_weight_count, pen_value_name(loss->graph, loss->place->output),
                     (long long)class_count);
}

// What the mask leaves out gets a label that is no class, or is ignored anyway.
static pen_status class_loss_mask(class_loss *loss) {
    pen_value_id mask = loss->place->mask;
    const uint32_t rank = pen_value_type(loss->graph, loss->output)->shape.rank;
    if (loss->axis + 1 != rank) {
        return pen_error(PEN_UNSUPPORTED,
                         "output '%s' has a mask; then classes must be its last dimension",
                         pen_value_name(loss->graph, loss->place->output));
    }
    PEN_TRY(pen_loss_shape_mask(loss->graph, loss->output, rank - 1, &mask));
    if (!loss->ignores) loss->ignore_index = LOSS_IGNORED;
    loss->ignores = true;
    return pen_loss_where(loss->graph, mask, loss->targets, (double)loss->ignore_index,
                          &loss->targets);
}

// Dimensions before the classes become one, and those behind them; a second dimension stays as it
// is.
static pen_status class_loss_shape(class_loss *loss) {
    const pen_shape shape = pen_value_type(loss->graph, loss->output)->shape;
    const int64_t dims[3] = {pen_shape_count(&shape, 0, loss->axis), shape.dims[loss->axis],
                             pen_shape_count(&shape, loss->axis + 1, shape.rank)};
    const int64_t flat[2] = {dims[0], dims[2]};
    const bool is_last = loss->axis + 1 == shape.rank;
    loss->scores = loss->output;
    if (loss->axis == 1) return PEN_OK;
    PEN_TRY(pen_loss_reshape(loss->graph, loss->output, "loss/scores_shape", is_last ? 2 : 3, dims,
                             &loss->scores));
    return pen_loss_reshape(loss->graph, loss->targets, "loss/labels_shape", is_last ? 1 : 2, flat,
                            &loss->targets);
}

// Copied to the graph, in the type of the scores.
static pen_status class_loss_add_weights(const class_loss *loss, pen_value_id *out_weights) {
    const pen_loss_spec *spec = loss->spec;
    const int64_t count = spec->class_weight_count;
    const pen_tensor_type type =
        pen_tensor_type_make(pen_value_type(loss->graph, loss->scores)->element, 1, &count);
    char *data;
    *out_weights = PEN_VALUE_NONE;
    if (spec->class_weights == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(loss->graph), pen_tensor_type_bytes(&type), &data));
    for (int64_t c = 0; c < count; c++) {
        pen_element_write(type.element, data, c, (double)spec->class_weights[c]);
    }
    return pen_graph_constant(loss->graph, "loss/class_weights", &type, data, out_weights);
}

// The operator itself, with the options that are asked for, and no others.
static pen_status class_loss_add(const class_loss *loss, const char *reduction,
                                 pen_value_id *out_loss) {
    const pen_op *op = pen_op_known(loss_ops[loss->spec->kind]);
    pen_value_id operands[3] = {loss->scores, loss->targets};
    pen_attribute_given attributes[3] = {pen_attribute_text("reduction", reduction)};
    const char *name;
    PEN_TRY(class_loss_add_weights(loss, &operands[2]));
    PEN_TRY(pen_arena_format(pen_graph_arena(loss->graph), &name, "loss/%s", op->name));
    pen_node_spec spec = pen_node_spec_of(op, name);
    spec.inputs = operands;
    spec.input_count = pen_value_is(operands[2]) ? 3 : 2;
    spec.attributes = attributes;
    spec.attribute_count = 1;
    if (loss->ignores) {
        attributes[spec.attribute_count++] = pen_attribute_int("ignore_index", loss->ignore_index);
    }
    if (loss->spec->label_smoothing > 0) {
        attributes[spec.attribute_count++] =
            pen_attribute_float("label_smoothing", loss->spec->label_smoothing);
    }
    return pen_graph_add_simple(loss->graph, &spec, out_loss);
}

// How many targets have their label among `top` of the best classes.
static pen_status class_loss_count(const class_loss *loss, uint32_t top,
                                   pen_value_id *out_accuracy) {
    const pen_value_id operands[2] = {loss->scores, loss->targets};
    pen_attribute_given attributes[2];
    pen_node_spec spec = pen_node_spec_of(PEN_OP(accuracy_count), "loss/accuracy_count");
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = attributes;
    if (loss->ignores) {
        attributes[spec.attribute_count++] = pen_attribute_int("ignore_index", loss->ignore_index);
    }
    if (top > 1) attributes[spec.attribute_count++] = pen_attribute_int("top", top);
    return pen_graph_add_simple(loss->graph, &spec, out_accuracy);
}

// Of a mask's targets those that count have a label that is not ignored.
static pen_status class_loss_find_counts(const class_loss *loss, pen_value_id *out_counts) {
    pen_value_id ignored;
    PEN_TRY(pen_graph_constant_number(loss->graph, "loss/ignored", PEN_INT64,
                                      (double)loss->ignore_index, &ignored));
    PEN_TRY(pen_loss_pair(loss->graph, PEN_OP(equal), loss->targets, ignored, &ignored));
    return pen_loss_node(loss->graph, PEN_OP(not ), 1, &ignored, out_counts);
}

// The least that a target counts, if it counts at all.
static double class_loss_least(const pen_loss_spec *spec) {
    double least = HUGE_VAL;
    for (uint32_t c = 0; c < spec->class_weight_count; c++) {
        if (spec->class_weights[c] > 0) least = fmin(least, (double)spec->class_weights[c]);
    }
    return least < HUGE_VAL ? least : 1;
}

// What all targets that count weigh together, as float32: each as its class, or 1.
static pen_status class_loss_add_total(const class_loss *loss, pen_value_id counts,
                                       pen_value_id *out_total) {
    pen_value_id operands[2];
    if (loss->spec->class_weights == NULL) return pen_loss_count(loss->graph, counts, out_total);
    PEN_TRY(class_loss_add_weights(loss, &operands[0]));
    PEN_TRY(pen_loss_where(loss->graph, counts, loss->targets, 0, &operands[1]));
    PEN_TRY(pen_loss_node(loss->graph, PEN_OP(gather), 2, operands, &operands[0]));
    PEN_TRY(pen_loss_where(loss->graph, counts, operands[0], 0, &operands[0]));
    PEN_TRY(pen_loss_cast(loss->graph, operands[0], "float32", &operands[0]));
    return pen_loss_total(loss->graph, operands[0], out_total);
}

// The mean over the targets that count; 0 where none does, as Keras has it. The operator's own mean
// would be 0/0 there, as PyTorch's is of labels that are all ignored.
static pen_status class_loss_add_masked(const class_loss *loss, pen_value_id counts,
                                        pen_value_id *out_loss) {
    pen_value_id sum, total, least, one;
    pen_graph *graph = loss->graph;
    PEN_TRY(class_loss_add(loss, "sum", &sum));
    PEN_TRY(class_loss_add_total(loss, counts, &total));
    PEN_TRY(pen_graph_constant_number(graph, "loss/least", PEN_FLOAT32,
                                      class_loss_least(loss->spec), &least));
    PEN_TRY(pen_graph_constant_number(graph, "loss/one", PEN_FLOAT32, 1, &one));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(max), total, least, &total));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(div), one, total, &total));
    return pen_attach_share(graph, sum, total, out_loss);
}

// As float32, since it travels as losses do: it is added up by the examples of microbatches.
static pen_status class_loss_count_tops(const class_loss *loss, pen_attached_loss *out_loss) {
    const pen_loss_place *place = loss->place;
    for (uint32_t i = 0; i < place->top_count; i++) {
        pen_value_id *among = &out_loss->among[i];
        PEN_TRY(class_loss_count(loss, place->tops[i], among));
        PEN_TRY(pen_loss_cast(loss->graph, *among, "float32", among));
        PEN_TRY(pen_loss_multiply(loss->graph, "loss/top_share", 1 / (double)place->example_count,
                                  among));
    }
    return PEN_OK;
}

static pen_tensor_type class_loss_labels(const class_loss *loss) {
    const pen_shape *shape = &pen_value_type(loss->graph, loss->output)->shape;
    pen_tensor_type type = {PEN_INT64, {.rank = shape->rank - 1}};
    for (uint32_t d = 0; d < type.shape.rank; d++) {
        type.shape.dims[d] = shape->dims[d < loss->axis ? d : d + 1];
    }
    return type;
}

// A softmax before its loss is left out of the loss: the logits are surer numbers.
static pen_status loss_attach_classes(pen_graph *graph, const pen_loss_spec *spec,
                                      const pen_loss_place *place, pen_attached_loss *out_loss) {
    class_loss loss = {.graph = graph,
                       .spec = spec,
                       .place = place,
                       .has_mask = pen_value_is(place->mask),
                       .ignores = spec->ignores,
                       .ignore_index = spec->ignore_index};
    const bool is_scaled = pen_loss_is_scaled(spec);
    pen_value_id sum, counts;
    PEN_TRY(class_loss_check(&loss));
    const bool is_softmax = spec->kind == PEN_LOSS_SOFTMAX_CROSS_ENTROPY;
    loss.output = is_softmax ? loss_find_logits(graph, place->output, loss.axis) : place->output;
    const int64_t class_count = pen_value_type(graph, loss.output)->shape.dims[loss.axis];
    const pen_tensor_type labels = class_loss_labels(&loss);
    PEN_TRY(class_loss_check_weights(&loss, class_count));
    PEN_TRY(loss_add_input(graph, place->labels, &labels, &out_loss->labels));
    loss.targets = out_loss->labels;
    if (loss.has_mask) PEN_TRY(class_loss_mask(&loss));
    PEN_TRY(class_loss_shape(&loss));
    out_loss->class_count = (uint32_t)class_count;
    PEN_TRY(class_loss_count(&loss, 1, &out_loss->accuracy));
    PEN_TRY(class_loss_count_tops(&loss, out_loss));
    if (loss.has_mask) {
        PEN_TRY(class_loss_find_counts(&loss, &counts));
        PEN_TRY(pen_loss_find_counted(graph, counts, &out_loss->counted));
        return class_loss_add_masked(&loss, counts, &out_loss->loss);
    }
    if (spec->weighs_examples) {
        PEN_TRY(class_loss_add(&loss, "none", &sum));
        return loss_scale_each(graph, place, sum, 1 / (double)place->example_count, out_loss);
    }
    PEN_TRY(class_loss_add(&loss, is_scaled ? "sum" : "mean", &sum));
    out_loss->loss = sum;
    return is_scaled ? loss_scale(graph, place, sum, out_loss) : PEN_OK;
}

// ---- probabilities of classes

// (1 - s) p + s / classes
static pen_status loss_smooth(pen_graph *graph, double smoothing, int64_t class_count,
                              pen_value_id *io_targets) {
    pen_value_id all;
    if (smoothing == 0) return PEN_OK;
    PEN_TRY(pen_loss_multiply(graph, "loss/kept", 1 - smoothing, io_targets));
    PEN_TRY(pen_graph_constant_number(graph, "loss/smoothed",
                                      pen_value_type(graph, *io_targets)->element,
                                      smoothing / (double)class_count, &all));
    return pen_loss_pair(graph, PEN_OP(add), *io_targets, all, io_targets);
}

// The weights of the classes lie along their dimension.
static pen_status loss_weigh(const class_loss *loss, pen_value_id *io_targets) {
    const uint32_t rank = pen_value_type(loss->graph, loss->output)->shape.rank;
    int64_t dims[PEN_RANK_LIMIT];
    pen_value_id weights;
    PEN_TRY(class_loss_add_weights(loss, &weights));
    if (!pen_value_is(weights)) return PEN_OK;
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d == loss->axis ? loss->spec->class_weight_count : 1;
    PEN_TRY(pen_loss_reshape(loss->graph, weights, "loss/weights_shape", rank, dims, &weights));
    return pen_loss_pair(loss->graph, PEN_OP(mul), *io_targets, weights, io_targets);
}

// Minus the sum of weight[c] p[c] log_softmax(x)[c], divided by the number of targets, which
// weights do not change. Made of operators that there are, so that their gradients are its own.
static pen_status loss_attach_probabilities(pen_graph *graph, const pen_loss_spec *spec,
                                            const pen_loss_place *place,
                                            pen_attached_loss *out_loss) {
    const pen_tensor_type labels = *pen_value_type(graph, place->output);
    class_loss loss = {.graph = graph, .spec = spec, .place = place};
    pen_value_id logs, targets, sum;
    if (pen_value_is(place->mask)) {
        return pen_error(PEN_UNSUPPORTED,
                         "output '%s' has a mask, and the labels are probabilities: expected class "
                         "indices",
                         pen_value_name(graph, place->output));
    }
    PEN_TRY(class_loss_check(&loss));
    loss.output = loss.scores = loss_find_logits(graph, place->output, loss.axis);
    const int64_t class_count = labels.shape.dims[loss.axis];
    PEN_TRY(class_loss_check_weights(&loss, class_count));
    PEN_TRY(loss_add_input(graph, place->labels, &labels, &out_loss->labels));
    targets = out_loss->labels;
    PEN_TRY(loss_smooth(graph, spec->label_smoothing, class_count, &targets));
    PEN_TRY(loss_weigh(&loss, &targets));
    PEN_TRY(pen_loss_map(graph, PEN_OP(log_softmax), "loss/log_softmax", loss.output,
                         pen_attribute_int("axis", (int64_t)loss.axis), &logs));
    PEN_TRY(pen_loss_pair(graph, PEN_OP(mul), logs, targets, &sum));
    const double target_count =
        (double)pen_shape_element_count(&labels.shape) / (double)class_count;
    if (spec->weighs_examples) {
        return loss_scale_each(graph, place, sum, -1 / target_count, out_loss);
    }
    PEN_TRY(pen_loss_total(graph, sum, &sum));
    PEN_TRY(pen_loss_multiply(graph, "loss/share", -1 / target_count, &sum));
    out_loss->loss = sum;
    return PEN_OK;
}

// ---- losses of numbers

// By what the operator's mean is multiplied; 1: nothing.
static double loss_factor(const pen_loss_spec *spec, const pen_shape *shape) {
    if (spec->kind == PEN_LOSS_HUBER) return spec->beta;
    if (spec->kind != PEN_LOSS_KL_DIVERGENCE || shape->rank == 0) return 1;
    return (double)pen_shape_count(shape, 1, shape->rank);
}

static pen_status loss_add_elements(pen_graph *graph, const pen_loss_spec *spec,
                                    const pen_value_id *operands, pen_value_id *out_loss) {
    const pen_op *op = pen_op_known(loss_ops[spec->kind]);
    const bool has_beta = spec->kind == PEN_LOSS_SMOOTH_L1 || spec->kind == PEN_LOSS_HUBER;
    const pen_attribute_given beta = pen_attribute_float("beta", spec->beta);
    const pen_shape shape = pen_value_type(graph, operands[0])->shape;
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "loss/%s", op->name));
    pen_node_spec node = pen_node_spec_of(op, name);
    node.inputs = operands;
    node.input_count = 2;
    node.attributes = &beta;
    node.attribute_count = has_beta ? 1 : 0;
    PEN_TRY(pen_graph_add_simple(graph, &node, out_loss));
    pen_value_id sum = PEN_VALUE_NONE;
    PEN_TRY(pen_attach_weighted(graph, *out_loss, loss_factor(spec, &shape), &sum));
    *out_loss = sum;
    return PEN_OK;
}

pen_status pen_attach_error(pen_graph *graph, pen_loss_kind kind, const pen_loss_place *place,
                            pen_value_id labels, pen_value_id *out_error) {
    const pen_loss_spec spec = {.kind = kind};
    pen_value_id operands[2] = {place->output, labels}, mask;
    if (pen_value_is(place->mask)) {
        PEN_TRY(loss_mask_elements(graph, place, 0, operands, &mask));
    }
    return loss_add_elements(graph, &spec, operands, out_error);
}

// The mean over the elements of an example, but for the divergence, which is their sum.
static pen_status loss_weigh_elements(pen_graph *graph, const pen_loss_spec *spec,
                                      const pen_loss_place *place, pen_attached_loss *out_loss) {
    const pen_shape shape = pen_value_type(graph, place->output)->shape;
    const bool is_sum = spec->kind == PEN_LOSS_KL_DIVERGENCE;
    const double divisor =
        is_sum ? (double)place->example_count : (double)pen_shape_element_count(&shape);
    pen_value_id losses;
    PEN_TRY(pen_weighted_loss_elements(graph, spec, place->output, out_loss->labels, &losses));
    return loss_scale_each(graph, place, losses, 1 / divisor, out_loss);
}

// The loss of what the mask leaves out is 0.
static pen_status loss_attach_elements(pen_graph *graph, const pen_loss_spec *spec,
                                       const pen_loss_place *place, pen_attached_loss *out_loss) {
    const pen_tensor_type type = *pen_value_type(graph, place->output);
    PEN_TRY(loss_add_input(graph, place->labels, &type, &out_loss->labels));
    pen_value_id operands[2] = {place->output, out_loss->labels};
    if (spec->weighs_examples) return loss_weigh_elements(graph, spec, place, out_loss);
    if (!pen_value_is(place->mask)) {
        return loss_add_elements(graph, spec, operands, &out_loss->loss);
    }
    const double met = spec->kind == PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS ? -1e4 : 0;
    pen_value_id share, loss, mask;
    PEN_TRY(loss_mask_elements(graph, place, met, operands, &mask));
    PEN_TRY(pen_loss_find_counted(graph, mask, &out_loss->counted));
    PEN_TRY(loss_add_elements(graph, spec, operands, &loss));
    PEN_TRY(pen_loss_mask_share(graph, mask, &share));
    return pen_loss_pair(graph, PEN_OP(mul), loss, share, &out_loss->loss);
}

static pen_status loss_attach_output(const pen_graph *graph, pen_value_id output,
                                     pen_attached_loss *out_loss) {
    const pen_tensor_type *type = pen_value_type(graph, output);
    if (pen_shape_element_count(&type->shape) != 1) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "output '%s' is %s, expected one element to be the loss",
                         pen_value_name(graph, output), pen_tensor_type_format(type, text));
    }
    out_loss->loss = output;
    return PEN_OK;
}

pen_status pen_attach_penalty(pen_graph *graph, pen_value_id penalty, pen_value_id *io_loss) {
    if (pen_value_type(graph, *io_loss)->element != PEN_FLOAT32) {
        return pen_error(PEN_UNSUPPORTED, "the loss is %s: regularizers need float32",
                         pen_element_name(pen_value_type(graph, *io_loss)->element));
    }
    return pen_loss_pair(graph, PEN_OP(add), *io_loss, penalty, io_loss);
}

// Each kind of loss knows its labels and its mask; what they have in common is checked before.
pen_status pen_attach_loss(pen_graph *graph, const pen_loss_spec *spec, const pen_loss_place *place,
                           pen_attached_loss *out_loss) {
    *out_loss = (pen_attached_loss){.loss = PEN_VALUE_NONE,
                                    .labels = PEN_VALUE_NONE,
                                    .scale = PEN_VALUE_NONE,
                                    .accuracy = PEN_VALUE_NONE,
                                    .counted = PEN_VALUE_NONE};
    const pen_tensor_type *type = pen_value_type(graph, place->output);
    if (!pen_element_is_float(type->element)) {
        return pen_error(PEN_INVALID_INPUT, "output '%s' is %s: no loss can be taken of it",
                         pen_value_name(graph, place->output), pen_element_name(type->element));
    }
    PEN_TRY(loss_check_weighing(graph, spec, place));
    if (spec->kind == PEN_LOSS_OUTPUT) return loss_attach_output(graph, place->output, out_loss);
    if (spec->has_probabilities) return loss_attach_probabilities(graph, spec, place, out_loss);
    if (pen_loss_is_over_classes(spec->kind)) {
        return loss_attach_classes(graph, spec, place, out_loss);
    }
    return loss_attach_elements(graph, spec, place, out_loss);
}
