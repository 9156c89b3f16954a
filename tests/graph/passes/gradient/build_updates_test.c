#include "graph/passes/gradient/build_updates.h"

#include <math.h>

#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/verify.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_graph.h"

static const pen_tensor_type square = {PEN_FLOAT64, {2, {2, 2}}};

// loss = x·w + w + v, of which `v` and `w` get the same gradient from the last sum.
typedef struct update_case {
    pen_arena *arena;
    pen_graph *graph;
    pen_value_id w, v, unused, seed;
    pen_gradients *gradients;
    pen_updates updates;
} update_case;

static update_case update_case_of(const pen_optimizer *optimizer, bool accumulate,
                                  const pen_step_shape *step) {
    update_case c = {.arena = check_arena()};
    CHECK_OK(pen_graph_create(c.arena, "updates", &c.graph));
    const pen_value_id x = graph_value_of(c.graph, "x", PEN_VALUE_INPUT, &square);
    c.w = graph_value_of(c.graph, "w", PEN_VALUE_PARAMETER, &square);
    c.v = graph_value_of(c.graph, "v", PEN_VALUE_PARAMETER, &square);
    c.unused = graph_value_of(c.graph, "unused", PEN_VALUE_PARAMETER, &square);
    pen_value_id loss = graph_apply(c.graph, "matmul", "product", x, c.w, PEN_VALUE_NONE);
    loss = graph_apply(c.graph, "add", "plus_w", loss, c.w, PEN_VALUE_NONE);
    loss = graph_apply(c.graph, "add", "plus_v", loss, c.v, PEN_VALUE_NONE);
    c.seed = graph_value_of(c.graph, "seed", PEN_VALUE_SCALAR, &square);
    const pen_value_id wanted[3] = {c.w, c.v, c.unused};
    CHECK_OK(pen_build_gradients(c.graph, loss, c.seed, 3, wanted, &c.gradients));
    CHECK_OK(pen_build_updates(c.graph, c.gradients, optimizer, accumulate, step, &c.updates));
    CHECK_OK(pen_graph_verify(c.graph, &(pen_verify_options){.types = true}));
    return c;
}

static update_case update_case_make(const pen_optimizer *optimizer, bool accumulate) {
    return update_case_of(optimizer, accumulate, NULL);
}

static const pen_node *node_called(const update_case *c, const char *name) {
    pen_node_id node;
    CHECK_OK(pen_graph_find_node(c->graph, name, &node));
    return pen_graph_node(c->graph, node);
}

static bool has_node(const update_case *c, const char *name) {
    pen_node_id node;
    const pen_status status = pen_graph_find_node(c->graph, name, &node);
    const bool found = status == PEN_OK;
    pen_status_ignore(status, "only asked");
    return found;
}

static const pen_optimizer momentum = {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.9};

// Whatever makes a gradient, its sum over microbatches is called after the parameter, and counts
// once: the seed, which w and v share, is copied for each.
static void gradients_accumulate_by_use(void **state) {
    (void)state;
    update_case c = update_case_make(&momentum, true);
    assert_int_equal(c.updates.updated_count, 2);
    static const char *const sums[] = {"w/gradient", "w/gradient_2", "v/gradient"};
    for (size_t i = 0; i < 3; i++) {
        pen_value_id sum;
        CHECK_OK(pen_graph_find_value(c.graph, sums[i], &sum));
        const pen_value *value = pen_graph_value(c.graph, sum);
        const pen_node *producer = pen_graph_node(c.graph, value->producer);
        assert_true(producer->accumulates);
        assert_int_equal(producer->role, PEN_ROLE_BACKWARD_WEIGHT);
        assert_string_equal(producer->op->name, i == 0 ? "matmul" : "reorder");
        for (uint32_t k = 0; i > 0 && k < producer->input_count; k++) {
            assert_true(pen_value_same(producer->inputs[k], c.seed));
        }
    }
    const pen_node *both = node_called(&c, "w/gradient_of_uses");
    assert_int_equal(both->role, PEN_ROLE_UPDATE); // once a step
    assert_string_equal(pen_value_name(c.graph, both->inputs[0]), "w/gradient");
    assert_string_equal(pen_value_name(c.graph, both->inputs[1]), "w/gradient_2");
    assert_false(has_node(&c, "unused/update"));
    pen_arena_destroy(c.arena);
}

static void one_microbatch_needs_no_sums(void **state) {
    (void)state;
    update_case c = update_case_make(&momentum, false);
    for (uint32_t n = 0; n < pen_graph_node_count(c.graph); n++) {
        assert_false(pen_graph_node(c.graph, (pen_node_id){n})->accumulates);
    }
    assert_false(has_node(&c, "v/accumulate"));
    assert_int_equal(node_called(&c, "w/gradient_of_uses")->role, PEN_ROLE_BACKWARD_WEIGHT);
    pen_arena_destroy(c.arena);
}

static void states_take_the_place_of_old_ones(void **state) {
    (void)state;
    const pen_optimizer adam = {
        .kind = PEN_OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};
    update_case c = update_case_make(&adam, false);
    const pen_node *update = node_called(&c, "w/update");
    static const char *const names[] = {"w", "w/first_moment", "w/second_moment"};
    for (uint32_t i = 0; i < 3; i++) {
        const pen_value_id replaced = pen_graph_value(c.graph, update->outputs[i])->replaces;
        assert_string_equal(pen_value_name(c.graph, replaced), names[i]);
        const pen_value_kind kind = pen_graph_value(c.graph, replaced)->kind;
        assert_int_equal(kind, i == 0 ? PEN_VALUE_PARAMETER : PEN_VALUE_STATE);
    }
    assert_true(pen_value_is(c.updates.step));
    pen_arena_destroy(c.arena);
    c = update_case_make(&momentum, false);
    assert_false(pen_value_is(c.updates.step));
    assert_int_equal(node_called(&c, "w/update")->output_count, 2);
    pen_arena_destroy(c.arena);
    // a state that is not kept leaves a gap
    const pen_optimizer centered = {.kind = PEN_OPTIMIZER_RMSPROP, .alpha = 0.9, .centered = true};
    c = update_case_make(&centered, false);
    update = node_called(&c, "w/update");
    assert_int_equal(update->output_count, 4);
    assert_false(pen_value_is(update->inputs[3]) || pen_value_is(update->outputs[2]));
    const pen_value_id average = pen_graph_value(c.graph, update->outputs[3])->replaces;
    assert_string_equal(pen_value_name(c.graph, average), "w/gradient_average");
    assert_false(pen_value_is(c.updates.step));
    pen_arena_destroy(c.arena);
    const pen_optimizer plain = {.kind = PEN_OPTIMIZER_SGD};
    c = update_case_make(&plain, false);
    assert_int_equal(node_called(&c, "w/update")->output_count, 1);
    pen_arena_destroy(c.arena);
}

static void set_all(run_graph *run, pen_value_id value, double number) {
    pen_tensor *tensor = &run->tensors[value.index];
    for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
        pen_tensor_set(tensor, k, number);
    }
}

// Norms are added in the order of names, and all gradients are scaled down together.
static void clipping_holds_the_global_norm(void **state) {
    (void)state;
    pen_optimizer clipped = {.kind = PEN_OPTIMIZER_SGD, .clip_norm = 1.5};
    update_case c = update_case_make(&clipped, false);
    const pen_node *scale = node_called(&c, "clip_scale");
    assert_string_equal(pen_value_name(c.graph, scale->inputs[0]), "v/squared_norm:0");
    assert_string_equal(pen_value_name(c.graph, scale->inputs[1]), "w/squared_norm:0");
    run_graph run;
    CHECK_OK(run_graph_init(&run, c.graph, c.arena));
    set_all(&run, c.seed, 2);
    set_all(&run, c.updates.learning_rate, 1);
    CHECK_OK(run_graph_all(&run));
    double squares = 0; // of the changes, which are the clipped gradients; x is 0
    static const char *const names[] = {"w/update", "v/update"};
    for (int i = 0; i < 2; i++) {
        const pen_tensor *changed = &run.tensors[node_called(&c, names[i])->outputs[0].index];
        for (int64_t k = 0; k < 4; k++) {
            squares += pow(pen_tensor_get(changed, k), 2);
        }
    }
    CHECK(fabs(sqrt(squares) - 1.5) < 1e-6, "the norm is %g", sqrt(squares));
    pen_arena_destroy(c.arena);
}

// What a step changes w by, whose seed is `scale` times 2.
static void change_scaled(double clip_norm, double scale, bool is_scaled, double *out_changes) {
    const pen_optimizer optimizer = {.kind = PEN_OPTIMIZER_SGD, .clip_norm = clip_norm};
    const pen_step_shape step = {.microbatches = 1, .is_scaled = is_scaled};
    update_case c = update_case_of(&optimizer, false, &step);
    assert_int_equal(pen_value_is(c.updates.unscale), is_scaled);
    assert_int_equal(has_node(&c, "clip_scale"), is_scaled || clip_norm > 0);
    run_graph run;
    CHECK_OK(run_graph_init(&run, c.graph, c.arena));
    set_all(&run, c.seed, 2 * scale);
    set_all(&run, c.updates.learning_rate, 1);
    if (is_scaled) set_all(&run, c.updates.unscale, 1 / scale);
    CHECK_OK(run_graph_all(&run));
    const pen_tensor *changed = &run.tensors[node_called(&c, "w/update")->outputs[0].index];
    for (int64_t k = 0; k < 4; k++) {
        out_changes[k] = pen_tensor_get(changed, k);
    }
    pen_arena_destroy(c.arena);
}

// Scaled gradients have the updates of others, with clipping and without; norms are of what was
// unscaled, and updates wait for them.
static void scaled_gradients_are_unscaled_first(void **state) {
    (void)state;
    for (int is_clipped = 0; is_clipped < 2; is_clipped++) {
        double plain[4], scaled[4];
        change_scaled(is_clipped ? 1.5 : 0, 1, false, plain);
        change_scaled(is_clipped ? 1.5 : 0, 65536, true, scaled);
        for (int k = 0; k < 4; k++) {
            assert_true(plain[k] != 0);
            CHECK(plain[k] == scaled[k], "%g, expected %g", scaled[k], plain[k]);
        }
    }
    const pen_optimizer optimizer = {.kind = PEN_OPTIMIZER_SGD, .clip_norm = 1.5};
    const pen_step_shape step = {.microbatches = 1, .is_scaled = true};
    update_case c = update_case_of(&optimizer, true, &step);
    const pen_value_id unscaled = node_called(&c, "w/unscaled")->outputs[0];
    assert_true(pen_value_same(node_called(&c, "w/squared_norm")->inputs[0], unscaled));
    const pen_node *update = node_called(&c, "w/update");
    assert_true(pen_value_same(update->inputs[update->op->update.gradient], unscaled));
    pen_arena_destroy(c.arena);
}

// Nothing that the step changes is changed, not even averages; one number says so.
static void gradients_that_are_not_finite_change_nothing(void **state) {
    (void)state;
    static const char *const nodes[] = {"w/update", "v/update", "w/average_update",
                                        "v/average_update"};
    const pen_optimizer optimizer = {
        .kind = PEN_OPTIMIZER_SGD, .momentum = 0.9, .average = {.decay = 0.5}};
    const pen_step_shape step = {.microbatches = 1, .is_scaled = true};
    for (int is_finite = 0; is_finite < 2; is_finite++) {
        update_case c = update_case_of(&optimizer, false, &step);
        run_graph run;
        CHECK_OK(run_graph_init(&run, c.graph, c.arena));
        set_all(&run, c.seed, is_finite ? 2 : (double)INFINITY);
        set_all(&run, c.updates.learning_rate, 1);
        set_all(&run, c.updates.step, 1);
        set_all(&run, c.updates.unscale, 1);
        CHECK_OK(run_graph_all(&run));
        assert_true(pen_tensor_get(&run.tensors[c.updates.applied.index], 0) ==
                    (is_finite ? 1 : -1));
        for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
            const pen_node *node = node_called(&c, nodes[i]);
            for (uint32_t o = 0; o < node->output_count; o++) { // all began as zeros
                for (int64_t k = 0; k < 4; k++) {
                    const double made = pen_tensor_get(&run.tensors[node->outputs[o].index], k);
                    CHECK((made != 0) == is_finite, "%s, output %u: %g", nodes[i], o, made);
                }
            }
        }
        pen_arena_destroy(c.arena);
    }
}

// loss = (x·w in float32) + v, where w is float64: either is unscaled in its own type, whichever of
// them comes first.
static void parameters_of_several_types_are_unscaled(void **state) {
    (void)state;
    static const pen_tensor_type single = {PEN_FLOAT32, {2, {2, 2}}};
    const pen_attribute_given to = pen_attribute_text("to", "float32");
    const pen_optimizer optimizer = {.kind = PEN_OPTIMIZER_SGD};
    const pen_step_shape step = {.microbatches = 1, .is_scaled = true};
    for (int is_w_first = 0; is_w_first < 2; is_w_first++) {
        update_case c = {.arena = check_arena()};
        CHECK_OK(pen_graph_create(c.arena, "types", &c.graph));
        const pen_value_id x = graph_value_of(c.graph, "x", PEN_VALUE_INPUT, &square);
        c.w = graph_value_of(c.graph, "w", PEN_VALUE_PARAMETER, &square);
        c.v = graph_value_of(c.graph, "v", PEN_VALUE_PARAMETER, &single);
        pen_value_id loss = graph_apply(c.graph, "matmul", "product", x, c.w, PEN_VALUE_NONE);
        pen_node_spec cast = pen_node_spec_of(PEN_OP(cast), "single");
        cast.inputs = &loss;
        cast.input_count = 1;
        cast.attributes = &to;
        cast.attribute_count = 1;
        CHECK_OK(pen_graph_add_simple(c.graph, &cast, &loss));
        loss = graph_apply(c.graph, "add", "plus_v", loss, c.v, PEN_VALUE_NONE);
        c.seed = graph_value_of(c.graph, "seed", PEN_VALUE_SCALAR, &single);
        const pen_value_id wanted[2] = {is_w_first ? c.w : c.v, is_w_first ? c.v : c.w};
        CHECK_OK(pen_build_gradients(c.graph, loss, c.seed, 2, wanted, &c.gradients));
        CHECK_OK(pen_build_updates(c.graph, c.gradients, &optimizer, false, &step, &c.updates));
        CHECK_OK(pen_graph_verify(c.graph, &(pen_verify_options){.types = true}));
        assert_int_equal(has_node(&c, "w/unscale"), !is_w_first);
        assert_int_equal(has_node(&c, "v/unscale"), is_w_first);
        run_graph run;
        CHECK_OK(run_graph_init(&run, c.graph, c.arena));
        set_all(&run, x, 3);
        set_all(&run, c.seed, 8);
        set_all(&run, c.updates.unscale, 0.25);
        CHECK_OK(run_graph_all(&run));
        const pen_node *of_w = node_called(&c, "w/unscaled"), *of_v = node_called(&c, "v/unscaled");
        for (int64_t k = 0; k < 4; k++) {
            assert_true(pen_tensor_get(&run.tensors[of_w->outputs[0].index], k) == 2 * 3 * 2);
            assert_true(pen_tensor_get(&run.tensors[of_v->outputs[0].index], k) == 2);
        }
        pen_arena_destroy(c.arena);
    }
}

// A model may use our names itself.
static void names_of_the_model_come_first(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "names", &graph));
    const pen_value_id w = graph_value_of(graph, "w", PEN_VALUE_PARAMETER, &square);
    const pen_value_id velocity = graph_value_of(graph, "w/velocity", PEN_VALUE_PARAMETER, &square);
    const pen_value_id rate = graph_value_of(graph, "learning_rate", PEN_VALUE_INPUT, &square);
    pen_value_id loss = graph_apply(graph, "mul", "w/update", w, velocity, PEN_VALUE_NONE);
    loss = graph_apply(graph, "mul", "w/gradient", loss, rate, PEN_VALUE_NONE);
    const pen_value_id seed = graph_value_of(graph, "step", PEN_VALUE_SCALAR, &square);
    const pen_value_id wanted[2] = {w, velocity};
    pen_gradients *gradients;
    pen_updates updates;
    CHECK_OK(pen_build_gradients(graph, loss, seed, 2, wanted, &gradients));
    CHECK_OK(pen_build_updates(graph, gradients, &momentum, true, NULL, &updates));
    CHECK_OK(pen_graph_verify(graph, &(pen_verify_options){.types = true}));
    assert_string_equal(pen_value_name(graph, updates.learning_rate), "learning_rate_2");
    pen_arena_destroy(arena);
}

// ---- tables

enum { TABLE = 40, EXAMPLES = 2, TOKENS = 3, LENGTH = 2 };

// What a step over two microbatches makes of a table, with or without lists of rows. `ties`: the
// table is read once more, as a whole.
static void run_table(const pen_optimizer *optimizer, const pen_step_shape *step, bool ties,
                      const char *expected_op, double *out_table) {
    const pen_tensor_type type = {PEN_FLOAT64, {2, {TABLE, LENGTH}}};
    const pen_tensor_type tokens_type = {PEN_INT64, {2, {EXAMPLES, TOKENS}}};
    const pen_tensor_type read_type = {PEN_FLOAT64, {3, {EXAMPLES, TOKENS, LENGTH}}};
    pen_arena *arena = check_arena();
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, "table", &graph));
    const pen_value_id table = graph_value_of(graph, "table", PEN_VALUE_PARAMETER, &type);
    const pen_value_id tokens = graph_value_of(graph, "tokens", PEN_VALUE_INPUT, &tokens_type);
    const pen_value_id factor = graph_value_of(graph, "x", PEN_VALUE_INPUT, &read_type);
    pen_value_id loss = graph_apply(graph, "gather", "read", table, tokens, PEN_VALUE_NONE);
    loss = graph_apply(graph, "mul", "times", loss, factor, PEN_VALUE_NONE);
    if (ties) {
        const pen_value_id all =
            graph_apply(graph, "reduce_sum", "all", table, PEN_VALUE_NONE, PEN_VALUE_NONE);
        const int64_t one = 1;
        pen_value_id shape;
        CHECK_OK(pen_graph_constant_ints(graph, "one", 1, &one, &shape));
        loss = graph_apply(graph, "mul", "tied", loss,
                           graph_apply(graph, "reshape", "flat", all, shape, PEN_VALUE_NONE),
                           PEN_VALUE_NONE);
    }
    const pen_value_id seed = graph_value_of(graph, "seed", PEN_VALUE_SCALAR, &read_type);
    pen_gradients *gradients;
    pen_updates updates;
    CHECK_OK(pen_build_gradients(graph, loss, seed, 1, &table, &gradients));
    CHECK_OK(pen_build_updates(graph, gradients, optimizer, true, step, &updates));
    CHECK_OK(pen_graph_verify(graph, &(pen_verify_options){.types = true}));
    run_graph run;
    CHECK_OK(run_graph_init(&run, graph, arena));
    for (int i = 0; i < TABLE * LENGTH; i++) {
        pen_tensor_set(&run.tensors[table.index], i, 0.01 * i);
    }
    bool is_found = expected_op == NULL;
    pen_value_id updated = PEN_VALUE_NONE;
    for (run.microbatch = 0; run.microbatch < 3; run.microbatch++) {
        const bool is_update = run.microbatch == 2;
        run.adds = run.microbatch == 1;
        for (int i = 0; i < EXAMPLES * TOKENS * LENGTH; i++) {
            const int at = i + (int)run.microbatch * 7;
            if (i < EXAMPLES * TOKENS) {
                pen_tensor_set_int(&run.tensors[tokens.index], i, at * at % 5 - 2);
            }
            pen_tensor_set(&run.tensors[factor.index], i, at % 3 + 0.3);
            pen_tensor_set(&run.tensors[seed.index], i, 1);
        }
        pen_tensor_set(&run.tensors[updates.learning_rate.index], 0, 0.1);
        if (pen_value_is(updates.step)) pen_tensor_set(&run.tensors[updates.step.index], 0, 1);
        for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
            const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
            if (expected_op != NULL && strcmp(node->op->name, expected_op) == 0) is_found = true;
            if ((node->role == PEN_ROLE_UPDATE) != is_update) continue;
            CHECK_OK(run_graph_nodes(&run, n, n + 1));
            if (pen_value_same(pen_graph_value(graph, node->outputs[0])->replaces, table)) {
                updated = node->outputs[0];
            }
        }
    }
    CHECK(is_found, "there is no %s", expected_op);
    for (int i = 0; i < TABLE * LENGTH; i++) {
        out_table[i] = pen_tensor_get(&run.tensors[updated.index], i);
    }
    pen_arena_destroy(arena);
}

static void rows_of_tables_are_listed(void **state) {
    (void)state;
    static const pen_optimizer optimizers[] = {
        {.kind = PEN_OPTIMIZER_SGD},
        {.kind = PEN_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 0.1, .clip_norm = 0.5},
        {.kind = PEN_OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .clip_norm = 1},
        {.kind = PEN_OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6},
    };
    const pen_step_shape step = {.microbatches = 3, .examples = EXAMPLES, .most_examples = 2};
    const pen_step_shape full = {.microbatches = 30, .examples = EXAMPLES, .most_examples = 2};
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        for (int ties = 0; ties < 2; ties++) {
            double expected[TABLE * LENGTH], found[TABLE * LENGTH], many[TABLE * LENGTH];
            run_table(&optimizers[o], NULL, ties, "gather_backward", expected);
            run_table(&optimizers[o], &step, ties, "stack_rows", found);
            run_table(&optimizers[o], &full, ties, "gather_backward", many);
            for (int i = 0; i < TABLE * LENGTH; i++) {
                CHECK(fabs(found[i] - expected[i]) <= 1e-14, "element %d is %g, expected %g", i,
                      found[i], expected[i]);
                CHECK(many[i] == expected[i], "rows that are most of a table are listed");
            }
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(gradients_accumulate_by_use),
              cmocka_unit_test(one_microbatch_needs_no_sums),
              cmocka_unit_test(states_take_the_place_of_old_ones),
              cmocka_unit_test(clipping_holds_the_global_norm),
              cmocka_unit_test(scaled_gradients_are_unscaled_first),
              cmocka_unit_test(gradients_that_are_not_finite_change_nothing),
              cmocka_unit_test(parameters_of_several_types_are_unscaled),
              cmocka_unit_test(names_of_the_model_come_first),
              cmocka_unit_test(rows_of_tables_are_listed))
