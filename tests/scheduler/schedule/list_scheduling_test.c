#include "scheduler/schedule/list_scheduling.h"

#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_memory.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

static const pen_schedule *schedule_of(const pen_stage_graph *graph,
                                       const pen_list_scheduling *options, pen_arena *arena) {
    const pen_stage_index *index;
    const pen_schedule *schedule;
    CHECK_OK(pen_stage_index_new(graph, arena, &index));
    CHECK_OK(pen_list_schedule(index, options, arena, &schedule));
    CHECK_OK(pen_schedule_check(graph, schedule, arena));
    return schedule;
}

// "F0 B0 …" of a device.
static void check_order(const pen_schedule *schedule, uint32_t device, const char *expected) {
    char found[256] = "";
    size_t length = 0;
    for (uint32_t t = schedule->first_task[device]; t < schedule->first_task[device + 1]; t++) {
        const pen_task task = schedule->tasks[t];
        if (task.kind == PEN_TASK_UPDATE) continue;
        length +=
            (size_t)snprintf(found + length, sizeof found - length, "%s%c%u", length > 0 ? " " : "",
                             task.kind == PEN_TASK_FORWARD ? 'F' : 'B', task.microbatch);
    }
    CHECK(strcmp(found, expected) == 0, "device %u: %s, expected %s", device, found, expected);
}

static void keeps_to_windows(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage_graph *graph = stage_chain(arena, 2, 4, 1, 1, 0);
    const uint32_t narrow[] = {1, 1};
    const pen_list_scheduling one = {.window = narrow};
    check_order(schedule_of(graph, &one, arena), 0, "F0 B0 F1 B1 F2 B2 F3 B3");
    const uint32_t usual[] = {2, 1};
    const pen_list_scheduling two = {.window = usual};
    check_order(schedule_of(graph, &two, arena), 0, "F0 F1 B0 F2 B1 F3 B2 B3");
    const uint32_t wide[] = {4, 4};
    const pen_list_scheduling all = {.window = wide, .forwards_first = true};
    check_order(schedule_of(graph, &all, arena), 0, "F0 F1 F2 F3 B0 B1 B2 B3");
    check_order(schedule_of(graph, &all, arena), 1, "F0 F1 F2 F3 B0 B1 B2 B3");
    pen_arena_destroy(arena);
}

static void never_holds_more_than_windows(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        dice d = {.seed = seed};
        uint32_t window[16];
        uint32_t in_flight[16];
        double bytes_peak[8];
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            window[s] = (uint32_t)dice_between(&d, 1, 4);
        }
        const pen_list_scheduling options = {.window = window};
        const pen_schedule *schedule = schedule_of(graph, &options, arena);
        CHECK_OK(pen_schedule_memory(graph, schedule, arena, in_flight, NULL, bytes_peak));
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            CHECK(in_flight[s] <= window[s], "graph %llu, stage %u holds %u of %u",
                  (unsigned long long)seed, s, in_flight[s], window[s]);
        }
        pen_arena_destroy(arena);
    }
}

static void schedules_many_devices(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const uint32_t count = 300;
    const pen_stage_graph *graph = stage_chain(arena, count, 8, 1, 2, 0.5);
    uint32_t window[300];
    for (uint32_t s = 0; s < count; s++) {
        window[s] = 8;
    }
    const pen_list_scheduling options = {.window = window};
    check_order(schedule_of(graph, &options, arena), count - 1,
                "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_to_windows), cmocka_unit_test(never_holds_more_than_windows),
              cmocka_unit_test(schedules_many_devices))
