#include "partition/plan/plan_file.h"
#include "partition/plan/plan_writer.h"

#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/planned.h"
#include "tests/support/scratch.h"

static const pen_plan *small_plan(pen_plan_job **out_plan_job, pen_arena *arena) {
    *out_plan_job = planned_start(planned_reference(
        arena, "lenet", 4,
        PLANNED_FOUR_DEVICES
        "placement: {strategy: manual, pin: [{nodes: \"^/(conv1|Sigmoid$|Pad|Aver)\", to: d}, "
        "{nodes: \"^/(conv2|Tanh$|Max|Resh|fc1|Tanh_1)\", to: b}, {nodes: \"^/(fc2|Sigmoid_1)\", "
        "to: c}, {nodes: /fc3/Gemm, to: a}]}\n"));
    return planned_place(*out_plan_job, arena);
}

// A plan that was written by hand, in full.
static const char *const whole_text =
    "version: 1\n"
    "model: {file: \"m.onnx\", hash: \"00000000000000ff\"}\n"
    "cluster: {hash: \"0123456789abcdef\"}\n"
    "schedule: gpipe\n"
    "update_phases: 2\n"
    "microbatches: 2\n"
    "microbatch_size: 8\n"
    "predicted: {value: 1.5ms, lower_bound: 1ms, step: 1.5ms, bubble: 0.25, assumed: 3}\n"
    "devices:\n"
    "  - {name: a, nodes: 1, limit: 1KiB, memory: {parameters: 10B, workspace: 2B, total: 12B}}\n"
    "  - {name: \"b c\", nodes: 1, load: 1us}\n"
    "stages:\n"
    "  - {devices: [a], nodes: 1, in_flight: 2, has_backward: true, has_update: true, "
    "recompute: true, forward: 1ms, halved: 5B}\n"
    "  - {devices: \"b c\", nodes: 1, in_flight: 1, has_update: true}\n"
    "edges:\n"
    "  - {from: 0, to: 1, forward_bytes: 64B, forward: 2us}\n"
    "step_edges:\n"
    "  - {from: 1, to: 0, phase: 0, bytes: 64B, seconds: 3us}\n"
    "transfers:\n"
    "  - {value: \"v \\\"1\\\"\", from: 1, to: 0, when: each step, bytes: 64B}\n"
    "  - {value: w, from: 0, to: 1, bytes: 64B}\n"
    "nodes:\n"
    "  - {name: \"x\", stage: 0, seconds: 1ms, source: measured, bytes: 4B, reason: \"so\"}\n"
    "  - {name: y, stage: 1}\n";

static void plans_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan *plan;
    CHECK_OK(pen_plan_parse("plan.yaml", whole_text, strlen(whole_text), false, arena, &plan));
    assert_string_equal(plan->model, "m.onnx");
    assert_true(plan->job == NULL && plan->costs == NULL);
    assert_true(plan->model_hash == 0xff && plan->cluster_hash == 0x0123456789abcdef);
    assert_string_equal(plan->schedule, "gpipe");
    assert_string_equal(plan->objective, "step_time");
    assert_string_equal(plan->strategy, "manual");
    assert_true(plan->value == 1.5e-3 && plan->lower_bound == 1e-3 && plan->bubble == 0.25);
    assert_int_equal(plan->assumed_count, 3);
    assert_int_equal(plan->device_count, 2);
    assert_true(plan->stages.bytes_limit[0] == 1024.0);
    assert_true(plan->stages.bytes_limit[1] > 1e300);
    assert_int_equal(plan->devices[0].memory.total, 12);
    assert_int_equal(plan->stages.stage_count, 2);
    assert_int_equal(plan->stages.stages[1].device, 1);
    assert_int_equal(plan->stages.microbatch_count, 2);
    assert_int_equal(plan->stage_figures[0].in_flight, 2);
    assert_true(plan->stages.edges[0].forward_seconds == 2e-6);
    assert_true(plan->stages.stages[0].has_backward && plan->stages.stages[0].has_update);
    assert_true(plan->stages.stages[0].is_recomputed && !plan->stages.stages[1].is_recomputed);
    assert_true(!plan->stages.stages[1].has_backward && plan->stages.stages[1].has_update);
    assert_true(plan->stages.stages[0].halved_bytes == 5.0);
    assert_true(!plan->stages.edges[0].has_gradient);
    assert_int_equal(plan->stages.update_phase_count, 2);
    assert_int_equal(plan->stages.step_edge_count, 1);
    assert_int_equal(plan->stages.step_edges[0].source, 1);
    assert_true(plan->stages.step_edges[0].seconds == 3e-6);
    assert_string_equal(plan->transfers[0].value, "v \"1\"");
    assert_true(plan->transfers[0].is_per_step && !plan->transfers[0].is_backward);
    assert_int_equal(plan->node_count, 2);
    assert_int_equal(plan->nodes[0].source, PEN_FIGURE_MEASURED);
    assert_string_equal(plan->nodes[0].reason, "so");
    assert_string_equal(plan->nodes[1].reason, "");
    const char *text;
    CHECK_OK(pen_plan_format(plan, arena, &text));
    check_golden("plan.yaml", text, __FILE__, __LINE__);
    pen_arena_destroy(arena);
}

// What is written is read back, and written the same.
static void writing_and_reading_agree(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    const pen_plan *plan = small_plan(&plan_job, arena);
    const char *path = scratch_path("plan.yaml"), *first, *second;
    CHECK_OK(pen_plan_write(plan, path, arena));
    pen_plan *read;
    CHECK_OK(pen_plan_read(path, arena, &read));
    assert_int_equal(read->node_count, plan->node_count);
    assert_int_equal(read->stages.stage_count, plan->stages.stage_count);
    assert_int_equal(read->transfer_count, plan->transfer_count);
    assert_true(read->model_hash == plan->model_hash);
    for (uint32_t n = 0; n < plan->node_count; n++) {
        assert_string_equal(read->nodes[n].name, plan->nodes[n].name);
        assert_int_equal(read->nodes[n].stage, plan->nodes[n].stage);
        assert_string_equal(read->nodes[n].reason, plan->nodes[n].reason);
    }
    CHECK_OK(pen_plan_format(read, arena, &first));
    CHECK_OK(pen_plan_parse("again.yaml", first, strlen(first), false, arena, &read));
    CHECK_OK(pen_plan_format(read, arena, &second));
    assert_string_equal(first, second);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Paths are relative to the plan where they lie beside it, else absolute.
static void paths_are_beside_the_plan(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan *plan, *read;
    CHECK_OK(pen_plan_parse("plan.yaml", whole_text, strlen(whole_text), false, arena, &plan));
    plan->model = scratch_file("deep/down/m.onnx", "m", 1);
    plan->job = "Makefile";
    const char *path = scratch_path("deep/plan.yaml");
    CHECK_OK(pen_plan_write(plan, path, arena));
    char text[4096] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(text, "{file: \"down/m.onnx\""));
    assert_non_null(strstr(text, "job: \"/"));
    CHECK_OK(pen_plan_read(path, arena, &read));
    assert_string_equal(read->model, plan->model);
    assert_non_null(strstr(read->job, "/Makefile"));
    CHECK_ERROR(pen_plan_write(plan, scratch_path("nowhere/at/all.yaml"), arena), PEN_NOT_FOUND,
                "nowhere");
    pen_arena_destroy(arena);
}

// Text with the first `from` replaced by `to`.
static const char *replaced(pen_arena *arena, const char *from, const char *to) {
    const char *at = strstr(whole_text, from), *result;
    CHECK(at != NULL, "'%s' is not in the text", from);
    CHECK_OK(pen_arena_format(arena, &result, "%.*s%s%s", (int)(at - whole_text), whole_text, to,
                              at + strlen(from)));
    return result;
}

static void mistakes_have_a_position(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        pen_status_code code;
        const char *text;
    } cases[] = {
        {"stage: 1}", "stage: 2}", PEN_INVALID_INPUT,
         "plan.yaml:24:22: error: stage 2 is not there"},
        {"name: y", "name: x", PEN_INVALID_INPUT, "'x' is in the plan twice"},
        {"stage: 1}", "stage: 0}", PEN_INVALID_INPUT, "stage 1 has no node"},
        {"devices: [a]", "devices: [A]", PEN_INVALID_INPUT, "plan.yaml:13:"},
        {"devices: [a]", "devices: [a, a]", PEN_INVALID_INPUT, "plan.yaml:13:"},
        {"00000000000000ff", "ff", PEN_INVALID_INPUT, "16 hexadecimal digits"},
        {"value: 1.5ms", "value: 1.5KiB", PEN_INVALID_INPUT, "plan.yaml:8:"},
        {"total: 12B", "total: 13B", PEN_INVALID_INPUT, "sum up to 12"},
        {"limit: 1KiB", "limit: 11B", PEN_DOES_NOT_FIT, "device 'a' would hold 12 bytes"},
        {"from: 0, to: 1, for", "from: 1, to: 0, for", PEN_INVALID_INPUT, "in order"},
        {"from: 1, to: 0, wh", "from: 1, to: 3, wh", PEN_INVALID_INPUT, "stage 3 is not there"},
        {"version: 1", "version: 2", PEN_INVALID_INPUT, "version"},
        {"when: each step", "when: never", PEN_INVALID_INPUT, "each step"},
        {"schedule: gpipe\n", "", PEN_INVALID_INPUT, "schedule"},
        {"nodes: 1, in_flight: 2", "node: 1, in_flight: 2", PEN_INVALID_INPUT, "nodes"},
        {"bubble: 0.25", "bubble: 1.25", PEN_INVALID_INPUT, "bubble"},
        {"microbatches: 2", "microbatches: 0", PEN_INVALID_INPUT, "microbatches"},
        {"in_flight: 2", "in_flight: 3", PEN_INVALID_INPUT, "3 microbatches in flight"},
        {"  - {name: y, stage: 1}\n", "  - y\n", PEN_INVALID_INPUT, "plan.yaml:24:"},
        {"has_backward: true, ", "", PEN_INVALID_INPUT, "stage 0: it says what"},
        {"has_update: true, ", "update: 1us, ", PEN_INVALID_INPUT, "stage 0: it says what"},
        {"has_update: true}", "in_flight: 1}", PEN_INVALID_INPUT, "in_flight"},
        {"phase: 0", "phase: 1", PEN_INVALID_INPUT, "a step edge leads from stage 1 to stage 0"},
        {"to: 1, forward_bytes", "to: 1, has_gradient: true, forward_bytes", PEN_INVALID_INPUT,
         "the edge from stage 0 to 1 carries gradients"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        const char *text = replaced(arena, cases[i].from, cases[i].to);
        pen_plan *plan;
        CHECK_ERROR(pen_plan_parse("plan.yaml", text, strlen(text), false, arena, &plan),
                    cases[i].code, cases[i].text);
        pen_arena_destroy(arena);
    }
}

// Of an edited plan only what was meant is read: figures may be wrong.
static void figures_of_edited_plans_do_not_count(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan *plan;
    static const char *const changes[][2] = {
        {"total: 12B", "total: 13B"}, {"limit: 1KiB", "limit: 11B"}, {"stage: 1}", "stage: 0}"}};
    for (size_t i = 0; i < 3; i++) {
        const char *text = replaced(arena, changes[i][0], changes[i][1]);
        CHECK_OK(pen_plan_parse("plan.yaml", text, strlen(text), true, arena, &plan));
    }
    const char *text = replaced(arena, "stage: 1}", "stage: 2}");
    CHECK_ERROR(pen_plan_parse("plan.yaml", text, strlen(text), true, arena, &plan),
                PEN_INVALID_INPUT, "stage 2 is not there");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(plans_are_read), cmocka_unit_test(writing_and_reading_agree),
              cmocka_unit_test(paths_are_beside_the_plan),
              cmocka_unit_test(mistakes_have_a_position),
              cmocka_unit_test(figures_of_edited_plans_do_not_count))
