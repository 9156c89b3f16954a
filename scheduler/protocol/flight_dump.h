// The contract of flight_dump.c, flight_text.c and flight_replay.c.
//
// Dumps of flight recorders, read, told in words, and fed to a new core.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_FLIGHT_DUMP_H
#define PEN_SCHEDULER_PROTOCOL_FLIGHT_DUMP_H

#include "scheduler/protocol/flight_recorder.h"

#define PEN_FLIGHT_LINE_BYTES 256

typedef struct pen_flight_event {
    uint64_t number; // from 0, of all that were recorded
    uint64_t clock;  // nanoseconds of the process
    bool has_outcome;
    uint64_t outcome; // digest of the fault and the actions that followed
    pen_flight_kind kind;
    union {
        pen_worker_event worker;
        pen_coordinator_event coordinator;
        char note[PEN_FLIGHT_NOTE_BYTES];
    } event;
} pen_flight_event;

typedef struct pen_flight_dump_file {
    uint32_t worker;
    uint32_t process;
    uint64_t generation;
    uint64_t incarnation;
    uint64_t clock;       // when it was written
    bool has_offset;      // the next is known; the coordinator: 0
    int64_t clock_offset; // nanoseconds to be added to get the coordinator's clock
    const char *reason;
    const char *build; // that wrote it
    const pen_run_table *table;
    const pen_coordinator_options *options; // NULL: a worker's
    const char *const *worker_names;        // [worker_count + 1]; "": not known
    const char *const *const *channel_names;
    uint64_t recorded; // events since the start
    uint32_t event_count;
    const pen_flight_event *events; // oldest first
} pen_flight_dump_file;

// Bytes are not trusted.
//   INVALID_INPUT  not a dump, or of another version
//   CORRUPT        says what does not go together
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_flight_dump_decode(const void *bytes, uint64_t count, pen_arena *arena,
                                                pen_flight_dump_file *out_dump);

// "frame of 'relu_1' (channel 3), microbatch 2 of round 7", without the line's end.
void pen_flight_event_format(const pen_flight_dump_file *dump, const pen_flight_event *event,
                             char out_text[PEN_FLIGHT_LINE_BYTES]);
void pen_flight_worker_action_format(const pen_flight_dump_file *dump,
                                     const pen_worker_action *action,
                                     char out_text[PEN_FLIGHT_LINE_BYTES]);
void pen_flight_coordinator_action_format(const pen_flight_dump_file *dump,
                                          const pen_coordinator_action *action,
                                          char out_text[PEN_FLIGHT_LINE_BYTES]);
// "coordinator", "worker 2 (hostname:7070)"
void pen_flight_who_format(const pen_flight_dump_file *dump, uint32_t worker,
                           char out_text[PEN_FLIGHT_LINE_BYTES]);

// "device 1 waits for worker 2 to send 'relu_1' (…), to run backward of stage 1, microbatch 0"
void pen_flight_wait_format(const pen_flight_dump_file *dump, uint32_t device,
                            const pen_worker_wait *wait, char out_text[PEN_FLIGHT_LINE_BYTES]);

// Feeds the events to a new core.
typedef struct pen_flight_replay_result {
    bool is_whole;      // the dump begins at event 0: else nothing was replayed
    uint64_t replayed;  // events
    uint64_t compared;  // of those, events whose outcome was recorded
    uint64_t different; // of those, outcomes that are others now
    uint64_t first_different;
    uint64_t fault_count; // of a worker's core
    const char *stopped;  // why it ended before the last event; NULL: it did not
    // Where the core is at the end, one line each: what devices wait for; who is present
    const char *const *state; // [state_count]
    uint32_t state_count;
} pen_flight_replay_result;

typedef struct pen_flight_replay_options {
    // Called for each event and each action that follows it, if not NULL.
    void (*on_event)(void *context, const pen_flight_event *event, bool is_same);
    void (*on_action)(void *context, const char *text);
    void *context;
} pen_flight_replay_options;

// A broken core fails its assertions here as it did there. OUT_OF_MEMORY; CORRUPT: the events
// cannot be fed to a core at all
PEN_NODISCARD pen_status pen_flight_replay(const pen_flight_dump_file *dump,
                                           const pen_flight_replay_options *options,
                                           pen_arena *arena, pen_flight_replay_result *out_result);

#endif // PEN_SCHEDULER_PROTOCOL_FLIGHT_DUMP_H
