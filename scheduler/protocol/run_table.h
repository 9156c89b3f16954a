// What is run, as plain numbers: tasks of each device in order, what each waits for, and the
// channels between devices. The protocol cores work on this alone; they know no graphs.
//
// A round is one run of a form's tasks for up to microbatch_count microbatches (tasks of others are
// skipped): a training step is a round; a step whose last microbatch is smaller is two rounds, of
// which only the last updates; an evaluation batch is a round without updates. Rounds of one form
// may follow each other without a pause; before a round of another form all devices have finished.
//
// A frame is what a channel carries for one microbatch (per-step channels: for one round). Its
// sequence number names the work: round * slots + microbatch, where slots is microbatch_count, or 1
// for per-step channels.
//
// Credit: the frame of microbatch m lies in place m mod `capacity` at the receiver and in place
// m mod `copies` at the sender (both at most slots). It may be sent when what was in its place at
// the receiver before is consumed, and made when what was in its place at the sender is let go. A
// frame is consumed when the last task that reads it is done; what is left when its round ends at
// the receiver is consumed then.
//
// Lifetime: in the arena it was made with. Threads: immutable once made.
#ifndef PEN_SCHEDULER_PROTOCOL_RUN_TABLE_H
#define PEN_SCHEDULER_PROTOCOL_RUN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/task.h"

#define PEN_RUN_LIST_NONE UINT32_MAX
#define PEN_RUN_MICROBATCH_LIMIT (1u << 20)
#define PEN_RUN_ROUND_LIMIT ((uint64_t)1 << 40)
#define PEN_RUN_SEQUENCE_LIMIT (PEN_RUN_ROUND_LIMIT * PEN_RUN_MICROBATCH_LIMIT)

// Workers count from 1; the coordinator, which feeds inputs, is 0.
typedef struct pen_run_channel {
    uint32_t source_worker;
    uint32_t target_worker;
    uint32_t source_device; // PEN_CHANNEL_HOST: the coordinator
    uint32_t target_device;
    uint32_t capacity; // frames, at least 1
    uint32_t copies;   // places at the source, at least 1
    uint64_t bytes;    // of a frame
    bool is_per_step;
    bool is_shared; // source and target are devices of one worker, and the target reads the frame
                    // where the source made it: nothing is moved; capacity equals copies
} pen_run_channel;

// `refs` of a form holds channel numbers; a task has three ranges of it.
typedef struct pen_run_task {
    pen_task task;
    uint32_t list;          // of the device's part; PEN_RUN_LIST_NONE: nothing to compute
    uint32_t receive_first; // frames it waits for
    uint32_t receive_end;
    uint32_t send_first; // frames it makes: waits for a place before, sends after
    uint32_t send_end;
    uint32_t release_first; // frames that no later task reads
    uint32_t release_end;
    bool makes_loss; // of its values some are for the coordinator (loss, hits): report when done
                     // (forward tasks; known by stage and microbatch)
} pen_run_task;

typedef struct pen_run_device {
    uint32_t worker;
    uint32_t task_first; // of the form's tasks, in order
    uint32_t task_end;
} pen_run_device;

typedef struct pen_run_form {
    uint32_t microbatch_count; // most in a round
    bool trains;               // has backward passes and updates
    uint64_t microbatch_size;  // examples
    uint32_t channel_count;
    const pen_run_channel *channels;
    uint32_t task_count;
    const pen_run_task *tasks;
    uint32_t ref_count;
    const uint32_t *refs;
    const pen_run_device *devices; // [device_count of the table]
} pen_run_form;

typedef struct pen_run_table {
    uint32_t worker_count; // without the coordinator
    uint32_t device_count;
    uint32_t form_count;
    const pen_run_form *forms;
} pen_run_table;

// Whether a channel carries frames in rounds without updates.
bool pen_run_channel_is_for_updates(const pen_run_form *form, uint32_t channel);

static inline uint32_t pen_run_slots(const pen_run_form *form, const pen_run_channel *channel) {
    return channel->is_per_step ? 1 : form->microbatch_count;
}

static inline uint64_t pen_run_sequence(const pen_run_form *form, const pen_run_channel *channel,
                                        uint64_t round, uint32_t microbatch) {
    return channel->is_per_step ? round : round * form->microbatch_count + microbatch;
}

#endif // PEN_SCHEDULER_PROTOCOL_RUN_TABLE_H
