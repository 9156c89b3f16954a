// What the coordinator does, without doing it: events in, actions out. No I/O, threads, clock or
// heap; time comes inside the events. The driver (runtime/coordinator.c), plan admission and the
// simulator drive the same code.
//
//   RECRUIT ──all workers are here──► ASSIGN ──all are ready──► RUN ──stop──► DONE
//      │                                │                        │             ▲
//      └──────── deadline, a worker lost, a worker's fault ──────┴─────────────┘
//
// In RUN it announces the rounds that the driver begins, feeds the host's channels as credit comes,
// gathers losses, and says `go` when those of a round and of all rounds before it are finite. A
// round of another form is announced when all before it are done. A loss of a training form that is
// not finite means that no update follows: `go` is not given any more.
//
// Threads: one at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_COORDINATOR_CORE_H
#define PEN_SCHEDULER_PROTOCOL_COORDINATOR_CORE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/run_table.h"

#define PEN_COORDINATOR_ROUND_LIMIT 8 // begun and not done
#define PEN_COORDINATOR_NAME_BYTES 128

typedef struct pen_coordinator_core pen_coordinator_core;

// Of a process: what it runs.
typedef struct pen_coordinator_identity {
    uint32_t protocol;
    uint32_t device_count; // that it can run, 0: any
    uint64_t plan_hash;    // 0: none yet
    char build[PEN_COORDINATOR_NAME_BYTES];
    char isa[PEN_COORDINATOR_NAME_BYTES];
} pen_coordinator_identity;

typedef struct pen_coordinator_options {
    uint64_t generation;           // at least 1
    uint64_t first_round;          //
    pen_coordinator_identity self; // what workers must run too
    bool allows_other_build;
    bool allows_other_isa; // results may differ in their last bits
    uint64_t deadline;     // when all workers must be here, on the clock of the events; 0: never
} pen_coordinator_options;

// Events of a worker carry its number and incarnation; what another incarnation says changes
// nothing.
typedef enum pen_coordinator_event_kind {
    PEN_COORDINATOR_EVENT_HELLO,      // worker, incarnation, identity
    PEN_COORDINATOR_EVENT_READY,      // worker, incarnation, generation
    PEN_COORDINATOR_EVENT_LOSS,       // worker, incarnation, generation, round, microbatch, stage,
                                      // loss
    PEN_COORDINATOR_EVENT_ROUND_DONE, // worker, incarnation, generation, round
    PEN_COORDINATOR_EVENT_CREDIT,     // worker, incarnation, generation, form, channel, sequence
    PEN_COORDINATOR_EVENT_FAILED,     // worker, incarnation: it says that it cannot go on
    PEN_COORDINATOR_EVENT_LOST,       // worker, incarnation: its link is down
    PEN_COORDINATOR_EVENT_LET_GO,     // form, channel, sequence: the memory is no longer read
    PEN_COORDINATOR_EVENT_BEGIN,      // form, count, updates: the next round
    PEN_COORDINATOR_EVENT_TICK,       // now
    PEN_COORDINATOR_EVENT_STOP,       //
} pen_coordinator_event_kind;

typedef struct pen_coordinator_loss {
    uint64_t value; // bits of a double
    uint64_t correct_count;
    uint64_t target_count;
} pen_coordinator_loss;

typedef struct pen_coordinator_event {
    pen_coordinator_event_kind kind;
    uint32_t worker;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t round;
    uint64_t sequence;
    uint64_t now;
    uint32_t form;
    uint32_t count;
    uint32_t channel;
    uint32_t microbatch;
    uint32_t stage;
    bool updates;
    pen_coordinator_loss loss;
    const pen_coordinator_identity *identity;
} pen_coordinator_event;

typedef enum pen_coordinator_action_kind {
    PEN_COORDINATOR_ACTION_REFUSE,     // worker, incarnation, refusal
    PEN_COORDINATOR_ACTION_ASSIGN,     // worker, incarnation, generation
    PEN_COORDINATOR_ACTION_START,      // worker
    PEN_COORDINATOR_ACTION_ROUND,      // worker, round, form, count, updates
    PEN_COORDINATOR_ACTION_GO,         // worker, round
    PEN_COORDINATOR_ACTION_FEED,       // form, channel, round, microbatch, sequence: send it. Its
                                       // place at the host, microbatch mod copies, is free
    PEN_COORDINATOR_ACTION_RUNNING,    // all workers are started: rounds may begin
    PEN_COORDINATOR_ACTION_LOSSES,     // round: all are here, and finite if the form trains
    PEN_COORDINATOR_ACTION_NOT_FINITE, // round, microbatch, stage: there will be no `go`
    PEN_COORDINATOR_ACTION_ROUND_DONE, // round: after its LOSSES; everywhere
    PEN_COORDINATOR_ACTION_STOP,       // worker
    PEN_COORDINATOR_ACTION_FAIL,       // reason, worker (0: see is_present): the run is over
} pen_coordinator_action_kind;

typedef enum pen_coordinator_refusal {
    PEN_REFUSAL_NONE,
    PEN_REFUSAL_WORKER,   // there is no such worker
    PEN_REFUSAL_PROTOCOL, //
    PEN_REFUSAL_BUILD,    //
    PEN_REFUSAL_ISA,      //
    PEN_REFUSAL_PLAN,     // it has another plan
    PEN_REFUSAL_DEVICES,  // it can run fewer than it should
    PEN_REFUSAL_TAKEN,    // another process is this worker
} pen_coordinator_refusal;

typedef enum pen_coordinator_reason {
    PEN_COORDINATOR_REASON_NONE,
    PEN_COORDINATOR_REASON_MISSING, // at the deadline
    PEN_COORDINATOR_REASON_LOST,    //
    PEN_COORDINATOR_REASON_FAILED,  // it said so
    PEN_COORDINATOR_REASON_LOSS,    // it gave two different losses, or one of no microbatch
    PEN_COORDINATOR_REASON_CREDIT,  // it gave a credit for what was not sent
    PEN_COORDINATOR_REASON_ROUND,   // it ended a round that it was not given
} pen_coordinator_reason;

typedef struct pen_coordinator_action {
    pen_coordinator_action_kind kind;
    uint32_t worker;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t round;
    uint64_t sequence;
    uint32_t form;
    uint32_t count;
    uint32_t channel;
    uint32_t microbatch;
    uint32_t stage;
    bool updates;
    pen_coordinator_refusal refusal;
    pen_coordinator_reason reason;
} pen_coordinator_action;

// `table` was checked and outlives the core. *out_action_limit: the most actions of one step.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_coordinator_core_new(const pen_run_table *table,
                                                  const pen_coordinator_options *options,
                                                  pen_arena *arena, pen_coordinator_core **out_core,
                                                  uint32_t *out_action_limit);

// Takes an event; writes the actions that follow to out_actions, to be carried out in order. BEGIN
// needs a form of the table, a count and updates that it allows, and
// pen_coordinator_core_can_begin.
void pen_coordinator_core_step(pen_coordinator_core *core, const pen_coordinator_event *event,
                               pen_coordinator_action *out_actions, uint32_t *out_action_count);

// Whether BEGIN may come now, and the number that its round will have.
bool pen_coordinator_core_can_begin(const pen_coordinator_core *core, uint64_t *out_round);

// Whether no round is under way.
bool pen_coordinator_core_is_quiet(const pen_coordinator_core *core);

bool pen_coordinator_core_is_present(const pen_coordinator_core *core, uint32_t worker);

// A loss of the last PEN_COORDINATOR_ROUND_LIMIT rounds; NULL: not here (yet).
const pen_coordinator_loss *pen_coordinator_core_find_loss(const pen_coordinator_core *core,
                                                           uint64_t round, uint32_t microbatch,
                                                           uint32_t stage);

// "worker 2 runs build '0.2.0', the coordinator '0.1.0'". `identity` is what the worker said.
void pen_coordinator_refusal_format(const pen_coordinator_core *core, uint32_t worker,
                                    pen_coordinator_refusal refusal,
                                    const pen_coordinator_identity *identity, char *out_text,
                                    size_t size);

// "its link is down"
const char *pen_coordinator_reason_text(pen_coordinator_reason reason);

#endif // PEN_SCHEDULER_PROTOCOL_COORDINATOR_CORE_H
