#include "scheduler/schedule/schedule_check.h"

#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

// A schedule of a chain of three stages and three microbatches that tests may spoil:
//   device 0: F0 F1 F2 B0 B1 B2 U   (tasks 0 to 6)
//   device 1: F0 F1 B0 F2 B1 B2 U   (tasks 7 to 13)
//   device 2: F0 B0 F1 B1 F2 B2 U   (tasks 14 to 20)
typedef struct case_of_three {
    pen_arena *arena;
    const pen_stage_graph *graph;
    pen_schedule schedule;
} case_of_three;

static case_of_three open_case(void) {
    case_of_three c = {.arena = check_arena()};
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    c.graph = stage_chain(c.arena, 3, 3, 1, 1, 0);
    CHECK_OK(pen_schedule_generator_find("1f1b", c.arena, &generator));
    CHECK_OK(generator->generate(c.graph, c.arena, &schedule));
    CHECK(schedule->task_count == 21, "%u", schedule->task_count);
    c.schedule = *schedule;
    return c;
}

#define CHECK_REFUSED(c, text)                                                                     \
    CHECK_ERROR(pen_schedule_check((c).graph, &(c).schedule, (c).arena), PEN_INVALID_INPUT, text)

static void swap(case_of_three *c, uint32_t a, uint32_t b) {
    const pen_task task = c->schedule.tasks[a];
    c->schedule.tasks[a] = c->schedule.tasks[b];
    c->schedule.tasks[b] = task;
}

static void accepts_what_is_right(void **state) {
    (void)state;
    case_of_three c = open_case();
    CHECK_OK(pen_schedule_check(c.graph, &c.schedule, c.arena));
    CHECK_OK(pen_schedule_check_tasks(c.graph, &c.schedule, c.arena));
    pen_arena_destroy(c.arena);
}

static void refuses_swapped_microbatches(void **state) {
    (void)state;
    case_of_three c = open_case();
    swap(&c, 0, 1);
    CHECK_REFUSED(c, "the task 'forward of stage 0, microbatch 0' comes after that of a higher");
    swap(&c, 0, 1);
    swap(&c, 4, 5);
    CHECK_REFUSED(c, "the task 'backward of stage 0, microbatch 1' comes after that of a higher");
    pen_arena_destroy(c.arena);
}

static void names_a_circle(void **state) {
    (void)state;
    case_of_three c = open_case();
    swap(&c, 2, 3); // device 0: F0 F1 B0 F2: fine, only slower
    CHECK_OK(pen_schedule_check(c.graph, &c.schedule, c.arena));
    swap(&c, 1, 2); // F0 B0 F1
    CHECK_REFUSED(c, "tasks wait for each other: backward of stage 0, microbatch 0 on device 0 "
                     "waits for backward of stage 1, microbatch 0, which comes after forward of "
                     "stage 1, microbatch 1; forward of stage 1, microbatch 1 on device 1 waits "
                     "for forward of stage 0, microbatch 1, which comes after backward of stage "
                     "0, microbatch 0");
    pen_arena_destroy(c.arena);
}

static void names_a_circle_on_one_device(void **state) {
    (void)state;
    case_of_three c = open_case();
    swap(&c, 14, 15);
    CHECK_REFUSED(c, "backward of stage 2, microbatch 0 on device 2 waits for forward of stage 2, "
                     "microbatch 0, which comes after backward of stage 2, microbatch 0");
    swap(&c, 14, 15);
    swap(&c, 19, 20);
    CHECK_REFUSED(c,
                  "device 2: the task 'backward of stage 2, microbatch 2' comes after 'update of "
                  "stage 2': updates of a stage come last, in the order of phases");
    pen_arena_destroy(c.arena);
}

static void refuses_a_dropped_task(void **state) {
    (void)state;
    case_of_three c = open_case();
    // the last of device 2
    c.schedule.task_count -= 1;
    c.schedule.first_task[3] -= 1;
    CHECK_REFUSED(c, "the task 'update of stage 2' is missing");
    c.schedule.tasks[19] = c.schedule.tasks[20];
    CHECK_REFUSED(c, "the task 'backward of stage 2, microbatch 2' is missing");
    c.schedule.task_count -= 1;
    CHECK_REFUSED(c, "devices have tasks 0 to 20 of a schedule of 19");
    pen_arena_destroy(c.arena);
}

static void refuses_a_doubled_task(void **state) {
    (void)state;
    case_of_three c = open_case();
    c.schedule.tasks[1] = c.schedule.tasks[0];
    CHECK_REFUSED(c, "the task 'forward of stage 0, microbatch 0' is there twice");
    pen_arena_destroy(c.arena);
}

static void refuses_strange_tasks(void **state) {
    (void)state;
    case_of_three c = open_case();
    const pen_task task = c.schedule.tasks[0];
    c.schedule.tasks[0].stage = 3;
    CHECK_REFUSED(c,
                  "device 0 has the task 'forward of stage 3, microbatch 0', there are 3 stages");
    c.schedule.tasks[0].stage = 1;
    CHECK_REFUSED(c, "the task 'forward of stage 1, microbatch 0' stands on device 0, its stage "
                     "is on 1");
    c.schedule.tasks[0] = task;
    c.schedule.tasks[0].microbatch = 3;
    CHECK_REFUSED(c, "device 0 has the task 'forward of stage 0, microbatch 3'");
    c.schedule.tasks[0] = task;
    c.schedule.tasks[0].kind = (pen_task_kind)17;
    CHECK_REFUSED(c, "device 0 has a task of kind 17");
    c.schedule.tasks[0] = task;
    c.schedule.first_task[1] = 20;
    CHECK_REFUSED(c, "device 1 has tasks 20 to 14 of a schedule");
    pen_arena_destroy(c.arena);
}

static void refuses_backward_of_frozen_stages(void **state) {
    (void)state;
    case_of_three c = open_case();
    pen_stage stages[3];
    pen_stage_edge edges[2];
    memcpy(stages, c.graph->stages, sizeof stages);
    memcpy(edges, c.graph->edges, sizeof edges);
    stages[0].backward_input_seconds = 0;
    stages[0].backward_weight_seconds = 0;
    edges[0].has_gradient = false;
    stages[0].has_backward = false;
    stages[0].has_update = false;
    pen_stage_graph graph = *c.graph;
    graph.stages = stages;
    graph.edges = edges;
    c.graph = &graph;
    CHECK_REFUSED(c, "the task 'backward of stage 0, microbatch 0' is not needed");
    pen_arena_destroy(c.arena);
}

static void takes_backward_in_halves_or_whole(void **state) {
    (void)state;
    case_of_three c = open_case();
    pen_task tasks[24];
    uint32_t n = 0;
    for (uint32_t t = 0; t < 21; t++) {
        tasks[n] = c.schedule.tasks[t];
        if (t > 13 && tasks[n].kind == PEN_TASK_BACKWARD) {
            tasks[n].kind = PEN_TASK_BACKWARD_INPUT;
            tasks[n + 1] = tasks[n];
            tasks[++n].kind = PEN_TASK_BACKWARD_WEIGHT;
        }
        n++;
    }
    // device 2: F0 I0 W0 F1 I1 W1 F2 I2 W2 U from 14
    c.schedule.tasks = tasks;
    c.schedule.task_count = 24;
    c.schedule.first_task[3] = 24;
    CHECK_OK(pen_schedule_check(c.graph, &c.schedule, c.arena));
    swap(&c, 15, 16);
    CHECK_REFUSED(c, "backward_weight of stage 2, microbatch 0 on device 2 waits for "
                     "backward_input of stage 2, microbatch 0");
    swap(&c, 15, 16);
    swap(&c, 16, 19);
    CHECK_REFUSED(c, "'backward_weight of stage 2, microbatch 0' comes after that of a higher");
    swap(&c, 16, 19);
    tasks[15].kind = PEN_TASK_BACKWARD;
    CHECK_REFUSED(c, "the task 'backward of stage 2, microbatch 0' is there, and its half "
                     "'backward_weight' too");
    tasks[15].kind = PEN_TASK_BACKWARD_INPUT;
    memmove(&tasks[16], &tasks[17], 7 * sizeof *tasks);
    c.schedule.task_count = 23;
    c.schedule.first_task[3] = 23;
    CHECK_REFUSED(c, "the task 'backward_weight of stage 2, microbatch 0' is missing");
    pen_arena_destroy(c.arena);
}

static void names_the_bytes(void **state) {
    (void)state;
    case_of_three c = open_case();
    double bytes_limit[3] = {410, 310, 210};
    pen_stage_graph graph = *c.graph;
    graph.bytes_limit = bytes_limit;
    CHECK_OK(pen_schedule_check(&graph, &c.schedule, c.arena));
    bytes_limit[1] = 309;
    CHECK_ERROR(pen_schedule_check(&graph, &c.schedule, c.arena), PEN_DOES_NOT_FIT,
                "device 1 needs 310 bytes with 2 microbatches in flight, its limit is 309 bytes");
    pen_arena_destroy(c.arena);
}

// Two tasks of a device swapped at random: either refused, or it truly runs to its end.
static void refuses_or_runs_what_is_shuffled(void **state) {
    (void)state;
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        const pen_schedule *made;
        dice d = {.seed = seed};
        CHECK_OK(pen_schedule_generators[seed % 2]->generate(graph, arena, &made));
        pen_schedule schedule = *made;
        const uint32_t last = schedule.task_count - 1;
        const uint32_t a = (uint32_t)dice_between(&d, 0, last);
        const uint32_t b = (uint32_t)dice_between(&d, 0, last);
        const pen_task task = schedule.tasks[a];
        schedule.tasks[a] = schedule.tasks[b];
        schedule.tasks[b] = task;
        const pen_status status = pen_schedule_check(graph, &schedule, arena);
        if (status != PEN_OK) {
            refused += 1;
            CHECK_ERROR(status, PEN_INVALID_INPUT, "");
        }
        pen_arena_destroy(arena);
    }
    CHECK(refused > 100 && refused < 300, "%u refused", refused);
}

PEN_TEST_MAIN(cmocka_unit_test(accepts_what_is_right),
              cmocka_unit_test(refuses_swapped_microbatches), cmocka_unit_test(names_a_circle),
              cmocka_unit_test(names_a_circle_on_one_device),
              cmocka_unit_test(refuses_a_dropped_task), cmocka_unit_test(refuses_a_doubled_task),
              cmocka_unit_test(refuses_strange_tasks),
              cmocka_unit_test(refuses_backward_of_frozen_stages),
              cmocka_unit_test(takes_backward_in_halves_or_whole),
              cmocka_unit_test(names_the_bytes), cmocka_unit_test(refuses_or_runs_what_is_shuffled))
