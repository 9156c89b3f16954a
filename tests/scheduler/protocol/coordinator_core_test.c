#include "scheduler/protocol/coordinator_core.h"

#include "tests/support/check.h"
#include "tests/support/random_run_table.h"

#define ONE 0x3ff0000000000000u
#define INFINITE 0x7ff0000000000000u

static pen_coordinator_action actions[1024];
static uint32_t action_count;

static const pen_coordinator_identity ours = {
    .protocol = 1, .plan_hash = 7, .build = "0.1.0", .isa = "v3"};

// Three workers with a device each.
static pen_coordinator_core *new_core_of(pen_arena *arena, const pen_run_table *table) {
    const pen_coordinator_options options = {
        .generation = 5, .first_round = 10, .self = ours, .deadline = 1000};
    pen_coordinator_core *core;
    uint32_t limit;
    CHECK_OK(pen_coordinator_core_new(table, &options, arena, &core, &limit));
    CHECK(limit <= 1024, "%u", limit);
    return core;
}

static pen_coordinator_core *new_core(pen_arena *arena) {
    return new_core_of(arena, chain_run_table(arena, 3, 4, 4));
}

static void step(pen_coordinator_core *core, pen_coordinator_event event) {
    event.generation = event.generation == 0 ? 5 : event.generation;
    pen_coordinator_core_step(core, &event, actions, &action_count);
}

static void tell(pen_coordinator_core *core, pen_coordinator_event_kind kind, uint32_t worker) {
    step(core, (pen_coordinator_event){
                   .kind = kind, .worker = worker, .incarnation = worker + 100, .identity = &ours});
}

static void tell_done(pen_coordinator_core *core, uint32_t worker, uint64_t round) {
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_ROUND_DONE,
                                       .worker = worker,
                                       .incarnation = worker + 100,
                                       .round = round});
}

static void tell_loss(pen_coordinator_core *core, uint64_t round, uint32_t microbatch,
                      uint64_t value) {
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LOSS,
                                       .worker = 3,
                                       .incarnation = 103,
                                       .round = round,
                                       .microbatch = microbatch,
                                       .stage = 2,
                                       .loss = {.value = value}});
}

static void begin(pen_coordinator_core *core, uint32_t count, bool updates) {
    step(core, (pen_coordinator_event){
                   .kind = PEN_COORDINATOR_EVENT_BEGIN, .count = count, .updates = updates});
}

static uint32_t count_of(pen_coordinator_action_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < action_count; i++) {
        if (actions[i].kind == kind) count++;
    }
    return count;
}

static pen_coordinator_core *start_core(pen_coordinator_core *core) {
    for (uint32_t w = 1; w <= 3; w++) {
        tell(core, PEN_COORDINATOR_EVENT_HELLO, w);
    }
    CHECK(count_of(PEN_COORDINATOR_ACTION_ASSIGN) == 3, "all are assigned");
    CHECK(actions[1].incarnation == 102, "by incarnation");
    for (uint32_t w = 1; w <= 3; w++) {
        tell(core, PEN_COORDINATOR_EVENT_READY, w);
    }
    CHECK(count_of(PEN_COORDINATOR_ACTION_START) == 3, "all are started");
    CHECK(count_of(PEN_COORDINATOR_ACTION_RUNNING) == 1, "said once");
    return core;
}

static pen_coordinator_core *running_core(pen_arena *arena) {
    return start_core(new_core(arena));
}

static void check_refused(pen_coordinator_core *core, uint32_t worker,
                          pen_coordinator_identity identity, const char *text) {
    char told[512];
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_HELLO,
                                       .worker = worker,
                                       .incarnation = 55,
                                       .identity = &identity});
    CHECK(action_count == 1 && actions[0].kind == PEN_COORDINATOR_ACTION_REFUSE, "%s: taken", text);
    CHECK(actions[0].incarnation == 55 && actions[0].worker == worker, "whom");
    pen_coordinator_refusal_format(core, worker, actions[0].refusal, &identity, told, sizeof told);
    CHECK(strcmp(told, text) == 0, "'%s', not '%s'", told, text);
}

static void refuses_by_name(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = new_core(arena);
    pen_coordinator_identity other = ours;
    check_refused(core, 4, other, "there is no worker 4, only 1 to 3");
    other.protocol = 2;
    check_refused(core, 1, other, "worker 1 speaks protocol version 2, the coordinator 1");
    other = ours;
    memcpy(other.build, "0.2.0", 6);
    check_refused(core, 1, other, "worker 1 runs build '0.2.0', the coordinator '0.1.0'");
    other = ours;
    memcpy(other.isa, "v4", 3);
    check_refused(core, 1, other,
                  "worker 1 computes with 'v4', the coordinator with 'v3': results would differ "
                  "in their last bits; numerics.level of the job names a level that all have");
    other = ours;
    other.plan_hash = 8;
    check_refused(core, 2, other,
                  "worker 2 has plan 0000000000000008, the coordinator 0000000000000007");
    other = ours;
    other.memory_bytes = (uint64_t)64 << 20;
    other.needed_bytes = (uint64_t)3 << 30;
    check_refused(core, 2, other,
                  "the plan needs 3.00 GiB of memory on worker 2, which may use 64.0 MiB");
    tell(core, PEN_COORDINATOR_EVENT_HELLO, 2);
    CHECK(action_count == 0, "taken");
    check_refused(core, 2, ours, "another process is worker 2");
    tell(core, PEN_COORDINATOR_EVENT_LOST, 2);
    CHECK(action_count == 0, "it may come again");
    other = ours;
    other.plan_hash = 0; // has none yet
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_HELLO,
                                       .worker = 2,
                                       .incarnation = 55,
                                       .identity = &other});
    CHECK(action_count == 0 && pen_coordinator_core_is_present(core, 2), "another one comes");
    pen_arena_destroy(arena);
}

static void names_who_is_missing(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = new_core(arena);
    tell(core, PEN_COORDINATOR_EVENT_HELLO, 1);
    tell(core, PEN_COORDINATOR_EVENT_HELLO, 3);
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_TICK, .now = 999});
    CHECK(action_count == 0, "there is time left");
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_TICK, .now = 1000});
    CHECK(actions[0].kind == PEN_COORDINATOR_ACTION_FAIL &&
              actions[0].reason == PEN_COORDINATOR_REASON_MISSING,
          "the deadline");
    CHECK(count_of(PEN_COORDINATOR_ACTION_STOP) == 2, "those who came are sent home");
    CHECK(!pen_coordinator_core_is_present(core, 2) && pen_coordinator_core_is_present(core, 3),
          "who");
    tell(core, PEN_COORDINATOR_EVENT_HELLO, 2);
    CHECK(action_count == 0, "too late");
    pen_arena_destroy(arena);
}

static void ends_when_a_worker_is_lost(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < 2; kind++) {
        pen_arena *arena = check_arena();
        pen_coordinator_core *core = running_core(arena);
        step(core, (pen_coordinator_event){
                       .kind = PEN_COORDINATOR_EVENT_LOST, .worker = 2, .incarnation = 99});
        CHECK(action_count == 0, "an older process's link");
        tell(core, kind == 0 ? PEN_COORDINATOR_EVENT_LOST : PEN_COORDINATOR_EVENT_FAILED, 2);
        CHECK(actions[0].kind == PEN_COORDINATOR_ACTION_FAIL && actions[0].worker == 2, "by name");
        CHECK(actions[0].reason ==
                  (kind == 0 ? PEN_COORDINATOR_REASON_LOST : PEN_COORDINATOR_REASON_FAILED),
              "%s", pen_coordinator_reason_text(actions[0].reason));
        CHECK(count_of(PEN_COORDINATOR_ACTION_STOP) == (kind == 0 ? 2u : 3u), "the others");
        uint64_t round;
        CHECK(!pen_coordinator_core_can_begin(core, &round), "over");
        pen_arena_destroy(arena);
    }
}

// A step of two rounds: the update of the second waits for the losses of both.
static void go_covers_the_rounds_before(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = running_core(arena);
    uint64_t round;
    CHECK(pen_coordinator_core_can_begin(core, &round) && round == 10, "the first round");
    begin(core, 4, false);
    CHECK(count_of(PEN_COORDINATOR_ACTION_ROUND) == 3 && actions[0].round == 10, "announced");
    begin(core, 2, true);
    CHECK(count_of(PEN_COORDINATOR_ACTION_ROUND) == 3 && actions[0].count == 2, "announced");
    tell_loss(core, 11, 0, ONE);
    tell_loss(core, 11, 1, ONE);
    for (uint32_t m = 0; m < 3; m++) {
        tell_loss(core, 10, m, ONE);
        CHECK(action_count == 0, "not all are here");
    }
    tell_loss(core, 10, 3, ONE + 1);
    CHECK(count_of(PEN_COORDINATOR_ACTION_LOSSES) == 2, "of both rounds");
    CHECK(count_of(PEN_COORDINATOR_ACTION_GO) == 3, "to all workers");
    CHECK(pen_coordinator_core_find_loss(core, 10, 3, 2)->value == ONE + 1, "kept");
    CHECK(pen_coordinator_core_find_loss(core, 11, 2, 2) == NULL, "of no microbatch");
    CHECK(!pen_coordinator_core_is_quiet(core), "rounds are under way");
    tell_loss(core, 10, 3, ONE + 1);
    CHECK(action_count == 0, "again, alike");
    tell_loss(core, 10, 3, ONE);
    CHECK(actions[0].kind == PEN_COORDINATOR_ACTION_FAIL && actions[0].worker == 3 &&
              actions[0].reason == PEN_COORDINATOR_REASON_LOSS,
          "again, differently");
    pen_arena_destroy(arena);
}

// ---- lanes that come as they come

// Each stage tells of its gradients; a lane for each microbatch, of 6.
static pen_coordinator_core *telling_core(pen_arena *arena) {
    const pen_coordinator_options options = {
        .generation = 5, .first_round = 10, .self = ours, .deadline = 1000, .lanes = {6, 6}};
    const pen_run_table *table = chain_run_table(arena, 3, 4, 4);
    const pen_run_form *form = &table->forms[0];
    pen_run_task *tasks;
    pen_run_form *telling;
    pen_run_table *own;
    CHECK_OK(PEN_NEW(arena, form->task_count, &tasks));
    CHECK_OK(PEN_NEW(arena, table->form_count, &telling));
    CHECK_OK(PEN_NEW(arena, 1, &own));
    memcpy(tasks, form->tasks, form->task_count * sizeof *tasks);
    for (uint32_t t = 0; t < form->task_count; t++) {
        tasks[t].makes_gradient = tasks[t].task.kind == PEN_TASK_BACKWARD ||
                                  tasks[t].task.kind == PEN_TASK_BACKWARD_WEIGHT;
    }
    memcpy(telling, table->forms, table->form_count * sizeof *telling);
    telling[0].tasks = tasks;
    *own = *table;
    own->forms = telling;
    pen_coordinator_core *core;
    uint32_t limit;
    CHECK_OK(pen_coordinator_core_new(own, &options, arena, &core, &limit));
    for (uint32_t w = 1; w <= 3; w++) {
        tell(core, PEN_COORDINATOR_EVENT_HELLO, w);
    }
    for (uint32_t w = 1; w <= 3; w++) {
        tell(core, PEN_COORDINATOR_EVENT_READY, w);
    }
    return core;
}

static void tell_gradient(pen_coordinator_core *core, uint64_t round, uint32_t microbatch,
                          uint32_t stage) {
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_GRADIENT,
                                       .worker = stage + 1,
                                       .incarnation = stage + 101,
                                       .round = round,
                                       .microbatch = microbatch,
                                       .stage = stage});
}

static void tell_gradients(pen_coordinator_core *core, uint64_t round, uint32_t microbatch) {
    for (uint32_t stage = 3; stage-- > 0;) {
        tell_gradient(core, round, microbatch, stage);
    }
}

static void begin_lanes(pen_coordinator_core *core, uint32_t first, uint32_t count, bool updates,
                        pen_arrivals_order order) {
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_BEGIN,
                                       .count = count,
                                       .updates = updates,
                                       .microbatch = first,
                                       .order = order});
}

static void check_goes(uint64_t round, pen_arrivals_order order) {
    CHECK(count_of(PEN_COORDINATOR_ACTION_GO) == 3, "to all workers");
    for (uint32_t i = 0; i < action_count; i++) {
        if (actions[i].kind != PEN_COORDINATOR_ACTION_GO) continue;
        CHECK(actions[i].round == round && actions[i].order == order,
              "round %llu, order %llx, expected %llx", (unsigned long long)actions[i].round,
              (unsigned long long)actions[i].order, (unsigned long long)order);
    }
}

// A step of two rounds of four and two microbatches; both rounds tell at once.
static void go_says_in_which_order_lanes_came(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = telling_core(arena);
    begin_lanes(core, 0, 4, false, 0);
    begin_lanes(core, 4, 2, true, 0);
    for (uint32_t m = 0; m < 6; m++) {
        tell_loss(core, m < 4 ? 10 : 11, m < 4 ? m : m - 4, ONE);
    }
    CHECK(count_of(PEN_COORDINATOR_ACTION_LOSSES) == 1, "of both rounds");
    CHECK(count_of(PEN_COORDINATOR_ACTION_GO) == 0, "no lane has come");
    tell_gradients(core, 10, 2);
    tell_gradients(core, 11, 1);
    tell_gradient(core, 10, 0, 2);
    tell_gradient(core, 10, 0, 2); // again
    tell_gradients(core, 10, 3);
    tell_gradients(core, 10, 1);
    tell_gradients(core, 10, 0);
    CHECK(count_of(PEN_COORDINATOR_ACTION_GO) == 0, "one is missing");
    tell_gradients(core, 11, 0);
    check_goes(11, 0x401352);
    pen_arena_destroy(arena);
}

// An order that is given is followed, and not waited for.
static void go_repeats_the_order_given(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = telling_core(arena);
    begin_lanes(core, 0, 2, true, 0x01);
    begin_lanes(core, 0, 2, true, 0);
    tell_gradients(core, 10, 0);
    tell_loss(core, 10, 0, ONE);
    tell_loss(core, 10, 1, ONE);
    check_goes(10, 0x01);
    tell_gradients(core, 11, 0);
    tell_gradients(core, 11, 1);
    tell_loss(core, 11, 0, ONE);
    tell_loss(core, 11, 1, ONE);
    check_goes(11, 0x10);
    pen_arena_destroy(arena);
}

static void gradients_of_nothing_end_the_run(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    for (uint32_t i = 0; i < 3; i++) {
        pen_coordinator_core *core = i < 2 ? telling_core(arena) : running_core(arena);
        begin_lanes(core, 0, 2, true, 0);
        tell_gradient(core, i == 0 ? 11 : 10, i == 1 ? 2 : 0, 0);
        CHECK(actions[0].kind == PEN_COORDINATOR_ACTION_FAIL && actions[0].worker == 1 &&
                  actions[0].reason == PEN_COORDINATOR_REASON_LOSS,
              "of no round, of no microbatch, where nobody tells of any: %u", i);
    }
    pen_arena_destroy(arena);
}

static void nothing_updates_after_a_loss_that_is_not_finite(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = running_core(arena);
    begin(core, 2, true);
    begin(core, 1, true);
    tell_loss(core, 10, 1, INFINITE);
    CHECK(action_count == 1 && actions[0].kind == PEN_COORDINATOR_ACTION_NOT_FINITE &&
              actions[0].round == 10 && actions[0].microbatch == 1,
          "said at once");
    tell_loss(core, 10, 0, ONE);
    tell_loss(core, 11, 0, ONE);
    CHECK(action_count == 0, "no go");
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_STOP});
    CHECK(count_of(PEN_COORDINATOR_ACTION_STOP) == 3, "it can be stopped");
    pen_arena_destroy(arena);
}

// Where updates skip a step by themselves, they are let go in any case.
static void updates_that_skip_go_after_any_loss(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_run_table *table = chain_run_table(arena, 3, 4, 4);
    pen_run_form forms[2] = {table->forms[0], table->forms[1]};
    assert_int_equal(table->form_count, 2);
    forms[0].skips = true;
    table->forms = forms;
    pen_coordinator_core *core = start_core(new_core_of(arena, table));
    begin(core, 2, true);
    tell_loss(core, 10, 1, INFINITE);
    CHECK(action_count == 0, "nothing is said yet");
    tell_loss(core, 10, 0, ONE);
    CHECK(count_of(PEN_COORDINATOR_ACTION_NOT_FINITE) == 0, "no end");
    CHECK(count_of(PEN_COORDINATOR_ACTION_GO) == 3, "all go");
    pen_arena_destroy(arena);
}

static void workers_that_contradict_the_rounds_fail(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = running_core(arena);
    begin(core, 2, true);
    tell_done(core, 1, 11);
    CHECK(actions[0].reason == PEN_COORDINATOR_REASON_ROUND && actions[0].worker == 1, "not given");
    core = running_core(arena);
    begin(core, 2, true);
    tell_loss(core, 10, 2, ONE);
    CHECK(actions[0].reason == PEN_COORDINATOR_REASON_LOSS, "beyond the count");
    core = running_core(arena);
    begin(core, 2, true);
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LOSS,
                                       .worker = 1,
                                       .incarnation = 101,
                                       .round = 10,
                                       .stage = 2});
    CHECK(actions[0].reason == PEN_COORDINATOR_REASON_LOSS, "of another worker's stage");
    core = running_core(arena);
    begin(core, 2, true);
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_CREDIT,
                                       .worker = 2,
                                       .incarnation = 102,
                                       .channel = 100,
                                       .sequence = 1});
    CHECK(actions[0].reason == PEN_COORDINATOR_REASON_CREDIT, "of no channel");
    core = running_core(arena);
    begin(core, 2, true);
    step(core, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_ROUND_DONE,
                                       .generation = 4,
                                       .worker = 1,
                                       .incarnation = 101,
                                       .round = 99});
    CHECK(action_count == 0, "of another generation");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(refuses_by_name), cmocka_unit_test(names_who_is_missing),
              cmocka_unit_test(ends_when_a_worker_is_lost),
              cmocka_unit_test(go_covers_the_rounds_before),
              cmocka_unit_test(go_says_in_which_order_lanes_came),
              cmocka_unit_test(go_repeats_the_order_given),
              cmocka_unit_test(gradients_of_nothing_end_the_run),
              cmocka_unit_test(nothing_updates_after_a_loss_that_is_not_finite),
              cmocka_unit_test(updates_that_skip_go_after_any_loss),
              cmocka_unit_test(workers_that_contradict_the_rounds_fail))
