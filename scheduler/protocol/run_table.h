// What is run, as plain numbers: tasks of each device in order, what each waits for, and the
// channels between devices. The protocol cores work on this alone; they know no graphs.
//
// A round is one run of a form's tasks for up to microbatch_count microbatches (tasks of others are
// skipped): a training step is a round; a step whose last microbatch is smaller is two rounds, of
// which only the last updates; an evaluation batch is a round without updates. Rounds of one form
// may follow each other without a pause; before a round of another form all devices have finished.
//
// A stage may have tasks for a range of the form's microbatches only: those of its replica. Rounds
// of fewer microbatches may have none of them; updates run all the same.
//
// A frame is what a channel carries for one microbatch of its range (per-step channels: for one
// round). Its sequence number names the work: round * slots + microbatch - first of the range,
// where slots is the range's length, or 1 for per-step channels.
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

// Workers count from 1; the coordinator, which feeds inputs, is 0. What the host feeds may also be
// read where it is needed, from files: then its source is the target's worker.
typedef struct pen_run_channel {
    uint32_t source_worker;
    uint32_t target_worker;
    uint32_t source_device; // PEN_CHANNEL_HOST: the coordinator
    uint32_t target_device;
    uint32_t capacity; // frames, at least 1
    uint32_t copies;   // places at the source, at least 1
    uint64_t bytes;    // of a frame
    bool is_per_step;
    uint32_t first_microbatch; // that it carries frames of, unless it is per step
    uint32_t microbatch_count; // 0: all from the first on
    bool is_shared; // source and target are devices of one worker: no frame is sent. The target
                    // reads the value where the source made it, or copies it from there where the
                    // host does not see one's memory; capacity equals copies
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
    bool makes_gradient; // of parameters, with all of the stage and microbatch: report when done,
                         // by which the coordinator knows in which order lanes came
} pen_run_task;

typedef struct pen_run_device {
    uint32_t worker;
    uint32_t task_first; // of the form's tasks, in order
    uint32_t task_end;
} pen_run_device;

typedef struct pen_run_form {
    uint32_t microbatch_count; // most in a round
    bool trains;               // has backward passes and updates
    bool skips; // updates apply nothing where a gradient is not finite: so they need no losses that
                // are
    uint64_t microbatch_size; // examples
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

// Whether the target's worker itself reads what the channel carries, from files.
static inline bool pen_run_channel_is_read(const pen_run_channel *channel) {
    return channel->source_device == PEN_CHANNEL_HOST && channel->source_worker != 0;
}

// Whether a round of `count` microbatches leaves a task out: one of a microbatch that the round
// does not have, or an update in a round without updates.
static inline bool pen_run_task_is_skipped(const pen_run_task *task, uint32_t count, bool updates) {
    if (task->task.kind == PEN_TASK_UPDATE) return !updates;
    return task->task.microbatch >= count;
}

// Whether no task comes after `task` that its device computes in such a round; of an update: no
// update. Those that are left out, and those without a list, do not count.
bool pen_run_task_is_last(const pen_run_form *form, uint32_t device, const pen_run_task *task,
                          uint32_t count, bool updates);

// Whether any task makes or reads what a channel carries: of a form for the rest of a batch, those
// of replicas that have none of it are idle.
bool pen_run_channel_is_idle(const pen_run_form *form, uint32_t channel);

// Whether a channel carries frames in rounds with updates alone.
bool pen_run_channel_is_for_updates(const pen_run_form *form, uint32_t channel);

static inline uint32_t pen_run_slots(const pen_run_form *form, const pen_run_channel *channel) {
    if (channel->is_per_step) return 1;
    return channel->microbatch_count > 0 ? channel->microbatch_count
                                         : form->microbatch_count - channel->first_microbatch;
}

static inline uint64_t pen_run_sequence(const pen_run_form *form, const pen_run_channel *channel,
                                        uint64_t round, uint32_t microbatch) {
    if (channel->is_per_step) return round;
    return round * pen_run_slots(form, channel) + (microbatch - channel->first_microbatch);
}

// Of a frame; 0 of per-step channels.
static inline uint32_t pen_run_microbatch(const pen_run_form *form, const pen_run_channel *channel,
                                          uint64_t sequence) {
    const uint32_t slots = pen_run_slots(form, channel);
    return channel->is_per_step ? 0 : channel->first_microbatch + (uint32_t)(sequence % slots);
}

// Frames that a channel carries in a round of `count` microbatches.
static inline uint32_t pen_run_frame_count(const pen_run_form *form, const pen_run_channel *channel,
                                           uint32_t count) {
    const uint32_t slots = pen_run_slots(form, channel);
    if (channel->is_per_step) return 1;
    if (count <= channel->first_microbatch) return 0;
    const uint32_t left = count - channel->first_microbatch;
    return left < slots ? left : slots;
}

#endif // PEN_SCHEDULER_PROTOCOL_RUN_TABLE_H
