// The inside of a worker, for worker.c and worker_link.c.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_INSIDE_H
#define PEN_SCHEDULER_RUNTIME_WORKER_INSIDE_H

#include "base/thread.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/worker.h"
#include "scheduler/runtime/worker_run.h"

#define WORKER_PEERS 4097 // that may be linked

typedef enum worker_state {
    WORKER_IDLE,
    WORKER_GREETED, // the coordinator is linked
    WORKER_PULLING, // the description is on its way
    WORKER_LOADING,
    WORKER_RUNNING,
    WORKER_LEAVING, // what ran is given up
} worker_state;

struct pen_worker {
    pen_worker_options options;
    pen_transport *transport;
    pen_thread *thread;
    uint64_t incarnation;
    char address[PEN_MESSAGE_NAME_BYTES];
    pen_arena *numerics_arena;
    const char *numerics;
    pen_arena *arena; // of the run

    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    worker_state state;
    bool wants_load;
    bool wants_leave;
    bool is_closed;
    bool is_over;                       // nothing will run any more
    bool sends_stopped;                 // the coordinator asked to stop and is to be told
    char waits[PEN_MESSAGE_TEXT_BYTES]; // of the devices, when it did
    uint32_t callback_count;            // of the transport, that use the run now
    pen_worker_run *run;
    bool is_up[WORKER_PEERS];
    bool is_arriving[WORKER_PEERS];  // a frame from it is being written,
    uint32_t arriving_count;         // all of them
    char job[PEN_MESSAGE_JOB_BYTES]; // of the coordinator
    uint64_t generation;
    uint32_t number; // among the workers of the run
    void *blob;
    bool is_blob_begun; // it comes once
    uint64_t blob_bytes;
    uint32_t *blob_checksums;
    pen_status result; // of the only run
};

void pen_worker_tell(pen_worker *worker, uint32_t peer, pen_message *message);
void pen_worker_tell_failure(pen_worker *worker, pen_status status);
// What comes from the transport (worker_link.c).
pen_transport_events pen_worker_events(pen_worker *worker);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_INSIDE_H
