#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/assign_layouts.h"
#include "graph/passes/copy_graph.h"
#include "tests/support/check.h"

// Layout rules for tests: pools want and make layout 2, normalisation takes what comes; all else is
// plain.
static pen_status choose(void *context, const pen_graph *graph, pen_node_id id, pen_layout *inputs,
                         pen_layout *outputs) {
    (void)context;
    const pen_node *node = pen_graph_node(graph, id);
    const bool is_pool = strstr(node->op->name, "pool") != NULL;
    const bool is_lrn = strstr(node->op->name, "lrn") != NULL;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (is_pool) inputs[i] = 2;
        if (!is_pool && !is_lrn) inputs[i] = PEN_LAYOUT_PLAIN;
    }
    if (is_pool) outputs[0] = 2;
    if (is_lrn) outputs[0] = inputs[0];
    return PEN_OK;
}

static const pen_layout_rules rules = {.choose = choose};

static pen_value_id add_input(pen_graph *graph, const char *name) {
    const pen_value value = {
        .name = name, .kind = PEN_VALUE_INPUT, .type = {PEN_FLOAT32, {4, {2, 3, 8, 8}}}};
    pen_value_id id;
    CHECK_OK(pen_graph_add_value(graph, &value, &id));
    return id;
}

// A node of the backward pass, when `of` is the node that it is the gradient of.
static pen_value_id add_gradient(pen_graph *graph, const char *op, const char *name,
                                 pen_value_id input, pen_role role, pen_node_id of) {
    pen_node_spec spec = pen_node_spec_make(op, name);
    const pen_attribute_given size = pen_attribute_int("size", 3);
    spec.inputs = &input;
    spec.input_count = 1;
    spec.role = role;
    spec.gradient_of = of;
    if (strcmp(op, "lrn") == 0) {
        spec.attributes = &size;
        spec.attribute_count = 1;
    }
    pen_value_id output;
    CHECK_OK(pen_graph_add_simple(graph, &spec, &output));
    return output;
}

static pen_value_id add(pen_graph *graph, const char *op, const char *name, pen_value_id input,
                        pen_role role) {
    return add_gradient(graph, op, name, input, role, PEN_NODE_NONE);
}

static uint32_t count_reorders(const pen_graph *graph) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (strcmp(pen_graph_node(graph, (pen_node_id){n})->op->name, "reorder") == 0) count++;
    }
    return count;
}

static const pen_node *producer(const pen_graph *graph, pen_value_id value) {
    return pen_graph_node(graph, pen_graph_value(graph, value)->producer);
}

// x ─► pool ─► lrn ─► transpose, and x ─► another pool, and lrn ─► other transposes, of which two
// are of one node's gradient
static void layouts_follow_edges_and_reorders_are_shared(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph, *laid_out;
    const pen_value_id *values;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    const pen_value_id x = add_input(graph, "x");
    const pen_value_id a = add(graph, "global_max_pool", "pool_a", x, PEN_ROLE_FORWARD);
    const pen_value_id b = add(graph, "lrn", "lrn", a, PEN_ROLE_FORWARD);
    const pen_node_id pool = pen_graph_value(graph, a)->producer;
    const pen_node_id lrn = pen_graph_value(graph, b)->producer;
    const pen_value_id c =
        add_gradient(graph, "transpose", "late", b, PEN_ROLE_BACKWARD_WEIGHT, lrn);
    const pen_value_id d =
        add_gradient(graph, "transpose", "early", b, PEN_ROLE_BACKWARD_INPUT, lrn);
    const pen_value_id other =
        add_gradient(graph, "transpose", "other", b, PEN_ROLE_BACKWARD_INPUT, pool);
    const pen_value_id e = add(graph, "global_max_pool", "pool_b", x, PEN_ROLE_FORWARD);
    CHECK_OK(pen_graph_add_output(graph, c));
    CHECK_OK(pen_assign_layouts(graph, &rules, &laid_out, &values));

    CHECK(count_reorders(laid_out) == 3, "%u reorders", count_reorders(laid_out));
    CHECK(!pen_value_same(producer(laid_out, values[d.index])->inputs[0],
                          producer(laid_out, values[other.index])->inputs[0]),
          "gradients of two nodes, which may be of two stages, share a reorder");
    CHECK(pen_graph_value(laid_out, values[x.index])->layout == PEN_LAYOUT_PLAIN, "x");
    CHECK(pen_graph_value(laid_out, values[a.index])->layout == 2, "a");
    CHECK(pen_graph_value(laid_out, values[b.index])->layout == 2, "b");
    CHECK(pen_graph_value(laid_out, values[c.index])->layout == PEN_LAYOUT_PLAIN, "c");
    const pen_node *pools[] = {producer(laid_out, values[a.index]),
                               producer(laid_out, values[e.index])};
    CHECK(pen_value_same(pools[0]->inputs[0], pools[1]->inputs[0]), "x is reordered twice");
    CHECK(strcmp(pen_value_name(laid_out, pools[0]->inputs[0]), "x/layout_2") == 0, "%s",
          pen_value_name(laid_out, pools[0]->inputs[0]));
    const pen_node *transpose = producer(laid_out, values[d.index]);
    CHECK(strcmp(transpose->name, "early") == 0, "%s", transpose->name);
    const pen_node *reorder = producer(laid_out, transpose->inputs[0]);
    CHECK(reorder->role == PEN_ROLE_BACKWARD_INPUT, "%s", pen_role_name(reorder->role));
    CHECK(pen_node_int(reorder, "from_layout") == 2, "from");
    CHECK(pen_node_int(reorder, "to_layout") == 0, "to");
    CHECK(pen_graph_output_count(laid_out) == 1, "outputs");
    pen_arena_destroy(arena);
}

static void outputs_and_replacements_are_plain(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph, *laid_out;
    const pen_value_id *values;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    const pen_value_id x = add_input(graph, "x");
    pen_value_id kept;
    const pen_value kept_value = {
        .name = "kept", .kind = PEN_VALUE_STATE, .type = {PEN_FLOAT32, {4, {2, 3, 1, 1}}}};
    CHECK_OK(pen_graph_add_value(graph, &kept_value, &kept));
    const pen_value_id a = add(graph, "global_max_pool", "pool_a", x, PEN_ROLE_FORWARD);
    const pen_value_id b = add(graph, "global_max_pool", "pool_b", a, PEN_ROLE_FORWARD);
    pen_graph_set_replaces(graph, b, kept);
    CHECK_OK(pen_graph_add_output(graph, a));
    CHECK_OK(pen_assign_layouts(graph, &rules, &laid_out, &values));

    const pen_value *output = pen_graph_value(laid_out, pen_graph_output(laid_out, 0));
    CHECK(pen_value_same(values[a.index], pen_graph_output(laid_out, 0)), "another output");
    CHECK(output->layout == PEN_LAYOUT_PLAIN, "layout %u", (unsigned)output->layout);
    CHECK(strcmp(output->name, pen_value_name(graph, a)) == 0, "%s", output->name);
    const pen_value *replacing = pen_graph_value(laid_out, values[b.index]);
    CHECK(replacing->layout == PEN_LAYOUT_PLAIN, "layout %u", (unsigned)replacing->layout);
    CHECK(pen_value_same(replacing->replaces, values[kept.index]), "replaces another value");
    // the pool between reads the other pool's result as it was made
    const pen_node *second = pen_graph_node(laid_out, (pen_node_id){3});
    CHECK(strcmp(second->name, "pool_b") == 0, "%s", second->name);
    CHECK(pen_graph_value(laid_out, second->inputs[0])->layout == 2, "read back");
    uint32_t replacing_count = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(laid_out); v++) {
        const pen_value_id replaces = pen_graph_value(laid_out, (pen_value_id){v})->replaces;
        if (pen_value_is(replaces)) replacing_count++;
    }
    CHECK(replacing_count == 1, "%u values replace one", replacing_count);
    pen_arena_destroy(arena);
}

static void copies_keep_what_nodes_and_values_are(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    pen_graph_copy copy;
    int64_t batch;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    CHECK_OK(pen_graph_add_symbol(graph, "batch", &batch));
    const pen_value_id x = add_input(graph, "x");
    const pen_value_id a = add(graph, "lrn", "first", x, PEN_ROLE_FORWARD);
    const pen_value_id folded = add(graph, "lrn", "folded", x, PEN_ROLE_FORWARD);
    static const float zeros[2 * 3 * 8 * 8];
    pen_graph_set_constant(graph, folded, zeros);
    const pen_attribute_given size = pen_attribute_int("size", 5);
    pen_node_spec spec = pen_node_spec_make("lrn_backward", "back");
    spec.inputs = (const pen_value_id[]){a, folded};
    spec.input_count = 2;
    spec.attributes = &size;
    spec.attribute_count = 1;
    spec.role = PEN_ROLE_BACKWARD_INPUT;
    spec.gradient_of = pen_graph_value(graph, a)->producer;
    spec.source = (pen_source){"model.onnx", 0, 0, 7};
    pen_node_id back;
    CHECK_OK(pen_graph_add_node(graph, &spec, &back));
    pen_graph_set_accumulates(graph, back, true);
    CHECK_OK(pen_graph_copy_begin(graph, &copy));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        CHECK_OK(pen_graph_copy_node(&copy, (pen_node_id){n}));
    }
    CHECK_OK(pen_graph_copy_end(&copy));

    CHECK(pen_graph_node_count(copy.to) == 2, "%u nodes", pen_graph_node_count(copy.to));
    CHECK(pen_graph_symbol_count(copy.to) == 1, "symbols");
    CHECK(pen_graph_input_count(copy.to) == 1, "inputs");
    CHECK(pen_graph_value(copy.to, copy.values[folded.index])->data == zeros, "constant");
    const pen_node *node = pen_graph_node(copy.to, copy.nodes[back.index]);
    CHECK(node->accumulates && node->role == PEN_ROLE_BACKWARD_INPUT, "role");
    CHECK(pen_node_int(node, "size") == 5, "attribute");
    CHECK(node->gradient_of.index == 0, "gradient of %u", node->gradient_of.index);
    CHECK(node->source.position == 7, "position %u", node->source.position);
    CHECK(strcmp(node->name, "back") == 0, "%s", node->name);
    pen_arena_destroy(arena);
}

// A sum over microbatches is shared with programs of other sizes, whose layouts may differ.
static void sums_over_microbatches_are_plain(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph, *laid_out;
    const pen_value_id *values;
    CHECK_OK(pen_graph_create(arena, "test", &graph));
    const pen_value_id x = add_input(graph, "x");
    const pen_value_id a = add(graph, "global_max_pool", "pool", x, PEN_ROLE_FORWARD);
    const pen_value_id sum = add(graph, "lrn", "sum", a, PEN_ROLE_BACKWARD_WEIGHT);
    pen_graph_set_accumulates(graph, pen_graph_value(graph, sum)->producer, true);
    const pen_value_id reader = add(graph, "global_max_pool", "again", sum, PEN_ROLE_UPDATE);
    CHECK_OK(pen_graph_add_output(graph, reader));
    CHECK_OK(pen_assign_layouts(graph, &rules, &laid_out, &values));
    const pen_value_id moved = values[sum.index];
    assert_int_equal(pen_graph_value(laid_out, moved)->layout, PEN_LAYOUT_PLAIN);
    const pen_node *node = producer(laid_out, moved);
    assert_true(node->accumulates);
    assert_string_equal(node->op->name, "lrn");
    assert_int_equal(pen_graph_value(laid_out, node->inputs[0])->layout, PEN_LAYOUT_PLAIN);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(sums_over_microbatches_are_plain),
              cmocka_unit_test(layouts_follow_edges_and_reorders_are_shared),
              cmocka_unit_test(outputs_and_replacements_are_plain),
              cmocka_unit_test(copies_keep_what_nodes_and_values_are))
