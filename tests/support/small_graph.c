#include "tests/support/small_graph.h"

#include "base/random.h"
#include "graph/op.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/gradient/build_updates.h"
#include "tests/support/check.h"

static pen_value_id small_add(pen_graph *graph, const char *name, pen_value_kind kind, int64_t rows,
                              int64_t columns) {
    const pen_value value = {
        .name = name,
        .kind = kind,
        .type = pen_tensor_type_make(PEN_FLOAT32, 2, (const int64_t[]){rows, columns}),
        .trainable = kind == PEN_VALUE_PARAMETER,
    };
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

static pen_value_id small_product(pen_graph *graph, const char *name, pen_value_id a,
                                  pen_value_id b) {
    pen_node_spec spec = pen_node_spec_make("matmul", name);
    const pen_value_id operands[] = {a, b};
    spec.inputs = operands;
    spec.input_count = 2;
    pen_value_id product;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &product));
    return product;
}

small_graph small_graph_forward(pen_arena *arena) {
    small_graph small;
    CHECK_OK(pen_graph_create(arena, "small", &small.graph));
    small.x = small_add(small.graph, "x", PEN_VALUE_INPUT, 4, 3);
    small.weights[0] = small_add(small.graph, "fc1.weight", PEN_VALUE_PARAMETER, 3, 5);
    small.weights[1] = small_add(small.graph, "fc2.weight", PEN_VALUE_PARAMETER, 5, 2);
    small.seed = PEN_VALUE_NONE;
    small.hidden = small_product(small.graph, "fc1", small.x, small.weights[0]);
    small.y = small_product(small.graph, "fc2", small.hidden, small.weights[1]);
    CHECK_OK(pen_graph_add_output(small.graph, small.y));
    return small;
}

small_graph small_graph_training(pen_arena *arena) {
    small_graph small = small_graph_forward(arena);
    small.seed = small_add(small.graph, "seed", PEN_VALUE_INPUT, 4, 2);
    pen_gradients *gradients;
    CHECK_OK(pen_build_gradients(small.graph, small.y, small.seed, 2, small.weights, &gradients));
    const pen_optimizer optimizer = {
        .kind = PEN_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1};
    pen_updates updates;
    CHECK_OK(pen_build_updates(small.graph, gradients, &optimizer, true, NULL, &updates));
    return small;
}

static pen_value_id small_random_node(pen_graph *graph, const pen_value_id operands[2],
                                      uint32_t choice) {
    static const char *const ops[] = {"matmul", "matmul", "transpose", "identity"};
    pen_node_spec spec = pen_node_spec_make(ops[choice], "n");
    spec.inputs = operands;
    spec.input_count = choice < 2 ? 2 : 1;
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

small_graph small_graph_random(pen_arena *arena, uint64_t seed, uint32_t node_count) {
    small_graph small = {.seed = PEN_VALUE_NONE};
    pen_value_id values[64];
    CHECK(node_count + 4 <= 64, "%u nodes", node_count);
    CHECK_OK(pen_graph_create(arena, "random", &small.graph));
    values[0] = small.x = small_add(small.graph, "x", PEN_VALUE_INPUT, 3, 3);
    values[1] = small_add(small.graph, "z", PEN_VALUE_INPUT, 3, 3);
    values[2] = small.weights[0] = small_add(small.graph, "w0", PEN_VALUE_PARAMETER, 3, 3);
    values[3] = small.weights[1] = small_add(small.graph, "w1", PEN_VALUE_PARAMETER, 3, 3);
    const pen_random_key key = {seed, pen_random_stream("small_graph", 0, 0)};
    uint64_t thrown = 0;
    for (uint32_t n = 0; n < node_count; n++) {
        pen_value_id operands[2];
        for (int i = 0; i < 2; i++) {
            operands[i] = values[pen_random_below(key, thrown++, n + 4)];
        }
        values[n + 4] =
            small_random_node(small.graph, operands, (uint32_t)pen_random_below(key, thrown++, 4));
    }
    small.hidden = values[4 + pen_random_below(key, thrown++, node_count)];
    small.y = values[3 + node_count];
    CHECK_OK(pen_graph_add_output(small.graph, small.hidden));
    CHECK_OK(pen_graph_add_output(small.graph, small.y));
    return small;
}
