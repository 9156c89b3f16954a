// The coordinator core's fence, deadlines and checkpoints.
#include "tests/support/check.h"
#include "tests/support/core_case.h"
#include "tests/support/random_run_table.h"

#define LEASE 100
#define PROGRESS 150

static const core_patience some = {LEASE, PROGRESS};

// Of a form without host channels in it, a round of one microbatch is done when all say so.
static void end_round(pen_coordinator_core *core, uint64_t round, uint32_t count) {
    for (uint32_t m = 0; m < count; m++) {
        CORE_STEP(core, LOSS, .worker = 3, .round = round, .microbatch = m, .stage = 2);
    }
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, ROUND_DONE, .worker = w, .round = round);
    }
}

static void run_round(pen_coordinator_core *core, uint64_t round) {
    pen_coordinator_action fed[1024];
    CORE_STEP(core, BEGIN, .count = 1, .updates = true);
    const uint32_t count = core_action_count;
    memcpy(fed, core_actions, sizeof fed);
    for (uint32_t i = 0; i < count; i++) {
        if (fed[i].kind != PEN_COORDINATOR_ACTION_FEED) continue;
        CORE_STEP(core, LET_GO, .channel = fed[i].channel, .sequence = fed[i].sequence);
    }
    end_round(core, round, 1);
    CHECK(CORE_COUNT(ROUND_DONE) == 1 && pen_coordinator_core_is_quiet(core), "the round is done");
}

// ---- the fence

static void nobody_is_assigned_before_the_fence(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_fencing(arena, some);
    CORE_STEP(core, HELLO, .worker = 1);
    CHECK(core_action_count == 0, "again");
    core_now += CORE_WRITE - 1;
    core_tick(core);
    CHECK(core_action_count == 0, "a disk may take its time");
    CORE_STEP(core, FENCED, .code = 0);
    CHECK(CORE_COUNT(ASSIGN) == CORE_WORKERS, "durable");
    core_tick(core);
    CHECK(core_action_count == 0, "leases count from here on");
    pen_arena_destroy(arena);
}

static void a_fence_that_fails_ends_the_run(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_fencing(arena, some);
    CORE_STEP(core, FENCED, .code = PEN_CANCELLED);
    core_check_failed(core, PEN_COORDINATOR_REASON_SUPERSEDED, 0);
    CHECK(CORE_COUNT(STOP) == CORE_WORKERS, "all are sent home");
    core = core_fencing(arena, some);
    CORE_STEP(core, FENCED, .code = PEN_IO);
    core_check_failed(core, PEN_COORDINATOR_REASON_STORE, 0);
    CHECK(!pen_coordinator_core_is_missing(core, 1), "nobody's fault");
    pen_arena_destroy(arena);
}

// A worker lost while the fence is written is waited for; the fence stays valid.
static void a_worker_lost_at_the_fence_may_come_again(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    for (uint32_t when = 0; when < 2; when++) {
        pen_coordinator_core *core = core_fencing(arena, some);
        CORE_STEP(core, LOST, .worker = 2);
        CHECK(core_action_count == 0, "no harm");
        CHECK(pen_coordinator_core_state(core) == PEN_COORDINATOR_RECRUIT, "back");
        if (when == 0) CORE_STEP(core, FENCED, .code = 0);
        CHECK(core_action_count == 0, "worker 2 is not here");
        CORE_STEP(core, HELLO, .worker = 2, .incarnation = 77);
        if (when == 1) {
            CHECK(core_action_count == 0, "it is being written still, and not asked for twice");
            CORE_STEP(core, FENCED, .code = 0);
        }
        CHECK(CORE_COUNT(ASSIGN) == CORE_WORKERS && CORE_COUNT(FENCE) == 0, "all are assigned");
        CHECK(core_actions[1].incarnation == 77, "as they are now");
    }
    pen_coordinator_core *core = core_fencing(arena, some);
    CORE_STEP(core, LOST, .worker = 2);
    core_now = 10000;
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_MISSING, 0);
    CHECK(pen_coordinator_core_is_missing(core, 2) && !pen_coordinator_core_is_missing(core, 1),
          "who");
    CORE_STEP(core, FENCED, .code = 0);
    CHECK(core_action_count == 0, "too late");
    pen_arena_destroy(arena);
}

// ---- deadlines

static void a_silent_worker_is_lost(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    for (uint32_t is_running = 0; is_running < 2; is_running++) {
        pen_coordinator_core *core =
            is_running ? core_running(arena, some) : core_assigned(arena, some);
        core_now += LEASE / 2;
        CORE_STEP(core, HEARD, .worker = 1);
        CORE_STEP(core, HEARD, .worker = 2, .incarnation = 7); // another process: not of it
        CORE_STEP(core, CREDIT, .worker = 3, .generation = 4); // any word counts, of any generation
        core_now += LEASE / 2 - 1;
        core_tick(core);
        CHECK(core_action_count == 0, "not yet");
        core_now += 1;
        core_tick(core);
        core_check_failed(core, PEN_COORDINATOR_REASON_LEASE, 2);
        CHECK(!pen_coordinator_core_is_missing(core, 1), "any word counts");
        CHECK(!pen_coordinator_core_is_missing(core, 3), "of another generation too");
    }
    pen_arena_destroy(arena);
}

static void the_longest_silent_is_named_and_all_are_to_blame(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_running(arena, some);
    core_now += 1;
    CORE_STEP(core, HEARD, .worker = 1);
    core_now += LEASE;
    CORE_STEP(core, HEARD, .worker = 2);
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_LEASE, 3);
    CHECK(pen_coordinator_core_is_missing(core, 1), "silent too");
    CHECK(!pen_coordinator_core_is_missing(core, 2), "it spoke");
    pen_arena_destroy(arena);
}

static void all_hear(pen_coordinator_core *core) {
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, HEARD, .worker = w);
    }
}

static void loading_has_a_deadline(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_assigned(arena, some);
    CORE_STEP(core, READY, .worker = 2);
    core_now += CORE_LOAD - 1;
    all_hear(core);
    core_tick(core);
    CHECK(core_action_count == 0, "not yet");
    core_now += 1;
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_LOAD, 1);
    CHECK(pen_coordinator_core_is_missing(core, 3) && !pen_coordinator_core_is_missing(core, 2),
          "who was not ready");
    pen_arena_destroy(arena);
}

// Each shard that becomes durable gives the others as much time again.
static void a_shard_that_is_not_written_ends_the_run(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_running(arena, some);
    CORE_STEP(core, SAVE, .step = 4);
    core_now += CORE_LOAD - 1;
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, SNAPPED, .worker = w, .step = 4);
    }
    core_now += CORE_WRITE - 1;
    all_hear(core);
    core_tick(core);
    CHECK(core_action_count == 0, "they write");
    CORE_STEP(core, SHARD, .worker = 1, .step = 4);
    core_now += CORE_WRITE - 1;
    all_hear(core);
    CORE_STEP(core, SHARD, .worker = 1, .step = 4); // again: it is known
    core_tick(core);
    CHECK(core_action_count == 0, "one has written");
    core_now += 1;
    all_hear(core);
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_WRITE, 2);
    CHECK(pen_coordinator_core_is_missing(core, 3) && !pen_coordinator_core_is_missing(core, 1),
          "who has not written");
    pen_arena_destroy(arena);
}

static void rounds_that_do_not_get_on_end_the_run(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_running(arena, some);
    core_now += 10 * PROGRESS;
    all_hear(core);
    core_tick(core);
    CHECK(core_action_count == 0, "nothing is under way");
    CORE_STEP(core, BEGIN, .count = 2, .updates = true);
    core_now += PROGRESS - 1;
    all_hear(core);
    core_tick(core);
    CHECK(core_action_count == 0, "it began from quiet");
    CORE_STEP(core, BEGIN, .count = 2, .updates = true);
    CORE_STEP(core, LOSS, .worker = 3, .round = 0, .microbatch = 0, .stage = 2);
    core_now += PROGRESS - 1;
    all_hear(core);
    CORE_STEP(core, LOSS, .worker = 3, .round = 0, .microbatch = 0, .stage = 2);
    core_tick(core);
    CHECK(core_action_count == 0, "a loss came");
    core_now += 1;
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_PROGRESS, 0);
    core = core_running(arena, some);
    run_round(core, 0);
    CORE_STEP(core, BEGIN, .count = 1, .updates = true);
    CORE_STEP(core, LOSS, .worker = 3, .round = 1, .stage = 2, .loss = {0x7ff0000000000000u, 0, 0});
    CHECK(CORE_COUNT(NOT_FINITE) == 1, "not finite");
    core_now += PROGRESS;
    all_hear(core);
    core_tick(core);
    CHECK(core_action_count == 0, "the driver knows why");
    pen_arena_destroy(arena);
}

// A long task is no lack of progress, until it is ten times too long.
static void what_computes_gets_on(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_running(arena, some);
    CORE_STEP(core, BEGIN, .count = 1, .updates = true);
    for (uint64_t ran = PROGRESS / 2; ran < 10 * PROGRESS; ran += PROGRESS / 2) {
        core_now += PROGRESS / 2;
        all_hear(core);
        CORE_STEP(core, COMPUTES, .worker = 2, .sequence = ran);
        core_tick(core);
        CHECK(core_action_count == 0, "after %u", (unsigned)ran);
    }
    CORE_STEP(core, COMPUTES, .worker = 2, .incarnation = 7, .sequence = 1);
    core_now += PROGRESS;
    all_hear(core);
    CORE_STEP(core, COMPUTES, .worker = 2, .sequence = 10 * PROGRESS);
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_PROGRESS, 0);
    pen_arena_destroy(arena);
}

static void without_deadlines_it_waits_for_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_coordinator_options options = {.generation = CORE_GENERATION, .self = core_identity};
    pen_coordinator_core *core;
    uint32_t limit;
    CHECK_OK(pen_coordinator_core_new(chain_run_table(arena, CORE_WORKERS, 4, 4), &options, arena,
                                      &core, &limit));
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        core_now += 100000;
        core_tick(core);
        CHECK(core_action_count == 0, "recruiting");
        CORE_STEP(core, HELLO, .worker = w);
    }
    CHECK(CORE_COUNT(ASSIGN) == CORE_WORKERS && CORE_COUNT(FENCE) == 0, "no fence is needed");
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        core_now += 100000;
        core_tick(core);
        CHECK(core_action_count == 0, "loading");
        CORE_STEP(core, READY, .worker = w);
    }
    CORE_STEP(core, BEGIN, .count = 1, .updates = true);
    core_now += 100000;
    core_tick(core);
    CHECK(core_action_count == 0, "running");
    core_now = 0;
    CORE_STEP(core, HEARD, .worker = 1);
    core_tick(core);
    CHECK(core_action_count == 0, "the clock never goes back");
    pen_arena_destroy(arena);
}

// ---- saves

static void check_save(const pen_coordinator_core *core, pen_coordinator_save_state expected) {
    uint64_t saved;
    const pen_coordinator_save_state found = pen_coordinator_core_save_state(core, &saved);
    CHECK(found == expected, "state %u, not %u", (unsigned)found, (unsigned)expected);
    CHECK(pen_coordinator_core_can_save(core) ==
              (expected == PEN_COORDINATOR_SAVE_NONE && pen_coordinator_core_is_quiet(core)),
          "whether another may begin");
    if (expected == PEN_COORDINATOR_SAVE_NONE) return;
    CHECK(saved == 20, "step %u", (unsigned)saved);
}

static pen_coordinator_core *snapping_core(pen_arena *arena) {
    pen_coordinator_core *core = core_running(arena, some);
    check_save(core, PEN_COORDINATOR_SAVE_NONE);
    CORE_STEP(core, SAVE, .step = 20);
    CHECK(core_action_count == CORE_WORKERS && CORE_COUNT(SNAPSHOT) == CORE_WORKERS, "to all");
    CHECK(core_actions[2].worker == 3 && core_actions[2].incarnation == 103 &&
              core_actions[2].step == 20,
          "who");
    check_save(core, PEN_COORDINATOR_SAVE_SNAPPING);
    return core;
}

static pen_coordinator_core *writing_core(pen_arena *arena) {
    pen_coordinator_core *core = snapping_core(arena);
    uint64_t round;
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CHECK(!pen_coordinator_core_can_begin(core, &round), "some have not copied");
        CORE_STEP(core, SNAPPED, .worker = w, .step = 20);
        CHECK(CORE_COUNT(SNAPPED) == (w == CORE_WORKERS ? 1u : 0u), "all have");
    }
    CHECK(core_action_count == 1 && core_actions[0].step == 20, "said once");
    CHECK(pen_coordinator_core_can_begin(core, &round), "training goes on");
    CORE_STEP(core, SNAPPED, .worker = 1, .step = 20);
    CHECK(core_action_count == 0, "again");
    check_save(core, PEN_COORDINATOR_SAVE_WRITING);
    return core;
}

static void a_checkpoint_is_published_when_all_shards_are_durable(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = writing_core(arena);
    CORE_STEP(core, SHARD, .worker = 2, .step = 20);
    run_round(core, 0);
    CORE_STEP(core, SHARD, .worker = 1, .step = 20);
    CORE_STEP(core, SHARD, .worker = 1, .step = 20, .code = PEN_IO);
    CHECK(core_action_count == 0, "again: what came first holds");
    check_save(core, PEN_COORDINATOR_SAVE_WRITING);
    CORE_STEP(core, SHARD, .worker = 3, .step = 20);
    CHECK(core_action_count == 1 && CORE_COUNT(PUBLISH) == 1 && core_actions[0].step == 20,
          "all are");
    check_save(core, PEN_COORDINATOR_SAVE_PUBLISHING);
    CORE_STEP(core, PUBLISHED, .step = 20);
    CHECK(core_action_count == CORE_WORKERS && CORE_COUNT(COMMITTED) == CORE_WORKERS,
          "all hear of it");
    CHECK(core_actions[1].worker == 2 && core_actions[1].step == 20 &&
              core_actions[1].incarnation == 102,
          "who");
    check_save(core, PEN_COORDINATOR_SAVE_NONE);
    CORE_STEP(core, SHARD, .worker = 2, .step = 20);
    CORE_STEP(core, SNAPPED, .worker = 2, .step = 20);
    CHECK(core_action_count == 0, "of what is over");
    CORE_STEP(core, SAVE, .step = 30);
    CHECK(CORE_COUNT(SNAPSHOT) == CORE_WORKERS, "the next");
    CORE_STEP(core, SHARD, .worker = 1, .step = 20, .sequence = core_order - 1);
    CHECK(core_action_count == 0 && !pen_coordinator_core_can_save(core), "of the one before");
    pen_arena_destroy(arena);
}

static void a_shard_that_fails_ends_the_save_alone(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = writing_core(arena);
    CORE_STEP(core, SHARD, .worker = 2, .step = 20, .code = PEN_IO);
    CHECK(core_action_count == 1 && CORE_COUNT(SAVE_FAILED) == 1, "it is said");
    CHECK(core_actions[0].worker == 2 && core_actions[0].step == 20, "of whom");
    check_save(core, PEN_COORDINATOR_SAVE_WRITING);
    CORE_STEP(core, SHARD, .worker = 1, .step = 20, .code = PEN_IO);
    CHECK(core_action_count == 0, "once");
    run_round(core, 0);
    CORE_STEP(core, SHARD, .worker = 3, .step = 20);
    CHECK(core_action_count == 0, "nothing is published");
    check_save(core, PEN_COORDINATOR_SAVE_NONE);
    CORE_STEP(core, SAVE, .step = 20);
    CHECK(CORE_COUNT(SNAPSHOT) == CORE_WORKERS, "it may be tried again");
    pen_arena_destroy(arena);
}

// What comes late or twice of a save that failed is not taken for word of the next save of that
// step: neither that something was copied, nor that a shard is there, nor that it failed again.
static void a_save_tried_again_hears_nothing_of_the_one_before(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = writing_core(arena);
    uint64_t round;
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, SHARD, .worker = w, .step = 20, .code = w == 2 ? PEN_IO : 0);
    }
    check_save(core, PEN_COORDINATOR_SAVE_NONE);
    const uint64_t before = core_order;
    CORE_STEP(core, SAVE, .step = 20);
    CHECK(core_order != before, "another order");
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, SNAPPED, .worker = w, .step = 20, .sequence = before);
        CORE_STEP(core, SHARD, .worker = w, .step = 20, .sequence = before,
                  .code = w == 2 ? PEN_IO : 0);
        CHECK(core_action_count == 0, "of the one before");
    }
    CHECK(!pen_coordinator_core_can_begin(core, &round), "nobody has copied");
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, SNAPPED, .worker = w, .step = 20);
        CORE_STEP(core, SHARD, .worker = w, .step = 20);
    }
    CHECK(CORE_COUNT(PUBLISH) == 1, "the second one is whole");
    CORE_STEP(core, SNAPPED, .worker = 1, .step = 20, .sequence = core_order + 1);
    core_check_failed(core, PEN_COORDINATOR_REASON_SAVE, 1);
    pen_arena_destroy(arena);
}

// A worker that cannot copy says so at once; the others copy and write to the end.
static void a_copy_that_fails_ends_the_save_alone(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = snapping_core(arena);
    uint64_t round;
    CORE_STEP(core, SNAPPED, .worker = 1, .step = 20);
    CORE_STEP(core, SHARD, .worker = 2, .step = 20, .code = PEN_OUT_OF_MEMORY);
    CHECK(CORE_COUNT(SAVE_FAILED) == 1 && core_actions[0].worker == 2, "it is said");
    CHECK(!pen_coordinator_core_can_begin(core, &round), "worker 3 still copies");
    CORE_STEP(core, SHARD, .worker = 1, .step = 20);
    CORE_STEP(core, SNAPPED, .worker = 3, .step = 20);
    CHECK(core_action_count == 1 && CORE_COUNT(SNAPPED) == 1, "rounds may begin");
    CHECK(pen_coordinator_core_can_begin(core, &round), "they may");
    CORE_STEP(core, SHARD, .worker = 3, .step = 20);
    CHECK(core_action_count == 0, "nothing is published");
    check_save(core, PEN_COORDINATOR_SAVE_NONE);
    pen_arena_destroy(arena);
}

static pen_coordinator_core *publishing_core(pen_arena *arena) {
    pen_coordinator_core *core = writing_core(arena);
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, SHARD, .worker = w, .step = 20);
    }
    CHECK(CORE_COUNT(PUBLISH) == 1, "publish");
    return core;
}

static void a_manifest_that_fails_is_given_up(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = publishing_core(arena);
    CORE_STEP(core, PUBLISHED, .step = 20, .code = PEN_IO);
    CHECK(core_action_count == 1 && CORE_COUNT(SAVE_FAILED) == 1 && core_actions[0].worker == 0,
          "it is said");
    check_save(core, PEN_COORDINATOR_SAVE_NONE);
    run_round(core, 0);
    core = publishing_core(arena);
    CORE_STEP(core, PUBLISHED, .step = 20, .code = PEN_CANCELLED);
    core_check_failed(core, PEN_COORDINATOR_REASON_SUPERSEDED, 0);
    pen_arena_destroy(arena);
}

static void copying_has_a_deadline(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = snapping_core(arena);
    CORE_STEP(core, SNAPPED, .worker = 1, .step = 20);
    core_now += CORE_LOAD - 1;
    all_hear(core);
    core_tick(core);
    CHECK(core_action_count == 0, "not yet");
    core_now += 1;
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_LOAD, 2);
    pen_arena_destroy(arena);
}

static void a_save_that_was_not_asked_for_ends_the_run(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_running(arena, some);
    CORE_STEP(core, SNAPPED, .worker = 2, .step = 0);
    core_check_failed(core, PEN_COORDINATOR_REASON_SAVE, 2);
    core = writing_core(arena);
    CORE_STEP(core, SHARD, .worker = 3, .step = 21);
    core_check_failed(core, PEN_COORDINATOR_REASON_SAVE, 3);
    core = writing_core(arena);
    CORE_STEP(core, LOST, .worker = 1);
    core_check_failed(core, PEN_COORDINATOR_REASON_LOST, 1);
    CHECK(!pen_coordinator_core_can_save(core), "over");
    CORE_STEP(core, SHARD, .worker = 3, .step = 20);
    CHECK(core_action_count == 0, "over");
    pen_arena_destroy(arena);
}

static void every_reason_and_refusal_has_a_text(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_new(arena, some);
    char text[256];
    for (uint32_t i = 0; i <= PEN_COORDINATOR_REASON_STORE; i++) {
        CHECK(strlen(pen_coordinator_reason_text((pen_coordinator_reason)i)) > 4, "reason %u", i);
        for (uint32_t j = 0; j < i; j++) {
            CHECK(strcmp(pen_coordinator_reason_text((pen_coordinator_reason)i),
                         pen_coordinator_reason_text((pen_coordinator_reason)j)) != 0,
                  "reasons %u and %u", i, j);
        }
    }
    for (uint32_t i = 0; i <= PEN_REFUSAL_TAKEN; i++) {
        pen_coordinator_refusal_format(core, 2, (pen_coordinator_refusal)i, &core_identity, text,
                                       sizeof text);
        CHECK(strstr(text, "worker 2") != NULL, "refusal %u: %s", i, text);
    }
    pen_coordinator_identity small = core_identity;
    small.device_count = 1;
    const pen_coordinator_event event = {
        .kind = PEN_COORDINATOR_EVENT_HELLO, .worker = 1, .incarnation = 1, .identity = &small};
    pen_coordinator_core_step(core, &event, core_actions, &core_action_count);
    CHECK(core_action_count == 0, "one device is enough");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(nobody_is_assigned_before_the_fence),
              cmocka_unit_test(a_fence_that_fails_ends_the_run),
              cmocka_unit_test(a_worker_lost_at_the_fence_may_come_again),
              cmocka_unit_test(a_silent_worker_is_lost),
              cmocka_unit_test(the_longest_silent_is_named_and_all_are_to_blame),
              cmocka_unit_test(loading_has_a_deadline),
              cmocka_unit_test(a_shard_that_is_not_written_ends_the_run),
              cmocka_unit_test(rounds_that_do_not_get_on_end_the_run),

              cmocka_unit_test(what_computes_gets_on),
              cmocka_unit_test(without_deadlines_it_waits_for_ever),
              cmocka_unit_test(a_checkpoint_is_published_when_all_shards_are_durable),
              cmocka_unit_test(a_shard_that_fails_ends_the_save_alone),
              cmocka_unit_test(a_save_tried_again_hears_nothing_of_the_one_before),
              cmocka_unit_test(a_copy_that_fails_ends_the_save_alone),
              cmocka_unit_test(a_manifest_that_fails_is_given_up),
              cmocka_unit_test(copying_has_a_deadline),
              cmocka_unit_test(a_save_that_was_not_asked_for_ends_the_run),
              cmocka_unit_test(every_reason_and_refusal_has_a_text))
