// What a worker process does across runs, without doing it: which coordinator it listens to, when
// it loads and when it gives a run up. What happens within a generation is the worker core's
// (worker_core.h), of which each generation has a new one. No I/O, threads, clock or heap.
//
//   IDLE ──linked──► GREETED ──assign──► PULLING ──described──► LOADING ──loaded──► RUNNING
//    ▲ ▲                │                   │                      │                   │
//    │ └──link down─────┘                   ▼                      ▼                   ▼
//    └──left, link down── LEAVING ◄── stop, link down, silence, failure, a higher generation
//
// A process is known by its incarnation, drawn when it starts: an assignment meant for another
// incarnation is passed over, since generations alone do not tell a restarted worker from the one
// that was. The highest generation of each of the last jobs is remembered, and a coordinator of a
// lower one is told that it is superseded. One of a higher one makes us leave the run that is here,
// and is taken when it calls again. A generation is run once.
//
// Each of its waits has a deadline (pen_member_wait), but that for the next round: how long its
// coordinator thinks between two rounds is not for it to say.
//
// Threads: one at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_MEMBER_CORE_H
#define PEN_SCHEDULER_PROTOCOL_MEMBER_CORE_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_MEMBER_JOB_BYTES 64
#define PEN_MEMBER_ACTION_LIMIT 8
#define PEN_MEMBER_JOB_LIMIT 8 // that are remembered

typedef enum pen_member_state {
    PEN_MEMBER_IDLE,
    PEN_MEMBER_GREETED,
    PEN_MEMBER_PULLING,
    PEN_MEMBER_LOADING,
    PEN_MEMBER_RUNNING,
    PEN_MEMBER_LEAVING,
} pen_member_state;

typedef enum pen_member_answer {
    PEN_MEMBER_TAKE,
    PEN_MEMBER_BUSY,       // another coordinator's, or a run is being given up: call again
    PEN_MEMBER_SUPERSEDED, // there was a higher generation of this job: never call again
    PEN_MEMBER_NO_RUN,     // another worker of a run that is not (yet) here: call again
} pen_member_answer;

typedef enum pen_member_event_kind {
    PEN_MEMBER_EVENT_CALL,      // the answer to it was TAKE (peer 0): job, generation, incarnation;
                                // then UP or DOWN
    PEN_MEMBER_EVENT_UP,        // the coordinator's link
    PEN_MEMBER_EVENT_DOWN,      // it, once for each UP, or instead
    PEN_MEMBER_EVENT_HEARD,     // anything, from the coordinator
    PEN_MEMBER_EVENT_ASSIGN,    // generation, incarnation (whom it is meant for), worker
    PEN_MEMBER_EVENT_DESCRIBED, // what is to be run is here whole
    PEN_MEMBER_EVENT_LOADED,    // and loaded, and linked
    PEN_MEMBER_EVENT_STARTED,   // generation: the coordinator says that all are
    PEN_MEMBER_EVENT_FAILED,    // the run cannot go on; the driver has told the coordinator
    PEN_MEMBER_EVENT_STOP,      // generation
    PEN_MEMBER_EVENT_LEFT,      // the run is given up, nothing of it is used any more
    PEN_MEMBER_EVENT_TICK,
} pen_member_event_kind;

typedef struct pen_member_event {
    pen_member_event_kind kind;
    uint64_t now; // nanoseconds of this process's clock, in all events
    uint64_t generation;
    uint64_t incarnation;
    uint32_t worker;
    const char *job;
} pen_member_event;

// What a member waits for, and how that ends when it does not come.
typedef enum pen_member_wait {
    PEN_MEMBER_WAIT_NONE,
    PEN_MEMBER_WAIT_LINK,        // that was taken to be up: it is dropped
    PEN_MEMBER_WAIT_ASSIGNMENT,  // the coordinator is disconnected; it calls again if it is well
    PEN_MEMBER_WAIT_DESCRIPTION, // it is told, and the run is left
    PEN_MEMBER_WAIT_LOADED,      // likewise
    PEN_MEMBER_WAIT_START,       // likewise
    PEN_MEMBER_WAIT_LEFT,        // STUCK
    PEN_MEMBER_WAIT_END,         // the coordinator, of which nothing is left, is disconnected
    PEN_MEMBER_WAIT_DOWN,        // STUCK
} pen_member_wait;

typedef enum pen_member_action_kind {
    PEN_MEMBER_ACTION_HELLO,      // introduce ourselves to the coordinator
    PEN_MEMBER_ACTION_PULL,       // ask for what is to be run
    PEN_MEMBER_ACTION_LOAD,       // generation, worker
    PEN_MEMBER_ACTION_LEAVE,      // give the run up; then LEFT
    PEN_MEMBER_ACTION_DISCONNECT, // from the coordinator, which was silent for too long, or is
                                  // superseded; then DOWN
    PEN_MEMBER_ACTION_STOPPED,    // tell the coordinator that we have left
    PEN_MEMBER_ACTION_BEAT,       // tell the coordinator that we are here
    PEN_MEMBER_ACTION_LATE,       // wait: tell the coordinator that the run cannot go on
    PEN_MEMBER_ACTION_STUCK,      // wait: this process is of no use any more
} pen_member_action_kind;

typedef struct pen_member_action {
    pen_member_action_kind kind;
    uint64_t generation;
    uint32_t worker;
    pen_member_wait wait;
} pen_member_action;

typedef struct pen_member_options {
    uint64_t incarnation;
    uint64_t lease; // nanoseconds without a word of the coordinator; 0: for ever
    uint64_t beat;  // nanoseconds between beats
    // of waits, in nanoseconds; 0: for ever
    uint64_t link;   // LINK, DOWN
    uint64_t assign; // ASSIGNMENT, END
    uint64_t load;   // DESCRIPTION, LOADED, START
    uint64_t leave;  // LEFT
} pen_member_options;

typedef struct pen_member_job {
    char name[PEN_MEMBER_JOB_BYTES];
    uint64_t generation; // the highest of which a coordinator was taken
    uint64_t assigned;   // the highest that was run
    uint64_t used_at;    // number of the call
} pen_member_job;

typedef struct pen_member_core {
    pen_member_options options;
    pen_member_state state;
    pen_member_job jobs[PEN_MEMBER_JOB_LIMIT];
    uint32_t job; // that of the coordinator taken last
    uint64_t call_count;
    uint64_t generation;  // of the coordinator taken last, and of the run
    uint64_t coordinator; // its incarnation
    uint32_t worker;      // that we are in the run
    bool is_called;       // a call was taken: UP or DOWN will come
    bool is_linked;
    bool is_started;
    bool is_dropped;       // the call that was taken: UP is passed over, DOWN will come
    bool is_disconnecting; // DOWN will come
    bool has_left;         // the run, or was told to stop before there was one
    bool sends_stopped;    // when it is left
    uint64_t heard_at;     // the last word of the coordinator
    uint64_t beat_at;      // the last beat
    pen_member_wait wait;
    uint64_t wait_at; // when it began
} pen_member_core;

void pen_member_core_init(pen_member_core *core, const pen_member_options *options);

// What to answer who calls: peer 0 is a coordinator. Where the answer is TAKE, and a coordinator's,
// CALL is to be fed before anything else. *out_leaves: it has a higher generation than the run or
// link that is here, which is to be given up first: pen_member_core_supersede (the answer is BUSY).
pen_member_answer pen_member_core_judge(const pen_member_core *core, uint32_t peer, const char *job,
                                        uint64_t generation, uint64_t incarnation,
                                        bool *out_leaves);

// Gives up what is here because pen_member_core_judge said so. As step.
void pen_member_core_supersede(pen_member_core *core, pen_member_action *out_actions,
                               uint32_t *out_action_count);

// out_actions [PEN_MEMBER_ACTION_LIMIT]. Events that do not fit the state change nothing.
void pen_member_core_step(pen_member_core *core, const pen_member_event *event,
                          pen_member_action *out_actions, uint32_t *out_action_count);

// "the description of the run did not come"
const char *pen_member_wait_text(pen_member_wait wait);

#endif // PEN_SCHEDULER_PROTOCOL_MEMBER_CORE_H
