// What to do after a run has failed: wait, start again, let a spare take a lost worker's place,
// place the work anew without it, or end the training. No I/O, threads, clock or heap: who is there
// and what time it is comes in, a decision comes out. The training loop carries it out.
//
// After a failure: pen_recovery_note_failure once, then pen_recovery_decide again and again, at
// `until` at the latest, and earlier when somebody came or went, until it is not WAIT. After
// USE_SPARE the worker counts as present, and it is asked again, for the others.
//
// The first recovery comes at once; those that follow failures without a step done come after 0.1
// s, doubled each time, at most 5 s. `attempts` of these, or ten times as many without a step that
// was not done before, end the training.
//
// Times are nanoseconds of a clock that only grows.
//
// Lifetime: in the arena it was made with. Threads: one at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_RECOVERY_POLICY_H
#define PEN_SCHEDULER_PROTOCOL_RECOVERY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define PEN_RECOVERY_TEXT_BYTES 192
#define PEN_RECOVERY_BACKOFF_FIRST ((uint64_t)100000000)
#define PEN_RECOVERY_BACKOFF_LIMIT ((uint64_t)5000000000)

// As `on_loss` of a job.
typedef enum pen_recovery_on_loss {
    PEN_RECOVERY_ON_LOSS_WAIT,
    PEN_RECOVERY_ON_LOSS_SPARE,
    PEN_RECOVERY_ON_LOSS_REPLAN,
    PEN_RECOVERY_ON_LOSS_STOP,
} pen_recovery_on_loss;

typedef struct pen_recovery_options {
    pen_recovery_on_loss on_loss;
    uint64_t grace;        // that a lost worker has to come back
    uint32_t attempts;     // at least 1
    uint32_t worker_count; // of the job's own plan; numbers from 1
} pen_recovery_options;

typedef struct pen_recovery pen_recovery;

// Whether another run may fare better than one that failed with `code`. It may not where the user's
// data or the numbers are at fault, which are the same there, nor where somebody asked to stop.
// What a link or a disk had wrong (CORRUPT, UNAVAILABLE, IO, …) may pass.
bool pen_recovery_may_help(pen_status_code code);

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_recovery_new(const pen_recovery_options *options, pen_arena *arena,
                                          pen_recovery **out_recovery);

// A run has failed. `step`: the highest whose update was done in it, 0: none was.
// is_missing [worker_count + 1]: who was lost, or to blame.
void pen_recovery_note_failure(pen_recovery *recovery, uint64_t now, uint64_t step,
                               const bool *is_missing);

typedef enum pen_recovery_decision_kind {
    PEN_RECOVERY_WAIT,      // until, at most
    PEN_RECOVERY_RESTART,   // all who take part are there
    PEN_RECOVERY_USE_SPARE, // spare, for worker
    PEN_RECOVERY_REPLAN,    // without those who are left out
    PEN_RECOVERY_STOP,      // text
} pen_recovery_decision_kind;

typedef struct pen_recovery_decision {
    pen_recovery_decision_kind kind;
    uint64_t until;
    uint32_t worker; // USE_SPARE; WAIT: the first of those waited for, 0: nobody
    uint32_t spare;
    char text[PEN_RECOVERY_TEXT_BYTES]; // STOP: why; else what is done, for people
} pen_recovery_decision;

// Who can be reached now. A worker whose place a spare took is present when the spare is.
typedef struct pen_recovery_situation {
    uint64_t now;
    const bool *is_present; // [worker_count + 1]; those left out may be false
    uint32_t spare_count;
    const bool *spare_is_free; // [spare_count] present, and in nobody's place
} pen_recovery_situation;
void pen_recovery_decide(pen_recovery *recovery, const pen_recovery_situation *situation,
                         pen_recovery_decision *out_decision);

// Whether the present plan goes without a worker.
bool pen_recovery_is_left_out(const pen_recovery *recovery, uint32_t worker);

// To be asked when a checkpoint was committed: whether the work is to be placed anew, with those
// who were left out and can be reached again. True: they are no longer left out, and a new
// generation is to be started. One that comes back and is lost again is taken back later each time.
bool pen_recovery_takes_back(pen_recovery *recovery, const pen_recovery_situation *situation);

#endif // PEN_SCHEDULER_PROTOCOL_RECOVERY_POLICY_H
