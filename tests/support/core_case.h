// A coordinator core of three workers in a chain, each with a place to write to, and what it said
// last. For tests of what it does with events and with time.
//
// Threads: one.
#ifndef PEN_TESTS_SUPPORT_CORE_CASE_H
#define PEN_TESTS_SUPPORT_CORE_CASE_H

#include "scheduler/protocol/coordinator_core.h"

#define CORE_WORKERS 3
#define CORE_GENERATION 5
#define CORE_LOAD 400
#define CORE_WRITE 700

extern pen_coordinator_action core_actions[1024]; // of the last step
extern uint32_t core_action_count;
extern uint64_t core_order;                          // to save: the last one that was given
extern uint64_t core_now;                            // of the next step; a test moves it
extern const pen_coordinator_identity core_identity; // of the coordinator, and of all who come

// A step of this generation, where the event names none, and of the worker's own incarnation; what
// a worker says of a save is of the last order, unless the event names another.
void core_step(pen_coordinator_core *core, pen_coordinator_event event);
#define CORE_STEP(core, name, ...)                                                                 \
    core_step((core), (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_##name, __VA_ARGS__})
void core_tick(pen_coordinator_core *core);

uint32_t core_count_of(pen_coordinator_action_kind kind);
#define CORE_COUNT(name) core_count_of(PEN_COORDINATOR_ACTION_##name)
// The last step ended the run for this reason, because of this worker (0: of nobody).
void core_check_failed(pen_coordinator_core *core, pen_coordinator_reason reason, uint32_t worker);

// 0: never.
typedef struct core_patience {
    uint64_t lease;
    uint64_t progress;
} core_patience;

pen_coordinator_core *core_new(pen_arena *arena, core_patience patience);
// All workers are there, and the fence was asked for; it is durable; all are ready.
pen_coordinator_core *core_fencing(pen_arena *arena, core_patience patience);
pen_coordinator_core *core_assigned(pen_arena *arena, core_patience patience);
pen_coordinator_core *core_running(pen_arena *arena, core_patience patience);

#endif // PEN_TESTS_SUPPORT_CORE_CASE_H
