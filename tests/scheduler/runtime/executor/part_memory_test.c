// What is said of a part's memory, before it is made, is what its executor takes.
#include "base/random.h"
#include "graph/graph.h"
#include "partition/lower/memory_model.h"
#include "partition/plan/stage_assign.h"
#include "scheduler/compile/program_cut.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/runtime/executor/executor.h"
#include "scheduler/runtime/executor/part_memory.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

#define DEVICES 4
#define MICROBATCHES 4

typedef struct cut_case {
    pen_arena *arena;
    pen_plan_job *plan_job;
    const pen_program *program;
    pen_device *device;
    pen_plan_solution solution;
    const pen_cut *cut;
    pen_run_form_built built;
} cut_case;

static const char *const test_models[] = {"mlp",           "lenet",    "branching_cnn",
                                          "batchnorm_cnn", "resnet18", "tiny"};

static uint64_t device_value_bytes(const void *context, const pen_graph *graph,
                                   pen_value_id value) {
    const cut_case *c = context;
    return c->device->kind->value_bytes(c->device, graph, value);
}

static pen_status device_workspace(const void *context, const pen_graph *graph, pen_node_id node,
                                   uint64_t *out_bytes) {
    const cut_case *c = context;
    pen_kernel *kernel;
    PEN_TRY(c->device->kind->prepare(c->device, graph, node, c->arena, &kernel));
    *out_bytes = c->device->kind->workspace_bytes(kernel);
    c->device->kind->release(c->device, kernel);
    return PEN_OK;
}

// Groups of nodes in runs over devices 0 up to device_count; with `turns` in twice as many runs,
// every device in turn.
static const uint32_t *place_in_runs(const pen_planner *planner, pen_arena *arena,
                                     uint32_t device_count, bool turns) {
    const uint32_t node_count = planner->owners->node_count;
    const uint32_t runs = turns ? 2 * device_count : device_count;
    uint32_t *device_of_node, color_count = 1;
    CHECK_OK(PEN_NEW(arena, node_count, &device_of_node));
    for (uint32_t n = 0; n < node_count; n++) {
        const uint32_t color = planner->constraints.color[n];
        if (color >= color_count) color_count = color + 1;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        device_of_node[n] = runs * planner->constraints.color[n] / color_count % device_count;
    }
    return device_of_node;
}

// Groups of nodes on any device.
static const uint32_t *place_at_random(const pen_planner *planner, pen_arena *arena,
                                       uint64_t seed) {
    const uint32_t node_count = planner->owners->node_count;
    const pen_random_key key = {seed, pen_random_stream("place", 0, 0)};
    uint32_t *device_of_node;
    CHECK_OK(PEN_NEW(arena, node_count, &device_of_node));
    for (uint32_t n = 0; n < node_count; n++) {
        device_of_node[n] = (uint32_t)pen_random_below(key, planner->constraints.color[n], DEVICES);
    }
    return device_of_node;
}

static cut_case cut_start(const char *model, const char *placement) {
    cut_case c = {.arena = check_arena()};
    const char *rest;
    CHECK_OK(pen_arena_format(c.arena, &rest, "%splacement: {time_limit: 100ms%s}\n",
                              PLANNED_FOUR_DEVICES, placement));
    c.plan_job = planned_start(strcmp(model, "tiny") == 0
                                   ? planned_tiny(c.arena, MICROBATCHES, rest)
                                   : planned_reference(c.arena, model, MICROBATCHES, rest));
    c.program = pen_plan_job_program(c.plan_job);
    const pen_device_kind *kind = NULL;
    CHECK_OK(pen_device_kind_find("cpu", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "a", .thread_count = 1}, &c.device));
    return c;
}

// Cuts the program, and counts the copies.
static void cut_finish(cut_case *c, const pen_stage_split *split, const pen_stage_graph *stages,
                       const pen_schedule *schedule, bool is_one_worker) {
    CHECK_OK(pen_program_cut_stages(c->program, stages, schedule, split->stage_of_node, c->arena,
                                    &c->cut));
    static const uint32_t one_worker[DEVICES] = {1, 1, 1, 1}, workers[DEVICES] = {1, 2, 3, 4};
    const pen_run_form_request form = {.cut = c->cut,
                                       .schedule = schedule,
                                       .microbatch_count = MICROBATCHES,
                                       .microbatch_size = c->program->microbatch_size,
                                       .trains = true,
                                       .worker_of_device = is_one_worker ? one_worker : workers,
                                       .value_bytes = device_value_bytes,
                                       .value_bytes_context = c};
    CHECK_OK(pen_run_form_build(&form, c->arena, &c->built));
}

static void cut_generate(cut_case *c, const char *schedule_name, bool is_one_worker) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    CHECK_OK(pen_schedule_generator_find(schedule_name, c->arena, &generator));
    CHECK_OK(generator->generate(&c->solution.stages, c->arena, &schedule));
    cut_finish(c, &c->solution.split, &c->solution.stages, schedule, is_one_worker);
}

static cut_case cut_make(const char *model, const char *schedule_name, uint32_t device_count,
                         bool turns, bool is_one_worker) {
    cut_case c = cut_start(model, "");
    const pen_plan_request *request;
    pen_planner *planner;
    CHECK_OK(pen_plan_job_get_request(c.plan_job, schedule_name, &request));
    CHECK_OK(pen_planner_new(request, c.arena, &planner));
    const uint32_t *devices = place_in_runs(planner, c.arena, device_count, turns);
    CHECK_OK(pen_plan_solve(planner, devices, c.arena, &c.solution));
    cut_generate(&c, schedule_name, is_one_worker);
    return c;
}

static void cut_free(cut_case *c) {
    pen_plan_job_destroy(c->plan_job);
    c->device->kind->close(c->device);
    pen_arena_destroy(c->arena);
}

static uint32_t list_lent(const cut_case *c, uint32_t device, pen_value_id *lent) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->cut->channel_count; k++) {
        if (c->cut->channels[k].target != device || !c->built.form.channels[k].is_shared) continue;
        lent[count++] = c->cut->channels[k].to;
    }
    return count;
}

static uint64_t check_part(const cut_case *c, uint32_t device, const char *what) {
    const pen_part *part = &c->cut->parts[device];
    pen_executor_list *lists;
    pen_value_id *lent;
    CHECK_OK(PEN_NEW(c->arena, part->list_count, &lists));
    CHECK_OK(PEN_NEW(c->arena, c->cut->channel_count, &lent));
    for (uint32_t l = 0; l < part->list_count; l++) {
        lists[l] = (pen_executor_list){part->lists[l].first, part->lists[l].end};
    }
    const pen_executor_spec spec = {.device = c->device,
                                    .graph = part->graph,
                                    .order = part->order,
                                    .order_count = part->order_count,
                                    .lists = lists,
                                    .list_count = part->list_count,
                                    .copies_of_value = c->built.buffers[device].copies,
                                    .lent = lent,
                                    .lent_count = list_lent(c, device, lent),
                                    .kept = part->kept,
                                    .kept_count = part->kept_count,
                                    .defer_contents = true};
    pen_executor *executor = NULL;
    CHECK_OK(pen_executor_create(&spec, &executor));
    const pen_executor_memory taken = pen_executor_get_memory(executor);
    pen_executor_destroy(executor);
    const pen_part_memory_request request = {.part = part,
                                             .copies_of_value = spec.copies_of_value,
                                             .lent = lent,
                                             .lent_count = spec.lent_count,
                                             .value_bytes = device_value_bytes,
                                             .workspace = device_workspace,
                                             .context = c};
    pen_device_memory memory;
    CHECK_OK(pen_part_memory_find(&request, &memory));
    CHECK(memory.total == taken.owned_bytes && memory.workspace == taken.arena_bytes,
          "%s, device %u: %llu bytes said, %llu taken", what, device,
          (unsigned long long)memory.total, (unsigned long long)taken.owned_bytes);
    CHECK(memory.total == memory.parameters + memory.gradients + memory.optimizer_state +
                              memory.activations + memory.receive_buffers + memory.workspace,
          "%s, device %u", what, device);
    return memory.total;
}

static void check_cut(const char *model, const char *schedule, uint32_t device_count, bool turns,
                      bool is_one_worker) {
    char what[80];
    snprintf(what, sizeof what, "%s, %s, %u devices%s%s", model, schedule, device_count,
             turns ? " in turn" : "", is_one_worker ? ", one worker" : "");
    cut_case c = cut_make(model, schedule, device_count, turns, is_one_worker);
    for (uint32_t d = 0; d < device_count; d++) {
        const double taken = (double)check_part(&c, d, what);
        const double modelled = (double)c.solution.device_memory[d].total;
        // The memory model knows no order of tasks, and takes devices for apart: it is exact for a
        // stage on each device, and else says rather too much; those of one worker read what they
        // receive where it was made. Turns say less where workspaces are large: 0.85 of what a
        // small network takes with oneDNN 3, whose convolutions have one for each of their parts.
        const bool is_exact = !turns && !is_one_worker;
        const double lent = is_one_worker ? (double)c.solution.device_memory[d].receive_buffers : 0;
        CHECK(modelled - lent <= (is_exact ? 1.03 : 2.0) * taken &&
                  modelled >= (is_exact ? 0.97 : 0.8) * taken,
              "%s, device %u: the model says %.0f bytes, %.0f are taken", what, d, modelled, taken);
    }
    cut_free(&c);
}

static void parts_take_what_was_said(void **state) {
    (void)state;
    static const char *const schedules[] = {"1f1b", "gpipe"};
    for (size_t i = 0; i < sizeof test_models / sizeof test_models[0]; i++) {
        for (uint32_t k = 0; k < 24; k++) {
            check_cut(test_models[i], schedules[k % 2], 2 + k / 8, k / 2 % 2 == 1, k / 4 % 2 == 1);
        }
    }
}

static void check_random_cut(const char *model, uint64_t seed) {
    static const char *const schedules[] = {"1f1b", "gpipe", "zero_bubble", "interleaved"};
    cut_case c = cut_start(model, "");
    const pen_plan_request *request;
    pen_planner *planner;
    const char *schedule = schedules[seed % 4];
    CHECK_OK(pen_plan_job_get_request(c.plan_job, schedule, &request));
    CHECK_OK(pen_planner_new(request, c.arena, &planner));
    CHECK_OK(
        pen_plan_solve(planner, place_at_random(planner, c.arena, seed), c.arena, &c.solution));
    cut_generate(&c, schedule, seed % 3 == 0);
    for (uint32_t d = 0; d < DEVICES; d++) {
        if (c.cut->parts[d].list_count > 0) (void)check_part(&c, d, model);
    }
    cut_free(&c);
}

// Stages in great numbers, back and forth between devices.
static void random_cuts_take_what_was_said(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof test_models / sizeof test_models[0]; i++) {
        for (uint64_t seed = 0; seed < 8; seed++) {
            check_random_cut(test_models[i], seed);
        }
    }
}

// What a plan says in the end.
static void plans_say_what_is_taken(void **state) {
    (void)state;
    static const char *const strategies[] = {", strategy: round_robin", ", strategy: random",
                                             ", strategy: greedy", ""};
    for (size_t i = 0; i < sizeof test_models / sizeof test_models[0]; i++) {
        for (size_t k = 0; k < sizeof strategies / sizeof strategies[0]; k++) {
            cut_case c = cut_start(test_models[i], strategies[k]);
            const pen_plan *plan = planned_place(c.plan_job, c.arena);
            pen_stage_split split = {.stage_count = plan->stages.stage_count};
            const uint32_t *stage_of_node;
            uint32_t *device_of_stage;
            CHECK_OK(pen_stage_assign(c.program->graph, plan, c.arena, &stage_of_node));
            CHECK_OK(
                PEN_NEW(c.arena, pen_graph_node_count(c.program->graph), &split.stage_of_node));
            memcpy(split.stage_of_node, stage_of_node,
                   pen_graph_node_count(c.program->graph) * sizeof *stage_of_node);
            CHECK_OK(PEN_NEW(c.arena, split.stage_count, &device_of_stage));
            for (uint32_t s = 0; s < split.stage_count; s++) {
                device_of_stage[s] = plan->stages.stages[s].device;
            }
            split.device_of_stage = device_of_stage;
            const pen_schedule *schedule;
            CHECK_OK(pen_plan_schedule(plan, c.arena, &schedule));
            cut_finish(&c, &split, &plan->stages, schedule, true);
            for (uint32_t d = 0; d < DEVICES; d++) {
                if (c.cut->parts[d].list_count == 0) {
                    assert_int_equal(plan->devices[d].memory.total, 0);
                    continue;
                }
                const uint64_t taken = check_part(&c, d, test_models[i]);
                CHECK(plan->devices[d].memory.total == taken,
                      "%s, device %u: the plan says %llu bytes, %llu are taken", test_models[i], d,
                      (unsigned long long)plan->devices[d].memory.total, (unsigned long long)taken);
            }
            cut_free(&c);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(plans_say_what_is_taken),
              cmocka_unit_test(random_cuts_take_what_was_said),
              cmocka_unit_test(parts_take_what_was_said))
