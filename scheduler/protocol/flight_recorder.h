// The last events that a process's protocol cores took, kept so that a failure can be looked at,
// and replayed, afterwards: a ring of PEN_FLIGHT_EVENTS events, written to a file when an assertion
// fails, a run fails, or somebody asks (SIGUSR1).
//
// A dump begins with what is needed for a replay: who the process was, its run table, and what its
// coordinator core was made with. flight_dump.h reads dumps; `penstock diagnose` merges those of
// several processes by their clocks.
//
// A file is little endian and ends with a checksum: magic, version, who it was, what was known at
// the start, the reason, identities of HELLOs, then the events, oldest first.
//
// Recording takes no lock but the caller's own (it is done under the core's lock), allocates
// nothing, and copies one event.
//
// Threads: a recorder has one writer at a time; it may be dumped from any thread meanwhile, and
// from signal handlers: an event that is being written then is left out.
#ifndef PEN_SCHEDULER_PROTOCOL_FLIGHT_RECORDER_H
#define PEN_SCHEDULER_PROTOCOL_FLIGHT_RECORDER_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/coordinator_core.h"
#include "scheduler/protocol/worker_core.h"

#define PEN_FLIGHT_EVENTS 4096u
#define PEN_FLIGHT_IDENTITIES 64u // HELLOs whose identities are kept
#define PEN_FLIGHT_NOTE_BYTES 128

typedef enum pen_flight_kind {
    PEN_FLIGHT_WORKER,      // a pen_worker_event
    PEN_FLIGHT_COORDINATOR, // a pen_coordinator_event
    PEN_FLIGHT_NOTE,        // text: a link went down, a signal came, …
} pen_flight_kind;
#define PEN_FLIGHT_KIND_COUNT (PEN_FLIGHT_NOTE + 1)

typedef struct pen_flight_recorder pen_flight_recorder;

// Borrowed for the call.
typedef struct pen_flight_setup {
    const pen_run_table *table;
    uint32_t worker; // 0: the coordinator
    uint64_t generation;
    uint64_t incarnation;
    const pen_coordinator_options *options; // of the coordinator's core; workers: NULL
    // For people: names of workers ([worker_count + 1]) and, by form and channel, of what channels
    // carry. NULL: not known.
    const char *const *worker_names;
    const char *const *const *channel_names;
} pen_flight_setup;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_flight_recorder_create(const pen_flight_setup *setup,
                                                    pen_flight_recorder **out_recorder);
void pen_flight_recorder_destroy(pen_flight_recorder *recorder); // accepts NULL

// All of these accept NULL. An event is recorded before the core takes it; what came of it is added
// when the core has returned, so that a replay can be compared.
void pen_flight_record_worker(pen_flight_recorder *recorder, const pen_worker_event *event);
void pen_flight_add_worker(pen_flight_recorder *recorder, pen_worker_fault fault,
                           const pen_worker_action *actions, uint32_t action_count);
void pen_flight_record_coordinator(pen_flight_recorder *recorder,
                                   const pen_coordinator_event *event);
void pen_flight_add_coordinator(pen_flight_recorder *recorder,
                                const pen_coordinator_action *actions, uint32_t action_count);
// Cut at PEN_FLIGHT_NOTE_BYTES - 1. What a device waits for begins with "waits: ".
void pen_flight_record_note(pen_flight_recorder *recorder, const char *text);

// What this process's clock is to be given to be the coordinator's, once that is known.
void pen_flight_set_clock_offset(pen_flight_recorder *recorder, double seconds);

// Where dumps go: "FOLDER/flight-gGENERATION-wWORKER-PID.bin"; "": nowhere. The folder is made by
// the first dump. Also makes failed assertions dump all recorders of the process. At the start,
// and again when a better place is known.
void pen_flight_set_folder(const char *folder);
// "": none
const char *pen_flight_folder(void);

// Writes all recorders of the process; safe in a signal handler (no heap, no locks). Returns how
// many were written.
uint32_t pen_flight_dump(const char *reason);

#endif // PEN_SCHEDULER_PROTOCOL_FLIGHT_RECORDER_H
