// What a run did when: tasks, waits, sends and receives of every worker, on one clock.
//
// Workers record into arrays of fixed size (the newest events win); the coordinator collects them
// with each worker's clock difference. From a trace come the Chrome trace file, the measured time
// line of the report, the bubble and the table of predicted against measured.
//
// Lifetime: a recorder owns its memory; a trace lives in its arena.
// Threads:  a recorder has one row for each thread that writes; each row has one writer. It is read
//           when they are at rest.
#ifndef PEN_SCHEDULER_TRACE_TRACE_H
#define PEN_SCHEDULER_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/task.h"

#define PEN_TRACE_HOST UINT32_MAX         // in place of a device
#define PEN_TRACE_NO_CHANNEL UINT32_MAX   // in place of a channel
#define PEN_TRACE_EVENT_LIMIT (1u << 22)  // of a message, of a file
#define PEN_TRACE_DEVICE_LIMIT (1u << 16) // devices, workers
#define PEN_TRACE_STAGE_LIMIT (1u << 16)
#define PEN_TRACE_CHANNEL_LIMIT (1u << 24)
#define PEN_TRACE_FORM_LIMIT 256u

typedef enum pen_trace_kind {
    PEN_TRACE_TASK,    // computing
    PEN_TRACE_WAIT,    // a device waits for a frame, a place, or the word to update
    PEN_TRACE_SEND,    // from send_frame to let_go
    PEN_TRACE_RECEIVE, // from begin to end
} pen_trace_kind;
#define PEN_TRACE_KIND_COUNT (PEN_TRACE_RECEIVE + 1)

typedef struct pen_trace_event {
    pen_trace_kind kind;
    pen_task task;     // TASK, WAIT
    uint32_t device;   // of the cluster; PEN_TRACE_HOST: the coordinator's own sends and receives
    uint32_t channel;  // SEND, RECEIVE, WAIT: of the form; or PEN_TRACE_NO_CHANNEL
    uint32_t form;     // of the run table
    uint64_t round;    // as the run table counts them
    uint64_t step;     // of the training, from 1, that the round belongs to; 0: of none
    uint64_t sequence; // SEND, RECEIVE: which frame of the channel
    uint64_t bytes;    // SEND, RECEIVE
    double start_seconds;
    double end_seconds;
} pen_trace_event;

typedef struct pen_trace_recorder pen_trace_recorder;

// `row_count` rows of `row_limit` events, neither 0. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trace_recorder_create(uint32_t row_count, uint32_t row_limit,
                                                   pen_trace_recorder **out_recorder);
void pen_trace_recorder_destroy(pen_trace_recorder *recorder); // accepts NULL
// No heap, no lock. A NULL recorder records nothing, nor do rows that are not there.
void pen_trace_record(pen_trace_recorder *recorder, uint32_t row, const pen_trace_event *event);
// The events of all rows in order of their start; in `arena`. *out_lost: overwritten ones.
PEN_NODISCARD pen_status pen_trace_recorder_read(const pen_trace_recorder *recorder,
                                                 pen_arena *arena,
                                                 const pen_trace_event **out_events,
                                                 uint32_t *out_count, uint64_t *out_lost);

// Events as bytes for a message, and back: little endian, PEN_TRACE_EVENT_BYTES each after a head.
// What is read is not trusted: kinds are known, and times finite and in order. OUT_OF_MEMORY;
// CORRUPT
#define PEN_TRACE_HEAD_BYTES 12
#define PEN_TRACE_EVENT_BYTES 76
PEN_NODISCARD pen_status pen_trace_encode(const pen_trace_event *events, uint32_t count,
                                          pen_arena *arena, const void **out_bytes,
                                          uint64_t *out_byte_count);
PEN_NODISCARD pen_status pen_trace_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                                          const pen_trace_event **out_events, uint32_t *out_count);

typedef struct pen_trace_worker {
    const char *name;              // "worker 1 (127.0.0.1:40123)"
    uint32_t process;              // of the system
    double clock_seconds;          // to be added to its times to get the coordinator's
    const pen_trace_event *events; // [event_count], its own clock
    uint32_t event_count;
    uint64_t lost_count;
} pen_trace_worker;

typedef struct pen_trace_channel {
    const char *value;
    uint32_t source_device; // UINT32_MAX: the host
    uint32_t target_device;
    bool is_backward;
    bool is_per_step;
    uint64_t bytes;
    uint32_t together; // the first of the channels that leave with the same task for the same
                       // device: itself, if there is no other
    // As planned, a mean: from the end of the task that makes these values until all are there;
    // below 0: not told. The link's latency is part of it.
    double planned_seconds;
    double planned_latency;
} pen_trace_channel;

// What the plan says of a stage: memory, and seconds of its tasks for a microbatch.
typedef struct pen_trace_stage {
    uint32_t device;
    double activation_bytes; // kept for each microbatch from its forward to its backward
    double halved_bytes;     // besides, from its input half to its weight half
    double forward_seconds;
    double backward_input_seconds; // with recomputing
    double backward_weight_seconds;
    double update_seconds; // of a step
} pen_trace_stage;

typedef struct pen_trace {
    uint32_t worker_count;
    const pen_trace_worker *workers;
    uint32_t device_count;
    const char *const *device_names;  // [device_count]
    const uint32_t *worker_of_device; // [device_count], position in workers
    uint32_t channel_count;           // of form 0, the whole training microbatch
    const pen_trace_channel *channels;
    uint32_t stage_count; // 0: not told
    const pen_trace_stage *stages;
    const double *fixed_bytes; // [device_count] all that is not activations kept; NULL: not told
    // [device_count] how many times as long as the costs say the plan reckoned with; NULL: what was
    // planned is not told
    const double *planned_slowness;
} pen_trace;

// Whether a trace holds together: devices, workers, channels and stages that are there, times that
// are finite and in order. For traces made of what others sent. CORRUPT says what is wrong.
PEN_NODISCARD pen_status pen_trace_check(const pen_trace *trace);

// An event on the clock of the whole: seconds since the first event of any worker.
typedef struct pen_trace_entry {
    pen_trace_event event;
    uint32_t worker; // who recorded it
} pen_trace_entry;

// All events of a trace in order of their start, on one clock. Checks the trace first.
// CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trace_merge(const pen_trace *trace, pen_arena *arena,
                                         const pen_trace_entry **out_entries, uint32_t *out_count);

// "compute", "wait", "send", "receive".
const char *pen_trace_kind_name(pen_trace_kind kind);

#endif // PEN_SCHEDULER_TRACE_TRACE_H
