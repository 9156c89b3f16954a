// Asynchronous lanes (graph/arrivals.h): several versions of the parameters in a step, each made of
// the gradients of some lanes.
//
// lane_parameter(newest, kept, arrivals; each) is a parameter as the lane of the microbatch has it:
// row `lane` of kept; before the first step, newest.
//
// lane_stack(sums, …; bounds) has the sums of all lanes as rows, those of lanes bounds[i] up to
// bounds[i + 1] from input i.
//
// lane_order(arrivals; lanes, staleness, free) draws the step, or, free, takes the order that the
// step was given. order[lane] is the version, counted in the
// step, that a lane's gradient goes into, or -1; order[lanes] how many versions there were before.
// The second output is what has become of the arrivals.
//
// version_gradient(order, w, start, kept, square, stacks, …; version, lambda, adaptive) is the
// gradient of version `version` of the step: the mean of its lanes', of which a step's L lanes have
// s = 1/L of the mean each, as sums over microbatches have it.
//   s(lane)  = the sum over stacks, in order
//   g(lane)  = L s(lane)
//   w'(lane) = kept[lane]; before the first step, start: with it the lane computed its gradient
//   adaptive: square = m square + (1 - m) g(lane)^2, of one lane after the other,
//             λ = lambda / sqrt(square + ε)
//   else      λ = lambda
//   c(lane)  = λ L s(lane)^2 (w - w'(lane))
//   gradient = L / (lanes of the version) * (tree of s, for each stack, in order + tree of c)
// Trees are those of graph/lanes.h, of the version's lanes alone. So of all lanes at once, with
// parameters that are those of now, comes what tree_total gives. It is g + λ g∘g∘(w - w') of each
// lane, delay compensation: Zheng, Meng, Wang, Chen, Yu, Ma, Liu, "Asynchronous Stochastic Gradient
// Descent with Delay Compensation", ICML 2017, equations 10 and 11 (DC-ASGD-c, DC-ASGD-a), with
// m = 0.95 and ε = 1e-7. lambda 0: c is left out.
// Further outputs: the scale for the update, 1, or -1 where no lane goes into the version, so that
// all stays as it is; and the number of the version, from 1.
//
// lane_keep(order, w, …) is what lanes go on with, w being the parameter after each version that a
// step may have: a row for each lane, after the version that its gradient went into; after the last
// one, of lanes that the step did not have.

#include "graph/ops/training/version_op.h"

#include "graph/arrivals.h"
#include "graph/graph.h"
#include "graph/ops/shared/shape_rule.h"

static pen_status version_error(const pen_infer_context *context, const char *what,
                                const pen_tensor_type *found, const pen_tensor_type *wanted) {
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(context, PEN_INVALID_INPUT, "the %s is %s, expected %s", what,
                           pen_tensor_type_format(found, texts[0]),
                           pen_tensor_type_format(wanted, texts[1]));
}

static pen_status version_check(const pen_infer_context *context, uint32_t input, const char *what,
                                const pen_tensor_type *wanted) {
    const pen_tensor_type *found = pen_infer_input(context, input);
    if (pen_tensor_type_equal(found, wanted)) return PEN_OK;
    return version_error(context, what, found, wanted);
}

static pen_status version_check_lanes(const pen_infer_context *context, int64_t lanes) {
    if (0 < lanes && lanes <= PEN_ARRIVALS_LANES) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "found %lld lanes, expected 1 to %u",
                           (long long)lanes, PEN_ARRIVALS_LANES);
}

// Rows of a parameter, of which there is one for each lane.
static pen_status version_rows(const pen_infer_context *context, const pen_tensor_type *parameter,
                               int64_t lanes, pen_tensor_type *out_type) {
    if (parameter->element != PEN_FLOAT32 && parameter->element != PEN_FLOAT64) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the parameter is %s, expected float32 or float64",
                               pen_element_name(parameter->element));
    }
    if (parameter->shape.rank == PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "a parameter of %u dimensions leaves none for lanes",
                               parameter->shape.rank);
    }
    PEN_TRY(version_check_lanes(context, lanes));
    *out_type = (pen_tensor_type){parameter->element, {parameter->shape.rank + 1, {lanes}}};
    for (uint32_t d = 0; d < parameter->shape.rank; d++) {
        out_type->shape.dims[d + 1] = parameter->shape.dims[d];
    }
    return PEN_OK;
}

static pen_tensor_type version_words(int64_t count) {
    return pen_tensor_type_make(PEN_INT64, 1, &count);
}

// Lanes of a vector of int64 that has `more` numbers beside one, or two, for each.
static pen_status version_find_lanes(const pen_infer_context *context, uint32_t input, int64_t more,
                                     int64_t each, int64_t *out_lanes) {
    const pen_tensor_type *type = pen_infer_input(context, input);
    const bool is_vector = type->element == PEN_INT64 && type->shape.rank == 1;
    const int64_t lanes = is_vector ? (type->shape.dims[0] - more) / each : 0;
    if (!is_vector || lanes * each + more != type->shape.dims[0]) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "input %u is %s, expected a vector of int64 about lanes", input,
                               pen_tensor_type_format(type, text));
    }
    *out_lanes = lanes;
    return version_check_lanes(context, lanes);
}

static pen_status lane_parameter_infer(pen_infer_context *context) {
    const pen_tensor_type parameter = *pen_infer_input(context, PEN_LANE_NEWEST);
    pen_tensor_type rows;
    int64_t lanes = 0;
    PEN_TRY(version_find_lanes(context, PEN_LANE_ARRIVALS, pen_arrivals_words(0), 2, &lanes));
    PEN_TRY(version_rows(context, &parameter, lanes, &rows));
    PEN_TRY(version_check(context, PEN_LANE_KEPT, "parameter of the lanes", &rows));
    return pen_infer_set(context, 0, &parameter);
}

// The first dimensions of the sums add up to the lanes.
static pen_status lane_stack_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    uint32_t count;
    const int64_t *bounds = pen_node_ints(node, "bounds", &count);
    pen_tensor_type type = *pen_infer_input(context, 0);
    if (count != node->input_count + 1 || type.shape.rank == 0 || bounds[0] != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "found %u bounds of lanes for sums of %u replicas, expected one "
                               "more, from 0 on",
                               count, node->input_count);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(version_check_lanes(context, bounds[i + 1]));
        type.shape.dims[0] = bounds[i + 1] - bounds[i];
        PEN_TRY(version_check_lanes(context, type.shape.dims[0]));
        PEN_TRY(version_check(context, i, "sum of lanes", &type));
    }
    type.shape.dims[0] = bounds[node->input_count];
    return pen_infer_set(context, 0, &type);
}

static pen_status lane_order_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const int64_t lanes = pen_node_int(node, "lanes"), staleness = pen_node_int(node, "staleness");
    PEN_TRY(version_check_lanes(context, lanes));
    if (staleness < 0 || staleness > PEN_ARRIVALS_STALENESS) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "found a staleness of %lld, expected 0 to %u", (long long)staleness,
                               PEN_ARRIVALS_STALENESS);
    }
    const pen_tensor_type arrivals = version_words(pen_arrivals_words((uint32_t)lanes));
    const pen_tensor_type order = version_words(lanes + 1);
    PEN_TRY(version_check(context, 0, "arrivals", &arrivals));
    PEN_TRY(pen_infer_set(context, 0, &order));
    return pen_infer_set(context, 1, &arrivals);
}

// All operands are of the parameter, or have a row of it for each lane.
static pen_status version_gradient_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type parameter = *pen_infer_input(context, PEN_VERSION_PARAMETER);
    const pen_tensor_type scalar = pen_tensor_type_make(PEN_FLOAT32, 0, NULL);
    const bool has_square = pen_infer_has_input(context, PEN_VERSION_SQUARE);
    const int64_t version = pen_node_int(node, "version");
    pen_tensor_type rows;
    int64_t lanes = 0;
    PEN_TRY(version_find_lanes(context, PEN_VERSION_ORDER, 1, 1, &lanes));
    if (version < 0 || version >= lanes) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "found version %lld of %lld lanes, expected one below",
                               (long long)version, (long long)lanes);
    }
    PEN_TRY(version_rows(context, &parameter, lanes, &rows));
    PEN_TRY(version_check(context, PEN_VERSION_START, "parameter before the step", &parameter));
    PEN_TRY(version_check(context, PEN_VERSION_KEPT, "parameter of the lanes", &rows));
    if (node->input_count <= PEN_VERSION_STACKS) { // behind an optional operand, so not counted
        return pen_infer_error(context, PEN_INVALID_INPUT, "there are no sums of lanes");
    }
    for (uint32_t i = PEN_VERSION_STACKS; i < node->input_count; i++) {
        PEN_TRY(version_check(context, i, "sum of lanes", &rows));
    }
    if (has_square != (pen_node_int(node, "adaptive") != 0)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the mean of squares is %s",
                               has_square ? "not asked for" : "needed");
    }
    if (has_square) {
        PEN_TRY(version_check(context, PEN_VERSION_SQUARE, "mean of squares", &parameter));
        PEN_TRY(pen_infer_set(context, PEN_VERSION_NEW_SQUARE, &parameter));
    }
    PEN_TRY(pen_infer_set(context, PEN_VERSION_GRADIENT, &parameter));
    PEN_TRY(pen_infer_set(context, PEN_VERSION_SCALE, &scalar));
    return pen_infer_set(context, PEN_VERSION_STEP, &scalar);
}

// As many versions as lanes, at most.
static pen_status lane_keep_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type parameter = *pen_infer_input(context, PEN_KEEP_VERSIONS);
    pen_tensor_type rows;
    int64_t lanes = 0;
    PEN_TRY(version_find_lanes(context, PEN_KEEP_ORDER, 1, 1, &lanes));
    PEN_TRY(version_rows(context, &parameter, lanes, &rows));
    if (lanes + PEN_KEEP_VERSIONS != node->input_count) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "found %u versions of %lld lanes, expected as many",
                               node->input_count - PEN_KEEP_VERSIONS, (long long)lanes);
    }
    for (uint32_t i = PEN_KEEP_VERSIONS; i < node->input_count; i++) {
        PEN_TRY(version_check(context, i, "version", &parameter));
    }
    return pen_infer_set(context, 0, &rows);
}

static uint64_t version_parameter_bytes(const pen_graph *graph, pen_node_id id, uint32_t input) {
    return pen_tensor_type_bytes(pen_value_type(graph, pen_graph_node(graph, id)->inputs[input]));
}

// One row is read.
static uint64_t lane_parameter_bytes(const pen_graph *graph, pen_node_id id) {
    return 2 * version_parameter_bytes(graph, id, PEN_LANE_NEWEST);
}

// A version is mostly of one lane, since it is one of as many.
static uint64_t version_gradient_bytes(const pen_graph *graph, pen_node_id id) {
    return 4 * version_parameter_bytes(graph, id, PEN_VERSION_PARAMETER);
}

static const pen_attribute_schema lane_stack_attributes[] = {PEN_MUST("bounds", INTS)};
static const pen_attribute_schema lane_order_attributes[] = {
    PEN_MUST("lanes", INT),
    PEN_MUST("staleness", INT),
    PEN_INT_OR("free", 0),
};
static const pen_attribute_schema version_gradient_attributes[] = {
    PEN_MUST("version", INT),
    PEN_FLOAT_OR("lambda", 0),
    PEN_INT_OR("adaptive", 0),
};
static const pen_op version_ops[] = {
    {"lane_parameter", "a parameter as the lane of the microbatch has it", PEN_TAKES(3, 3),
     PEN_GIVES(1, 1), .infer = lane_parameter_infer, .bytes = lane_parameter_bytes},
    {"lane_stack", "the sums of all lanes of a step", PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(lane_stack_attributes), .infer = lane_stack_infer},
    {"lane_order", "which version of the parameters each lane's gradient goes into",
     PEN_TAKES(1, 1), PEN_GIVES(2, 2), PEN_ATTRIBUTES(lane_order_attributes),
     .infer = lane_order_infer},
    {"version_gradient", "the gradient of a version, compensated for delay", //
     PEN_TAKES(PEN_VERSION_SQUARE, PEN_VARIADIC), PEN_GIVES(3, 4),
     PEN_ATTRIBUTES(version_gradient_attributes), .infer = version_gradient_infer,
     .output_flops = 4, .bytes = version_gradient_bytes},
    {"lane_keep", "the parameters that lanes go on with",
     PEN_TAKES(PEN_KEEP_VERSIONS + 1, PEN_VARIADIC), PEN_GIVES(1, 1), .infer = lane_keep_infer},
};

PEN_OP_FAMILY(version);
