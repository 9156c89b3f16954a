// What a coordinator asks its workers beside the run: who waits for what, figures, traces. Answers
// come in parts of a text or of bytes.
//
// Threads: any.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_INQUIRY_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_INQUIRY_H

#include "scheduler/protocol/message.h"
#include "scheduler/runtime/worker/worker_run.h"

typedef enum pen_run_inquiry {
    PEN_RUN_INQUIRY_WAITS,   // 'r' where a device computes, else 'w'; then a text
    PEN_RUN_INQUIRY_FIGURES, // pen_run_inquiry_figures, then pen_run_device_figures of each device
    PEN_RUN_INQUIRY_TRACE,   // pen_trace_encode; when the devices are at rest
    PEN_RUN_INQUIRY_DUMP,    // dumps the flight recorders of its process; no answer. The offset is
                             // what its clock differs, nanoseconds; INT64_MIN: not known
    PEN_RUN_INQUIRY_SHARD,   // bytes of the shard that was written last, from an offset on
    PEN_RUN_INQUIRY_SENT,    // pen_run_sent of all frames that were sent last
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

// Sends the part that is asked for. CORRUPT; OUT_OF_MEMORY; as send_message
PEN_NODISCARD pen_status pen_run_inquiry_answer(pen_worker_run *run, pen_transport *transport,
                                                const pen_message *ask);

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_INQUIRY_H
