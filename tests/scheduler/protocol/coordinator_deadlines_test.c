// Deadlines of the coordinator core that have no other home: the commit log's, and that of pieces.
#include "tests/support/check.h"
#include "tests/support/core_case.h"

// A disk that does not answer holds nobody for ever. What it says later changes nothing.
static void the_commit_log_has_deadlines(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_fencing(arena, (core_patience){0});
    core_now += CORE_WRITE;
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_STORE, 0);
    CHECK(CORE_COUNT(STOP) == CORE_WORKERS, "who came is let go");
    CORE_STEP(core, FENCED, .code = 0);
    CHECK(core_action_count == 0, "too late");
    core = core_running(arena, (core_patience){0});
    CORE_STEP(core, SAVE, .step = 4);
    core_now += 10;
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, SHARD, .worker = w, .step = 4);
    }
    CHECK(CORE_COUNT(PUBLISH) == 1, "all shards are durable");
    core_now += CORE_WRITE - 1;
    core_tick(core);
    CHECK(core_action_count == 0, "not yet");
    CORE_STEP(core, OWED, .worker = 0); // nobody is at the log yet
    core_now += CORE_WRITE - 1;
    core_tick(core);
    CHECK(core_action_count == 0, "it began anew");
    core_now += 1;
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_STORE, 0);
    CORE_STEP(core, PUBLISHED, .step = 4);
    CHECK(core_action_count == 0, "too late");
    pen_arena_destroy(arena);
}

// Parameters before the first round, for example. Counted by two threads, in any order.
static void pieces_have_a_deadline(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = core_running(arena, (core_patience){0});
    CORE_STEP(core, OWED, .worker = 1, .sequence = 1);
    CORE_STEP(core, OWED, .worker = 1, .count = 1);
    CORE_STEP(core, OWED, .worker = 3, .count = 2);
    core_now += CORE_LOAD - 1;
    CORE_STEP(core, OWED, .worker = 3, .sequence = 1);
    CORE_STEP(core, OWED, .worker = 2, .count = 1);
    core_now += CORE_LOAD - 1;
    core_tick(core);
    CHECK(core_action_count == 0, "one came");
    core_now += 1;
    CORE_STEP(core, OWED, .worker = 2, .sequence = 1);
    core_tick(core);
    core_check_failed(core, PEN_COORDINATOR_REASON_PIECE, 3);
    CHECK(!pen_coordinator_core_is_missing(core, 1) && !pen_coordinator_core_is_missing(core, 2),
          "who owes nothing");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(the_commit_log_has_deadlines),
              cmocka_unit_test(pieces_have_a_deadline))
