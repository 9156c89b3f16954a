// The contract of worker_*.c about a run: worker_run_life.c, _frames, _save and _figures define it.
//
// One run at a worker: its devices with their threads and executors, the protocol core that says
// which task runs when, and the frames that come and go.
//
// A compute thread for each device opens it, makes its executors, runs its tasks and computes
// checksums. The core is behind one lock, a leaf: what it says is done after unlocking. The
// transport's thread hands events in and computes nothing.
//
// Errors of tasks, frames and checksums end the run: `failed` is called once, with the device's
// name in the error, and the devices stop.
//
// Memory:   everything is allocated by create; rounds allocate nothing.
// Lifetime: the spec and the transport outlive the run; destroy waits for the threads. Devices read
//           each other's buffers and the transport reads and writes them, so that all of them stay
//           until destroy.
// Threads:  create, load and destroy by one thread; begin, end, let_go and message-like events by
//           any.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_RUN_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_RUN_H

#include "graph/arrivals.h"
#include "scheduler/protocol/worker_core.h"
#include "scheduler/runtime/executor/executor.h"
#include "scheduler/runtime/run/run_inquiry.h"
#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/store/commit_log.h"
#include "scheduler/store/shared_folder.h"
#include "scheduler/trace/trace.h"
#include "scheduler/transport/transport.h"

typedef struct pen_worker_run pen_worker_run;

// What a round is, beyond what the core is told.
typedef struct pen_run_round {
    uint64_t round;
    uint32_t form;
    uint32_t count; // microbatches
    bool updates;
    uint64_t step;              // for random numbers, counted from 1
    uint64_t update;            // likewise, for the optimizer
    uint64_t first_microbatch;  // of the step, that the round begins with
    uint64_t step_microbatches; // that the step has in all its rounds
    double loss_weight;         // of each microbatch
    double unscale;             // of gradients
    double learning_rate;
    uint64_t epoch;           // for what is read here (run_data.h)
    uint64_t first_example;   // of its order, that the round begins with
    pen_arrivals_order order; // of lanes, where it is free: it comes with the word to update
} pen_run_round;

// What happens in a run, for whoever talks to the coordinator. On any thread; must not block.
// Which save: the coordinator's order, and the step that was done.
typedef struct pen_run_saved {
    uint64_t generation;
    uint64_t order;
    uint64_t step;
} pen_run_saved;

typedef struct pen_run_seen {
    uint32_t number; // which of the part's
    const void *bytes;
    uint64_t byte_count;
} pen_run_seen;

typedef struct pen_worker_run_events {
    void *context;
    void (*loss)(void *context, uint64_t round, uint32_t microbatch, uint32_t stage,
                 const pen_run_loss *loss);
    // a value that the coordinator sees, before the loss of its microbatch
    void (*seen)(void *context, uint64_t round, uint32_t microbatch, const pen_run_seen *seen);
    void (*gradient)(void *context, uint64_t round, uint32_t microbatch, uint32_t stage);
    // figures of the devices (run_wire.h)
    void (*round_done)(void *context, uint64_t round, const unsigned char *figures, size_t length);
    void (*credit)(void *context, uint32_t worker, uint32_t form, uint32_t channel,
                   uint64_t sequence);
    void (*ready)(void *context);
    void (*piece_taken)(void *context, uint64_t sequence); // of a tensor: it is written
    void (*failed)(void *context, pen_status take_status);
    // All that is saved is copied aside.
    void (*snapped)(void *context, const pen_run_saved *saved);
    // The shard is durable, or why not. No summary and no error: there was nothing to save.
    void (*shard)(void *context, const pen_run_saved *saved, pen_status take_status,
                  const pen_shard_summary *summary);
} pen_worker_run_events;

// What a forward task of the device that collects has made.
typedef struct pen_collected {
    uint64_t round;
    uint32_t form;
    uint32_t microbatch;
    const pen_graph *graph; // its part's
    pen_executor *executor; // that has the values, until the call returns
} pen_collected;

// Whoever is handed what a device of this process collects, on the device's thread, before the
// coordinator is told of the microbatch. An error of it ends the run.
typedef struct pen_worker_collector {
    pen_status (*take)(void *context, const pen_collected *collected); // NULL: nobody
    void *context;
    uint32_t device; // of the table
} pen_worker_collector;

typedef struct pen_worker_run_options {
    const pen_run_spec *spec;
    uint32_t worker;
    uint64_t generation;
    uint64_t incarnation;
    bool defer_contents;               // parameters and states come as pieces
    void (*loaded)(const void *model); // the model's bytes are no longer needed; or NULL
    const void *model;
    pen_worker_collector collector;
    bool reads_nothing;         // no data may be read here;
    const char *data_folder;    // else that which it must be in; NULL: any
    pen_shared_folders *stores; // that shards go to
    pen_transport *transport;
    pen_worker_run_events events;
} pen_worker_run_options;

// Allocates. OUT_OF_MEMORY; UNAVAILABLE (no thread); CORRUPT: a device of the worker lacks a part
PEN_NODISCARD pen_status pen_worker_run_create(const pen_worker_run_options *options,
                                               pen_worker_run **out_run);
// Opens the devices and makes the executors, each on its thread; waits for them. Errors name the
// device. As pen_executor_create
PEN_NODISCARD pen_status pen_worker_run_load(pen_worker_run *run);
// What equal numbers depend on besides build and kernel level, a line for each kind of device that
// says it: "cuda: NVIDIA H200, …". "": nothing. `text`: [size], whose end cuts it
void pen_worker_run_identify(const pen_worker_run *run, char *text, size_t size);
// What its devices lack (device/device.h), a line each, cut where the array ends.
void pen_worker_run_lacks(const pen_worker_run *run, char *text, size_t size);
// All is there, also the links to others: `ready` is called.
PEN_NODISCARD pen_status pen_worker_run_set_ready(pen_worker_run *run);
// Makes the threads leave what they wait for; a task that runs is finished. Returns at once.
void pen_worker_run_close(pen_worker_run *run);
// Closes, and waits until no device computes or sends any more. Buffers stay: others may still read
// or write them.
void pen_worker_run_rest(pen_worker_run *run);
// Frames that are lent to the transport.
uint32_t pen_worker_run_lent_count(pen_worker_run *run);
// Accepts NULL. Nothing is handed in any more, no frame is lent, and none arrives.
void pen_worker_run_destroy(pen_worker_run *run);

// ---- from the transport; errors are of the sender: they take the link down
PEN_NODISCARD pen_status pen_worker_run_begin(pen_worker_run *run, uint32_t peer,
                                              const pen_frame *frame, pen_memory_place *out_place);
void pen_worker_run_end(pen_worker_run *run, const pen_frame *frame, const uint32_t *checksums,
                        bool is_compared);
void pen_worker_run_summed(pen_worker_run *run, uint64_t token);
void pen_worker_run_let_go(pen_worker_run *run, uint64_t token);

// ---- from the coordinator and other workers
PEN_NODISCARD pen_status pen_worker_run_add_round(pen_worker_run *run, const pen_run_round *round);
// Its losses are finite: it may update. CORRUPT
PEN_NODISCARD pen_status pen_worker_run_go(pen_worker_run *run, uint64_t round,
                                           pen_arrivals_order order);
// ASSIGN, START, STOP, CREDIT. CORRUPT
PEN_NODISCARD pen_status pen_worker_run_feed(pen_worker_run *run, const pen_worker_event *event);
// Ends the run: `failed` is called, unless it was before.
void pen_worker_run_fail(pen_worker_run *run, pen_status take_status);
// A piece of a parameter or state is to be sent to the coordinator as a TENSOR frame. CORRUPT:
// there is no such tensor
PEN_NODISCARD pen_status pen_worker_run_send_piece(pen_worker_run *run,
                                                   const pen_tensor_piece *piece);

// ---- checkpoints
typedef struct pen_run_save {
    uint64_t order;     // its number
    uint64_t step;      // that was done
    const char *folder; // name beneath the first store; or the coordinator's path of it
    bool makes_folder;  // the former
    uint64_t mark;      // the latter: what is in it (scheduler/store/shared_folder.h)
} pen_run_save;
// Copies aside what the spec lists as saved of the devices here, and writes it: `snapped` and
// `shard` are called, the latter later, on another thread; also when it cannot be written. By the
// thread that loaded. CORRUPT: a device is not at rest
PEN_NODISCARD pen_status pen_worker_run_save(pen_worker_run *run, const pen_run_save *save);

// Reads of the shard that was written last, from byte `offset` on, at most `limit` bytes. Any
// thread. NOT_FOUND, IO
PEN_NODISCARD pen_status pen_worker_run_read_shard(pen_worker_run *run, uint64_t offset, void *out,
                                                   uint64_t limit, uint64_t *out_count);
// The checkpoint of a step is whole. In a folder of this worker's own, shards older than those of
// this and the one before are removed: the coordinator has them all. Any thread.
void pen_worker_run_note_committed(pen_worker_run *run, uint64_t step);

// ---- audits (worker_noting.c)
// From now on keeps what the round's tasks of a stage and microbatch read and made, in place of
// what was kept before. CORRUPT: there are no such tasks here
PEN_NODISCARD pen_status pen_worker_run_note(pen_worker_run *run, const pen_run_note *note);
// It, when it is whole; else NULL. Until the next note, on the thread that says what to note.
const void *pen_worker_run_find_evidence(pen_worker_run *run, uint64_t *out_count);
// It was told to the end. On that thread.
void pen_worker_run_drop_evidence(pen_worker_run *run);

// ---- figures
// What a run does, for beats.
typedef struct pen_run_pulse {
    uint64_t step;       // the last that was done
    double step_seconds; // that it took
    double task_seconds; // for which the longest task runs; 0: nothing computes
} pen_run_pulse;
pen_run_pulse pen_worker_run_get_pulse(pen_worker_run *run);
// All of them, in `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_run_list_sent(pen_worker_run *run, pen_arena *arena,
                                                  const pen_run_sent **out_sent,
                                                  uint32_t *out_count);
// Writes who waits for what into its flight recorder, with what its clock differs from the
// coordinator's; INT64_MIN: not known.
void pen_worker_run_note_waits(pen_worker_run *run, int64_t clock_offset_nanoseconds);
// Who waits for what, a line for each device, into `out_text`, those that compute first.
// *out_is_running: some device does.
void pen_worker_run_describe_waits(pen_worker_run *run, char *out_text, size_t size,
                                   bool *out_is_running);
// Its devices, by their numbers in the table.
uint32_t pen_worker_run_device_count(const pen_worker_run *run);
uint32_t pen_worker_run_device_at(const pen_worker_run *run, uint32_t index);
// Bytes of buffers of a device of this worker, and of the copies that are saved from.
uint64_t pen_worker_run_device_bytes(const pen_worker_run *run, uint32_t device);
double pen_worker_run_wait_seconds(pen_worker_run *run, uint32_t device);
// NULL: nothing is recorded. To be read when the devices are at rest.
const pen_trace_recorder *pen_worker_run_trace(const pen_worker_run *run);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_RUN_H
