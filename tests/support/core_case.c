#include "tests/support/core_case.h"

#include "tests/support/check.h"
#include "tests/support/random_run_table.h"

pen_coordinator_action core_actions[1024];
uint32_t core_action_count;
uint64_t core_order;
uint64_t core_now;

const pen_coordinator_identity core_identity = {.protocol = 1, .build = "0.1.0", .isa = "v3"};

pen_coordinator_core *core_new(pen_arena *arena, core_patience patience) {
    const pen_coordinator_options options = {.generation = CORE_GENERATION,
                                             .self = core_identity,
                                             .deadline = 10000,
                                             .lease = patience.lease,
                                             .progress = patience.progress,
                                             .load = CORE_LOAD,
                                             .write = CORE_WRITE,
                                             .needs_fence = true};
    pen_coordinator_core *core;
    uint32_t limit;
    core_now = 1000;
    core_order = 0;
    CHECK_OK(pen_coordinator_core_new(chain_run_table(arena, CORE_WORKERS, 4, 4), &options, arena,
                                      &core, &limit));
    CHECK(limit <= 1024, "%u", limit);
    return core;
}

void core_step(pen_coordinator_core *core, pen_coordinator_event event) {
    event.generation = event.generation == 0 ? CORE_GENERATION : event.generation;
    event.incarnation = event.incarnation == 0 ? event.worker + 100 : event.incarnation;
    event.identity = &core_identity;
    event.now = core_now;
    const bool is_of_save =
        event.kind == PEN_COORDINATOR_EVENT_SNAPPED || event.kind == PEN_COORDINATOR_EVENT_SHARD;
    if (is_of_save && event.sequence == 0) event.sequence = core_order;
    pen_coordinator_core_step(core, &event, core_actions, &core_action_count);
    for (uint32_t i = 0; i < core_action_count; i++) {
        if (core_actions[i].kind != PEN_COORDINATOR_ACTION_SNAPSHOT) continue;
        core_order = core_actions[i].sequence;
    }
}

void core_tick(pen_coordinator_core *core) {
    CORE_STEP(core, TICK, .code = 0);
}

uint32_t core_count_of(pen_coordinator_action_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < core_action_count; i++) {
        if (core_actions[i].kind == kind) count++;
    }
    return count;
}

void core_check_failed(pen_coordinator_core *core, pen_coordinator_reason reason, uint32_t worker) {
    CHECK(CORE_COUNT(FAIL) == 1, "%u of %u actions", CORE_COUNT(FAIL), core_action_count);
    for (uint32_t i = 0; i < core_action_count; i++) {
        const pen_coordinator_action *action = &core_actions[i];
        if (action->kind != PEN_COORDINATOR_ACTION_FAIL) continue;
        CHECK(action->reason == reason, "%s", pen_coordinator_reason_text(action->reason));
        CHECK(action->worker == worker, "worker %u", action->worker);
    }
    CHECK(pen_coordinator_core_state(core) == PEN_COORDINATOR_DONE, "over");
    if (worker > 0) CHECK(pen_coordinator_core_is_missing(core, worker), "to blame");
}

pen_coordinator_core *core_fencing(pen_arena *arena, core_patience patience) {
    pen_coordinator_core *core = core_new(arena, patience);
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CHECK(pen_coordinator_core_is_missing(core, w), "not here yet");
        CORE_STEP(core, HELLO, .worker = w);
        CHECK(core_action_count == (w == CORE_WORKERS ? 1u : 0u), "%u actions", core_action_count);
    }
    CHECK(CORE_COUNT(FENCE) == 1 && core_actions[0].generation == CORE_GENERATION, "fence");
    CHECK(pen_coordinator_core_state(core) == PEN_COORDINATOR_FENCE, "the state");
    return core;
}

pen_coordinator_core *core_assigned(pen_arena *arena, core_patience patience) {
    pen_coordinator_core *core = core_fencing(arena, patience);
    CORE_STEP(core, FENCED, .code = 0);
    CHECK(core_action_count == CORE_WORKERS && CORE_COUNT(ASSIGN) == CORE_WORKERS, "assign");
    return core;
}

pen_coordinator_core *core_running(pen_arena *arena, core_patience patience) {
    pen_coordinator_core *core = core_assigned(arena, patience);
    for (uint32_t w = 1; w <= CORE_WORKERS; w++) {
        CORE_STEP(core, READY, .worker = w);
    }
    CHECK(CORE_COUNT(RUNNING) == 1, "running");
    return core;
}
