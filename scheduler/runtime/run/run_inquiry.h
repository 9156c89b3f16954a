// What a coordinator asks its workers beside the run, and what they tell: who waits for what,
// figures, traces. Answers come in parts of a text or of bytes (run_wire.h).
//
// Threads: plain data.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_INQUIRY_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_INQUIRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

typedef enum pen_run_inquiry {
    PEN_RUN_INQUIRY_WAITS,    // 'r' where a device computes, else 'w'; then a text
    PEN_RUN_INQUIRY_FIGURES,  // pen_run_inquiry_figures, then pen_run_device_figures of each device
    PEN_RUN_INQUIRY_TRACE,    // pen_trace_encode; when the devices are at rest
    PEN_RUN_INQUIRY_DUMP,     // dumps the flight recorders of its process; no answer. The offset is
                              // what its clock differs (pen_run_clock_pack)
    PEN_RUN_INQUIRY_SHARD,    // bytes of the shard that was written last, from an offset on
    PEN_RUN_INQUIRY_SENT,     // pen_run_sent of all frames that were sent last
    PEN_RUN_INQUIRY_EVIDENCE, // that AUDIT asked for (evidence.h); no bytes: there is none
} pen_run_inquiry;

typedef struct pen_run_inquiry_figures {
    uint64_t process;       // of the system
    uint64_t process_bytes; // resident peak
    uint64_t trace_lost;    // events
    uint64_t sent_bytes;    // payloads
} pen_run_inquiry_figures;

typedef struct pen_run_device_figures {
    uint64_t device;
    uint64_t bytes; // of buffers
    double wait_seconds;
} pen_run_device_figures;

// What a device did in a round, by its process's clock.
typedef struct pen_round_figures {
    uint32_t device;
    double start_seconds; // of its first task
    double end_seconds;   // of its last
    double busy_seconds;  // computing
    double applied; // that updates multiplied scaled gradients by, where the device found it: below
                    // 0, the step was skipped; else 0
} pen_round_figures;

// The last frame that was sent of a channel for a microbatch.
typedef struct pen_run_sent {
    uint32_t form;
    uint32_t channel;
    uint64_t sequence;
    uint64_t checksum; // pen_checksum_whole of the tensor
    bool is_sent;      // false: none was yet
} pen_run_sent;

// What is to be kept of a round of form 0, so that others can compute it again.
typedef struct pen_run_note {
    uint64_t round;
    uint32_t device;
    uint32_t stage;
    uint32_t microbatch;
} pen_run_note;

// A piece of a parameter or state, on its way to or from the coordinator.
typedef struct pen_tensor_piece {
    uint32_t device;
    uint32_t form;  // 0, but for constants of other forms
    uint32_t value; // in its part
    uint64_t offset;
    uint64_t bytes;    // at most PEN_TRANSPORT_CHUNK_BYTES
    uint64_t sequence; // of its frame
} pen_tensor_piece;

// A difference of clocks in nanoseconds, either way, as a counter of a message, which is below
// PEN_COUNTER_LIMIT; INT64_MIN, and what is 52 days or more, is "not known".
#define PEN_RUN_CLOCK_ZERO ((int64_t)(PEN_COUNTER_LIMIT / 2))
static inline uint64_t pen_run_clock_pack(int64_t nanoseconds) {
    const bool is_known = nanoseconds > -PEN_RUN_CLOCK_ZERO && nanoseconds < PEN_RUN_CLOCK_ZERO;
    return is_known ? (uint64_t)(nanoseconds + PEN_RUN_CLOCK_ZERO) : 0;
}
static inline int64_t pen_run_clock_unpack(uint64_t packed) {
    const bool is_known = packed > 0 && packed < PEN_COUNTER_LIMIT;
    return is_known ? (int64_t)packed - PEN_RUN_CLOCK_ZERO : INT64_MIN;
}

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_INQUIRY_H
