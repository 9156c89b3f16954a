#include "scheduler/protocol/worker_core.h"

#include "tests/support/check.h"

// Worker 1 makes, worker 2 reads: two places at the source, one at the target, three microbatches.
static const pen_run_channel channel = {.source_worker = 1,
                                        .target_worker = 2,
                                        .target_device = 1,
                                        .capacity = 1,
                                        .copies = 2,
                                        .bytes = 4};
static const uint32_t refs[] = {0, 0};
static pen_run_task tasks[8];
static const pen_run_device devices[] = {{.worker = 1, .task_end = 4},
                                         {.worker = 2, .task_first = 4, .task_end = 8}};
static const pen_run_form forms[] = {{.microbatch_count = 3,
                                      .trains = true,
                                      .microbatch_size = 1,
                                      .channel_count = 1,
                                      .channels = &channel,
                                      .task_count = 8,
                                      .tasks = tasks,
                                      .ref_count = 2,
                                      .refs = refs,
                                      .devices = devices},
                                     {.microbatch_count = 3,
                                      .microbatch_size = 1,
                                      .channel_count = 1,
                                      .channels = &channel,
                                      .task_count = 8,
                                      .tasks = tasks,
                                      .ref_count = 2,
                                      .refs = refs,
                                      .devices = devices}};
static const pen_run_table table = {
    .worker_count = 2, .device_count = 2, .form_count = 2, .forms = forms};

static pen_worker_action actions[256];
static uint32_t action_count;

static pen_worker_fault step(pen_worker_core *core, pen_worker_event event) {
    if (event.generation == 0) event.generation = 5;
    return pen_worker_core_step(core, &event, actions, &action_count);
}

#define STEP(core, ...)                                                                            \
    CHECK(step((core), (pen_worker_event){__VA_ARGS__}) == PEN_WORKER_FAULT_NONE, "a fault")
#define CHECK_FAULT(core, fault, ...)                                                              \
    CHECK(step((core), (pen_worker_event){__VA_ARGS__}) == (fault), "no fault, or another");       \
    CHECK(action_count == 0, "it does nothing")

static void check_actions(uint32_t count, pen_worker_action_kind first) {
    CHECK(action_count == count, "%u actions, not %u", action_count, count);
    CHECK(count == 0 || actions[0].kind == first, "%u first", (unsigned)actions[0].kind);
}

static pen_worker_core *new_core(pen_arena *arena, uint32_t worker) {
    for (uint32_t t = 0; t < 8; t++) {
        const bool reads = t >= 4;
        tasks[t] = (pen_run_task){.task = {PEN_TASK_FORWARD, t / 4, t % 4}};
        if (t % 4 == 3) {
            tasks[t].task = (pen_task){PEN_TASK_UPDATE, t / 4, 0};
        } else if (reads) {
            tasks[t].receive_end = tasks[t].release_end = 1;
        } else {
            tasks[t].send_end = 1;
        }
    }
    pen_worker_core *core;
    uint32_t limit;
    CHECK_OK(pen_worker_core_new(&table, worker, arena, &core, &limit));
    CHECK(limit <= 256, "%u", limit);
    return core;
}

static pen_worker_core *running_core(pen_arena *arena, uint32_t worker) {
    pen_worker_core *core = new_core(arena, worker);
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN);
    check_actions(1, PEN_WORKER_ACTION_LOAD);
    STEP(core, .kind = PEN_WORKER_EVENT_LOADED);
    check_actions(1, PEN_WORKER_ACTION_READY);
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN);
    check_actions(1, PEN_WORKER_ACTION_READY); // was not heard
    STEP(core, .kind = PEN_WORKER_EVENT_START);
    check_actions(0, PEN_WORKER_ACTION_READY);
    return core;
}

static void a_source_keeps_to_its_places_and_credit(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_worker_core *core = running_core(arena, 1);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = 7, .count = 3, .updates = true);
    check_actions(1, PEN_WORKER_ACTION_RUN);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    check_actions(2, PEN_WORKER_ACTION_SEND);
    CHECK(actions[0].sequence == 21, "it names the work");
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    check_actions(0, PEN_WORKER_ACTION_SEND); // no credit, and no place for the third
    pen_worker_wait wait = pen_worker_core_get_wait(core, 0);
    CHECK(!wait.is_idle && !wait.is_running && !wait.needs_frame && wait.channel == 0 &&
              wait.sequence == 23,
          "it waits for a place");
    CHECK_FAULT(core, PEN_WORKER_FAULT_CREDIT, .kind = PEN_WORKER_EVENT_CREDIT, .sequence = 23);
    CHECK_FAULT(core, PEN_WORKER_FAULT_CHANNEL, .kind = PEN_WORKER_EVENT_CREDIT, .channel = 1);
    CHECK_FAULT(core, PEN_WORKER_FAULT_CHANNEL, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 21);
    STEP(core, .kind = PEN_WORKER_EVENT_CREDIT, .generation = 4, .sequence = 22);
    check_actions(0, PEN_WORKER_ACTION_SEND);
    STEP(core, .kind = PEN_WORKER_EVENT_CREDIT, .sequence = 22);
    check_actions(1, PEN_WORKER_ACTION_SEND);
    STEP(core, .kind = PEN_WORKER_EVENT_CREDIT, .sequence = 22);
    check_actions(0, PEN_WORKER_ACTION_SEND);
    STEP(core, .kind = PEN_WORKER_EVENT_LET_GO, .sequence = 21);
    check_actions(1, PEN_WORKER_ACTION_RUN);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    wait = pen_worker_core_get_wait(core, 0);
    CHECK(wait.needs_go && wait.task.kind == PEN_TASK_UPDATE, "it waits to update");
    STEP(core, .kind = PEN_WORKER_EVENT_GO, .round = 7);
    check_actions(1, PEN_WORKER_ACTION_RUN);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    check_actions(0, PEN_WORKER_ACTION_RUN); // memory is lent
    STEP(core, .kind = PEN_WORKER_EVENT_LET_GO, .sequence = 22);
    STEP(core, .kind = PEN_WORKER_EVENT_CREDIT, .sequence = 23);
    check_actions(1, PEN_WORKER_ACTION_SEND);
    STEP(core, .kind = PEN_WORKER_EVENT_LET_GO, .sequence = 23);
    check_actions(1, PEN_WORKER_ACTION_ROUND_DONE);
    CHECK(actions[0].round == 7, "which");
    pen_arena_destroy(arena);
}

static void a_target_refuses_what_is_beyond_its_credit(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_worker_core *core = new_core(arena, 2);
    bool is_seen;
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN);
    CHECK_FAULT(core, PEN_WORKER_FAULT_WINDOW, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 0);
    core = running_core(arena, 2);
    STEP(core, .kind = PEN_WORKER_EVENT_FRAME, .generation = 4, .sequence = 21);
    STEP(core, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 21); // before its round is known
    CHECK_FAULT(core, PEN_WORKER_FAULT_WINDOW, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 22);
    CHECK_FAULT(core, PEN_WORKER_FAULT_CHANNEL, .kind = PEN_WORKER_EVENT_FRAME, .form = 2);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = 7, .count = 2);
    check_actions(1, PEN_WORKER_ACTION_RUN);
    STEP(core, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 21); // again
    check_actions(0, PEN_WORKER_ACTION_RUN);
    CHECK_FAULT(core, PEN_WORKER_FAULT_WINDOW, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 22);
    CHECK(pen_worker_core_get_wait(core, 1).is_running, "it runs");
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE, .device = 1);
    check_actions(1, PEN_WORKER_ACTION_GRANT);
    CHECK(actions[0].sequence == 22, "all below");
    const pen_worker_wait wait = pen_worker_core_get_wait(core, 1);
    CHECK(wait.needs_frame && wait.sequence == 22, "it waits for a frame");
    CHECK_FAULT(core, PEN_WORKER_FAULT_WINDOW, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 23);
    const pen_worker_event other = {
        .kind = PEN_WORKER_EVENT_FRAME, .generation = 5, .form = 1, .sequence = 24};
    CHECK(pen_worker_core_check_frame(core, &other, &is_seen) == PEN_WORKER_FAULT_WINDOW,
          "of another form while a round is under way");
    STEP(core, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 22);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE, .device = 1);
    check_actions(2, PEN_WORKER_ACTION_GRANT);
    CHECK(actions[1].kind == PEN_WORKER_ACTION_ROUND_DONE, "a short round without update");
    CHECK(pen_worker_core_check_frame(core, &other, &is_seen) == PEN_WORKER_FAULT_NONE && !is_seen,
          "now it may come");
    pen_arena_destroy(arena);
}

static void rounds_come_in_order(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_worker_core *core = running_core(arena, 2);
    const pen_worker_fault fault = PEN_WORKER_FAULT_ROUND;
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .form = 2, .count = 1);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .count = 0);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .count = 4);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .form = 1, .count = 1,
                .updates = true);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_GO);
    for (uint64_t round = 0; round < PEN_WORKER_ROUND_LIMIT; round++) {
        STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = round, .count = 3);
        STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = round, .count = 3); // again
    }
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .round = 8, .count = 3);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .round = 9, .count = 3);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_GO, .round = 1);
    core = running_core(arena, 2);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = 1, .count = 3);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .round = 2, .form = 1, .count = 3);
    CHECK_FAULT(core, fault, .kind = PEN_WORKER_EVENT_ROUND, .round = 3, .count = 3);
    CHECK(strcmp(pen_worker_fault_text(fault), "a round out of order") == 0, "in words");
    pen_arena_destroy(arena);
}

// Memory that is computed on, or lent, is not loaded into.
static void a_new_generation_waits_for_tasks_and_lent_memory(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_worker_core *core = running_core(arena, 1);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .count = 3);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE); // the first is lent, the second runs
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 4);
    check_actions(0, PEN_WORKER_ACTION_LOAD);
    CHECK(pen_worker_core_generation(core) == 5, "it never falls");
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 6);
    check_actions(0, PEN_WORKER_ACTION_LOAD);
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 8);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    check_actions(0, PEN_WORKER_ACTION_LOAD);
    STEP(core, .kind = PEN_WORKER_EVENT_LET_GO, .sequence = 0);
    check_actions(1, PEN_WORKER_ACTION_LOAD);
    CHECK(actions[0].generation == 8, "the newest");
    STEP(core, .kind = PEN_WORKER_EVENT_LOADED, .generation = 6);
    check_actions(0, PEN_WORKER_ACTION_READY);
    STEP(core, .kind = PEN_WORKER_EVENT_LOADED, .generation = 8);
    check_actions(1, PEN_WORKER_ACTION_READY);
    STEP(core, .kind = PEN_WORKER_EVENT_START, .generation = 8);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .generation = 8, .round = 3, .count = 1);
    check_actions(1, PEN_WORKER_ACTION_RUN); // from the beginning
    CHECK(actions[0].task == 0 && actions[0].round == 3, "which");
    pen_arena_destroy(arena);
}

static void stopping_waits_for_tasks(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_worker_core *core = running_core(arena, 1);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .count = 3);
    STEP(core, .kind = PEN_WORKER_EVENT_STOP);
    check_actions(0, PEN_WORKER_ACTION_STOPPED);
    STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    check_actions(1, PEN_WORKER_ACTION_STOPPED);
    STEP(core, .kind = PEN_WORKER_EVENT_STOP);
    check_actions(0, PEN_WORKER_ACTION_STOPPED);
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 9);
    check_actions(1, PEN_WORKER_ACTION_LOAD);
    pen_arena_destroy(arena);
}

typedef enum worker_place {
    IDLE,
    DRAINING,
    LOADING,
    READY,
    RUNNING,
    STOPPING,
    STOPPED,
    PLACE_COUNT,
} worker_place;

static pen_worker_core *core_in(pen_arena *arena, worker_place where) {
    pen_worker_core *core = new_core(arena, 1);
    if (where == IDLE) return core;
    STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN);
    if (where == LOADING) return core;
    STEP(core, .kind = PEN_WORKER_EVENT_LOADED);
    if (where == READY) return core;
    STEP(core, .kind = PEN_WORKER_EVENT_START);
    STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .count = 3, .updates = true);
    if (where == RUNNING) return core;
    if (where == DRAINING) {
        STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 6);
        return core;
    }
    STEP(core, .kind = PEN_WORKER_EVENT_STOP);
    if (where == STOPPED) STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
    return core;
}

// Whatever it does, a higher generation is loaded once no task runs, and begins from nothing.
static void a_higher_generation_is_loaded_from_every_state(void **state) {
    (void)state;
    for (worker_place where = IDLE; where < PLACE_COUNT; where++) {
        pen_arena *arena = check_arena();
        pen_worker_core *core = core_in(arena, where);
        const bool computes = where == DRAINING || where == RUNNING || where == STOPPING;
        STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 9);
        check_actions(computes ? 0 : 1, PEN_WORKER_ACTION_LOAD);
        STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN, .generation = 9); // again
        check_actions(0, PEN_WORKER_ACTION_LOAD);
        if (computes) {
            STEP(core, .kind = PEN_WORKER_EVENT_TASK_DONE);
            check_actions(1, PEN_WORKER_ACTION_LOAD);
        }
        CHECK(actions[0].generation == 9 || !computes, "which");
        // what is left of the generation before changes nothing
        STEP(core, .kind = PEN_WORKER_EVENT_LOADED);
        STEP(core, .kind = PEN_WORKER_EVENT_START);
        STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = 1, .count = 3);
        STEP(core, .kind = PEN_WORKER_EVENT_GO, .round = 0);
        STEP(core, .kind = PEN_WORKER_EVENT_CREDIT, .sequence = 99);
        STEP(core, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 99);
        STEP(core, .kind = PEN_WORKER_EVENT_STOP);
        STEP(core, .kind = PEN_WORKER_EVENT_ASSIGN);
        STEP(core, .kind = PEN_WORKER_EVENT_LOADED, .generation = 9);
        check_actions(1, PEN_WORKER_ACTION_READY);
        STEP(core, .kind = PEN_WORKER_EVENT_START, .generation = 9);
        STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .generation = 9, .round = 40, .count = 1);
        check_actions(1, PEN_WORKER_ACTION_RUN);
        CHECK(actions[0].task == 0 && actions[0].round == 40, "from the beginning");
        pen_arena_destroy(arena);
    }
}

// Takes an event twice: the second time does nothing.
static void step_twice(pen_worker_core *core, pen_worker_event event) {
    pen_worker_action first[256];
    CHECK(step(core, event) == PEN_WORKER_FAULT_NONE, "a fault");
    const uint32_t count = action_count;
    memcpy(first, actions, sizeof first);
    CHECK(step(core, event) == PEN_WORKER_FAULT_NONE, "a fault, the second time");
    const bool is_heard = event.kind == PEN_WORKER_EVENT_ASSIGN && action_count == 1 &&
                          actions[0].kind == PEN_WORKER_ACTION_READY;
    CHECK(action_count == 0 || is_heard, "event %u does something again", (unsigned)event.kind);
    memcpy(actions, first, sizeof first);
    action_count = count;
}

static void what_is_sent_again_changes_nothing(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_worker_core *cores[] = {new_core(arena, 1), new_core(arena, 2)};
    for (uint32_t i = 0; i < 2; i++) {
        step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_ASSIGN});
        step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_LOADED});
        step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_ASSIGN});
        step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_START});
    }
    uint32_t done_count[2] = {0, 0}, task_count[2] = {0, 0};
    for (uint64_t round = 0; round < 3; round++) {
        const uint32_t count = round == 1 ? 2 : 3;
        for (uint32_t i = 0; i < 2; i++) {
            step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_ROUND,
                                                    .round = round,
                                                    .count = count,
                                                    .updates = true});
            task_count[i] += action_count;
        }
        for (uint32_t m = 0; m < count; m++) {
            const uint64_t sequence = round * 3 + m;
            STEP(cores[0], .kind = PEN_WORKER_EVENT_TASK_DONE);
            CHECK(actions[0].kind == PEN_WORKER_ACTION_SEND && actions[0].sequence == sequence,
                  "sent");
            task_count[0] += action_count - 1;
            step_twice(cores[1],
                       (pen_worker_event){.kind = PEN_WORKER_EVENT_FRAME, .sequence = sequence});
            check_actions(1, PEN_WORKER_ACTION_RUN);
            task_count[1] += 1;
            STEP(cores[1], .kind = PEN_WORKER_EVENT_TASK_DONE, .device = 1);
            check_actions(1, PEN_WORKER_ACTION_GRANT);
            STEP(cores[0], .kind = PEN_WORKER_EVENT_LET_GO, .sequence = sequence);
            task_count[0] += action_count;
            step_twice(cores[0], (pen_worker_event){.kind = PEN_WORKER_EVENT_CREDIT,
                                                    .sequence = sequence + 1});
        }
        for (uint32_t i = 0; i < 2; i++) {
            step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_GO, .round = round});
            check_actions(1, PEN_WORKER_ACTION_RUN);
            task_count[i] += 1;
            STEP(cores[i], .kind = PEN_WORKER_EVENT_TASK_DONE, .device = i);
            check_actions(1, PEN_WORKER_ACTION_ROUND_DONE);
            CHECK(actions[0].round == round, "which");
            done_count[i] += 1;
            step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_GO, .round = round});
            check_actions(0, PEN_WORKER_ACTION_RUN);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(done_count[i] == 3 && task_count[i] == 3 + 3 + 2 + 3, "%u tasks", task_count[i]);
        step_twice(cores[i], (pen_worker_event){.kind = PEN_WORKER_EVENT_STOP});
    }
    pen_arena_destroy(arena);
}

static void what_comes_after_a_stop_changes_nothing(void **state) {
    (void)state;
    for (worker_place where = STOPPING; where <= STOPPED; where++) {
        pen_arena *arena = check_arena();
        pen_worker_core *core = core_in(arena, where);
        STEP(core, .kind = PEN_WORKER_EVENT_ROUND, .round = 1, .count = 3);
        check_actions(0, PEN_WORKER_ACTION_RUN);
        STEP(core, .kind = PEN_WORKER_EVENT_GO, .round = 0);
        STEP(core, .kind = PEN_WORKER_EVENT_GO, .round = 77);
        STEP(core, .kind = PEN_WORKER_EVENT_START);
        STEP(core, .kind = PEN_WORKER_EVENT_CREDIT, .sequence = 0);
        STEP(core, .kind = PEN_WORKER_EVENT_FRAME, .sequence = 0);
        STEP(core, .kind = PEN_WORKER_EVENT_LOADED);
        check_actions(0, PEN_WORKER_ACTION_RUN);
        CHECK(pen_worker_core_get_wait(core, 0).is_idle, "it waits for nothing");
        pen_arena_destroy(arena);
    }
}

// Which task is the last depends on the round: on its microbatches, and whether it updates.
static void the_last_task_is_that_of_the_round(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_form *form = &forms[0]; // of each device three microbatches and an update
    (void)new_core(arena, 1);
    CHECK(pen_run_task_is_last(form, 0, &tasks[3], 3, true), "the update");
    CHECK(!pen_run_task_is_last(form, 0, &tasks[2], 3, true), "before the update");
    CHECK(pen_run_task_is_last(form, 0, &tasks[2], 3, false), "without an update");
    CHECK(!pen_run_task_is_last(form, 0, &tasks[1], 3, false), "before the last microbatch");
    CHECK(pen_run_task_is_last(form, 0, &tasks[1], 2, false), "of a short round");
    CHECK(!pen_run_task_is_last(form, 0, &tasks[1], 2, true), "before its update");
    tasks[3].list = PEN_RUN_LIST_NONE;
    CHECK(pen_run_task_is_last(form, 0, &tasks[1], 2, true), "of an update without a list");
    tasks[3].list = 0;
    tasks[1].task.kind = PEN_TASK_UPDATE; // work may come after the last update
    tasks[3].task.kind = PEN_TASK_BACKWARD_WEIGHT;
    CHECK(pen_run_task_is_last(form, 0, &tasks[1], 4, true), "the last update");
    CHECK(!pen_run_task_is_last(form, 0, &tasks[0], 4, true), "before it");
    pen_arena_destroy(arena);
}

static void every_fault_has_a_text(void **state) {
    (void)state;
    for (uint32_t i = 0; i <= PEN_WORKER_FAULT_ROUND; i++) {
        for (uint32_t j = 0; j < i; j++) {
            CHECK(strcmp(pen_worker_fault_text((pen_worker_fault)i),
                         pen_worker_fault_text((pen_worker_fault)j)) != 0,
                  "%u and %u", i, j);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(a_source_keeps_to_its_places_and_credit),
              cmocka_unit_test(a_target_refuses_what_is_beyond_its_credit),
              cmocka_unit_test(rounds_come_in_order),
              cmocka_unit_test(a_new_generation_waits_for_tasks_and_lent_memory),
              cmocka_unit_test(stopping_waits_for_tasks),
              cmocka_unit_test(a_higher_generation_is_loaded_from_every_state),
              cmocka_unit_test(what_is_sent_again_changes_nothing),
              cmocka_unit_test(what_comes_after_a_stop_changes_nothing),
              cmocka_unit_test(the_last_task_is_that_of_the_round),
              cmocka_unit_test(every_fault_has_a_text))
