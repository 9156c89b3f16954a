// What metrics see of a model's outputs: scores, or only which classes have the best, so that no
// more travels than is counted.
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "scheduler/compile/compile_pass.h"

static bool metrics_is_softmax(const pen_graph *graph, pen_value_id output) {
    const pen_node_id producer = pen_graph_value(graph, output)->producer;
    return pen_node_is(producer) && pen_graph_node(graph, producer)->op == PEN_OP(softmax);
}

static uint32_t metrics_class_axis(const pen_loss_spec *spec, const pen_shape *shape) {
    const int64_t axis = spec->class_axis;
    return (uint32_t)(axis < 0 ? axis + (int64_t)shape->rank : axis);
}

pen_metric_loss pen_compile_metric_loss(const pen_compilation *compilation,
                                        const pen_loss_spec *spec, pen_value_id output) {
    const pen_shape *shape = &pen_value_type(compilation->graph, output)->shape;
    uint32_t class_count = pen_metric_is_decision(spec->kind) ? 2 : 0;
    if (pen_loss_is_over_classes(spec->kind)) {
        class_count = (uint32_t)shape->dims[metrics_class_axis(spec, shape)];
    }
    return pen_metric_loss_of(spec, class_count, compilation->model->penalty != NULL);
}

// Of equal scores the first class is the best, as where right answers are counted.
static pen_status metrics_add_largest(pen_graph *graph, pen_value_id scores, uint32_t axis,
                                      pen_value_id *out_best) {
    const pen_attribute_given attribute = pen_attribute_int("axis", (int64_t)axis);
    pen_node_spec spec = pen_node_spec_of(PEN_OP(arg_max), "metrics/best");
    spec.inputs = &scores;
    spec.input_count = 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    return pen_graph_add_simple(graph, &spec, out_best);
}

static pen_status metrics_add_best(pen_graph *graph, pen_value_id scores, uint32_t axis,
                                   uint32_t top, pen_value_id *out_best) {
    const int64_t count = top;
    pen_value_id operands[2] = {scores};
    pen_node_id node;
    if (top == 1) return metrics_add_largest(graph, scores, axis, out_best);
    PEN_TRY(pen_graph_constant_ints(graph, "metrics/top", 1, &count, &operands[1]));
    const pen_attribute_given attribute = pen_attribute_int("axis", (int64_t)axis);
    pen_node_spec spec = pen_node_spec_of(PEN_OP(top_k), "metrics/best");
    spec.inputs = operands;
    spec.input_count = 2;
    spec.output_count = 2;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    PEN_TRY(pen_graph_add_node(graph, &spec, &node));
    *out_best = pen_graph_node(graph, node)->outputs[1];
    return PEN_OK;
}

// What a batch's bytes mean. Whether scores are probabilities decides how those of different
// targets compare.
static pen_metric_output metrics_describe(const pen_compilation *compilation, uint32_t loss,
                                          const pen_loss_place *place) {
    const pen_graph *graph = compilation->graph;
    const pen_loss_spec *spec = &compilation->request->losses[loss].spec;
    const pen_tensor_type type = *pen_value_type(graph, place->output);
    pen_metric_output output = {.spec = *spec,
                                .type = type,
                                .example_count = place->example_count,
                                .is_probabilities =
                                    spec->kind == PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD ||
                                    metrics_is_softmax(graph, place->output)};
    if (pen_loss_is_over_classes(spec->kind)) {
        output.class_axis = metrics_class_axis(spec, &type.shape);
    }
    if (pen_value_is(place->mask)) {
        output.mask_count =
            (uint64_t)pen_shape_element_count(&pen_value_type(graph, place->mask)->shape);
    }
    return output;
}

// Scores are seen as they are; they are kept, but no node is added.
pen_status pen_compile_see(pen_compilation *compilation, const pen_loss_place *places) {
    const pen_compile_request *request = compilation->request;
    pen_program *program = &compilation->program;
    pen_program_metrics *metrics = &program->metrics;
    pen_metric_loss losses[PEN_LOSSES_LIMIT];
    if (request->mode != PEN_COMPILE_EVALUATE) return PEN_OK;
    for (uint32_t i = 0; i < program->loss_count; i++) {
        losses[i] = compilation->losses[i].seen;
    }
    PEN_TRY(pen_compilation_blame(compilation, PEN_COMPILE_PART_METRICS,
                                  pen_metric_choose(losses, program->loss_count,
                                                    pen_value_is(program->accuracy),
                                                    request->metrics, &metrics->choice)));
    const pen_metric_choice *choice = &metrics->choice;
    if (choice->classes_loss != PEN_METRIC_NO_LOSS) {
        const pen_loss_place *place = &places[choice->classes_loss];
        metrics->classes = metrics_describe(compilation, choice->classes_loss, place);
        metrics->values[PEN_METRIC_SEEN_MASK] = place->mask;
        if (choice->takes_scores) metrics->values[PEN_METRIC_SEEN_SCORES] = place->output;
        if (choice->top > 0) {
            PEN_TRY(metrics_add_best(compilation->graph, place->output, metrics->classes.class_axis,
                                     choice->top, &metrics->values[PEN_METRIC_SEEN_BEST]));
        }
    }
    if (choice->numbers_loss == PEN_METRIC_NO_LOSS) return PEN_OK;
    const pen_loss_place *place = &places[choice->numbers_loss];
    metrics->numbers = metrics_describe(compilation, choice->numbers_loss, place);
    metrics->values[PEN_METRIC_SEEN_NUMBERS] = place->output;
    metrics->values[PEN_METRIC_SEEN_NUMBERS_MASK] = place->mask;
    return PEN_OK;
}

// ---- of the steps of a training

// Of several losses steps tell of the one that evaluations choose, or of none.
static bool metrics_is_chosen(const pen_compilation *compilation, const pen_loss_spec *spec,
                              pen_metric_source source) {
    const pen_compile_request *request = compilation->request;
    for (uint32_t i = 0; i < request->loss_count; i++) {
        if (!pen_metric_is_of(source, request->losses[i].spec.kind)) continue;
        return spec == &request->losses[i].spec;
    }
    return false;
}

// An evaluation counts from the outputs; steps tell what their losses can.
bool pen_compile_tells(const pen_compilation *compilation, const pen_loss_spec *spec,
                       const pen_loss_place *place, pen_metric_source source) {
    return compilation->request->mode == PEN_COMPILE_TRAIN && place->example_count > 0 &&
           metrics_is_chosen(compilation, spec, source);
}

bool pen_compile_tells_top(const pen_compilation *compilation, pen_metric metric) {
    const pen_metric_kind *kind = &pen_metric_kinds[metric];
    return pen_metric_is_in(metric, compilation->request->metrics) && kind->number > 1 &&
           kind->value == pen_metric_kinds[PEN_METRIC_ACCURACY].value;
}

// There is room for more than there are metrics that a step can tell.
static void metrics_tell(pen_compilation *compilation, pen_metric metric, pen_value_id value) {
    pen_program *program = &compilation->program;
    PEN_ASSERT(program->told_count < PEN_PROGRAM_TOLD_LIMIT);
    program->told[program->told_count++] = (pen_program_told){metric, value};
}

// The loss is the cross-entropy. With a mask it is a mean within each microbatch, so that
// evaluations need its part, too: their loss is no mean over targets.
static pen_status metrics_tell_perplexity(pen_compilation *compilation, uint32_t index,
                                          const pen_attached_loss *attached) {
    const pen_loss_spec *spec = &compilation->request->losses[index].spec;
    pen_value_id part = attached->loss;
    const bool has_mask = pen_value_is(attached->counted);
    if (!has_mask && compilation->request->mode != PEN_COMPILE_TRAIN) return PEN_OK;
    if (!compilation->losses[index].seen.is_plain) return PEN_OK;
    if (!metrics_is_chosen(compilation, spec, PEN_METRIC_FROM_ENTROPY)) return PEN_OK;
    if (has_mask) {
        PEN_TRY(pen_attach_share(compilation->graph, part, attached->counted, &part));
    }
    metrics_tell(compilation, PEN_METRIC_PERPLEXITY, part);
    return PEN_OK;
}

static pen_status metrics_tell_error(pen_compilation *compilation, pen_metric metric,
                                     const pen_loss_place *place,
                                     const pen_attached_loss *attached) {
    const bool is_distance = metric == PEN_METRIC_MEAN_ABSOLUTE_ERROR;
    pen_value_id error;
    PEN_TRY(pen_attach_error(compilation->graph,
                             is_distance ? PEN_LOSS_L1 : PEN_LOSS_MEAN_SQUARED_ERROR, place,
                             attached->labels, &error));
    compilation->program.shares[PEN_PROGRAM_SHARE_NUMBERS] = attached->counted;
    metrics_tell(compilation, metric, error);
    return PEN_OK;
}

// What can be said of a step from what the loss reads anyway: its scores and labels. Nodes are
// added only for what `evaluation` names. Two metrics of one square share its node in the end.
pen_status pen_compile_tell(pen_compilation *compilation, uint32_t index,
                            const pen_loss_place *place, const pen_attached_loss *attached) {
    const pen_loss_spec *spec = &compilation->request->losses[index].spec;
    uint32_t top = 0;
    const bool has_numbers = pen_compile_tells(compilation, spec, place, PEN_METRIC_FROM_NUMBERS);
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        const pen_metric_source source = pen_metric_kinds[metric].source;
        if (pen_compile_tells_top(compilation, metric) && top < place->top_count) {
            metrics_tell(compilation, metric, attached->among[top++]);
        }
        if (!pen_metric_is_in(metric, compilation->request->metrics)) continue;
        if (source == PEN_METRIC_FROM_ENTROPY) {
            PEN_TRY(metrics_tell_perplexity(compilation, index, attached));
        }
        if (!has_numbers || source != PEN_METRIC_FROM_NUMBERS) continue;
        PEN_TRY(metrics_tell_error(compilation, metric, place, attached));
    }
    return PEN_OK;
}
