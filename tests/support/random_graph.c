#include "tests/support/random_graph.h"

#include "graph/op.h"
#include "tests/support/random_case.h"

#define RANDOM_GRAPH_VALUES 128

typedef struct growing_graph {
    pen_graph *graph;
    random_case dice;
    pen_value_id values[RANDOM_GRAPH_VALUES]; // of rank 2
    uint32_t count;
} growing_graph;

pen_value_id graph_value_of(pen_graph *graph, const char *name, pen_value_kind kind,
                            const pen_tensor_type *type) {
    const pen_value value = {
        .name = name, .kind = kind, .type = *type, .trainable = kind == PEN_VALUE_PARAMETER};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

pen_value_id graph_apply(pen_graph *graph, const char *op, const char *name, pen_value_id a,
                         pen_value_id b, pen_value_id c) {
    const pen_value_id operands[3] = {a, b, c};
    pen_node_spec spec = pen_node_spec_make(op, name);
    spec.inputs = operands;
    while (spec.input_count < 3 && pen_value_is(operands[spec.input_count])) {
        spec.input_count++;
    }
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

static const pen_shape *growing_shape(const growing_graph *g, pen_value_id value) {
    return &pen_value_type(g->graph, value)->shape;
}

static pen_value_id growing_pick(growing_graph *g) {
    const bool recent = g->count > 6 && random_chance(&g->dice, 60);
    return g->values[random_between(&g->dice, recent ? g->count - 6 : 0, g->count - 1)];
}

static pen_value_id growing_unary(growing_graph *g, pen_value_id a) {
    static const char *const ops[] = {"tanh", "sigmoid", "neg", "identity", "sin"};
    return graph_apply(g->graph, ops[random_between(&g->dice, 0, 4)], "unary", a, PEN_VALUE_NONE,
                       PEN_VALUE_NONE);
}

static pen_value_id growing_elementwise(growing_graph *g, pen_value_id a, pen_value_id b) {
    static const char *const ops[] = {"add", "sub", "mul"};
    pen_shape shape;
    const pen_status status = pen_shape_broadcast(growing_shape(g, a), growing_shape(g, b), &shape);
    if (status != PEN_OK) {
        pen_status_ignore(status, "another operator then");
        return growing_unary(g, a);
    }
    return graph_apply(g->graph, ops[random_between(&g->dice, 0, 2)], "binary", a, b,
                       PEN_VALUE_NONE);
}

static pen_value_id growing_product(growing_graph *g, pen_value_id a, pen_value_id b) {
    if (growing_shape(g, a)->dims[1] != growing_shape(g, b)->dims[0]) return growing_unary(g, b);
    return graph_apply(g->graph, "matmul", "product", a, b, PEN_VALUE_NONE);
}

static pen_value_id growing_reshape(growing_graph *g, pen_value_id a) {
    const pen_shape *shape = growing_shape(g, a);
    const int64_t dims[2] = {shape->dims[1], shape->dims[0]};
    pen_value_id target;
    CHECK_OK(pen_graph_constant_ints(g->graph, "target", 2, dims, &target));
    return graph_apply(g->graph, "reshape", "view", a, target, PEN_VALUE_NONE);
}

static pen_value_id growing_sum(growing_graph *g, pen_value_id a) {
    const int64_t axis = random_between(&g->dice, 0, 1);
    pen_value_id axes;
    CHECK_OK(pen_graph_constant_ints(g->graph, "axes", 1, &axis, &axes));
    return graph_apply(g->graph, "reduce_sum", "sum", a, axes, PEN_VALUE_NONE);
}

static pen_value_id growing_concat(growing_graph *g, pen_value_id a, pen_value_id b) {
    if (growing_shape(g, a)->dims[0] != growing_shape(g, b)->dims[0]) return growing_unary(g, a);
    if (growing_shape(g, a)->dims[1] + growing_shape(g, b)->dims[1] > 8) return a;
    pen_node_spec spec = pen_node_spec_make("concat", "joined");
    const pen_value_id operands[2] = {a, b};
    const pen_attribute_given axis = pen_attribute_int("axis", 1);
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = &axis;
    spec.attribute_count = 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(g->graph, &spec, &output));
    return output;
}

static pen_value_id growing_node(growing_graph *g) {
    const pen_value_id a = growing_pick(g), b = growing_pick(g);
    switch (random_between(&g->dice, 0, 8)) {
    case 0:
    case 1:
    case 2:
        return growing_elementwise(g, a, b);
    case 3:
    case 4:
        return growing_product(g, a, b);
    case 5:
        return growing_reshape(g, a);
    case 6:
        return growing_sum(g, a);
    case 7:
        return growing_concat(g, a, b);
    default:
        return growing_unary(g, a);
    }
}

// A scalar from a value: squashed, so that no loss is large.
static pen_value_id growing_scalar(growing_graph *g, pen_value_id a) {
    const pen_value_id squashed =
        graph_apply(g->graph, "tanh", "squash", a, PEN_VALUE_NONE, PEN_VALUE_NONE);
    pen_node_spec spec = pen_node_spec_make("reduce_sum", "total");
    const pen_attribute_given keepdims = pen_attribute_int("keepdims", 0);
    spec.inputs = &squashed;
    spec.input_count = 1;
    spec.attributes = &keepdims;
    spec.attribute_count = 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(g->graph, &spec, &output));
    return output;
}

random_graph random_graph_forward(pen_arena *arena, uint64_t seed, pen_element_type element,
                                  uint32_t node_count) {
    growing_graph g = {.dice = {.seed = seed}};
    random_graph random = {.seed = PEN_VALUE_NONE};
    CHECK(node_count + 6 <= RANDOM_GRAPH_VALUES, "%u nodes", node_count);
    CHECK_OK(pen_graph_create(arena, "random", &g.graph));
    for (uint32_t i = 0; i < RANDOM_GRAPH_INPUTS + RANDOM_GRAPH_PARAMETERS; i++) {
        char name[16];
        const bool is_input = i < RANDOM_GRAPH_INPUTS;
        snprintf(name, sizeof name, is_input ? "x%u" : "w%u", i);
        const int64_t dims[2] = {random_between(&g.dice, 1, 3), random_between(&g.dice, 1, 3)};
        const pen_tensor_type type = pen_tensor_type_make(element, 2, dims);
        const pen_value_id value =
            graph_value_of(g.graph, name, is_input ? PEN_VALUE_INPUT : PEN_VALUE_PARAMETER, &type);
        g.values[g.count++] = value;
        if (is_input) random.inputs[i] = value;
        if (!is_input) random.parameters[i - RANDOM_GRAPH_INPUTS] = value;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        g.values[g.count] = growing_node(&g);
        g.count++;
    }
    random.graph = g.graph;
    random.loss = growing_scalar(&g, g.values[g.count - 1]);
    for (uint32_t i = 2; i < 6; i++) {
        const pen_value_id other = growing_scalar(&g, g.values[g.count - i]);
        random.loss = graph_apply(g.graph, "add", "loss", random.loss, other, PEN_VALUE_NONE);
    }
    random.forward_count = pen_graph_node_count(g.graph);
    CHECK_OK(pen_graph_add_output(g.graph, random.loss));
    return random;
}

void random_graph_differentiate(random_graph *random) {
    random->seed = graph_value_of(random->graph, "seed", PEN_VALUE_SCALAR,
                                  pen_value_type(random->graph, random->loss));
    CHECK_OK(pen_build_gradients(random->graph, random->loss, random->seed, RANDOM_GRAPH_PARAMETERS,
                                 random->parameters, &random->gradients));
}

pen_updates random_graph_update(random_graph *random, uint64_t seed, bool accumulate) {
    random_case dice = {.seed = seed};
    pen_optimizer optimizer = {
        .kind = (pen_optimizer_kind)random_between(&dice, 0, 2),
        .momentum = random_chance(&dice, 50) ? 0.9 : 0,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-8,
        .clip_norm = random_chance(&dice, 30) ? 1 : 0,
    };
    pen_updates updates;
    CHECK_OK(pen_build_updates(random->graph, random->gradients, &optimizer, accumulate, NULL,
                               &updates));
    return updates;
}
