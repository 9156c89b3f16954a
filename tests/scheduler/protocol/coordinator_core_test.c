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
static pen_coordinator_core *new_core(pen_arena *arena) {
    const pen_coordinator_options options = {
        .generation = 5, .first_round = 10, .self = ours, .deadline = 1000};
    pen_coordinator_core *core;
    uint32_t limit;
    CHECK_OK(
        pen_coordinator_core_new(chain_run_table(arena, 3, 4, 4), &options, arena, &core, &limit));
    CHECK(limit <= 1024, "%u", limit);
    return core;
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

static pen_coordinator_core *running_core(pen_arena *arena) {
    pen_coordinator_core *core = new_core(arena);
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
                  "in their last bits");
    other = ours;
    other.plan_hash = 8;
    check_refused(core, 2, other,
                  "worker 2 has plan 0000000000000008, the coordinator 0000000000000007");
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
              cmocka_unit_test(nothing_updates_after_a_loss_that_is_not_finite),
              cmocka_unit_test(workers_that_contradict_the_rounds_fail))
