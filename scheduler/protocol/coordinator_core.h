// The contract of coordinator_*.c: the core of a generation, seen from outside.
//
// What the coordinator does, without doing it: events in, actions out. No I/O, threads, clock or
// heap. The driver (runtime/coordinator/), plan admission and the simulator drive the same code.
//
//   RECRUIT ──all are here──► FENCE ──durable──► ASSIGN ──all are ready──► RUN ──stop──► DONE
//    │   ▲                       │                 │                        │            ▲
//    │   └──── a worker lost ────┘                 │                        │            │
//    └── deadline, a lease over, a worker lost, a worker's fault, superseded ────────────┘
//
// FENCE is passed over where it is not needed. A worker lost in RECRUIT or FENCE may come again;
// the fence stays valid. Later the run is over: recovery is a new generation, with a new core.
//
// In RUN it announces the rounds that the driver begins, feeds the host's channels as credit comes,
// gathers losses, and says `go` when those of a round and of all rounds before it are finite. A
// round of another form is announced when all before it are done. A loss of a training form that is
// not finite means that `go` is not given any more, unless updates skip such a step by themselves.
// Where gradients are told of, it waits for all of the step, and says in which order lanes came.
//
// A save is a state within RUN, one at a time. It begins between rounds; rounds may go on when all
// workers have copied their tensors. The manifest is published when all shards are durable, and the
// workers are told when it is. A save that fails ends alone, but not before every worker is done
// with its part, so that the next finds them free.
//
//   NONE ──save──► SNAPPING ──all copied──► WRITING ──all durable──► PUBLISHING ──published──► NONE
//
// Threads: one at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_COORDINATOR_CORE_H
#define PEN_SCHEDULER_PROTOCOL_COORDINATOR_CORE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/arrivals.h"
#include "graph/lanes.h"
#include "scheduler/protocol/run_table.h"

#define PEN_COORDINATOR_ROUND_LIMIT 8 // begun and not done
#define PEN_COORDINATOR_NAME_BYTES 128

typedef struct pen_coordinator_core pen_coordinator_core;

typedef enum pen_coordinator_state {
    PEN_COORDINATOR_RECRUIT,
    PEN_COORDINATOR_FENCE,
    PEN_COORDINATOR_ASSIGN,
    PEN_COORDINATOR_RUN,
    PEN_COORDINATOR_DONE,
} pen_coordinator_state;

typedef enum pen_coordinator_save_state {
    PEN_COORDINATOR_SAVE_NONE,
    PEN_COORDINATOR_SAVE_SNAPPING,
    PEN_COORDINATOR_SAVE_WRITING,
    PEN_COORDINATOR_SAVE_PUBLISHING,
} pen_coordinator_save_state;

// Of a process: what it runs.
typedef struct pen_coordinator_identity {
    uint32_t protocol;
    uint32_t device_count;               // that it can run, 0: any
    uint64_t plan_hash;                  // 0: none yet
    uint64_t memory_bytes, needed_bytes; // that it may use, that the plan takes; 0: not known
    char build[PEN_COORDINATOR_NAME_BYTES];
    char isa[PEN_COORDINATOR_NAME_BYTES];
} pen_coordinator_identity;

typedef struct pen_coordinator_options {
    uint64_t generation; // at least 1
    uint64_t first_round;
    pen_coordinator_identity self; // what workers must run too
    bool allows_other_build;
    bool allows_other_isa; // results may differ in their last bits
    // The deadlines, beside links that go down. In the unit of the events' `now`; 0: never.
    uint64_t deadline; // when all workers must be here
    uint64_t lease;    // a worker of which nothing was heard for so long is lost
    uint64_t progress; // rounds under way, and nothing came of them for so long: the run is stuck
    uint64_t load;     // for workers to load, to copy their tensors aside, to take what is sent
    uint64_t write;    // for a shard to become durable, since all were copied or another one did;
                       // for the fence, and for a manifest
    bool needs_fence;  // the generation is to be made durable before anybody is assigned to it
    pen_lanes lanes;   // of which gradients are told; at most PEN_ARRIVALS_LANES
} pen_coordinator_options;

// Every event carries `now`. Those of a worker carry its number and incarnation; what another
// incarnation says changes nothing, and what is known to be its own counts as a sign of life.
typedef enum pen_coordinator_event_kind {
    PEN_COORDINATOR_EVENT_HELLO, // worker, incarnation, identity
    // of a worker: worker, incarnation, generation
    PEN_COORDINATOR_EVENT_READY,
    PEN_COORDINATOR_EVENT_LOSS,       // round, microbatch, stage, loss
    PEN_COORDINATOR_EVENT_ROUND_DONE, // round
    PEN_COORDINATOR_EVENT_CREDIT,     // form, channel, sequence
    PEN_COORDINATOR_EVENT_SNAPPED,    // step, sequence of the order
    PEN_COORDINATOR_EVENT_SHARD,      // likewise, code: 0 the shard is durable, else it is not
    PEN_COORDINATOR_EVENT_GRADIENT,   // round, microbatch, stage
    // of a worker: worker, incarnation
    PEN_COORDINATOR_EVENT_COMPUTES, // sequence: for so long its longest task runs: progress, up to
                                    // ten times the limit of that
    PEN_COORDINATOR_EVENT_HEARD,    // any message of it that is no event, or a beat
    PEN_COORDINATOR_EVENT_FAILED,   // it says that it cannot go on
    PEN_COORDINATOR_EVENT_LOST,     // its link is down
    // of the driver
    PEN_COORDINATOR_EVENT_LET_GO,    // form, channel, sequence: the memory is no longer read
    PEN_COORDINATOR_EVENT_FENCED,    // code of the append that FENCE asked for
    PEN_COORDINATOR_EVENT_BEGIN,     // form, count, updates, microbatch (of the step, the first
                                     // that it has), order (0: as lanes come): the next round
    PEN_COORDINATOR_EVENT_SAVE,      // step
    PEN_COORDINATOR_EVENT_PUBLISHED, // step, code of the append that PUBLISH asked for
    PEN_COORDINATOR_EVENT_TICK,
    PEN_COORDINATOR_EVENT_STOP,
    PEN_COORDINATOR_EVENT_OWED, // worker, count: pieces that it was sent or is asked for now;
                                // sequence: those that are there now. Worker 0: PUBLISH must wait
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
    uint64_t step; // of the training: steps done
    pen_arrivals_order order;
    uint32_t form, count, channel;
    uint32_t microbatch, stage;
    uint32_t code; // a pen_status_code, 0: it went well
    bool updates;
    pen_coordinator_loss loss;
    const pen_coordinator_identity *identity;
} pen_coordinator_event;

typedef enum pen_coordinator_action_kind {
    PEN_COORDINATOR_ACTION_REFUSE,      // worker, incarnation, refusal
    PEN_COORDINATOR_ACTION_ASSIGN,      // worker, incarnation, generation
    PEN_COORDINATOR_ACTION_START,       // worker
    PEN_COORDINATOR_ACTION_ROUND,       // worker, round, form, count, updates
    PEN_COORDINATOR_ACTION_GO,          // worker, round, order
    PEN_COORDINATOR_ACTION_FEED,        // form, channel, round, microbatch, sequence: send it. Its
                                        // place at the host, microbatch mod copies, is free
    PEN_COORDINATOR_ACTION_RUNNING,     // all workers are started: rounds may begin
    PEN_COORDINATOR_ACTION_LOSSES,      // round: all are here, and finite as far as `go` asks
    PEN_COORDINATOR_ACTION_NOT_FINITE,  // round, microbatch, stage: there will be no `go`
    PEN_COORDINATOR_ACTION_ROUND_DONE,  // round: after its LOSSES; everywhere
    PEN_COORDINATOR_ACTION_FENCE,       // generation: append it to the commit log; then FENCED
    PEN_COORDINATOR_ACTION_SNAPSHOT,    // worker, step, sequence: of this order to save, from 1 on
    PEN_COORDINATOR_ACTION_SNAPPED,     // step: all have copied, rounds may begin
    PEN_COORDINATOR_ACTION_PUBLISH,     // step: append the manifest of all shards; then PUBLISHED
    PEN_COORDINATOR_ACTION_COMMITTED,   // worker, step: tell it
    PEN_COORDINATOR_ACTION_SAVE_FAILED, // step, worker (0: the commit log): there will be no
                                        // checkpoint of this step; the run goes on
    PEN_COORDINATOR_ACTION_STOP,        // worker
    PEN_COORDINATOR_ACTION_FAIL,        // reason, worker (0: see is_present): the run is over
} pen_coordinator_action_kind;

typedef enum pen_coordinator_refusal {
    PEN_REFUSAL_NONE,
    PEN_REFUSAL_WORKER, // there is no such worker
    PEN_REFUSAL_PROTOCOL,
    PEN_REFUSAL_BUILD,
    PEN_REFUSAL_ISA,
    PEN_REFUSAL_PLAN,    // it has another plan
    PEN_REFUSAL_DEVICES, // it can run fewer than it should
    PEN_REFUSAL_MEMORY,  // it may use less memory than the plan takes there
    PEN_REFUSAL_TAKEN,   // another process is this worker
} pen_coordinator_refusal;

typedef enum pen_coordinator_reason {
    PEN_COORDINATOR_REASON_NONE,
    PEN_COORDINATOR_REASON_MISSING, // at the deadline
    PEN_COORDINATOR_REASON_LOST,
    PEN_COORDINATOR_REASON_FAILED,     // it said so
    PEN_COORDINATOR_REASON_LOSS,       // it gave two different losses, or what is of no microbatch
    PEN_COORDINATOR_REASON_CREDIT,     // it gave a credit for what was not sent
    PEN_COORDINATOR_REASON_ROUND,      // it ended a round that it was not given
    PEN_COORDINATOR_REASON_SAVE,       // it speaks of a save that it was not told of
    PEN_COORDINATOR_REASON_LEASE,      // nothing was heard of it
    PEN_COORDINATOR_REASON_PROGRESS,   // rounds under way do not get on; worker 0: nobody knows why
    PEN_COORDINATOR_REASON_LOAD,       // it did not get ready in time
    PEN_COORDINATOR_REASON_WRITE,      // its shard did not become durable in time
    PEN_COORDINATOR_REASON_SUPERSEDED, // a coordinator of a higher generation is there
    PEN_COORDINATOR_REASON_STORE,      // the commit log could not be written, or not in time
    PEN_COORDINATOR_REASON_PIECE,      // it did not take or give a piece in time
} pen_coordinator_reason;

typedef struct pen_coordinator_action {
    pen_coordinator_action_kind kind;
    uint32_t worker;
    uint64_t incarnation;
    uint64_t generation;
    uint64_t round;
    uint64_t sequence;
    uint64_t step;
    pen_arrivals_order order;
    uint32_t form, count, channel;
    uint32_t microbatch, stage;
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
// pen_coordinator_core_can_begin; SAVE needs pen_coordinator_core_can_save.
void pen_coordinator_core_step(pen_coordinator_core *core, const pen_coordinator_event *event,
                               pen_coordinator_action *out_actions, uint32_t *out_action_count);

// Whether BEGIN may come now, and the number that its round will have.
bool pen_coordinator_core_can_begin(const pen_coordinator_core *core, uint64_t *out_round);
bool pen_coordinator_core_is_quiet(const pen_coordinator_core *core);
// Whether SAVE may come now: no round and no other save is under way.
bool pen_coordinator_core_can_save(const pen_coordinator_core *core);
pen_coordinator_state pen_coordinator_core_state(const pen_coordinator_core *core);
// *out_step: of the save that is under way.
pen_coordinator_save_state pen_coordinator_core_save_state(const pen_coordinator_core *core,
                                                           uint64_t *out_step);
bool pen_coordinator_core_is_present(const pen_coordinator_core *core, uint32_t worker);
// Whether a worker is not here, or the run failed because of it.
bool pen_coordinator_core_is_missing(const pen_coordinator_core *core, uint32_t worker);

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
