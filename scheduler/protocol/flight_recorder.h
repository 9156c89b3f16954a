// The last events that a process's protocol cores took, kept so that a failure can be looked at,
// and replayed, afterwards: a ring of PEN_FLIGHT_EVENTS events, written to a file when an assertion
// fails, a run fails, or somebody asks (SIGUSR1).
//
// A dump begins with what is needed for a replay: who the process was, and its run table. `penstock
// diagnose` merges the dumps of several processes by their clocks.
//
// Recording takes no lock but the caller's own (it is done under the core's lock), allocates
// nothing, and copies one event.
//
// Threads: a recorder has one writer at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_FLIGHT_RECORDER_H
#define PEN_SCHEDULER_PROTOCOL_FLIGHT_RECORDER_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/worker_core.h"

#define PEN_FLIGHT_EVENTS 4096u

typedef enum pen_flight_kind {
    PEN_FLIGHT_WORKER,      // a pen_worker_event
    PEN_FLIGHT_COORDINATOR, // a pen_coordinator_event
    PEN_FLIGHT_NOTE,        // text: a link went down, a signal came, …
} pen_flight_kind;

#define PEN_FLIGHT_NOTE_BYTES 96

typedef struct pen_flight_event {
    uint64_t number; // from 0, of all that were recorded
    uint64_t clock;  // nanoseconds of the process
    pen_flight_kind kind;
    union {
        pen_worker_event worker;
        pen_coordinator_event coordinator; // without its identity
        char note[PEN_FLIGHT_NOTE_BYTES];
    } event;
} pen_flight_event;

typedef struct pen_flight_recorder pen_flight_recorder;

// `worker` 0: the coordinator. The table is encoded into the dump's beginning now. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_flight_recorder_create(const pen_run_table *table, uint32_t worker,
                                                    uint64_t generation, uint64_t incarnation,
                                                    pen_flight_recorder **out_recorder);
void pen_flight_recorder_destroy(pen_flight_recorder *recorder); // accepts NULL

void pen_flight_record_worker(pen_flight_recorder *recorder, const pen_worker_event *event);
void pen_flight_record_coordinator(pen_flight_recorder *recorder,
                                   const pen_coordinator_event *event);
void pen_flight_record_note(pen_flight_recorder *recorder, const char *text);

// Where dumps go: "FOLDER/flight-PID-WORKER.bin"; "": nowhere. Also makes failed assertions dump
// all recorders of the process. Once, at the start.
void pen_flight_set_folder(const char *folder);
// Writes all recorders of the process; safe in a signal handler (no heap, no locks of ours).
void pen_flight_dump(const char *reason);

// A dump, read. Bytes are not trusted. CORRUPT, OUT_OF_MEMORY
typedef struct pen_flight_dump_file {
    uint32_t worker;
    uint64_t generation;
    uint64_t incarnation;
    const char *reason;
    const pen_run_table *table;
    uint32_t event_count;
    const pen_flight_event *events; // oldest first
} pen_flight_dump_file;
PEN_NODISCARD pen_status pen_flight_dump_decode(const void *bytes, uint64_t count, pen_arena *arena,
                                                pen_flight_dump_file *out_dump);

#endif // PEN_SCHEDULER_PROTOCOL_FLIGHT_RECORDER_H
