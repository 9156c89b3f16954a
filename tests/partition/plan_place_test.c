#include "partition/plan_place.h"

#include "tests/support/check.h"
#include "tests/support/planned.h"

static void kinds_are_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    const pen_plan_memory some = {.parameters = 2048, .workspace = 3, .total = 2051};
    CHECK_OK(pen_plan_memory_format(&some, arena, &text));
    assert_string_equal(text, "parameters 2.00 KiB, workspace 3 bytes");
    CHECK_OK(pen_plan_memory_format(&(pen_plan_memory){0}, arena, &text));
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
    CHECK_OK(PEN_NEW(arena, planner->homes->node_count, &devices));
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

PEN_TEST_MAIN(cmocka_unit_test(kinds_are_named), cmocka_unit_test(more_memory_is_never_worse),
              cmocka_unit_test(what_is_in_the_way_is_named))
