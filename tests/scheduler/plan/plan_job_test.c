#include "graph/graph.h"
#include "graph/op.h"
#include "partition/costs/cost_key.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/plan_writer.h"
#include "scheduler/plan/plan_job.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"
#include "tests/support/scratch.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

// What the command line says counts, not the job.
static void options_go_before_the_job(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = planned_reference(
        arena, "mlp", 4, PLANNED_FOUR_DEVICES "placement: {strategy: greedy, seed: 3}\n");
    const pen_plan_job_options options = {.strategy = "round_robin",
                                          .objective = PEN_OBJECTIVE_THROUGHPUT,
                                          .time_limit_seconds = 0.1,
                                          .seed = 9,
                                          .schedule = "gpipe"};
    pen_plan_job *plan_job;
    CHECK_OK(pen_plan_job_create(job, &options, &plan_job));
    const pen_plan *plan = planned_place(plan_job, arena);
    assert_string_equal(plan->strategy, "round_robin");
    assert_string_equal(plan->objective, "throughput");
    assert_string_equal(plan->schedule, "gpipe");
    assert_int_equal(plan->seed, 9);
    pen_plan_job_destroy(plan_job);
    plan_job = planned_start(job);
    plan = planned_place(plan_job, arena);
    assert_string_equal(plan->strategy, "greedy");
    assert_string_equal(plan->objective, "step_time");
    assert_int_equal(plan->seed, 3);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// A schedule that was searched is in the plan, task by task, and is run as it is there.
static void plans_list_what_was_searched(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *path = scratch_path("plan.yaml");
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "branching_cnn", 4, PLANNED_FOUR_DEVICES "placement: {strategy: round_robin}\n"));
    const pen_plan *plan = planned_place(plan_job, arena);
    pen_plan *read, *again;
    const pen_schedule *schedule, *same;
    const pen_timeline *timeline;
    CHECK(strcmp(plan->schedule, "auto") == 0 && plan->devices[0].tasks != NULL,
          "'%s': no case of a searched schedule", plan->schedule);
    CHECK_OK(pen_plan_schedule(plan, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(&plan->stages, schedule, arena, &timeline));
    CHECK(timeline->step_seconds == plan->step_seconds, "%g, %g", timeline->step_seconds,
          plan->step_seconds);
    CHECK_OK(pen_plan_write(plan, path, arena));
    CHECK_OK(pen_plan_read(path, arena, &read));
    CHECK_OK(pen_plan_job_rebuild(plan_job, read, arena, &again));
    CHECK_OK(pen_plan_schedule(again, arena, &same));
    assert_string_equal(again->schedule, "auto");
    CHECK(again->step_seconds == plan->step_seconds, "%g, %g", again->step_seconds,
          plan->step_seconds);
    assert_int_equal(same->task_count, schedule->task_count);
    assert_memory_equal(same->tasks, schedule->tasks,
                        schedule->task_count * sizeof *schedule->tasks);
    // of other stages nothing is listed any more
    CHECK_OK(pen_plan_read_edited(path, arena, &read));
    assert_null(read->devices[0].tasks);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// A job whose device b may use `limit` bytes.
static pen_plan_job *start_limited(pen_arena *arena, uint64_t limit, const char *recompute) {
    const char *rest;
    CHECK_OK(pen_arena_format(
        arena, &rest,
        "devices:\n"
        "  - {name: a, memory: 64MiB, reserve: 0B, threads: 1, flops: 20G, memory_bandwidth: "
        "8GB/s}\n"
        "  - {name: b, memory: %lluB, reserve: 0B, threads: 1, flops: 20G, memory_bandwidth: "
        "8GB/s}\n"
        "links: [{between: [a, b], bandwidth: 2GB/s, latency: 20us}]\n"
        "placement: {strategy: manual, pin: [{nodes: "
        "\"^/(conv1|Sigmoid$|Pad|Aver|conv2|Tanh$|Max)\", to: b}, {nodes: "
        "\"^/(Resh|fc|Tanh_1|Sigmoid_1)\", to: a}]}\n"
        "pipeline: {schedule: gpipe, recompute: %s}\n",
        (unsigned long long)limit, recompute));
    return planned_start(planned_reference(arena, "lenet", 4, rest));
}

// Stages are recomputed only where it does not fit otherwise.
static void recomputing_makes_it_fit(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan *plan;
    pen_plan_job *plan_job = start_limited(arena, 64u << 20, "auto");
    const pen_plan *plain = planned_place(plan_job, arena);
    for (uint32_t s = 0; s < plain->stages.stage_count; s++) {
        assert_false(plain->stages.stages[s].is_recomputed);
    }
    const double plain_seconds = plain->step_seconds;
    const uint64_t total = plain->devices[1].memory.total;
    pen_plan_job_destroy(plan_job);
    plan_job = start_limited(arena, total - 4096, "none");
    CHECK_ERROR(pen_plan_job_place(plan_job, arena, &plan), PEN_DOES_NOT_FIT, "'b'");
    pen_plan_job_destroy(plan_job);
    plan_job = start_limited(arena, total - 4096, "auto");
    CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        CHECK(plan->stages.stages[s].is_recomputed == (plan->stages.stages[s].device == 1),
              "stage %u", s);
    }
    CHECK(plan->devices[1].memory.total <= total - 4096, "%llu",
          (unsigned long long)plan->devices[1].memory.total);
    CHECK(plan->step_seconds > plain_seconds, "%g, %g", plan->step_seconds, plain_seconds);
    // the file keeps it, and the job without recomputing takes it as it is written
    const char *path = scratch_path("recompute.yaml");
    pen_plan *read, *again;
    const double seconds = plan->step_seconds;
    CHECK_OK(pen_plan_write(plan, path, arena));
    pen_plan_job_destroy(plan_job);
    plan_job = start_limited(arena, total - 4096, "none");
    CHECK_OK(pen_plan_read(path, arena, &read));
    CHECK_OK(pen_plan_job_rebuild(plan_job, read, arena, &again));
    CHECK(again->step_seconds == seconds, "%g, %g", again->step_seconds, seconds);
    pen_plan_job_destroy(plan_job);
    plan_job = start_limited(arena, 64u << 20, "stage");
    CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        assert_true(plan->stages.stages[s].is_recomputed);
    }
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// What a plan learned of its devices counts wherever figures are made for it again.
static void slowness_stays_with_a_plan(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = planned_reference(arena, "mlp", 4, PLANNED_FOUR_DEVICES);
    pen_plan_job_options options = {.objective = -1, .seed = -1};
    const char *path = scratch_path("slow.yaml");
    pen_plan_job *plan_job;
    pen_plan *plan, *read, *again;
    CHECK_OK(pen_plan_job_create(job, &options, &plan_job));
    CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
    pen_plan_device *devices = (pen_plan_device *)(uintptr_t)plan->devices;
    for (uint32_t d = 0; d < plan->device_count; d++)
        devices[d].slowness = 3;
    const double seconds = plan->step_seconds;
    CHECK_OK(pen_plan_write(plan, path, arena));
    CHECK_OK(pen_plan_read(path, arena, &read));
    CHECK_OK(pen_plan_job_rebuild(plan_job, read, arena, &again));
    CHECK(again->step_seconds == seconds && again->devices[0].slowness == 0, "%g, %g",
          again->step_seconds, seconds);
    pen_plan_job_destroy(plan_job);
    options.given = read;
    CHECK_OK(pen_plan_job_create(job, &options, &plan_job));
    CHECK_OK(pen_plan_job_rebuild(plan_job, read, arena, &again));
    CHECK(again->step_seconds > seconds && again->devices[0].slowness == 3, "%g, %g",
          again->step_seconds, seconds);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

static void wrong_names_are_told(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = planned_reference(arena, "mlp", 4, PLANNED_FOUR_DEVICES);
    pen_plan_job *plan_job;
    pen_plan *plan;
    CHECK_ERROR(pen_plan_job_create(
                    job, &(pen_plan_job_options){.objective = -1, .seed = -1, .schedule = "1f1c"},
                    &plan_job),
                PEN_NOT_FOUND, "1f1b");
    CHECK_ERROR(pen_plan_job_create(
                    job,
                    &(pen_plan_job_options){.objective = -1, .seed = -1, .cost_table = "no.yaml"},
                    &plan_job),
                PEN_NOT_FOUND, "no.yaml");
    CHECK_OK(pen_plan_job_create(
        job, &(pen_plan_job_options){.objective = -1, .seed = -1, .strategy = "gredy"}, &plan_job));
    CHECK_ERROR(pen_plan_job_place(plan_job, arena, &plan), PEN_NOT_FOUND, "greedy");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Plans can be made where the data is not, when the model says its shapes.
static void data_need_not_be_there(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *model = tiny_model_write(&(tiny_model){0}, "alone.onnx");
    const pen_job *job = training_job(
        arena,
        "version: 1\nmodel: {file: %s}\n"
        "data: {train: {format: npy, inputs: {x: /nowhere/x.npy}, labels: /nowhere/y.npy}}\n"
        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 12}\n%s",
        model, PLANNED_FOUR_DEVICES);
    pen_plan_job *plan_job = planned_start(job);
    assert_true(planned_place(plan_job, arena)->node_count > 3);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Measured figures change the plan's, and are counted.
static void cost_tables_are_used(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = planned_reference(arena, "mlp", 4, PLANNED_ONE_DEVICE);
    pen_plan_job *plan_job = planned_start(job);
    const pen_plan *before = planned_place(plan_job, arena);
    assert_int_equal(before->measured_count, 0);
    const pen_planner *planner = planned_planner(plan_job, arena);
    const uint32_t node = planned_node(planner, "/layers.0/Gemm");
    const char *shape, *text;
    CHECK_OK(pen_cost_key(planner->owners->graph, (pen_node_id){node}, arena, &shape));
    CHECK_OK(pen_arena_format(arena, &text,
                              "version: 1\noperators:\n  - {op: %s, shape: \"%s\", kind: cpu, "
                              "threads: 2, seconds: 1.5s, runs: 5}\n",
                              pen_graph_node(planner->owners->graph, (pen_node_id){node})->op->name,
                              shape));
    const char *costs = scratch_file("costs.yaml", text, strlen(text));
    pen_plan_job_destroy(plan_job);
    const pen_plan_job_options options = {.objective = -1, .seed = -1, .cost_table = costs};
    CHECK_OK(pen_plan_job_create(job, &options, &plan_job));
    const pen_plan *after = planned_place(plan_job, arena);
    assert_int_equal(after->measured_count, 1);
    assert_true(after->step_seconds > 4 * 1.5);
    assert_string_equal(after->costs, costs);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Equal jobs, equal plans; where the time suffices.
static void plans_repeat(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job = planned_reference(
        arena, "branching_cnn", 4,
        PLANNED_FOUR_DEVICES "placement: {strategy: dynamic_programming, time_limit: 20s}\n");
    const pen_plan *plans[2];
    pen_plan_job *plan_jobs[2];
    for (size_t i = 0; i < 2; i++) {
        plan_jobs[i] = planned_start(job);
        plans[i] = planned_place(plan_jobs[i], arena);
    }
    assert_int_equal(plans[0]->node_count, plans[1]->node_count);
    assert_true(plans[0]->step_seconds == plans[1]->step_seconds);
    for (uint32_t n = 0; n < plans[0]->node_count; n++) {
        assert_int_equal(plans[0]->nodes[n].stage, plans[1]->nodes[n].stage);
        assert_string_equal(plans[0]->nodes[n].reason, plans[1]->nodes[n].reason);
    }
    for (size_t i = 0; i < 2; i++) {
        pen_plan_job_destroy(plan_jobs[i]);
    }
    pen_arena_destroy(arena);
}

// Data that only the workers have is not opened where the plan is made.
static void plans_without_data_that_workers_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan *plan = NULL;
    pen_plan_job *plan_job = planned_start(training_job(
        arena,
        "version: 1\n"
        "model: {file: tests/reference/lenet/model.onnx}\n"
        "data: {read_on: workers, train: {format: npy, inputs: {input: missing.npy}, labels: "
        "missing_labels.npy}}\n"
        "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 12, "
        "microbatches: 4, steps: 1}\n" PLANNED_FOUR_DEVICES));
    CHECK_OK(pen_plan_job_place(plan_job, arena, &plan));
    CHECK(plan->stages.stage_count > 0, "no stage");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(plans_without_data_that_workers_read),
              cmocka_unit_test(recomputing_makes_it_fit),
              cmocka_unit_test(plans_list_what_was_searched),
              cmocka_unit_test(options_go_before_the_job), cmocka_unit_test(wrong_names_are_told),
              cmocka_unit_test(slowness_stays_with_a_plan),
              cmocka_unit_test(data_need_not_be_there), cmocka_unit_test(cost_tables_are_used),
              cmocka_unit_test(plans_repeat))
