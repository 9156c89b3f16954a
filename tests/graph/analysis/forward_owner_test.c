#include <string.h>

#include "graph/analysis/forward_owner.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"
#include "tests/support/random_graph.h"

// Calls `look` with the owners of every reference model, with and without sums over microbatches.
static void with_models(void (*look)(const pen_forward_owners *owners, const char *model)) {
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        for (uint32_t microbatches = 1; microbatches <= 3; microbatches += 2) {
            pen_arena *arena = check_arena();
            pen_plan_job *plan_job = planned_start(
                planned_reference(arena, planned_models[m], microbatches, PLANNED_ONE_DEVICE));
            const pen_forward_owners *owners;
            CHECK_OK(
                pen_forward_owners_build(pen_plan_job_program(plan_job)->graph, arena, &owners));
            look(owners, planned_models[m]);
            pen_plan_job_destroy(plan_job);
            pen_arena_destroy(arena);
        }
    }
}

static void look_at_homes(const pen_forward_owners *owners, const char *model) {
    uint32_t listed = 0;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        const uint32_t home = owners->home[n];
        CHECK(pen_graph_node(owners->graph, (pen_node_id){home})->role == PEN_ROLE_FORWARD,
              "%s: '%s' goes with '%s'", model, node->name,
              pen_node_name(owners->graph, (pen_node_id){home}));
        if (node->role == PEN_ROLE_FORWARD) assert_int_equal(home, n);
        if (pen_node_is(node->gradient_of)) {
            pen_node_id goes_with = node->gradient_of;
            if (node->op->is_view) { // no stage passes a gradient on that it only looks at
                goes_with = pen_graph_value(owners->graph, node->inputs[0])->producer;
            }
            CHECK(home == owners->home[goes_with.index], "%s: '%s'", model, node->name);
        }
        CHECK(owners->group[n] == owners->group[home], "%s: '%s' not in the group of its home",
              model, node->name);
        CHECK(owners->is_listed[owners->listed[n]], "%s: '%s' counts for nothing", model,
              node->name);
        CHECK(owners->group[owners->listed[n]] == owners->group[n], "%s: '%s'", model, node->name);
        listed += owners->is_listed[n];
    }
    CHECK(listed > 2, "%s: %u listed nodes", model, listed);
}

static void every_node_has_a_forward_home(void **state) {
    (void)state;
    with_models(look_at_homes);
}

static void look_at_updates(const pen_forward_owners *owners, const char *model) {
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_UPDATE) continue;
        if (!pen_value_is(pen_graph_value(owners->graph, node->outputs[0])->replaces)) continue;
        const pen_value_id parameter = node->inputs[0];
        bool found = false;
        for (uint32_t r = owners->readers.first[parameter.index];
             r < owners->readers.first[parameter.index + 1]; r++) {
            const uint32_t reader = owners->readers.nodes[r].index;
            if (pen_graph_node(owners->graph, (pen_node_id){reader})->role != PEN_ROLE_FORWARD) {
                continue;
            }
            found = owners->home[n] == reader;
            break;
        }
        CHECK(found, "%s: '%s' is not where its parameter is read first", model, node->name);
    }
}

static void updates_go_with_the_first_reader(void **state) {
    (void)state;
    with_models(look_at_updates);
}

static void look_at_views(const pen_forward_owners *owners, const char *model) {
    (void)model;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        if (!node->op->is_view) {
            for (uint32_t i = 0; i < node->output_count; i++) {
                if (!pen_value_is(node->outputs[i])) continue;
                assert_int_equal(owners->root[node->outputs[i].index], node->outputs[i].index);
            }
            continue;
        }
        assert_int_equal(owners->root[node->outputs[0].index], owners->root[node->inputs[0].index]);
        const pen_node_id producer = pen_graph_value(owners->graph, node->inputs[0])->producer;
        if (node->role != PEN_ROLE_FORWARD || !pen_node_is(producer)) continue;
        assert_int_equal(owners->group[n], owners->group[producer.index]);
    }
}

static void views_stay_with_what_they_look_at(void **state) {
    (void)state;
    with_models(look_at_views);
}

// The tiny model's second weight has two users: they keep their freedom, and the update is at the
// first.
static void shared_parameters_do_not_glue(void **state) {
    (void)state;
    for (uint32_t microbatches = 1; microbatches <= 3; microbatches += 2) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job =
            planned_start(planned_tiny(arena, microbatches, PLANNED_ONE_DEVICE));
        const pen_graph *graph = pen_plan_job_program(plan_job)->graph;
        const pen_forward_owners *owners;
        CHECK_OK(pen_forward_owners_build(graph, arena, &owners));
        pen_value_id twice;
        CHECK_OK(pen_graph_find_value(graph, "twice", &twice));
        uint32_t users[2], count = 0, update = PEN_ID_NONE;
        for (uint32_t u = owners->user_first[twice.index]; u < owners->user_first[twice.index + 1];
             u++) {
            const uint32_t user = owners->user_nodes[u];
            const pen_role role = pen_graph_node(graph, (pen_node_id){user})->role;
            if (role == PEN_ROLE_UPDATE) update = user;
            if (role == PEN_ROLE_FORWARD && count < 2) users[count++] = user;
        }
        assert_int_equal(count, 2);
        assert_true(update != PEN_ID_NONE);
        assert_int_not_equal(owners->group[users[0]], owners->group[users[1]]);
        assert_int_equal(owners->home[update], users[0]);
        // the gradient of the second use is passed on to the first, once a step
        uint32_t passed = 0;
        for (uint32_t v = 0; v < owners->value_count; v++) {
            const pen_node_id producer = pen_graph_value(graph, (pen_value_id){v})->producer;
            if (!pen_node_is(producer) || owners->home[producer.index] != users[1]) continue;
            for (uint32_t u = owners->user_first[v]; u < owners->user_first[v + 1]; u++) {
                if (owners->home[owners->user_nodes[u]] != users[0]) continue;
                passed += pen_forward_owners_is_per_step(owners, (pen_value_id){v});
            }
        }
        assert_int_equal(passed, 1);
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

static uint32_t read_back_count, metric_count;

// What makes the bytes of a node's first operand, before changes of layout.
static uint32_t find_source(const pen_graph *graph, const pen_node *node) {
    for (;;) {
        if (!pen_value_is(node->inputs[0])) return PEN_ID_NONE;
        const pen_node_id producer = pen_graph_value(graph, node->inputs[0])->producer;
        if (!pen_node_is(producer)) return PEN_ID_NONE;
        node = pen_graph_node(graph, producer);
        if (!node->op->is_view && strcmp(node->op->name, "reorder") != 0) return producer.index;
    }
}

static void look_at_layouts(const pen_forward_owners *owners, const char *model) {
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        if (node->role != PEN_ROLE_FORWARD || strcmp(node->op->name, "reorder") != 0) continue;
        const uint32_t source = find_source(owners->graph, node);
        const uint32_t v = node->outputs[0].index;
        for (uint32_t r = owners->readers.first[v]; r < owners->readers.first[v + 1]; r++) {
            const uint32_t reader = owners->readers.nodes[r].index;
            const pen_role role = pen_graph_node(owners->graph, (pen_node_id){reader})->role;
            if (!pen_role_is_backward(role) || owners->home[reader] != source) continue;
            CHECK(owners->group[n] == owners->group[source], "%s: '%s' would come back to '%s'",
                  model, node->name, pen_node_name(owners->graph, (pen_node_id){source}));
            read_back_count++;
        }
    }
}

// An activation never goes backward over a link, to whom it came from.
static void layouts_that_are_read_back_stay(void **state) {
    (void)state;
    read_back_count = 0;
    with_models(look_at_layouts);
    assert_true(read_back_count > 0);
}

static void look_at_metrics(const pen_forward_owners *owners, const char *model) {
    uint32_t loss = PEN_ID_NONE;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        if (strcmp(node->op->name, "softmax_cross_entropy_loss") == 0) loss = n;
    }
    for (uint32_t n = 0; n < owners->node_count && loss != PEN_ID_NONE; n++) {
        const pen_node *node = pen_graph_node(owners->graph, (pen_node_id){n});
        if (strcmp(node->op->name, "accuracy_count") != 0) continue;
        CHECK(owners->group[n] == owners->group[loss], "%s: '%s'", model, node->name);
        metric_count++;
    }
}

static void metrics_go_with_the_loss(void **state) {
    (void)state;
    metric_count = 0;
    with_models(look_at_metrics);
    assert_true(metric_count > 0);
}

// Nothing is computed before a view of an input, however many views it looks through: it goes where
// it is read, so that it cannot come after its reader.
static void views_of_inputs_go_with_their_reader(void **state) {
    (void)state;
    static const char *const ops[5] = {"relu", "flatten", "flatten", "relu", "relu"};
    pen_arena *arena = check_arena();
    const int64_t dims[] = {4, 3};
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 2, dims);
    for (int first = 0; first < 2; first++) { // behind a node, and behind the input
        pen_graph *graph;
        CHECK_OK(pen_graph_create(arena, "views", &graph));
        pen_value_id value = graph_value_of(graph, "x", PEN_VALUE_INPUT, &type);
        for (int i = first; i < 5; i++) {
            value = graph_apply(graph, ops[i], (const char *[]){"a", "b", "c", "d", "e"}[i], value,
                                PEN_VALUE_NONE, PEN_VALUE_NONE);
        }
        CHECK_OK(pen_graph_add_output(graph, value));
        const pen_forward_owners *owners;
        CHECK_OK(pen_forward_owners_build(graph, arena, &owners));
        if (first == 0) { // with what computed the bytes
            assert_int_equal(owners->group[1], owners->group[0]);
            assert_int_equal(owners->group[2], owners->group[0]);
            assert_int_not_equal(owners->group[3], owners->group[0]);
        } else {
            assert_int_equal(owners->group[1], owners->group[0]);
            assert_int_equal(owners->group[2], owners->group[0]);
        }
    }
    pen_arena_destroy(arena);
}

// From what reads a state to what changes it, all is of one loop: what lies between, too, and
// another reader, but not what comes before or behind.
static void loops_are_of_one_stage(void **state) {
    (void)state;
    static const char *const ops[] = {"relu", "mul", "tanh", "add", "exp", "sub"};
    static const bool is_within[] = {false, true, true, true, false, true};
    pen_arena *arena = check_arena();
    pen_graph *graph;
    const pen_tensor_type type = {PEN_FLOAT32, {1, {3}}};
    const pen_forward_owners *owners;
    CHECK_OK(pen_graph_create(arena, "loop", &graph));
    const pen_value_id x = graph_value_of(graph, "x", PEN_VALUE_INPUT, &type);
    const pen_value_id average = graph_value_of(graph, "average", PEN_VALUE_STATE, &type);
    pen_value_id made[6];
    for (uint32_t i = 0; i < 6; i++) {
        const bool reads = i == 1 || i == 5;
        made[i] = graph_apply(graph, ops[i], ops[i], i == 0 ? x : made[i == 5 ? 0 : i - 1],
                              reads    ? average
                              : i == 3 ? made[0]
                                       : PEN_VALUE_NONE,
                              PEN_VALUE_NONE);
    }
    for (uint32_t changes = 0; changes < 2; changes++) {
        if (changes == 1) pen_graph_set_replaces(graph, made[3], average);
        CHECK_OK(pen_forward_owners_build(graph, arena, &owners));
        for (uint32_t n = 0; n < 6; n++) {
            CHECK((owners->loop[n] != 0) == (changes == 1 && is_within[n]), "'%s'", ops[n]);
            if (owners->loop[n] == 0) continue;
            assert_int_equal(owners->loop[n], owners->loop[1]);
            assert_int_equal(owners->group[n], owners->group[1]);
        }
    }
    pen_arena_destroy(arena);
}

static void a_graph_without_nodes_is_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    const pen_forward_owners *owners;
    CHECK_OK(pen_graph_create(arena, "empty", &graph));
    CHECK_ERROR(pen_forward_owners_build(graph, arena, &owners), PEN_INVALID_INPUT,
                "no forward node");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(every_node_has_a_forward_home),
              cmocka_unit_test(updates_go_with_the_first_reader),
              cmocka_unit_test(views_stay_with_what_they_look_at),
              cmocka_unit_test(shared_parameters_do_not_glue),
              cmocka_unit_test(layouts_that_are_read_back_stay),
              cmocka_unit_test(metrics_go_with_the_loss),
              cmocka_unit_test(views_of_inputs_go_with_their_reader),
              cmocka_unit_test(loops_are_of_one_stage),
              cmocka_unit_test(a_graph_without_nodes_is_refused))
