// What a worker answers when the coordinator asks something beside the run (run_inquiry.h).
//
// Threads: any.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_ANSWER_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_ANSWER_H

#include "scheduler/protocol/message.h"
#include "scheduler/runtime/worker/worker_run.h"

// Sends the part that is asked for. CORRUPT; OUT_OF_MEMORY; as send_message
PEN_NODISCARD pen_status pen_worker_answer(pen_worker_run *run, pen_transport *transport,
                                           const pen_message *ask);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_ANSWER_H
