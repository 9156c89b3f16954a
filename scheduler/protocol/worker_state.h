// The contract of worker_events.c and worker_tasks.c among themselves.
//
// The inside of a worker's core, for worker_events.c (events and states) and worker_tasks.c (what
// runs next, what is sent). Nobody else includes this.
#ifndef PEN_SCHEDULER_PROTOCOL_WORKER_STATE_H
#define PEN_SCHEDULER_PROTOCOL_WORKER_STATE_H

#include "scheduler/protocol/frame_feed.h"
#include "scheduler/protocol/worker_core.h"

typedef enum worker_state {
    WORKER_IDLE,
    WORKER_DRAINING, // assigned, but tasks run or memory is lent
    WORKER_LOADING,
    WORKER_READY,
    WORKER_RUNNING,
    WORKER_STOPPING, // told to stop, but tasks run
    WORKER_STOPPED,
} worker_state;

typedef struct worker_round {
    uint32_t form;
    uint32_t count;
    bool updates;
    bool may_update;    // `go` came
    uint64_t out_count; // frames made and not let go, or being read
} worker_round;

typedef struct worker_device {
    uint32_t number;
    bool is_running;
    uint64_t round;
    uint32_t position; // of the next task, or of that which runs, among the device's in the form
    uint32_t *turns;   // [stages of the device][PEN_TASK_KIND_COUNT] tasks done in the round
    uint32_t swap_end; // 0, but where tests plant a mistake
} worker_device;

typedef struct worker_channel {
    bool is_source; // not of shared ones
    bool is_target;
    bool is_read; // by this worker, from files: then it has a feed
    pen_frame_source source;
    pen_frame_feed feed;
    pen_frame_target target;
} worker_channel;

// Microbatches of a stage.
typedef struct worker_range {
    uint32_t first;
    uint32_t end;
} worker_range;

struct pen_worker_core {
    const pen_run_table *table;
    uint32_t worker;
    worker_state state;
    uint64_t generation;
    uint32_t stage_limit; // of a device, in a form
    uint32_t device_count;
    worker_device *devices;                      // [device_count] those of this worker
    worker_channel **channels;                   // [form_count][channel_count]
    uint32_t **places;                           // [form_count][task_count] of a task's stage among
                                                 // its device's, times PEN_TASK_KIND_COUNT
    worker_range **ranges;                       // [form_count][task_count] of a task's stage
    uint64_t first_round;                        // the oldest not done
    uint64_t end_round;                          // the next to be announced
    bool has_round;                              // one was announced
    worker_round rounds[PEN_WORKER_ROUND_LIMIT]; // by number, in turn
    uint32_t running_count;                      // tasks
    uint64_t lent_count;                         // frames sent and not let go, or being read
    uint32_t action_limit;
    pen_worker_action *actions; // during a step
    uint32_t action_count;
};

// A new action of the step, of this kind and the core's generation.
pen_worker_action *pen_worker_act(pen_worker_core *core, pen_worker_action_kind kind);

void pen_worker_act_on_frame(pen_worker_core *core, pen_worker_action_kind kind, uint32_t form,
                             uint32_t channel, uint64_t sequence);

// The round with this number; NULL: not announced, or done.
worker_round *pen_worker_find_round(pen_worker_core *core, uint64_t number);

// What was in the channel's places below `sequence` is consumed: tells the source.
void pen_worker_grant(pen_worker_core *core, uint32_t form, uint32_t channel, uint64_t sequence);

// Sends what is made and has a place at the target.
void pen_worker_send_waiting(pen_worker_core *core, uint32_t form, uint32_t channel);

// The device's task is done: what it made goes, what it was the last to read is given back.
void pen_worker_complete(pen_worker_core *core, worker_device *device, worker_round *round);

// The device stands before the first task of its round.
void pen_worker_rewind(const pen_worker_core *core, worker_device *device);

// Takes every device as far as it comes, until it waits or computes.
void pen_worker_advance(pen_worker_core *core);

#endif // PEN_SCHEDULER_PROTOCOL_WORKER_STATE_H
