#include "graph/passes/gradient/build_versions.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/ops/training/version_op.h"
#include "graph/passes/copy_graph.h"

// A parameter on its way through the versions of a step.
typedef struct versions_builder {
    updates_builder *updates;
    const pen_gradient *gradient;
    uint32_t lanes;
    pen_value_id order;
    pen_value_id kept;    // as each lane has it
    pen_value_id square;  // mean of squared gradients; NONE: not kept
    pen_value_id *stacks; // [use_count]
    updates_operands now;
} versions_builder;

// Adds a node and returns its first output.
static pen_status versions_node(versions_builder *b, pen_node_spec *spec, const char *suffix,
                                pen_value_id *out_value, pen_node_id *out_node) {
    pen_node_id node;
    PEN_TRY(pen_updates_node(b->updates, spec, b->gradient->value, suffix, &node));
    *out_value = pen_graph_node(b->updates->graph, node)->outputs[0];
    if (out_node != NULL) *out_node = node;
    return PEN_OK;
}

// The sums of all lanes, for a use of the parameter.
static pen_status versions_stack(versions_builder *b, uint32_t use) {
    pen_value_id sums;
    PEN_TRY(pen_updates_sum_lanes(b->updates, b->gradient, use, &sums));
    const int64_t bounds[2] = {0, b->lanes};
    const pen_attribute_given attribute = pen_attribute_ints("bounds", 2, bounds);
    pen_node_spec spec = pen_node_spec_of(PEN_OP(lane_stack), "");
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = &sums;
    spec.input_count = 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    return versions_node(b, &spec, "stack", &b->stacks[use], NULL);
}

// The parameter as each lane has it, how the lanes stand, and the order of the step; and for the
// forward pass the parameter as a microbatch has it.
static pen_status versions_begin(versions_builder *b) {
    pen_graph *graph = b->updates->graph;
    const pen_value_id parameter = b->gradient->value;
    const pen_asynchrony *asynchrony = &b->updates->step->asynchrony;
    const pen_tensor_type type = *pen_value_type(graph, parameter);
    const int64_t words = pen_arrivals_words(b->lanes);
    const pen_tensor_type numbers = pen_tensor_type_make(PEN_INT64, 1, &words);
    pen_tensor_type rows = {type.element, {type.shape.rank + 1, {b->lanes}}};
    for (uint32_t d = 0; d < type.shape.rank; d++) {
        rows.shape.dims[d + 1] = type.shape.dims[d];
    }
    pen_value_id arrivals, own;
    pen_node_id node;
    PEN_TRY(pen_updates_add_state(b->updates, parameter, "lanes", &rows, &b->kept));
    PEN_TRY(pen_updates_add_state(b->updates, parameter, "arrivals", &numbers, &arrivals));
    if (asynchrony->compensation == PEN_COMPENSATION_ADAPTIVE) {
        PEN_TRY(pen_updates_add_state(b->updates, parameter, "square", &type, &b->square));
    }
    const pen_value_id operands[3] = {parameter, b->kept, arrivals};
    pen_node_spec read = pen_node_spec_of(PEN_OP(lane_parameter), "");
    read.inputs = operands;
    read.input_count = 3;
    PEN_TRY(versions_node(b, &read, "lane", &own, NULL));
    const pen_attribute_given attributes[3] = {
        pen_attribute_int("lanes", b->lanes), pen_attribute_int("staleness", asynchrony->staleness),
        pen_attribute_int("free", asynchrony->is_free)};
    pen_node_spec order = pen_node_spec_of(PEN_OP(lane_order), "");
    order.role = PEN_ROLE_UPDATE;
    order.inputs = &arrivals;
    order.input_count = 1;
    order.output_count = 2;
    order.attributes = attributes;
    order.attribute_count = asynchrony->is_free ? 3 : 2;
    PEN_TRY(versions_node(b, &order, "order", &b->order, &node));
    pen_graph_set_replaces(graph, pen_graph_node(graph, node)->outputs[1], arrivals);
    return PEN_OK;
}

// The gradient of a version, for the update to come.
static pen_status versions_gradient(versions_builder *b, uint32_t version) {
    const pen_asynchrony *asynchrony = &b->updates->step->asynchrony;
    const bool is_adaptive = asynchrony->compensation == PEN_COMPENSATION_ADAPTIVE;
    const bool compensates = asynchrony->compensation != PEN_COMPENSATION_NONE;
    const uint32_t count = PEN_VERSION_STACKS + b->gradient->use_count;
    pen_value_id *inputs;
    PEN_TRY(PEN_NEW(b->updates->arena, count, &inputs));
    inputs[PEN_VERSION_ORDER] = b->order;
    inputs[PEN_VERSION_PARAMETER] = b->now.parameter;
    inputs[PEN_VERSION_START] = b->gradient->value;
    inputs[PEN_VERSION_KEPT] = b->kept;
    inputs[PEN_VERSION_SQUARE] = b->square;
    for (uint32_t u = 0; u < b->gradient->use_count; u++) {
        inputs[PEN_VERSION_STACKS + u] = b->stacks[u];
    }
    const pen_attribute_given attributes[3] = {
        pen_attribute_int("version", version),
        pen_attribute_float("lambda", compensates ? asynchrony->lambda : 0),
        pen_attribute_int("adaptive", is_adaptive)};
    pen_node_spec spec = pen_node_spec_of(PEN_OP(version_gradient), "");
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = inputs;
    spec.input_count = count;
    spec.output_count = is_adaptive ? PEN_VERSION_NEW_SQUARE + 1 : PEN_VERSION_NEW_SQUARE;
    spec.attributes = attributes;
    spec.attribute_count = 3;
    pen_node_id id;
    PEN_TRY(versions_node(b, &spec, "version", &b->now.gradient, &id));
    const pen_node *node = pen_graph_node(b->updates->graph, id);
    b->now.scale = node->outputs[PEN_VERSION_SCALE];
    b->now.step = node->outputs[PEN_VERSION_STEP];
    if (is_adaptive) b->square = node->outputs[PEN_VERSION_NEW_SQUARE];
    return PEN_OK;
}

// All versions that a step may have, and what lanes go on with.
static pen_status versions_add(versions_builder *b) {
    updates_operands before;
    pen_value_id *made, kept;
    const pen_value_id square = b->square;
    PEN_TRY(pen_updates_begin(b->updates, b->gradient->value, &before));
    PEN_TRY(PEN_NEW(b->updates->arena, (size_t)PEN_KEEP_VERSIONS + b->lanes, &made));
    b->now = before;
    made[PEN_KEEP_ORDER] = b->order;
    for (uint32_t v = 0; v < b->lanes; v++) {
        PEN_TRY(versions_gradient(b, v));
        PEN_TRY(pen_arena_format(b->updates->arena, &b->now.suffix, "_%u", v));
        PEN_TRY(pen_updates_apply(b->updates, &b->now, &b->now));
        made[PEN_KEEP_VERSIONS + v] = b->now.parameter;
    }
    pen_updates_replace(b->updates, &before, &b->now);
    if (pen_value_is(square)) pen_graph_set_replaces(b->updates->graph, b->square, square);
    pen_node_spec keep = pen_node_spec_of(PEN_OP(lane_keep), "");
    keep.role = PEN_ROLE_UPDATE;
    keep.inputs = made;
    keep.input_count = PEN_KEEP_VERSIONS + b->lanes;
    PEN_TRY(versions_node(b, &keep, "keep", &kept, NULL));
    pen_graph_set_replaces(b->updates->graph, kept, b->kept);
    return PEN_OK;
}

pen_status pen_build_versions(updates_builder *builder, const pen_gradients *gradients) {
    for (uint32_t i = 0; i < gradients->count; i++) {
        const pen_gradient *gradient = &gradients->items[i];
        versions_builder b = {.updates = builder,
                              .gradient = gradient,
                              .lanes = builder->step->lanes,
                              .square = PEN_VALUE_NONE};
        if (gradient->use_count == 0) continue;
        PEN_TRY(PEN_NEW(builder->arena, gradient->use_count, &b.stacks));
        for (uint32_t u = 0; u < gradient->use_count; u++) {
            PEN_TRY(versions_stack(&b, u));
        }
        PEN_TRY(versions_begin(&b));
        PEN_TRY(versions_add(&b));
        builder->updates.updated_count += 1;
    }
    return PEN_OK;
}

// ---- reading

// A node that reads parameters as its lane has them, but for updates.
static pen_status versions_copy_node(pen_graph_copy *copy, const pen_value_id *lane_of,
                                     uint32_t n) {
    const pen_node *node = pen_graph_node(copy->from, (pen_node_id){n});
    pen_value_id *inputs;
    PEN_TRY(PEN_NEW(pen_graph_arena(copy->from), node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = PEN_VALUE_NONE;
        if (!pen_value_is(node->inputs[i])) continue;
        const uint32_t v = node->inputs[i].index;
        const bool is_own = node->role != PEN_ROLE_UPDATE && pen_value_is(lane_of[v]);
        inputs[i] = is_own ? lane_of[v] : copy->values[v];
    }
    return pen_graph_copy_node_as(copy, (pen_node_id){n}, inputs, NULL);
}

// What reads parameters comes first, as all nodes come after what they read.
pen_status pen_read_lanes(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                          pen_graph **out_graph, const pen_value_id **out_map) {
    const pen_op *op = PEN_OP(lane_parameter);
    pen_graph_copy copy;
    pen_value_id *lane_of;
    (void)kept_count, (void)kept;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_value_count(graph), &lane_of));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        lane_of[v] = PEN_VALUE_NONE;
    }
    PEN_TRY(pen_graph_copy_begin(graph, &copy));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (node->op != op) continue;
        PEN_TRY(pen_graph_copy_node(&copy, (pen_node_id){n}));
        lane_of[node->inputs[PEN_LANE_NEWEST].index] = copy.values[node->outputs[0].index];
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const bool is_here = pen_graph_copy_computes(graph, (pen_node_id){n});
        if (!is_here || pen_graph_node(graph, (pen_node_id){n})->op == op) continue;
        PEN_TRY(versions_copy_node(&copy, lane_of, n));
    }
    PEN_TRY(pen_graph_copy_end(&copy));
    *out_graph = copy.to;
    *out_map = copy.values;
    return PEN_OK;
}
