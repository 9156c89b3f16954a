// Deadlines of the coordinator core that have no other home: the commit log's, and that of pieces.
#include "scheduler/protocol/coordinator_core.h"

#include "tests/support/check.h"
#include "tests/support/random_run_table.h"

#define WORKERS 3
#define GENERATION 5
#define LOAD 400
#define WRITE 700

static pen_coordinator_action actions[1024];
static uint32_t action_count;
static uint64_t now;

static const pen_coordinator_identity ours = {.protocol = 1, .build = "0.1.0", .isa = "v3"};

#define STEP(core, name, ...)                                                                      \
    step((core), (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_##name, __VA_ARGS__})

static void step(pen_coordinator_core *core, pen_coordinator_event event) {
    event.generation = GENERATION;
    event.incarnation = event.worker + 100;
    event.identity = &ours;
    event.now = now;
    pen_coordinator_core_step(core, &event, actions, &action_count);
}

static void tick(pen_coordinator_core *core) {
    STEP(core, TICK, .code = 0);
}

static uint32_t count_of(pen_coordinator_action_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < action_count; i++) {
        if (actions[i].kind == kind) count++;
    }
    return count;
}
#define COUNT(name) count_of(PEN_COORDINATOR_ACTION_##name)

static void check_failed(pen_coordinator_core *core, pen_coordinator_reason reason,
                         uint32_t worker) {
    CHECK(COUNT(FAIL) == 1, "%u of %u actions", COUNT(FAIL), action_count);
    for (uint32_t i = 0; i < action_count; i++) {
        if (actions[i].kind != PEN_COORDINATOR_ACTION_FAIL) continue;
        CHECK(actions[i].reason == reason, "%s", pen_coordinator_reason_text(actions[i].reason));
        CHECK(actions[i].worker == worker, "worker %u", actions[i].worker);
    }
    CHECK(pen_coordinator_core_state(core) == PEN_COORDINATOR_DONE, "over");
}

static pen_coordinator_core *fencing_core(pen_arena *arena) {
    const pen_coordinator_options options = {.generation = GENERATION,
                                             .self = ours,
                                             .deadline = 10000,
                                             .load = LOAD,
                                             .write = WRITE,
                                             .needs_fence = true};
    pen_coordinator_core *core;
    uint32_t limit;
    now = 1000;
    CHECK_OK(pen_coordinator_core_new(chain_run_table(arena, WORKERS, 4, 4), &options, arena, &core,
                                      &limit));
    for (uint32_t w = 1; w <= WORKERS; w++) {
        STEP(core, HELLO, .worker = w);
    }
    CHECK(COUNT(FENCE) == 1, "all are here: fence");
    return core;
}

static pen_coordinator_core *running_core(pen_arena *arena) {
    pen_coordinator_core *core = fencing_core(arena);
    STEP(core, FENCED, .code = 0);
    for (uint32_t w = 1; w <= WORKERS; w++) {
        STEP(core, READY, .worker = w);
    }
    CHECK(COUNT(RUNNING) == 1, "running");
    return core;
}

// A disk that does not answer holds nobody for ever. What it says later changes nothing.
static void the_commit_log_has_deadlines(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = fencing_core(arena);
    now += WRITE;
    tick(core);
    check_failed(core, PEN_COORDINATOR_REASON_STORE, 0);
    CHECK(COUNT(STOP) == WORKERS, "who came is let go");
    STEP(core, FENCED, .code = 0);
    CHECK(action_count == 0, "too late");
    core = running_core(arena);
    STEP(core, SAVE, .step = 4);
    now += 10;
    for (uint32_t w = 1; w <= WORKERS; w++) {
        STEP(core, SHARD, .worker = w, .step = 4);
    }
    CHECK(COUNT(PUBLISH) == 1, "all shards are durable");
    now += WRITE - 1;
    tick(core);
    CHECK(action_count == 0, "not yet");
    STEP(core, OWED, .worker = 0); // nobody is at the log yet
    now += WRITE - 1;
    tick(core);
    CHECK(action_count == 0, "it began anew");
    now += 1;
    tick(core);
    check_failed(core, PEN_COORDINATOR_REASON_STORE, 0);
    STEP(core, PUBLISHED, .step = 4);
    CHECK(action_count == 0, "too late");
    pen_arena_destroy(arena);
}

// Parameters before the first round, for example. Counted by two threads, in any order.
static void pieces_have_a_deadline(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_coordinator_core *core = running_core(arena);
    STEP(core, OWED, .worker = 1, .sequence = 1);
    STEP(core, OWED, .worker = 1, .count = 1);
    STEP(core, OWED, .worker = 3, .count = 2);
    now += LOAD - 1;
    STEP(core, OWED, .worker = 3, .sequence = 1);
    STEP(core, OWED, .worker = 2, .count = 1);
    now += LOAD - 1;
    tick(core);
    CHECK(action_count == 0, "one came");
    now += 1;
    STEP(core, OWED, .worker = 2, .sequence = 1);
    tick(core);
    check_failed(core, PEN_COORDINATOR_REASON_PIECE, 3);
    CHECK(!pen_coordinator_core_is_missing(core, 1) && !pen_coordinator_core_is_missing(core, 2),
          "who owes nothing");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(the_commit_log_has_deadlines),
              cmocka_unit_test(pieces_have_a_deadline))
