// The contract of worker_life.c, worker_member.c and worker_link.c among themselves.
//
// The inside of a worker, for its files.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_INSIDE_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_INSIDE_H

#include "base/thread.h"
#include "scheduler/protocol/member_core.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/worker/worker.h"
#include "scheduler/runtime/worker/worker_run.h"
#include "scheduler/runtime/worker/worker_survey.h"

#define WORKER_PEERS 4097 // that may be linked

// A link, as far as the worker knows.
typedef enum worker_link_state {
    WORKER_LINK_NONE,
    WORKER_LINK_PENDING, // called, or taken: `up` or `down` will come
    WORKER_LINK_UP,
} worker_link_state;

// A package of which parts come, and which is then computed on a thread of its own.
typedef struct worker_recompute {
    pen_thread *thread; // NULL: none was started; the transport's thread alone uses this,
    bool is_computing;  // guarded by lock
    uint64_t generation, sequence;
    uint32_t device;
    char *bytes; // [byte_count], and the package of which so many bytes are here
    uint64_t byte_count;
    uint64_t count;
} worker_recompute;

struct pen_worker {
    pen_worker_options options;
    pen_transport *transport;
    pen_thread *thread; // loads, saves, leaves
    pen_thread *clock;  // beats
    uint64_t incarnation;
    char address[PEN_MESSAGE_NAME_BYTES];
    uint64_t memory_bytes;     // that this process may use; 0: not known
    uint32_t core_count;       // likewise
    pen_shared_folders stores; // none: it writes nothing
    uint32_t level;            // of kernels, that the coordinator wants; 0: any
    pen_arena *arena;          // of the run

    pen_mutex lock;
    pen_condition changed;
    pen_condition ticked; // for the clock
    // guarded by lock
    pen_member_core member; // which coordinator, which generation
    bool wants_load;
    bool wants_save;
    bool wants_survey;
    bool wants_leave;
    bool wants_disconnect; // from the coordinator
    bool is_closed;
    bool is_stuck;
    bool is_over;                          // nothing will run any more
    char waits[PEN_MESSAGE_TEXT_BYTES];    // of the devices, when the run ended
    char computed[PEN_MESSAGE_TEXT_BYTES]; // the first line of it, if one computed; "": none did
    uint32_t callback_count;               // of the transport, that use the run now
    pen_worker_run *run;
    pen_worker_survey *survey; // in place of a run
    pen_survey_order order;    // what is to be measured
    uint64_t order_sequence;
    worker_link_state links[WORKER_PEERS];
    bool is_arriving[WORKER_PEERS];  // a frame from it is being written,
    uint32_t arriving_count;         // all of them
    char job[PEN_MESSAGE_JOB_BYTES]; // of the coordinator
    void *blob;
    bool is_blob_begun; // it comes once
    uint64_t blob_bytes;
    uint32_t *blob_checksums;
    uint64_t save_sequence; // of the run's last order to save; 0: none
    uint64_t save_step;     // what is to be saved
    bool save_is_local;
    char save_folder[PEN_MESSAGE_TEXT_BYTES];
    uint64_t save_mark;
    // that the coordinator will save to, as it calls them, with a line's end between; its mark
    char sought[PEN_MESSAGE_TEXT_BYTES];
    uint64_t sought_mark;
    uint32_t seen;     // bits: which of them are seen here; set before the run is ready
    pen_status result; // of the only run
    worker_recompute recompute;
};

// To `peer`; of the generation that is current, unless the message has one.
void pen_worker_tell(pen_worker *worker, uint32_t peer, pen_message *message);

// ---- the member core (worker_member.c). Without the lock, but for `note`.
void pen_worker_step(pen_worker *worker, const pen_member_event *event);
// Hands over what the worker's threads are to do. Holds the lock.
void pen_worker_note(pen_worker *worker, const pen_member_action *actions, uint32_t count);
// The rest of what the core says.
void pen_worker_carry_out(pen_worker *worker, const pen_member_action *actions, uint32_t count);
uint64_t pen_worker_now(void);
// The run cannot go on: tells the coordinator. Takes the error.
void pen_worker_fail(pen_worker *worker, pen_status take_status);
// Keeps what devices wait for, before the run is left. *out_computes: some device does. False:
// there is no run.
bool pen_worker_keep_waits(pen_worker *worker, bool *out_computes);
// What happens in a run, for the coordinator.
pen_worker_run_events pen_worker_run_listeners(pen_worker *worker);
// The clock's thread.
void pen_worker_keep_time(void *context);

// ---- what others computed (worker_recompute.c)
// A part of a package: takes it, and begins when all are here. Answers. CORRUPT
PEN_NODISCARD pen_status pen_worker_recompute(pen_worker *worker, const pen_message *message);
// Waits for what is computed. When no message comes any more.
void pen_worker_end_recompute(pen_worker *worker);

// ---- links (worker_link.c)
pen_transport_events pen_worker_events(pen_worker *worker);
// The run, which stays until pen_worker_release_run; NULL: there is none.
pen_worker_run *pen_worker_use_run(pen_worker *worker);
void pen_worker_release_run(pen_worker *worker);
// Likewise of a survey; released in the same way.
pen_worker_survey *pen_worker_use_survey(pen_worker *worker);
// What happens in a survey, for the coordinator and other workers (worker_member.c).
pen_worker_survey_options pen_worker_survey_listeners(pen_worker *worker);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_INSIDE_H
