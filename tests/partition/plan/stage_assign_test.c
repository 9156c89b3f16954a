#include "partition/plan/stage_assign.h"

#include <string.h>

#include "graph/passes/cut/cut_stages.h"
#include "scheduler/compile/compile.h"
#include "scheduler/job/job_runner.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/planned.h"
#include "tests/support/random_graph.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"

#define RANDOM_PLACEMENTS 12

typedef struct form {
    const pen_program *program;
    const pen_cut *cut;
} form;

typedef struct forms {
    pen_arena *arena;
    dice dice;
    pen_device *device;
    form items[4]; // training whole, training rest, evaluation whole, evaluation of one example
} forms;

static form form_compile(forms *f, const pen_job *job, pen_compile_mode mode, uint64_t size) {
    pen_dataset *dataset;
    pen_compile_request request;
    form made = {NULL, NULL};
    CHECK_OK(pen_job_open_dataset(job, PEN_DATASET_PART_TRAIN, f->arena, &dataset));
    CHECK_OK(pen_job_compile_request(job, PEN_DATASET_PART_TRAIN, pen_dataset_get_info(dataset),
                                     f->arena, &request));
    request.mode = mode;
    request.microbatch_size = size;
    request.accumulate = true;
    request.device = f->device;
    CHECK_OK(pen_compile(&request, &made.program));
    pen_dataset_close(dataset);
    return made;
}

static void form_cut(forms *f, form *made, const pen_plan *plan) {
    const pen_program *program = made->program;
    const uint32_t stage_count = plan->stages.stage_count;
    pen_cut_request request = {.graph = program->graph,
                               .order = program->order,
                               .order_count = program->order_count,
                               .kept = program->kept,
                               .kept_count = program->kept_count,
                               .device_count = 4,
                               .stage_count = stage_count};
    const uint32_t *stage_of_node;
    uint32_t *device_of_stage;
    bool *is_halved, *is_recomputed;
    CHECK_OK(PEN_NEW(f->arena, stage_count, &device_of_stage));
    CHECK_OK(PEN_NEW(f->arena, stage_count, &is_halved));
    CHECK_OK(PEN_NEW(f->arena, stage_count, &is_recomputed));
    for (uint32_t s = 0; s < stage_count; s++) {
        device_of_stage[s] = plan->stages.stages[s].device;
        is_halved[s] = dice_between(&f->dice, 0, 1) == 0;
        is_recomputed[s] = dice_between(&f->dice, 0, 1) == 0;
    }
    CHECK_OK(pen_stage_assign(program->graph, plan, f->arena, &stage_of_node));
    request.fed = program->inputs;
    request.fed_count = program->fed_count;
    request.stage_of_node = stage_of_node;
    request.device_of_stage = device_of_stage;
    request.is_halved = is_halved;
    request.is_recomputed = is_recomputed;
    CHECK_OK(pen_cut_stages(&request, f->arena, &made->cut));
    assert_int_equal(made->cut->node_count, program->order_count);
}

static bool has_value(const pen_graph *graph, const char *name) {
    pen_value_id found;
    const pen_status status = pen_graph_find_value(graph, name, &found);
    const bool has = status == PEN_OK;
    pen_status_ignore(status, "asked only");
    return has;
}

// Whatever of the trained model a form reads on a device, training has there.
static void check_persistent(const forms *f, const form *other) {
    const form *training = &f->items[0];
    for (uint32_t d = 0; d < other->cut->device_count; d++) {
        const pen_graph *graph = other->cut->parts[d].graph;
        for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
            const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
            if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
            bool is_anywhere = false;
            for (uint32_t e = 0; e < training->cut->device_count; e++) {
                is_anywhere |= has_value(training->cut->parts[e].graph, value->name);
            }
            CHECK(!is_anywhere || has_value(training->cut->parts[d].graph, value->name),
                  "device %u has no '%s' in training", d, value->name);
        }
    }
}

// ---- what goes between devices

// Whether a value from the first device to the second is among the transfers; planned ones are of
// the values that others look at, of what is computed.
static bool is_planned(const pen_planner *planner, const pen_plan_solution *solution,
                       const pen_channel *channel) {
    const uint32_t *device_of_stage = solution->split.device_of_stage;
    pen_value_id value;
    CHECK_OK(pen_graph_find_value(planner->owners->graph, channel->value, &value));
    const pen_value_id root = {planner->owners->root[value.index]};
    const bool is_made = pen_node_is(pen_graph_value(planner->owners->graph, root)->producer);
    for (uint32_t i = 0; i < solution->transfers.count; i++) {
        const pen_stage_transfer *transfer = &solution->transfers.items[i];
        // an updated parameter is planned under the parameter's name
        const pen_value_id old = pen_graph_value(planner->owners->graph, value)->replaces;
        if (!pen_value_same(transfer->value, is_made ? root : value) &&
            !(pen_value_is(old) && pen_value_same(transfer->value, old))) {
            continue;
        }
        if (device_of_stage[transfer->source] == channel->source &&
            device_of_stage[transfer->target] == channel->target) {
            return true;
        }
    }
    return false;
}

static bool is_cut(const pen_planner *planner, const pen_cut *cut, const pen_stage_transfer *wanted,
                   const uint32_t *device_of_stage) {
    const pen_graph *graph = planner->owners->graph;
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        pen_value_id value;
        if (channel->source != device_of_stage[wanted->source] ||
            channel->target != device_of_stage[wanted->target]) {
            continue;
        }
        CHECK_OK(pen_graph_find_value(graph, channel->value, &value));
        const pen_value_id root = {planner->owners->root[value.index]};
        const pen_value_id old = pen_graph_value(graph, value)->replaces;
        if (pen_value_same(wanted->value, value) || pen_value_same(wanted->value, root) ||
            (pen_value_is(old) && pen_value_same(wanted->value, old))) {
            return true;
        }
    }
    return false;
}

// What the cut has channels for is planned, and the other way round.
static void check_channels(const pen_planner *planner, const pen_plan_solution *solution,
                           const pen_cut *cut) {
    const uint32_t *device_of_stage = solution->split.device_of_stage;
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        if (channel->source == PEN_CHANNEL_HOST) continue;
        CHECK(is_planned(planner, solution, channel), "'%s' from %u to %u is not planned",
              channel->value, channel->source, channel->target);
    }
    for (uint32_t i = 0; i < solution->transfers.count; i++) {
        const pen_stage_transfer *transfer = &solution->transfers.items[i];
        const uint32_t source = device_of_stage[transfer->source];
        const uint32_t target = device_of_stage[transfer->target];
        if (source == target) continue;
        CHECK(is_cut(planner, cut, transfer, device_of_stage), "'%s' from %u to %u is not cut",
              pen_value_name(planner->owners->graph, transfer->value), source, target);
    }
}

// The plan of a placement of colours at random.
static pen_plan plan_at_random(forms *f, const pen_planner *planner, uint32_t *stage_of_node,
                               pen_plan_solution *out_solution) {
    const pen_forward_owners *owners = planner->owners;
    uint32_t *devices, *device_of_color;
    pen_plan_solution solution;
    CHECK_OK(PEN_NEW(f->arena, owners->node_count, &devices));
    CHECK_OK(PEN_NEW(f->arena, owners->node_count, &device_of_color));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        device_of_color[n] = (uint32_t)dice_between(&f->dice, 0, 3);
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        devices[n] = device_of_color[planner->constraints.color[n]];
    }
    CHECK_OK(pen_plan_solve(planner, devices, f->arena, &solution));
    pen_plan_node *nodes;
    pen_plan plan = {.stages = solution.stages};
    CHECK_OK(PEN_NEW(f->arena, owners->node_count, &nodes));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        stage_of_node[n] = solution.split.stage_of_node[n];
        if (!owners->is_listed[n]) continue;
        nodes[plan.node_count].name = pen_node_name(owners->graph, (pen_node_id){n});
        nodes[plan.node_count++].stage = stage_of_node[n];
    }
    plan.nodes = nodes;
    *out_solution = solution;
    return plan;
}

static void check_job(pen_arena *arena, const pen_job *job) {
    forms f = {.arena = arena, .dice = {.seed = 5}};
    pen_plan_job *plan_job = planned_start(job);
    const pen_planner *planner = planned_planner(plan_job, f.arena);
    const pen_device_kind *kind;
    CHECK_OK(pen_device_kind_find("cpu", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "cpu", .thread_count = 1}, &f.device));
    f.items[0] = form_compile(&f, job, PEN_COMPILE_TRAIN, 6);
    f.items[1] = form_compile(&f, job, PEN_COMPILE_TRAIN, 5);
    f.items[2] = form_compile(&f, job, PEN_COMPILE_EVALUATE, 6);
    f.items[3] = form_compile(&f, job, PEN_COMPILE_EVALUATE, 1);
    for (int i = 0; i < RANDOM_PLACEMENTS; i++) {
        const uint32_t *found;
        uint32_t *expected;
        CHECK_OK(PEN_NEW(f.arena, planner->owners->node_count, &expected));
        pen_plan_solution solution;
        const pen_plan plan = plan_at_random(&f, planner, expected, &solution);
        CHECK_OK(pen_stage_assign(planner->owners->graph, &plan, f.arena, &found));
        for (uint32_t n = 0; n < planner->owners->node_count; n++) {
            CHECK(found[n] == expected[n], "'%s' is in stage %u, not %u",
                  pen_node_name(planner->owners->graph, (pen_node_id){n}), found[n], expected[n]);
        }
        for (int k = 0; k < 4; k++) {
            form_cut(&f, &f.items[k], &plan);
            // stages of one device need no copies of each other's parameters
            CHECK(f.items[k].cut->phase_count <= pen_stage_graph_phases(&plan.stages), "%u phases",
                  f.items[k].cut->phase_count);
            check_persistent(&f, &f.items[k]);
        }
        check_channels(planner, &solution, f.items[0].cut);
    }
    for (int k = 0; k < 4; k++) {
        pen_program_destroy(f.items[k].program);
    }
    f.device->kind->close(f.device);
    pen_plan_job_destroy(plan_job);
}

static void forms_of_models_are_cut_like_the_plan(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        check_job(arena, planned_reference(arena, planned_models[m], 2, PLANNED_FOUR_DEVICES));
        pen_arena_destroy(arena);
    }
}

// Of what is fed, each device that reads it gets its own; not so of what looks at it, for that is
// made in one stage. Stages that read it elsewhere wait for it.
static void views_of_what_is_fed_are_transfers(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *data = tiny_data_write("views", 12, 3);
    const char *text, *path;
    const pen_job *job = NULL;
    CHECK_OK(pen_arena_format(arena, &text,
                              "version: 1\n"
                              "model:\n"
                              "  inputs: {x: {shape: [6]}}\n"
                              "  layers:\n"
                              "    - reshape: {name: view, from: x, target_shape: [3, 2]}\n"
                              "    - reshape: {name: turned, target_shape: [2, 3]}\n"
                              "    - dense: {name: a, from: turned, units: 2}\n"
                              "    - dense: {name: b, from: view, units: 2}\n"
                              "    - flatten: {name: flat_a, from: a}\n"
                              "    - flatten: {name: flat_b, from: b}\n"
                              "    - flatten: {name: flat_view, from: view}\n"
                              "    - concatenate: {name: all, from: [flat_a, flat_b, flat_view]}\n"
                              "    - dense: {name: y, units: 3}\n"
                              "data: {train: {format: npy, inputs: {x: %s_x.npy}, "
                              "labels: %s_y.npy}}\n"
                              "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, "
                              "batch: 12, microbatches: 2, steps: 1}\n"
                              "%s",
                              data, data, PLANNED_FOUR_DEVICES));
    path = scratch_file("shared_views.yaml", text, strlen(text));
    CHECK_OK(pen_job_parse(path, text, strlen(text), arena, &job));
    check_job(arena, job);
    pen_arena_destroy(arena);
}

// ---- by hand

typedef struct hand {
    pen_arena *arena;
    pen_graph *graph;
} hand;

// w → helper → sum ← x → a; sum → b → c
static hand hand_make(void) {
    hand h = {.arena = check_arena()};
    const pen_tensor_type type = {PEN_FLOAT32, {2, {2, 2}}};
    const pen_value_id none = PEN_VALUE_NONE;
    CHECK_OK(pen_graph_create(h.arena, "hand", &h.graph));
    const pen_value_id x = graph_value_of(h.graph, "x", PEN_VALUE_INPUT, &type);
    const pen_value_id w = graph_value_of(h.graph, "w", PEN_VALUE_PARAMETER, &type);
    const pen_value_id helper = graph_apply(h.graph, "neg", "helper", w, none, none);
    const pen_value_id a = graph_apply(h.graph, "tanh", "a", x, none, none);
    const pen_value_id sum = graph_apply(h.graph, "add", "sum", a, helper, none);
    const pen_value_id b = graph_apply(h.graph, "tanh", "b", sum, none, none);
    CHECK_OK(pen_graph_add_output(h.graph, graph_apply(h.graph, "tanh", "c", b, none, none)));
    return h;
}

static pen_plan hand_plan(const pen_plan_node *nodes, uint32_t count) {
    return (pen_plan){.nodes = nodes, .node_count = count, .stages = {.stage_count = 3}};
}

static void nodes_that_a_plan_lacks_go_with_their_operands(void **state) {
    (void)state;
    hand h = hand_make();
    const pen_plan_node nodes[] = {
        {.name = "a", .stage = 0}, {.name = "b", .stage = 1}, {.name = "elsewhere", .stage = 2}};
    const uint32_t expected[] = {0, 0, 0, 1, 1}; // helper, a, sum, b, c
    const pen_plan plan = hand_plan(nodes, 3);
    const uint32_t *found;
    CHECK_OK(pen_stage_assign(h.graph, &plan, h.arena, &found));
    for (uint32_t n = 0; n < 5; n++) {
        CHECK(found[n] == expected[n], "node %u is in stage %u", n, found[n]);
    }
    const pen_plan_node late[] = {{.name = "a", .stage = 1}, {.name = "sum", .stage = 2}};
    const uint32_t expected_late[] = {2, 1, 2, 2, 2};
    const pen_plan late_plan = hand_plan(late, 2);
    CHECK_OK(pen_stage_assign(h.graph, &late_plan, h.arena, &found));
    for (uint32_t n = 0; n < 5; n++) {
        CHECK(found[n] == expected_late[n], "node %u is in stage %u", n, found[n]);
    }
    pen_arena_destroy(h.arena);
}

// A plan for training must list what trains.
static void training_forms_lack_no_node(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "lenet", 3, PLANNED_FOUR_DEVICES "placement: {strategy: round_robin}\n"));
    pen_plan plan = *planned_place(plan_job, arena);
    const uint32_t *found;
    plan.node_count -= 1;
    CHECK_ERROR(pen_stage_assign(pen_plan_job_program(plan_job)->graph, &plan, arena, &found),
                PEN_INVALID_INPUT, plan.nodes[plan.node_count].name);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

static void plans_that_do_not_suit_are_refused(void **state) {
    (void)state;
    hand h = hand_make();
    const uint32_t *found;
    const pen_plan_node twice[] = {{.name = "a", .stage = 0}, {.name = "a", .stage = 1}};
    const pen_plan_node beyond[] = {{.name = "a", .stage = 3}};
    const pen_plan_node other[] = {{.name = "conv1", .stage = 0}};
    pen_plan plan = hand_plan(twice, 2);
    CHECK_ERROR(pen_stage_assign(h.graph, &plan, h.arena, &found), PEN_INVALID_INPUT,
                "'a' is in the plan twice");
    plan = hand_plan(beyond, 1);
    CHECK_ERROR(pen_stage_assign(h.graph, &plan, h.arena, &found), PEN_INVALID_INPUT,
                "'a' is in stage 3, the plan has 3 stages");
    plan = hand_plan(other, 1);
    CHECK_ERROR(pen_stage_assign(h.graph, &plan, h.arena, &found), PEN_INVALID_INPUT, "'conv1'");
    pen_arena_destroy(h.arena);
}

PEN_TEST_MAIN(cmocka_unit_test(forms_of_models_are_cut_like_the_plan),
              cmocka_unit_test(views_of_what_is_fed_are_transfers),
              cmocka_unit_test(nodes_that_a_plan_lacks_go_with_their_operands),
              cmocka_unit_test(training_forms_lack_no_node),
              cmocka_unit_test(plans_that_do_not_suit_are_refused))
