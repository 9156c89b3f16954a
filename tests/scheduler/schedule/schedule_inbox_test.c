#include "scheduler/schedule/schedule_inbox.h"

#include "scheduler/schedule/schedule_memory.h"
#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

static const pen_schedule *schedule_of(const char *name, const pen_stage_graph *graph,
                                       pen_arena *arena) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    CHECK_OK(pen_schedule_generator_find(name, arena, &generator));
    CHECK_OK(generator->generate(graph, arena, &schedule));
    return schedule;
}

// gpipe takes all microbatches forward first, so fewer places than microbatches end in a circle.
static void too_few_places_are_a_circle(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage_graph *graph = stage_chain(arena, 2, 3, 1, 1, 0);
    const pen_schedule *schedule = schedule_of("gpipe", graph, arena);
    const pen_stage_index *index;
    uint32_t forward = 3, backward = 1;
    const pen_schedule_inboxes inboxes = {&forward, &backward};
    CHECK_OK(pen_stage_index_new(graph, arena, &index));
    CHECK_OK(pen_schedule_check_inboxes(index, schedule, &inboxes, arena));
    forward = 2;
    CHECK_ERROR(pen_schedule_check_inboxes(index, schedule, &inboxes, arena), PEN_INVALID_INPUT,
                "tasks wait for each other and for places: forward of stage 0, microbatch 2 on "
                "device 0 waits for the place that is read by backward of stage 1, microbatch 0; "
                "forward of stage 1, microbatch 2 on device 1 waits for forward of stage 0, "
                "microbatch 2");
    // 1f1b reads the first before the third is made
    CHECK_OK(pen_schedule_check_inboxes(index, schedule_of("1f1b", graph, arena), &inboxes, arena));
    pen_arena_destroy(arena);
}

// Enough places are found for every schedule; one each is often too few.
static void places_of_a_run_are_enough(void **state) {
    (void)state;
    uint32_t stuck = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        const pen_stage_index *index;
        CHECK_OK(pen_stage_index_new(graph, arena, &index));
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (strcmp(pen_schedule_generators[i]->name, "auto") == 0 && seed % 10 != 0) continue;
            const pen_schedule *schedule =
                schedule_of(pen_schedule_generators[i]->name, graph, arena);
            uint32_t in_flight[16];
            double bytes_peak[8];
            pen_schedule_inboxes inboxes;
            CHECK_OK(pen_schedule_memory(graph, schedule, arena, in_flight, NULL, bytes_peak));
            CHECK_OK(pen_schedule_inboxes_find(index, schedule, in_flight, arena, &inboxes));
            CHECK_OK(pen_schedule_check_inboxes(index, schedule, &inboxes, arena));
            for (uint32_t e = 0; e < graph->edge_count; e++) {
                inboxes.forward[e] = 1;
                inboxes.backward[e] = 1;
            }
            const pen_status status = pen_schedule_check_inboxes(index, schedule, &inboxes, arena);
            if (status == PEN_OK) continue;
            stuck += 1;
            CHECK_ERROR(status, PEN_INVALID_INPUT, "waits for the place that is read by");
        }
        pen_arena_destroy(arena);
    }
    CHECK(stuck > 50, "%u", stuck);
}

PEN_TEST_MAIN(cmocka_unit_test(too_few_places_are_a_circle),
              cmocka_unit_test(places_of_a_run_are_enough))
