// The contract of worker_*.c about a device: defined where each part of its work is.
//
// The inside of a worker's run, for worker_run_life.c, worker_device.c and worker_frames.c.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_DEVICE_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_DEVICE_H

#include "base/thread.h"
#include "device/device.h"
#include "scheduler/protocol/flight_recorder.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/executor/evidence.h"
#include "scheduler/runtime/executor/executor.h"
#include "scheduler/runtime/executor/snapshot.h"
#include "scheduler/runtime/worker/worker_beside.h"
#include "scheduler/runtime/worker/worker_kept_times.h"
#include "scheduler/runtime/worker/worker_reader.h"
#include "scheduler/runtime/worker/worker_run.h"

#define WORKER_PIECES 32     // of tensors, under way at once: half come, half go
#define WORKER_PULLS 16      // that wait
#define WORKER_ROUND_RING 16 // rounds whose description is kept

// A frame's place, at its source or its target.
typedef struct worker_slot {
    uint64_t sequence;
    uint32_t *checksums; // [chunks]
    double start_seconds;
    bool is_checked; // its checksums were compared
    bool is_copied;  // into the memory of a device that the host does not see, or out of it
    uint32_t user;   // there: 1 + the microbatch whose tasks used it last; 0: none
} worker_slot;

typedef struct worker_channel {
    worker_slot *sends;      // [copies]; NULL: not sent from here
    worker_slot *receives;   // [capacity]; NULL: not received here
    uint32_t send_first;     // number of sends[0] among all
    uint32_t sent_first;     // of the run's `sent`: a place for each microbatch
    worker_staging leaving;  // what leaves a device whose memory the host does not see
    worker_staging arriving; // what comes to such a one
    bool is_direct;          // the reader copies from the maker, without the host
    uint32_t in_fence;       // of the reader, for the first place: when the copy to it is done
    uint64_t granted;        // credit for frames below it was told; its sender's (worker_sender.c)
} worker_channel;

typedef struct worker_send {
    uint32_t form;
    uint32_t channel;
    uint64_t sequence;
} worker_send;

// What waits for a copy.
typedef struct worker_due {
    worker_send frame;
    bool is_credit; // those below it are read: they are told so, when their places are free
} worker_due;

typedef enum worker_piece_state {
    WORKER_PIECE_FREE,
    WORKER_PIECE_ARRIVING, // its bytes
    WORKER_PIECE_CHECK,    // its checksum is to be compared
    WORKER_PIECE_SEND,     // to be sent
    WORKER_PIECE_LENT,     // to the transport
} worker_piece_state;

typedef struct worker_piece {
    worker_piece_state state; // guarded by lock
    pen_tensor_piece piece;
    uint32_t checksum;
} worker_piece;

// A part of a tensor that a device's thread is to copy out.
typedef struct worker_read {
    pen_value_id value; // of form 0
    uint64_t first;
    void *out;
    uint64_t bytes;
} worker_read;

typedef struct worker_device {
    pen_worker_run *run;
    uint32_t index;       // of the table
    uint32_t row;         // of the recorder
    bool is_staged;       // its kind has memory that the host does not see
    const char *identity; // as its kind identifies it; NULL: it does not
    pen_device *device;
    pen_executor **executors;  // [form_count]
    uint32_t first_microbatch; // of a step, that is run here
    pen_thread *thread;
    pen_condition wake; // with the run's lock
    pen_thread *sender; // worker_sender.c; NULL: its own thread sends
    pen_condition sends_wake;

    // guarded by lock
    bool has_task;
    uint32_t task;
    uint64_t task_round;
    worker_due *sends; // [send_limit] a ring
    uint32_t send_limit, send_first, send_count;
    bool is_sending; // the sender's thread, or it waits for the copy
    double sending_since;
    worker_send sending;
    pen_status (*call)(struct worker_device *device); // to be done by the thread; NULL: nothing
    pen_status call_status;
    bool is_called;
    worker_read read; // of the call, written before it

    uint64_t saved_bytes; // of copies, set when it is loaded

    // the thread's own
    pen_arena *arena;
    pen_worker_action *actions; // [action_limit]
    uint64_t scalars_round;     // whose scalars are written; UINT64_MAX: none
    pen_run_loss loss;
    pen_executor_number loss_sum, terms[PEN_TERMS_LIMIT]; // of it, on their way
    pen_executor_number applied;                          // by the round's updates, likewise
    bool has_applied;
    char *seen; // [seen_limit] a value on its way to the coordinator
    uint64_t seen_limit;
    worker_times times;
    worker_beside beside; // copies, if the host does not see its memory
    // guarded by lock
    double wait_seconds;
    double task_started;                          // the one that runs; 0: none
    double awaited_since;                         // its own queue is, by its thread; 0: not
    pen_round_figures figures[WORKER_ROUND_RING]; // by round
} worker_device;

// A tensor that is saved, and where it lies.
typedef struct worker_saved {
    worker_device *device;
    pen_value_id value; // in its part of form 0
    const char *memory; // NULL: the host does not see it
} worker_saved;

// The shard that was written last.
typedef struct worker_shard {
    pen_disk *disk;
    char folder[PEN_MESSAGE_TEXT_BYTES]; // "": none was
    bool is_own;                         // nobody else's shards are in it
    uint64_t order;                      // that it was written for
    uint64_t step;
    uint64_t committed_step; // of the checkpoint that was whole last
} worker_shard;

// What is kept for an audit, if anything.
typedef struct worker_noting {
    bool is_wanted;
    bool is_in_use; // by the device's thread
    bool is_whole;
    pen_run_note note;
    pen_evidence *evidence; // NULL: no task has run
} worker_noting;

struct pen_worker_run {
    pen_worker_run_options options;
    const pen_run_spec *spec;
    const pen_run_table *table;
    pen_arena *arena;
    worker_device *devices; // [device_count of this worker]
    uint32_t device_count;
    uint32_t *local_of_device; // [device_count of the table]; UINT32_MAX: another worker's
    worker_channel **channels; // [form_count][channel_count]
    bool copies; // between devices of this process, some of which have memory of their own
    worker_slot **slot_of_send; // [send_count] all sends, by number
    worker_send *what_of_send;  // [send_count]
    uint32_t send_count;
    // guarded by lock: what was sent last for each microbatch, for who asks after a bad step
    pen_run_sent *sent; // [sent_count]
    uint32_t sent_count;
    uint32_t action_limit;
    pen_trace_recorder *recorder;
    pen_worker_reader *reader;   // NULL: nothing is read here
    pen_snapshot_writer *writer; // NULL: nothing is saved here
    pen_shard_tensor *saved;     // [saved_count]
    worker_saved *saved_places;  // [saved_count]
    uint32_t saved_count;
    worker_shard shard;        // guarded by lock
    pen_round_figures *told;   // [device_count], of who tells of a round
    unsigned char *told_bytes; // of all

    pen_mutex lock;
    pen_condition called; // a device's call is done, an event was carried out, a device rests
    // guarded by lock
    pen_worker_core *core;
    pen_flight_recorder *flight;
    pen_run_round rounds[WORKER_ROUND_RING];
    worker_piece pieces[WORKER_PIECES];
    char *piece_staging; // [WORKER_PIECES][PEN_TRANSPORT_CHUNK_BYTES]; NULL: none is needed
    pen_tensor_piece pulled[WORKER_PULLS]; // a ring: they wait for a place among the pieces
    uint32_t pulled_first;
    uint32_t pulled_count;
    uint64_t pulled_last[WORKER_PULLS]; // the last sequence that was asked for, by its remainder
    worker_noting noting;
    pen_run_pulse pulse; // but for the task
    double step_ended_at;
    pen_worker_action *other_actions; // [action_limit] for events from outside,
    bool is_stepping;                 // one at a time
    uint32_t stepper_count;           // threads that wait for their turn
    uint64_t done_end;                // rounds below it are done,
    uint64_t told_end;                // and told of
    bool is_telling;
    uint32_t lent_count; // frames that the transport reads
    bool is_failed;
    bool is_closed;
    uint32_t rest_count; // devices that do nothing any more
    bool may_release;    // nobody uses buffers any more
};

// Starts the device's thread. UNAVAILABLE, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_device_start(worker_device *device);

// Has a device's thread do something, and waits for it. CANCELLED: the run is closed
PEN_NODISCARD pen_status pen_worker_run_call(pen_worker_run *run, worker_device *device,
                                             pen_status (*call)(worker_device *device));

// Tells the core; `device` is that of the calling thread, or NULL. CORRUPT
PEN_NODISCARD pen_status pen_worker_run_step(pen_worker_run *run, const pen_worker_event *event,
                                             worker_device *device);
// Sends a frame that is made, once it is where the host sees it; on its device's thread, or that of
// its sender.
PEN_NODISCARD pen_status pen_worker_run_send(pen_worker_run *run, const worker_send *send);
// Compares the checksums of the frames that a task reads; on its device's thread. CORRUPT
PEN_NODISCARD pen_status pen_worker_run_check_frames(pen_worker_run *run, const pen_run_form *form,
                                                     uint32_t form_index, const pen_run_task *task,
                                                     uint64_t round);
// Does what is to be done with a piece; on its device's thread.
PEN_NODISCARD pen_status pen_worker_run_do_piece(pen_worker_run *run, worker_device *device,
                                                 worker_piece *piece);
PEN_NODISCARD pen_status pen_worker_frames_prepare(pen_worker_run *run);
// Room for what is saved (worker_save.c). OUT_OF_MEMORY, CORRUPT
PEN_NODISCARD pen_status pen_worker_run_prepare_save(pen_worker_run *run);
// ---- what is read here (worker_reading.c)
// Opens the files, if any channel ends here that is read. As pen_worker_reader_create
PEN_NODISCARD pen_status pen_worker_run_prepare_reading(pen_worker_run *run);
// Does what READ says. Holds the lock.
void pen_worker_run_read(pen_worker_run *run, const pen_worker_action *action);
// It is in its place (worker_frames.c).
void pen_worker_run_note_read(pen_worker_run *run, const pen_reading *reading);

// Around a task that is to be noted; on its device's thread. NULL: it is not.
pen_evidence *pen_worker_run_begin_noting(worker_device *device, const pen_run_round *round,
                                          const pen_run_task *task, const pen_run_context *context);
void pen_worker_run_end_noting(worker_device *device, pen_evidence *evidence);

// Checks that there is such a piece of a parameter or state. CORRUPT: there is none
PEN_NODISCARD pen_status pen_worker_run_find_tensor(pen_worker_run *run,
                                                    const pen_tensor_piece *piece,
                                                    pen_memory_place *out_place);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_DEVICE_H
