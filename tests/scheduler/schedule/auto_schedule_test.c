#include "scheduler/schedule/auto_schedule.h"

#include <math.h>

#include "base/sanitizer.h"
#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"

#define GRAPH_COUNT (PEN_IS_SANITIZED ? 40 : 200) // all of them take a minute there

static double simulate(const pen_stage_graph *graph, const pen_schedule *schedule,
                       pen_arena *arena) {
    const pen_timeline *timeline;
    CHECK_OK(pen_schedule_check(graph, schedule, arena));
    CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
    return timeline->step_seconds;
}

static double draw(dice *d, double from, double to) {
    return from + (to - from) * (double)dice_between(d, 0, 1000000) * 1e-6;
}

// A chain or a DAG of up to 12 stages on up to 6 devices, with uneven costs; of some devices
// several stages, some frozen ones in front.
static pen_stage_graph *draw_graph(pen_arena *arena, uint64_t seed) {
    dice d = {.seed = seed * 77 + 5};
    pen_stage_graph *graph;
    pen_stage *stages;
    pen_stage_edge *edges;
    const bool is_chain = seed % 2 == 0;
    const uint32_t stage_count = (uint32_t)dice_between(&d, 2, 12);
    const uint32_t device_count = (uint32_t)dice_between(&d, 2, stage_count < 6 ? stage_count : 6);
    const uint32_t frozen = dice_between(&d, 0, 3) == 0 ? 1 : 0;
    CHECK_OK(PEN_NEW(arena, 1, &graph));
    CHECK_OK(PEN_NEW(arena, stage_count, &stages));
    CHECK_OK(PEN_NEW(arena, (size_t)stage_count * stage_count, &edges));
    for (uint32_t s = 0; s < stage_count; s++) {
        const double size = draw(&d, 0.3, 1.7);
        const bool is_frozen = s < frozen;
        stages[s] = (pen_stage){
            .device = s < device_count ? s : (uint32_t)dice_between(&d, 0, device_count - 1),
            .has_backward = !is_frozen,
            .has_update = !is_frozen,
            .forward_seconds = size,
            .backward_input_seconds = is_frozen ? 0 : size * draw(&d, 0.5, 1.5),
            .backward_weight_seconds = is_frozen ? 0 : size * draw(&d, 0, 1.5),
            .update_seconds = is_frozen ? 0 : draw(&d, 0, 0.3),
            .fixed_bytes = 100,
            .workspace_bytes = draw(&d, 0, 20),
            .activation_bytes = draw(&d, 10, 60),
            .halved_bytes = draw(&d, 0, 20),
        };
    }
    uint32_t count = 0;
    for (uint32_t source = 0; source + 1 < stage_count; source++) {
        for (uint32_t target = source + 1; target < stage_count; target++) {
            if (target > source + 1 && (is_chain || dice_between(&d, 0, 3) > 0)) continue;
            if (target == source + 1 && !is_chain && source > 0 && dice_between(&d, 0, 2) == 0)
                continue;
            const bool is_near = stages[source].device == stages[target].device;
            edges[count++] = (pen_stage_edge){
                .source = source,
                .target = target,
                .forward_bytes = 8,
                .has_gradient = source >= frozen,
                .backward_bytes = source >= frozen ? 8 : 0,
                .forward_seconds = is_near ? 0 : draw(&d, 0, 0.4),
                .backward_seconds = is_near || source < frozen ? 0 : draw(&d, 0, 0.4),
            };
        }
    }
    double *bytes_limit;
    CHECK_OK(PEN_NEW(arena, device_count, &bytes_limit));
    const double share = dice_between(&d, 0, 2) == 0 ? INFINITY : draw(&d, 1, 6);
    for (uint32_t i = 0; i < device_count; i++) {
        for (uint32_t s = 0; s < stage_count; s++) {
            if (stages[s].device != i) continue;
            bytes_limit[i] += stages[s].fixed_bytes + stages[s].activation_bytes * share;
        }
        bytes_limit[i] += 20;
    }
    *graph = (pen_stage_graph){
        .stage_count = stage_count,
        .edge_count = count,
        .device_count = device_count,
        .microbatch_count = (uint32_t)dice_between(&d, 2, 12),
        .stages = stages,
        .edges = edges,
        .bytes_limit = bytes_limit,
    };
    return graph;
}

// The fastest of the generators that fit, by the check and the simulation that all schedules pass.
static double best_named(const pen_stage_graph *graph, pen_arena *arena) {
    double best = INFINITY;
    for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
        const pen_schedule *schedule;
        if (strcmp(pen_schedule_generators[i]->name, "auto") == 0) continue;
        const pen_status status = pen_schedule_generators[i]->generate(graph, arena, &schedule);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            pen_status_ignore(status, "others may fit");
            continue;
        }
        CHECK_OK(status);
        best = fmin(best, simulate(graph, schedule, arena));
    }
    return best;
}

static void is_never_slower_than_the_others(void **state) {
    (void)state;
    const pen_auto_options options = {.seed = 3, .work_limit = 300000};
    double saved = 0, most = 0, bound = 0;
    uint32_t fitting = 0, faster = 0;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = draw_graph(arena, seed);
        const pen_schedule *schedule;
        pen_auto_report report;
        const double named = best_named(graph, arena);
        const pen_status status = pen_auto_schedule(graph, &options, arena, &schedule, &report);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            CHECK(isinf(named), "graph %llu: a named one fits", (unsigned long long)seed);
            CHECK_ERROR(status, PEN_DOES_NOT_FIT, "bytes with");
            pen_arena_destroy(arena);
            continue;
        }
        CHECK_OK(status);
        const double found = simulate(graph, schedule, arena);
        CHECK(found == report.seconds && found <= named, "graph %llu: %.17g, named %.17g",
              (unsigned long long)seed, found, named);
        CHECK(report.best_named_seconds == named, "%g, %g", report.best_named_seconds, named);
        CHECK(found >= report.lower_bound, "graph %llu: %g below %g", (unsigned long long)seed,
              found, report.lower_bound);
        if (isfinite(named)) {
            fitting += 1;
            faster += found < named * (1 - 1e-9);
            saved += 1 - found / named;
            most = fmax(most, 1 - found / named);
            bound += found / report.lower_bound - 1;
        }
        pen_arena_destroy(arena);
    }
    printf("auto: of %u random stage graphs faster than the best named schedule on %u, by %.2f %% "
           "in the mean, %.1f %% at most; %.1f %% above the bound in the mean\n",
           fitting, faster, 100 * saved / fitting, 100 * most, 100 * bound / fitting);
    CHECK(fitting > GRAPH_COUNT / 2 && faster > fitting / 3 && saved / fitting > 0.01,
          "%u fit, %u faster, %g saved", fitting, faster, saved / fitting);
}

static void does_the_same_again(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = draw_graph(arena, seed);
        const pen_auto_options options = {.seed = seed, .work_limit = 200000};
        const pen_schedule *first, *second;
        const pen_status status = pen_auto_schedule(graph, &options, arena, &first, NULL);
        if (status != PEN_OK) {
            pen_status_ignore(status, "does not fit");
            continue;
        }
        CHECK_OK(pen_auto_schedule(graph, &options, arena, &second, NULL));
        CHECK(first->task_count == second->task_count, "%u", first->task_count);
        CHECK(memcmp(first->tasks, second->tasks, first->task_count * sizeof *first->tasks) == 0,
              "graph %llu", (unsigned long long)seed);
        pen_arena_destroy(arena);
    }
}

static bool is_over_soon(void *context) {
    uint32_t *left = context;
    if (*left > 0) *left -= 1;
    return *left == 0;
}

static void stops_when_told(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage_graph *graph = draw_graph(arena, 4);
    uint32_t left = 50;
    const pen_auto_options options = {
        .seed = 1, .work_limit = UINT64_MAX / 2, .is_over = is_over_soon, .context = &left};
    const pen_schedule *schedule;
    CHECK_OK(pen_auto_schedule(graph, &options, arena, &schedule, NULL));
    CHECK_OK(pen_schedule_check(graph, schedule, arena));
    CHECK(left == 0, "%u", left);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(is_never_slower_than_the_others),
              cmocka_unit_test(does_the_same_again), cmocka_unit_test(stops_when_told))
