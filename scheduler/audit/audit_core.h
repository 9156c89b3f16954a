// Whether workers compute what they should: now and then one (stage, microbatch) of a step is
// drawn, and another worker computes it again from the same bytes. Events in, actions out; no I/O,
// threads, clock or heap after it was made.
//
//   IDLE ──a step is due──► NOTING ──evidence──► ASKING ──digests agree──► IDLE
//                             │                   │  ▲
//                             │                   └──┘ they differ, or who was asked has no room
//                             └──► IDLE: there is none, or a deadline is over: given up
//
// Who computed first and who computed again are two opinions. Where they differ, a third worker is
// asked; where there is none, the first is asked to compute again what it did, and then the second.
// Two that agree outvote one. Where none do, both are named.
//
// Threads: one at a time.
#ifndef PEN_SCHEDULER_AUDIT_AUDIT_CORE_H
#define PEN_SCHEDULER_AUDIT_AUDIT_CORE_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/run_table.h"

typedef struct pen_audit_core pen_audit_core;

#define PEN_AUDIT_OPINIONS 4
#define PEN_AUDIT_ACTIONS 2 // of an event, at most

typedef struct pen_audit_options {
    uint64_t every; // steps; 0: none is ever due
    uint64_t seed;
    uint64_t deadline; // for evidence, and for each opinion; in the unit of `now`
    // [device_count][worker_count + 1]: whether a worker has room to compute what a device does
    const bool *has_room;
} pen_audit_options;

typedef enum pen_audit_event_kind {
    PEN_AUDIT_EVENT_STEP,        // step, count: form 0 is about to run so many microbatches
    PEN_AUDIT_EVENT_EVIDENCE,    // worker, step, digest: that it came to
    PEN_AUDIT_EVENT_NO_EVIDENCE, // worker, step
    PEN_AUDIT_EVENT_OPINION,     // worker, asked, digest
    PEN_AUDIT_EVENT_NO_OPINION,  // worker, asked: it could not
    PEN_AUDIT_EVENT_TICK,
    PEN_AUDIT_EVENT_FORGET, // the generation is over, and with it what was begun
} pen_audit_event_kind;

typedef struct pen_audit_event {
    pen_audit_event_kind kind;
    uint64_t now;
    uint64_t step;
    uint32_t count;
    uint32_t worker;
    uint32_t asked; // number of the question, from 1
    uint64_t digest;
} pen_audit_event;

typedef enum pen_audit_action_kind {
    PEN_AUDIT_ACTION_NOTE,    // worker, device, stage, microbatch: it is to keep evidence
    PEN_AUDIT_ACTION_ASK,     // worker, device, asked: it is to compute it again
    PEN_AUDIT_ACTION_PASS,    // worker, other: they agree
    PEN_AUDIT_ACTION_BLAME,   // worker computed wrongly; other is who found it
    PEN_AUDIT_ACTION_DIVIDED, // worker or other did; nobody can say which
    PEN_AUDIT_ACTION_GIVE_UP, // worker: nobody judged it this time
} pen_audit_action_kind;

typedef struct pen_audit_action {
    pen_audit_action_kind kind;
    uint32_t worker;
    uint32_t other;
    uint32_t asked;
    uint32_t device;
    uint32_t stage;
    uint32_t microbatch;
    uint64_t step;
    bool is_repeat; // BLAME: it did not even come to the same twice
} pen_audit_action;

// `table` and the options' room outlive the core. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_audit_core_new(const pen_run_table *table,
                                            const pen_audit_options *options, pen_arena *arena,
                                            pen_audit_core **out_core);

// Whether any device can ever be looked at.
bool pen_audit_core_is_on(const pen_audit_core *core);
// Whether an audit is under way: a step that is due meanwhile is not looked at.
bool pen_audit_core_is_busy(const pen_audit_core *core);
bool pen_audit_core_is_due(const pen_audit_core *core, uint64_t step);

// Takes an event; writes the actions that follow, at most PEN_AUDIT_ACTIONS.
void pen_audit_core_step(pen_audit_core *core, const pen_audit_event *event,
                         pen_audit_action *out_actions, uint32_t *out_action_count);

#endif // PEN_SCHEDULER_AUDIT_AUDIT_CORE_H
