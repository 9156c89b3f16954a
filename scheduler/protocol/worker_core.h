// The contract of worker_events.c and worker_tasks.c: the core of a worker, seen from outside.
//
// What a worker does, without doing it: events in, actions out. No I/O, threads, clock or heap; all
// arrays are sized from the run table when the core is made. The driver (runtime/worker/) and the
// simulator drive the same code.
//
//   IDLE ──assign──► LOADING ──loaded──► READY ──start──► RUNNING ──stop──► STOPPED
//     ▲                 │                  │                 │
//     └──── any assign of a higher generation, from any state (LOADING again)
//
// An assign that comes while tasks run or memory is lent waits for both (DRAINING) before LOAD; a
// stop waits for the tasks that run (STOPPING).
//
// In RUNNING each device of this worker goes through its tasks of the rounds given, in order; a
// task starts when the frames it reads are here and there are places for those it makes; an update
// also waits for the coordinator's word that the round's losses are finite (`go`). A frame that is
// made is sent when its place at the target is free. Devices of this worker hand frames of shared
// channels to each other without any action.
//
// Rounds are numbered one after another; PEN_WORKER_ROUND_LIMIT of one form may be announced and
// not done. A device begins the next as soon as it is through its own tasks. A round is done when
// all devices here are and no memory of its frames is lent any more.
//
// Threads: one at a time (the driver holds a lock around pen_worker_core_step, nothing else).
#ifndef PEN_SCHEDULER_PROTOCOL_WORKER_CORE_H
#define PEN_SCHEDULER_PROTOCOL_WORKER_CORE_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/run_table.h"

typedef struct pen_worker_core pen_worker_core;

#define PEN_WORKER_ROUND_LIMIT 8

// `generation` is that of the sender, in all but the last three.
typedef enum pen_worker_event_kind {
    PEN_WORKER_EVENT_ASSIGN,    // generation
    PEN_WORKER_EVENT_LOADED,    // generation: the driver has done what LOAD asked for
    PEN_WORKER_EVENT_START,     // generation
    PEN_WORKER_EVENT_ROUND,     // generation, round, form, count (microbatches), updates
    PEN_WORKER_EVENT_GO,        // generation, round
    PEN_WORKER_EVENT_FRAME,     // generation, form, channel, sequence: whole, in its place
    PEN_WORKER_EVENT_CREDIT,    // generation, form, channel, sequence: the target has consumed all
                                // below
    PEN_WORKER_EVENT_STOP,      // generation
    PEN_WORKER_EVENT_LET_GO,    // form, channel, sequence: the transport no longer reads the memory
    PEN_WORKER_EVENT_TASK_DONE, // device
    PEN_WORKER_EVENT_READ,      // form, channel, sequence: what READ asked for is in its place
} pen_worker_event_kind;

typedef struct pen_worker_event {
    pen_worker_event_kind kind;
    uint64_t generation;
    uint64_t round;
    uint64_t sequence;
    uint32_t form;
    uint32_t count;
    uint32_t channel;
    uint32_t device;
    bool updates;
} pen_worker_event;

typedef enum pen_worker_action_kind {
    PEN_WORKER_ACTION_LOAD,       // prepare for generation
    PEN_WORKER_ACTION_READY,      // tell the coordinator
    PEN_WORKER_ACTION_RUN,        // device, form, task (index into the form's tasks), round
    PEN_WORKER_ACTION_SEND,       // form, channel, sequence: the frame is made and may go
    PEN_WORKER_ACTION_GRANT,      // form, channel, sequence: tell the source that all below are
                                  // consumed
    PEN_WORKER_ACTION_LOSS,       // device, task, round, form: tell the coordinator the
                                  // microbatch's loss. Comes before the device's next RUN
    PEN_WORKER_ACTION_GRADIENT,   // task, round, form: tell the coordinator that it is made
    PEN_WORKER_ACTION_ROUND_DONE, // round: every device here has finished it; tell the coordinator
    PEN_WORKER_ACTION_STOPPED,
    PEN_WORKER_ACTION_READ, // form, channel, sequence, round: read it from files into its place,
                            // which is free; then READ. In this order, of each channel
} pen_worker_action_kind;

typedef struct pen_worker_action {
    pen_worker_action_kind kind;
    uint64_t generation;
    uint64_t round;
    uint64_t sequence;
    uint32_t form;
    uint32_t channel;
    uint32_t device;
    uint32_t task;
} pen_worker_action;

// A core for worker `worker` of `table`, which was checked and outlives it; in `arena`.
// *out_action_limit: the most actions that one step can give. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_core_new(const pen_run_table *table, uint32_t worker,
                                             pen_arena *arena, pen_worker_core **out_core,
                                             uint32_t *out_action_limit);

// Takes an event; writes the actions that follow to out_actions, to be carried out in order.
// Events of another generation change nothing; nor does what came before (a frame, credit or round
// again). A fault is an event that the table does not allow; it changes nothing either.
typedef enum pen_worker_fault {
    PEN_WORKER_FAULT_NONE,
    PEN_WORKER_FAULT_CHANNEL, // no such channel ends, or begins, here
    PEN_WORKER_FAULT_WINDOW,  // a frame beyond the credit given, or too early
    PEN_WORKER_FAULT_CREDIT,  // a credit for what was not sent
    PEN_WORKER_FAULT_ROUND,   // a round out of order, too early, or of no form
} pen_worker_fault;
PEN_NODISCARD pen_worker_fault pen_worker_core_step(pen_worker_core *core,
                                                    const pen_worker_event *event,
                                                    pen_worker_action *out_actions,
                                                    uint32_t *out_action_count);

// "a frame beyond the credit given"
const char *pen_worker_fault_text(pen_worker_fault fault);

// Whether the frame of a FRAME event may be written to its place: to be asked before its bytes
// are. *out_is_seen: it came before, or is of another generation, and is to be dropped.
PEN_NODISCARD pen_worker_fault pen_worker_core_check_frame(const pen_worker_core *core,
                                                           const pen_worker_event *event,
                                                           bool *out_is_seen);

// What a device waits for, for people: the task, and what is missing.
typedef struct pen_worker_wait {
    bool is_running; // a task, now
    bool is_idle;    // no round to run
    pen_task task;   // running or next
    uint64_t round;
    bool needs_go;
    bool needs_frame; // else a place for a frame
    uint32_t form;
    uint32_t channel; // that it waits for; UINT32_MAX: none
    uint64_t sequence;
} pen_worker_wait;
pen_worker_wait pen_worker_core_get_wait(const pen_worker_core *core, uint32_t device);

// The generation it is in, 0: none yet.
uint64_t pen_worker_core_generation(const pen_worker_core *core);

#endif // PEN_SCHEDULER_PROTOCOL_WORKER_CORE_H
