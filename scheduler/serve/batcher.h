// Forms batches of requests, and runs them over the devices of a job (scheduler/inference/).
//
//   fronts ──submit──► queue ──► batch ──► passes under way ──► done
//                        │ full: refused      │ a worker is lost: begun again
//                        ▼ too old: refused   ▼
//
// A batch begins when it is full, or when its oldest request has waited for `max_wait`. Its size is
// one of two, or always the same: what no request fills is zeros, so that a row has the bits that
// it has in a prediction of batches of that size. A request may go over several batches.
//
// Where a node finds a value that it cannot take, requests of the batch are computed again, each by
// itself: the one that has it fails, and the others have their answers.
//
// A thread of its own drives the engine. Parameters are changed between passes.
//
// Lifetime: create to destroy. Requests that are submitted are done before destroy returns.
// Threads:  any may submit, and ask for figures; one creates, stops and destroys.
#ifndef PEN_SCHEDULER_SERVE_BATCHER_H
#define PEN_SCHEDULER_SERVE_BATCHER_H

#include "base/text.h"
#include "scheduler/inference/inference.h"
#include "scheduler/serve/served_model.h"

typedef struct pen_batcher pen_batcher;

typedef struct pen_batcher_options {
    pen_inference *inference; // of batches of both sizes; the batcher's while it lives
    const pen_served_model *model;
    const pen_dataset_info *info; // whose inputs are those of the model, in its order
    uint64_t batch;
    uint64_t small_batch; // less than that, for when no more rows wait; 0: none
    double max_wait_seconds;
    uint64_t queue_limit;   // requests that wait, at most
    const char *parameters; // that a reload reads again; NULL: there are none
} pen_batcher_options;

// Everything borrowed for the batcher's life. OUT_OF_MEMORY, UNAVAILABLE (no thread)
PEN_NODISCARD pen_status pen_batcher_create(const pen_batcher_options *options,
                                            pen_batcher **out_batcher);
// Refuses what comes from now on, finishes what is there, ends the thread. *out_failure is why it
// ended before, if it did: too few devices are left. Accepts NULL.
void pen_batcher_stop(pen_batcher *batcher, pen_status *out_failure);
// After stop. Accepts NULL.
void pen_batcher_destroy(pen_batcher *batcher);

// Takes the request: `done` is called for it once, maybe before this returns.
//   of `done`: INVALID_INPUT  a node cannot take a value of it, such as an index behind a table
//              DOES_NOT_FIT   the queue is full
//              DEADLINE       it has waited too long
//              UNAVAILABLE    the server ends
void pen_batcher_submit(pen_batcher *batcher, pen_infer_request *request);

// Has the parameters read again, between two passes. Says what came of it in the log.
void pen_batcher_reload(pen_batcher *batcher);

// Whether requests are worked at: false while a lost worker is looked after, and at the end.
bool pen_batcher_is_ready(pen_batcher *batcher);
bool pen_batcher_is_over(pen_batcher *batcher);

// A request that a front refused or answered without the batcher counts, too.
void pen_batcher_count(pen_batcher *batcher, pen_status_code code);
// Counters and gauges in Prometheus' text form.
void pen_batcher_print_metrics(pen_batcher *batcher, pen_text *text);

#endif // PEN_SCHEDULER_SERVE_BATCHER_H
