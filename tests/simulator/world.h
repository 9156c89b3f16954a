// A world in which a training is simulated: processes on hosts, a network between them, a disk, one
// clock, and a heap of events. Everything that is drawn comes from one seed, so one seed is one
// run.
//
// The product's own code decides: the cores of coordinator, worker and member, the policy of
// recovery, the sessions of links, the commit log and the shards. The world does what they ask for,
// hurts them, and compares what comes of it with the undisturbed training (shape.h).
//
// Lifetime: one seed; all memory is in the world's arena.
// Threads:  one.
#ifndef PEN_TESTS_SIMULATOR_WORLD_H
#define PEN_TESTS_SIMULATOR_WORLD_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "scheduler/protocol/recovery_policy.h"
#include "tests/simulator/shape.h"
#include "tests/simulator/simulation.h"
#include "tests/support/chance.h"
#include "tests/support/faulty_disk.h"

#define WORLD_HOSTS 12u // 0 and 1: coordinators; from 2 on workers and spares
#define WORLD_FIRST_WORKER 2u
#define WORLD_PROCESSES 160u
#define WORLD_NOTES 64u
#define WORLD_MICROSECOND ((uint64_t)1000)
#define WORLD_MILLISECOND ((uint64_t)1000000)
#define WORLD_SECOND ((uint64_t)1000000000)
#define WORLD_NEVER UINT64_MAX

typedef struct world world;
typedef struct process process;

typedef void (*world_call)(process *p, void *context, uint64_t value);

typedef struct world_event {
    uint64_t at;
    uint64_t order; // among those that are due at once
    process *process;
    world_call call;
    void *context;
    uint64_t value;
    bool is_work; // that is not done while the process is stuck
} world_event;

typedef struct world_events {
    world_event *items; // [room]
    uint32_t count;
    uint32_t room;
} world_events;

// What happened, for the last lines before a violation.
typedef struct world_note {
    uint64_t at;
    const char *text;
    uint32_t process;
    uint64_t numbers[3];
} world_note;

// A wait that is counted (waits.h).
typedef struct wait_watch {
    uint64_t key;
    uint64_t ticks;
} wait_watch;

struct process {
    world *world;
    uint32_t index;
    uint32_t host;
    bool is_alive;
    bool is_frozen;
    bool is_held; // in a call to the disk
    uint64_t thaws_at;
    uint64_t incarnation;
    uint64_t clock_offset;
    int64_t clock_drift;   // in a million
    world_events deferred; // while it is frozen
    bool is_stuck, is_stuck_ticking;
    bool is_behind; // no longer stuck, with works held that have not been done
    uint64_t sticks_until;
    world_events held; // while it is stuck
    uint32_t held_message_count;
    uint64_t slowness; // tasks take that many times as long
    struct link *links;
    faulty_view *disk;
    struct worker_process *worker; // one of the two
    struct coordinator_process *coordinator;
};

typedef struct world_host {
    process *process; // NULL: none runs here
    bool is_gone;     // none ever will again
    bool is_spare;
} world_host;

// The network. Chances are in a million packets.
typedef struct world_network {
    uint64_t latency_min;
    uint64_t latency_max;
    uint32_t lose;
    uint32_t repeat;
    uint32_t delay; // by up to delay_max
    uint64_t delay_max;
    uint32_t corrupt;
    uint32_t ghost;                        // messages that one follows
    uint32_t corrupt_deep;                 // in a frame's content, unseen by its packet
    bool is_cut[WORLD_HOSTS][WORLD_HOSTS]; // [from][to]
    uint32_t stream_chance;                // of links, in 4
} world_network;

// Times of the job.
typedef struct world_times {
    uint64_t lease;
    uint64_t beat;
    uint64_t progress;
    uint64_t load;
    uint64_t recruit;             // a coordinator waits for workers
    uint64_t write;               // for shards, the fence and manifests
    uint64_t link, assign, leave; // of a worker's waits
    uint64_t grace;               // for those that are missing to come back
    uint64_t resume;              // a broken stream may take
    uint64_t resend;
    uint64_t ack;
} world_times;

struct world {
    simulation_options options;
    simulation_result *result;
    uint64_t seed;
    pen_arena *arena;
    chance dice;  // what the job is like
    chance chaos; // what goes wrong, and how long things take
    shape *shape;
    uint64_t now;
    uint64_t order;
    world_event *heap;
    uint32_t heap_count;
    uint32_t heap_room;
    uint64_t event_limit;
    process *processes[WORLD_PROCESSES];
    uint32_t process_count;
    world_host hosts[WORLD_HOSTS];
    uint32_t host_count;
    world_network network;
    world_times times;
    faulty_disk *disk;
    struct link_packet *spare_packets;
    world_note notes[WORLD_NOTES];
    uint64_t note_count;
    bool is_over;   // the training is done
    bool is_wrong;  // an invariant is broken
    bool is_calm;   // no more faults
    uint32_t depth; // of calls that are held
    uint64_t faults_end;
    uint64_t bound; // by which all must be done
    // the job
    uint32_t worker_count; // at the start
    uint32_t save_every;
    bool sends_first;  // parameters, before the first round; else workers ask for them
    bool fences_first; // before workers are recruited; else the core asks for it
    uint32_t variant;
    pen_recovery_on_loss on_loss;
    // what is known of it, for the checks
    struct checks *checks;
};

// ---- events

// Calls `call` in `delay` nanoseconds of the world, unless the process is dead then; when it is
// frozen, when it thaws. Of no process: NULL.
void world_call_in(world *w, uint64_t delay, process *p, world_call call, void *context,
                   uint64_t value);
// Keeps an event until a frozen process thaws.
void world_defer(process *frozen, process *p, world_call call, void *context, uint64_t value);
// The same, of anything.
void world_put(world *w, uint64_t delay, world_event event);
// One event. False: there are none.
bool world_step(world *w);

// Notes what happens; goes into the digest.
void world_note_event(world *w, const process *p, const char *text, const uint64_t numbers[3]);
#define WORLD_NOTE(w, p, text, a, b, c)                                                            \
    world_note_event((w), (p), (text),                                                             \
                     (const uint64_t[3]){(uint64_t)(a), (uint64_t)(b), (uint64_t)(c)})

// An invariant is broken: the run ends. The first one counts.
void world_wrong(world *w, const char *invariant, const char *format, ...) PEN_PRINTF(3, 4);

// Fails the program when there is no memory.
void *world_allocate(world *w, size_t count, size_t size);
#define WORLD_NEW(w, type) ((type *)world_allocate((w), 1, sizeof(type)))

// ---- processes

uint64_t process_now(const process *p); // its own clock
// Whether the thread that does works is held by one, or has others to do before what comes now.
static inline bool process_is_busy(const process *p) {
    return p->is_stuck || p->is_behind;
}
// A new process on a host, a worker or coordinator by the host. NULL: there are too many.
process *process_start(world *w, uint32_t host);
// It is gone, as by SIGKILL. `takes_power`: its machine's power, too.
void process_crash(process *p, bool takes_power);
void process_freeze(process *p, uint64_t nanoseconds);
// As freeze, in the middle of what the process does: returns when it may go on. What happens
// meanwhile may hold others, and those be released first.
void process_hold(process *p, uint64_t nanoseconds);
uint64_t process_count_of(world *w, uint64_t *counter); // a fault was injected

#endif // PEN_TESTS_SIMULATOR_WORLD_H
