// The contract of this folder towards its users, defined in worker_life.c.
//
// A worker: takes links from a coordinator and from other workers, and runs what it is assigned.
//
//   IDLE ──coordinator links up──► GREETED ──assign──► LOADING ──links, ready──► RUNNING
//     ▲                                                                            │
//     └──────────── stop, the coordinator's link is lost, or a failure ────────────┘
//
// A thread of its own loads and unloads; the transport's thread hands messages and frames on; the
// devices' threads compute (worker_run.h). The same code serves in the process of the coordinator,
// where the description is handed over as it is, and in a process of its own, where it is pulled.
//
// Lifetime: pen_worker_create to pen_worker_destroy; a worker outlives its runs.
// Threads:  any.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_H

#include "base/system/kernel_level.h"
#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/runtime/worker/worker_run.h"
#include "scheduler/transport/transport.h"

// What a worker says, before the number, to a coordinator of a lower generation than it knows of.
#define PEN_WORKER_SUPERSEDED "superseded by generation"

// And to one that sends what a run needs that was left: tensors, or its description.
#define PEN_WORKER_LEFT "nothing runs here"

typedef struct pen_worker pen_worker;

typedef struct pen_worker_options {
    const pen_transport_kind *transport;
    const char *address; // where it takes links: "host:port", port 0: any
    pen_transport_tls tls;
    bool is_insecure;
    const char *token_file;         // shared with who calls from this host; NULL: none
    struct pen_rotating_log *audit; // lines about those who call; NULL: none
    bool tells_links;               // each link that it takes is a line of the log
    bool is_once;                   // ends with its first run
    // The folders beneath which it makes, writes and removes files: where the coordinator wants
    // shards of checkpoints, and where it has a second folder for them. NULL: there is none.
    const char *store;
    const char *mirror;
    uint64_t memory_bytes; // that this process may use, if less than the system grants; 0: that
    const char *data; // folder of data that it may read by itself; NULL: none, but with `spec` any
    // Of a worker in the coordinator's process; spec NULL: what is to be run is pulled.
    const pen_run_spec *spec;
    void (*loaded)(const void *model); // the model's bytes are no longer needed; or NULL
    const void *model;
    pen_worker_collector collector;
} pen_worker_options;

// Listens. *out_port is the port taken. As the transport's listen; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_create(const pen_worker_options *options,
                                           pen_worker **out_worker, uint16_t *out_port);
// Waits until it ends, which only one that `is_once` does by itself: after its first run. An error
// that ended that run.
PEN_NODISCARD pen_status pen_worker_join(pen_worker *worker);
bool pen_worker_is_over(pen_worker *worker);
// Whether it cannot leave a run, or a link, which was said: its process is to end, without destroy.
bool pen_worker_is_stuck(pen_worker *worker);
// Whether a coordinator is linked with it.
bool pen_worker_is_led(pen_worker *worker);
// Tells the coordinator, if there is a run, that this worker ends because of `why`; then it is to
// be destroyed.
void pen_worker_leave(pen_worker *worker, const char *why);
// Ends what runs, and waits for it. Accepts NULL.
void pen_worker_destroy(pen_worker *worker);

// What must be alike at both ends for equal numbers: kernel level, which is settled, and libraries.
// In `arena`. As pen_kernel_level_settle; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_describe_numerics(pen_kernel_level level, pen_arena *arena,
                                                      const char **out_text);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_H
