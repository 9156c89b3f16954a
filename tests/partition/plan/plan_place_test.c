#include "partition/plan/plan_place.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "partition/plan/plan_memory_error.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"
#include "tests/support/training.h"

static void kinds_are_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    const pen_device_memory some = {.parameters = 2048, .workspace = 3, .total = 2051};
    CHECK_OK(pen_device_memory_format(&some, arena, &text));
    assert_string_equal(text, "parameters 2.00 KiB, workspace 3 bytes");
    CHECK_OK(pen_device_memory_format(&(pen_device_memory){0}, arena, &text));
    assert_string_equal(text, "nothing");
    pen_arena_destroy(arena);
}

// Between what everything on one device takes and the least that was found, memory is used well:
// limits that grow from too little to enough go from refusal to plans, and back never.
static void more_memory_is_never_worse(void **state) {
    (void)state;
    bool has_fitted = false;
    double before = 0.0;
    for (uint32_t kibibytes = 100; kibibytes <= 1600; kibibytes *= 2) {
        pen_arena *arena = check_arena();
        const char *rest;
        CHECK_OK(pen_arena_format(arena, &rest,
                                  "devices:\n"
                                  "  - {name: a, memory: %uKiB, threads: 1, flops: 20G, "
                                  "memory_bandwidth: 8GB/s}\n"
                                  "  - {name: b, memory: %uKiB, threads: 1, flops: 20G, "
                                  "memory_bandwidth: 8GB/s}\n"
                                  "placement: {time_limit: 200ms}\n",
                                  kibibytes, kibibytes));
        pen_plan_job *plan_job = planned_start(planned_reference(arena, "lenet", 3, rest));
        const pen_planner *planner = planned_planner(plan_job, arena);
        pen_plan_placed placed;
        const pen_status status = pen_plan_place(planner, arena, &placed);
        if (status == PEN_OK) {
            assert_true(placed.solution.fits);
            for (uint32_t d = 0; d < 2; d++) {
                assert_true(placed.solution.device_memory[d].total <= kibibytes * 1024ull);
            }
            const double seconds = placed.solution.prediction.step_seconds;
            CHECK(!has_fitted || seconds <= 1.05 * before, "%u KiB: %g s after %g s", kibibytes,
                  seconds, before);
            before = seconds;
            has_fitted = true;
        } else {
            CHECK(!has_fitted, "less than %u KiB was enough", kibibytes);
            CHECK(pen_status_get_code(status) == PEN_DOES_NOT_FIT, "%s",
                  pen_status_message(status));
        }
        pen_status_ignore(status, "looked at");
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
    assert_true(has_fitted);
}

// The error of a solution that is too large names the device, the kinds and the nodes.
static void what_is_in_the_way_is_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(
        arena, "lenet", 3,
        "devices: [{name: small, memory: 50KiB, threads: 1}, {name: b, memory: 1MiB, threads: "
        "1}]\n"));
    const pen_planner *planner = planned_planner(plan_job, arena);
    uint32_t *devices;
    pen_plan_solution solution;
    CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &devices));
    CHECK_OK(pen_plan_solve(planner, devices, arena, &solution));
    assert_false(solution.fits);
    assert_int_equal(solution.worst_device, 0);
    CHECK_ERROR(pen_plan_error_memory(planner, &solution, arena), PEN_DOES_NOT_FIT,
                "device 'small' would need");
    CHECK_ERROR(pen_plan_error_memory(planner, &solution, arena), PEN_DOES_NOT_FIT,
                "most of it for '/fc1/Gemm'");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// A job on `count` equal devices with `kibibytes` each.
static pen_plan_job *start_equal(pen_arena *arena, const char *model, uint32_t count,
                                 uint64_t kibibytes, const char *placement) {
    const char *rest;
    CHECK_OK(pen_arena_format(arena, &rest,
                              "devices: [{name: \"d[1-%u]\", memory: %lluKiB, threads: 1, flops: "
                              "1G, memory_bandwidth: 1GB/s}]\n"
                              "placement: {time_limit: 200ms%s}\n",
                              count, (unsigned long long)kibibytes, placement));
    return planned_start(planned_reference(arena, model, 4, rest));
}

// What a model takes on one device of `count`, by the memory model, rounded up.
static uint64_t kibibytes_on_one(const char *model, uint32_t count) {
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = start_equal(arena, model, count, 1 << 20, "");
    const pen_planner *planner = planned_planner(plan_job, arena);
    uint32_t *devices, one = 1;
    pen_plan_solution solution;
    CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &devices));
    CHECK_OK(pen_plan_solve(planner, devices, arena, &solution));
    assert_int_equal(solution.split.stage_count, 1);
    const uint64_t bytes =
        pen_memory_model_device(solution.stage_memory, &solution.split, &one, 0).total;
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
    return (bytes + 1023) / 1024;
}

// Whether a plan was found that fits; the error says how much the best of those tried needs.
static bool is_placed(const char *model, uint32_t count, uint64_t kibibytes, const char *placement,
                      double *out_needed) {
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = start_equal(arena, model, count, kibibytes, placement);
    const pen_planner *planner = planned_planner(plan_job, arena);
    pen_plan_placed placed;
    const pen_status status = pen_plan_place(planner, arena, &placed);
    const bool is_found = status == PEN_OK;
    if (is_found) {
        assert_true(placed.solution.fits);
    } else {
        CHECK(pen_status_get_code(status) == PEN_DOES_NOT_FIT, "%s", pen_status_message(status));
        const char *at = strstr(pen_status_message(status), "would need ");
        char unit[8] = "";
        CHECK(strstr(pen_status_message(status), "device 'd") != NULL && at != NULL &&
                  sscanf(at, "would need %lf %7s", out_needed, unit) == 2,
              "%s", pen_status_message(status));
        *out_needed *= strcmp(unit, "MiB") == 0 ? 1024.0 : 1.0;
    }
    pen_status_ignore(status, "looked at");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
    return is_found;
}

// The memory model decides, not what a search reckons with.
static void what_fits_on_one_device_is_placed(void **state) {
    (void)state;
    static const char *const models[] = {"lenet", "branching_cnn", "batchnorm_cnn"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        double needed = 0.0;
        const uint64_t kibibytes = kibibytes_on_one(models[m], 1);
        CHECK(is_placed(models[m], 1, kibibytes, "", &needed), "%s needs %g of %llu KiB", models[m],
              needed, (unsigned long long)kibibytes);
        CHECK(!is_placed(models[m], 1, kibibytes - 1, "", &needed), "%s", models[m]);
    }
}

// On several devices no more memory is said to be needed than on one, and less of it never helps.
static void refusals_tell_the_least_memory(void **state) {
    (void)state;
    static const char *const models[] = {"lenet", "branching_cnn"};
    static const char *const placements[] = {"", ", contiguous: true", ", objective: throughput"};
    for (size_t i = 0; i < 6; i++) {
        const char *model = models[i / 3], *placement = placements[i % 3];
        const uint64_t whole = kibibytes_on_one(model, 3);
        bool has_fitted = false;
        for (uint64_t sixteenths = 1; sixteenths <= 16; sixteenths += 3) {
            const uint64_t kibibytes = sixteenths == 16 ? whole : whole * sixteenths / 16;
            double needed = 0.0;
            if (is_placed(model, 3, kibibytes, placement, &needed)) {
                has_fitted = true;
                continue;
            }
            CHECK(!has_fitted, "%s%s: %llu KiB are too little, but less were enough", model,
                  placement, (unsigned long long)kibibytes);
            CHECK(needed <= 1.005 * (double)whole, "%s%s: %g KiB, %llu on one device", model,
                  placement, needed, (unsigned long long)whole);
        }
        CHECK(has_fitted, "%s%s: what fits on one device of three", model, placement);
    }
}

static double seconds_placed(uint32_t count, uint64_t kibibytes, const char *placement) {
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = start_equal(arena, "branching_cnn", count, kibibytes, placement);
    pen_plan_placed placed;
    CHECK_OK(pen_plan_place(planned_planner(plan_job, arena), arena, &placed));
    const double seconds = placed.solution.prediction.step_seconds;
    assert_false(placed.is_cut);
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
    return seconds;
}

// Whoever asks for less gets no worse: what is contiguous may be chosen too.
static void freedom_is_no_burden(void **state) {
    (void)state;
    const uint64_t whole = kibibytes_on_one("branching_cnn", 4);
    for (uint64_t eighths = 8; eighths <= 20; eighths += 3) {
        const uint64_t kibibytes = whole * eighths / 8;
        const double line = seconds_placed(4, kibibytes, ", contiguous: true");
        const double any = seconds_placed(4, kibibytes, "");
        CHECK(any <= 1.05 * line, "%llu KiB each: %g s, contiguous %g s",
              (unsigned long long)kibibytes, any, line);
    }
}

// A schedule that holds all microbatches is told what that takes.
static void wishes_of_schedules_are_told(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *rest;
    CHECK_OK(pen_arena_format(arena, &rest,
                              "devices: [{name: d1, memory: %lluKiB, threads: 1}]\n"
                              "pipeline: {schedule: gpipe}\nplacement: {time_limit: 200ms}\n",
                              (unsigned long long)kibibytes_on_one("branching_cnn", 1)));
    pen_plan_job *plan_job = planned_start(planned_reference(arena, "branching_cnn", 4, rest));
    pen_plan *plan;
    CHECK_ERROR(pen_plan_job_place(plan_job, arena, &plan), PEN_DOES_NOT_FIT,
                "device 'd1' would need");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// The example's network on four devices that have `kibibytes` each.
static const pen_job *short_of_memory(pen_arena *arena, const uint32_t kibibytes[4],
                                      uint32_t microbatches, const char *placement) {
    return training_job(
        arena,
        "version: 1\n"
        "model: {file: examples/fashion-cnn/fashion_cnn.onnx}\n"
        "data: {train: {format: idx, images: none, labels: none}}\n"
        "train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.001}}, batch: 256, "
        "microbatches: %u, steps: 1}\n"
        "devices:\n"
        "  - {name: a, memory: %uKiB, threads: 2, flops: 100G, memory_bandwidth: 20GB/s}\n"
        "  - {name: b, memory: %uKiB, threads: 2, flops: 50G, memory_bandwidth: 10GB/s}\n"
        "  - {name: c, memory: %uKiB, threads: 2, flops: 25G, memory_bandwidth: 5GB/s}\n"
        "  - {name: d, memory: %uKiB, threads: 2, flops: 25G, memory_bandwidth: 5GB/s}\n"
        "links: [{between: [\"^.\", \"^.\"], bandwidth: 10Gbit/s, latency: 50us}]\n"
        "placement: {time_limit: 100ms, %s}\n",
        microbatches, kibibytes[0], kibibytes[1], kibibytes[2], kibibytes[3], placement);
}

static const uint32_t short_kibibytes[][4] = {{15 << 10, 10 << 10, 5 << 10, 5 << 10},
                                              {11 << 10, 8 << 10, 5 << 10, 5 << 10}};

static const char *const bounded_by[] = {"auto", "dynamic_programming", "local_search", "greedy"};

static void check_bounded(int objective, const uint32_t kibibytes[4], const char *strategy,
                          double *io_least, double *io_bound) {
    pen_arena *arena = check_arena();
    const char *placement;
    pen_plan_placed placed;
    CHECK_OK(pen_arena_format(arena, &placement, "strategy: %s, objective: %s", strategy,
                              pen_objective_names[objective]));
    pen_plan_job *plan_job = planned_start(short_of_memory(arena, kibibytes, 16, placement));
    const pen_status status = pen_plan_place(planned_planner(plan_job, arena), arena, &placed);
    if (status == PEN_OK) {
        const double seconds = placed.solution.prediction.step_seconds;
        assert_true(placed.solution.fits);
        *io_least = fmin(*io_least, objective == PEN_OBJECTIVE_STEP_TIME ? seconds : placed.value);
        *io_bound = fmax(*io_bound, placed.lower_bound);
    }
    CHECK(status == PEN_OK || pen_status_get_code(status) == PEN_DOES_NOT_FIT, "%s: %s", strategy,
          pen_status_message(status));
    pen_status_ignore(status, "looked at");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

// Whatever one search left out because of what it had to reckon with, no plan that fits is below
// the bound of another.
static void bounds_hold_for_all_plans(void **state) {
    (void)state;
    for (int objective = 0; pen_objective_names[objective] != NULL; objective++) {
        for (size_t k = 0; k < sizeof short_kibibytes / sizeof *short_kibibytes; k++) {
            double least = INFINITY, bound = 0.0;
            for (size_t i = 0; i < sizeof bounded_by / sizeof *bounded_by; i++) {
                check_bounded(objective, short_kibibytes[k], bounded_by[i], &least, &bound);
            }
            CHECK(least < INFINITY, "%s: nothing fits", pen_objective_names[objective]);
            CHECK(bound <= least * (1.0 + 1e-9), "%s: bound %g, but there is %g",
                  pen_objective_names[objective], bound, least);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(bounds_hold_for_all_plans),
              cmocka_unit_test(what_fits_on_one_device_is_placed),
              cmocka_unit_test(refusals_tell_the_least_memory),
              cmocka_unit_test(freedom_is_no_burden),
              cmocka_unit_test(wishes_of_schedules_are_told), cmocka_unit_test(kinds_are_named),
              cmocka_unit_test(more_memory_is_never_worse),
              cmocka_unit_test(what_is_in_the_way_is_named))
