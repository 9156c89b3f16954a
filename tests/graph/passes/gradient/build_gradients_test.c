#include "graph/passes/gradient/build_gradients.h"

#include <math.h>

#include "graph/op.h"
#include "graph/verify.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_graph.h"

static const pen_tensor_type square = {PEN_FLOAT64, {2, {3, 3}}};

static pen_gradients *gradients_of(pen_graph *graph, pen_value_id loss, uint32_t count,
                                   const pen_value_id *wanted) {
    const pen_value_id seed =
        graph_value_of(graph, "seed", PEN_VALUE_SCALAR, pen_value_type(graph, loss));
    pen_gradients *gradients = NULL;
    CHECK_OK(pen_build_gradients(graph, loss, seed, count, wanted, &gradients));
    CHECK_OK(pen_graph_verify(graph, &(pen_verify_options){.types = true}));
    return gradients;
}

static pen_value_id binary(pen_graph *graph, const char *op, const char *name, pen_value_id a,
                           pen_value_id b) {
    return graph_apply(graph, op, name, a, b, PEN_VALUE_NONE);
}

static uint32_t count_backward_of(const pen_graph *graph, const char *forward_name) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        if (!pen_node_is(node->gradient_of)) continue;
        count += strcmp(pen_node_name(graph, node->gradient_of), forward_name) == 0;
    }
    return count;
}

// x ─► a ─► b ─► loss, and a ─► c ─► loss: the two gradients of a are added, b's first.
static void readers_are_added_in_order(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "branches", &graph));
    const pen_value_id w = graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square);
    const pen_value_id a = binary(graph, "tanh", "a", w, PEN_VALUE_NONE);
    const pen_value_id b = binary(graph, "tanh", "b", a, PEN_VALUE_NONE);
    const pen_value_id c = binary(graph, "sigmoid", "c", a, PEN_VALUE_NONE);
    const pen_value_id loss = binary(graph, "mul", "loss", b, c);
    const pen_gradients *gradients = gradients_of(graph, loss, 1, &w);
    assert_int_equal(gradients->count, 1);
    assert_int_equal(gradients->items[0].use_count, 1);
    pen_node_id sum;
    CHECK_OK(pen_graph_find_node(graph, "a:0/gradient_sum", &sum));
    const pen_node *node = pen_graph_node(graph, sum);
    assert_string_equal(node->op->name, "add");
    const char *first = pen_value_name(graph, node->inputs[0]);
    const char *second = pen_value_name(graph, node->inputs[1]);
    CHECK(strncmp(first, "b/", 2) == 0 && strncmp(second, "c/", 2) == 0, "%s + %s", first, second);
    pen_arena_destroy(arena);
}

// y = tanh(x·w)·w + w: three uses, which stay apart, in the order of their readers.
static void uses_of_a_weight_stay_apart(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "uses", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    const pen_value_id w = graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square);
    const pen_value_id first = binary(graph, "matmul", "first", x, w);
    const pen_value_id hidden = binary(graph, "tanh", "hidden", first, PEN_VALUE_NONE);
    const pen_value_id second = binary(graph, "matmul", "second", hidden, w);
    const pen_value_id loss = binary(graph, "add", "loss", second, w);
    const pen_gradients *gradients = gradients_of(graph, loss, 1, &w);
    assert_int_equal(gradients->items[0].use_count, 3);
    const pen_value_id *uses = gradients->items[0].uses;
    CHECK(strncmp(pen_value_name(graph, uses[0]), "first/", 6) == 0, "%s",
          pen_value_name(graph, uses[0]));
    CHECK(strncmp(pen_value_name(graph, uses[1]), "second/", 7) == 0, "%s",
          pen_value_name(graph, uses[1]));
    assert_string_equal(pen_value_name(graph, uses[2]), "seed");
    pen_arena_destroy(arena);
}

// Both operands of one node.
static void a_weight_may_be_both_operands(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "square", &graph));
    const pen_value_id w = graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square);
    const pen_value_id loss = binary(graph, "matmul", "square", w, w);
    const pen_gradients *gradients = gradients_of(graph, loss, 1, &w);
    assert_int_equal(gradients->items[0].use_count, 2);
    assert_false(pen_value_same(gradients->items[0].uses[0], gradients->items[0].uses[1]));
    pen_arena_destroy(arena);
}

// fc1 is frozen, so nothing of it runs backwards, nor does what leads to it alone; fc2 does.
static void frozen_parts_are_forward_only(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "frozen", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    const pen_value_id w1 = graph_value_of(graph, "w1", PEN_VALUE_PARAMETER, &square);
    const pen_value_id w2 = graph_value_of(graph, "w2", PEN_VALUE_PARAMETER, &square);
    const pen_value_id unused = graph_value_of(graph, "w3", PEN_VALUE_PARAMETER, &square);
    const pen_value_id hidden =
        binary(graph, "tanh", "hidden", binary(graph, "matmul", "fc1", x, w1), PEN_VALUE_NONE);
    const pen_value_id y = binary(graph, "matmul", "fc2", hidden, w2);
    const pen_value_id side = binary(graph, "mul", "side", y, unused); // the loss is not of it
    const pen_value_id loss = binary(graph, "tanh", "loss", y, PEN_VALUE_NONE);
    const pen_value_id wanted[2] = {unused, w2};
    const uint32_t forward_count = pen_graph_node_count(graph);
    const pen_gradients *gradients = gradients_of(graph, loss, 2, wanted);
    assert_int_equal(gradients->items[0].use_count, 0);
    assert_int_equal(gradients->items[1].use_count, 1);
    assert_int_equal(count_backward_of(graph, "fc1"), 0);
    assert_int_equal(count_backward_of(graph, "hidden"), 0);
    assert_int_equal(count_backward_of(graph, "side"), 0);
    assert_int_equal(count_backward_of(graph, "fc2"), 1); // for the weight, none for its input
    assert_int_equal(count_backward_of(graph, "loss"), 1);
    assert_int_equal(pen_graph_node_count(graph), forward_count + 2);
    assert_true(pen_value_is(side));
    pen_arena_destroy(arena);
}

static void a_computed_value_can_be_wanted(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "computed", &graph));
    const pen_value_id w = graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square);
    const pen_value_id a = binary(graph, "tanh", "a", w, PEN_VALUE_NONE);
    const pen_value_id loss = binary(graph, "mul", "loss", a, a);
    const pen_value_id wanted[3] = {a, w, loss};
    const pen_gradients *gradients = gradients_of(graph, loss, 3, wanted);
    assert_int_equal(gradients->items[0].use_count, 2);
    assert_int_equal(gradients->items[1].use_count, 1);
    assert_int_equal(gradients->items[2].use_count, 1);
    assert_string_equal(pen_value_name(graph, gradients->items[2].uses[0]), "seed");
    pen_arena_destroy(arena);
}

// Ops without a gradient rule are listed at once, but only where a gradient would pass.
static void what_cannot_be_differentiated_is_listed(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "steps", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &square);
    const pen_value_id w = graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square);
    const pen_op *lacking = NULL; // any op of one floating operand without a rule
    for (uint32_t f = 0; f < pen_op_family_count() && lacking == NULL; f++) {
        const pen_op_family *family = pen_op_family_at(f);
        for (uint32_t i = 0; i < family->op_count; i++) {
            if (strcmp(family->ops[i].name, "tanh_backward") == 0) lacking = &family->ops[i];
        }
    }
    assert_non_null(lacking);
    assert_null(lacking->gradient);
    const pen_value_id harmless = binary(graph, lacking->name, "harmless", x, x);
    const pen_value_id one = binary(graph, lacking->name, "one", w, harmless);
    const pen_value_id two = binary(graph, lacking->name, "two", one, x);
    const pen_value_id loss = binary(graph, "tanh", "loss", two, PEN_VALUE_NONE);
    const pen_value_id seed = graph_value_of(graph, "seed", PEN_VALUE_SCALAR, &square);
    pen_gradients *gradients;
    const uint32_t node_count = pen_graph_node_count(graph);
    const pen_status status = pen_build_gradients(graph, loss, seed, 1, &w, &gradients);
    char text[2048];
    pen_status_format(status, text, sizeof text);
    assert_int_equal(pen_status_get_code(status), PEN_UNSUPPORTED);
    CHECK(strstr(text, "'one'") != NULL && strstr(text, "'two'") != NULL, "%s", text);
    CHECK(strstr(text, "'harmless'") == NULL, "%s", text);
    pen_status_ignore(status, "looked at");
    assert_int_equal(pen_graph_node_count(graph), node_count);
    pen_arena_destroy(arena);
}

static void fill(run_graph *run, pen_value_id value, uint64_t seed) {
    pen_tensor *tensor = &run->tensors[value.index];
    const pen_random_key key = {seed, pen_random_stream("fill", value.index, 0)};
    for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
        pen_tensor_set(tensor, k, pen_random_normal(key, (uint64_t)k));
    }
}

static double loss_at(run_graph *run, const random_graph *random, pen_tensor *parameter, int64_t k,
                      double number) {
    const double old = pen_tensor_get(parameter, k);
    pen_tensor_set(parameter, k, number);
    CHECK_OK(run_graph_nodes(run, 0, random->forward_count));
    pen_tensor_set(parameter, k, old);
    return pen_tensor_get(&run->tensors[random->loss.index], 0);
}

static double sum_of_uses(const run_graph *run, const pen_gradient *gradient, int64_t k) {
    double sum = 0;
    for (uint32_t u = 0; u < gradient->use_count; u++) {
        sum += pen_tensor_get(&run->tensors[gradient->uses[u].index], k);
    }
    return sum;
}

static void check_differences(uint64_t seed, uint32_t *shared) {
    const double step = 1e-6;
    pen_arena *arena = check_arena();
    random_graph random = random_graph_forward(arena, seed, PEN_FLOAT64, 24);
    random_graph_differentiate(&random);
    CHECK_OK(pen_graph_verify(random.graph, &(pen_verify_options){.types = true}));
    run_graph run;
    CHECK_OK(run_graph_init(&run, random.graph, arena));
    for (uint32_t i = 0; i < RANDOM_GRAPH_INPUTS; i++) {
        fill(&run, random.inputs[i], seed);
    }
    for (uint32_t i = 0; i < RANDOM_GRAPH_PARAMETERS; i++) {
        fill(&run, random.parameters[i], seed);
    }
    pen_tensor_set(&run.tensors[random.seed.index], 0, 1);
    CHECK_OK(run_graph_all(&run));
    for (uint32_t i = 0; i < RANDOM_GRAPH_PARAMETERS; i++) {
        const pen_gradient *gradient = &random.gradients->items[i];
        pen_tensor *parameter = &run.tensors[random.parameters[i].index];
        *shared += gradient->use_count > 1;
        for (int64_t k = 0; k < pen_tensor_count(parameter); k++) {
            const double at = pen_tensor_get(parameter, k);
            const double above = loss_at(&run, &random, parameter, k, at + step);
            const double below = loss_at(&run, &random, parameter, k, at - step);
            const double numeric = (above - below) / (2 * step);
            const double symbolic = sum_of_uses(&run, gradient, k);
            CHECK(fabs(numeric - symbolic) <= 1e-6 * (1 + fabs(numeric)),
                  "seed %llu: d loss / d w%u[%lld] is %.12g, by differences %.12g",
                  (unsigned long long)seed, i, (long long)k, symbolic, numeric);
        }
    }
    pen_arena_destroy(arena);
}

static void random_graphs_agree_with_differences(void **state) {
    (void)state;
    uint32_t shared = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        check_differences(seed, &shared);
    }
    CHECK(shared > 60, "only %u parameters were used twice", shared);
}

// w ─► steps ─► stop ─► sum, and w ─► sum: what is stopped needs no rule, and a parameter that is
// read behind a stop alone has no gradient.
static void what_is_stopped_has_no_gradient(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "stopped", &graph));
    const pen_value_id wanted[2] = {graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square),
                                    graph_value_of(graph, "target", PEN_VALUE_PARAMETER, &square)};
    const pen_value_id steps = binary(graph, "tanh_backward", "steps", wanted[0], wanted[0]);
    const pen_value_id stop = binary(graph, "stop_gradient", "stop", steps, PEN_VALUE_NONE);
    const pen_value_id sum = binary(graph, "add", "sum", wanted[0], stop);
    const pen_value_id target =
        binary(graph, "stop_gradient", "stop_target", wanted[1], PEN_VALUE_NONE);
    const pen_value_id loss = binary(graph, "mul", "loss", sum, target);
    const pen_gradients *gradients = gradients_of(graph, loss, 2, wanted);
    assert_int_equal(gradients->items[0].use_count, 1);
    assert_int_equal(gradients->items[1].use_count, 0);
    assert_int_equal(count_backward_of(graph, "steps"), 0);
    assert_int_equal(count_backward_of(graph, "stop"), 0);
    assert_int_equal(count_backward_of(graph, "stop_target"), 0);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(readers_are_added_in_order),
              cmocka_unit_test(uses_of_a_weight_stay_apart),
              cmocka_unit_test(a_weight_may_be_both_operands),
              cmocka_unit_test(frozen_parts_are_forward_only),
              cmocka_unit_test(a_computed_value_can_be_wanted),
              cmocka_unit_test(what_cannot_be_differentiated_is_listed),
              cmocka_unit_test(what_is_stopped_has_no_gradient),
              cmocka_unit_test(random_graphs_agree_with_differences))
