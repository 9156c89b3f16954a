// The contract of worker_survey_life.c and worker_survey_links.c towards the worker.
//
// A worker's side of a survey (run_survey.h): opens devices and measures what it is asked to.
//
// Devices are opened when something is first asked of them, and stay open. A node is measured
// alone, on memory of its own, as in the process that asks (device/measure_op.h).
//
// Links are measured as a run uses them: one thread makes checksums and sends, another compares
// what has come and grants its place anew. What comes is judged: who sends out of turn, or more
// than it was granted, loses the link.
//
// Lifetime: pen_worker_survey_create to pen_worker_survey_destroy; the spec outlives it.
// Threads:  one, the worker's; frames and credits come on the transport's.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_H

#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/runtime/run/run_survey.h"
#include "scheduler/transport/transport.h"

typedef struct pen_worker_survey pen_worker_survey;

typedef struct pen_worker_survey_options {
    const pen_run_spec *spec;
    uint32_t worker;
    uint64_t generation;
    uint64_t incarnation;
    pen_transport *transport; // of LINKS
    void *context;
    // All frames of the peer below `sequence` are consumed. Any thread.
    void (*credit)(void *context, uint32_t peer, uint64_t sequence);
    // Something that came is wrong: the run is over. Any thread.
    void (*failed)(void *context, pen_status take_status);
    // Whether the survey is being left, asked while it waits.
    bool (*is_over)(void *context);
} pen_worker_survey_options;

// OUT_OF_MEMORY; UNAVAILABLE: no thread
PEN_NODISCARD pen_status pen_worker_survey_create(const pen_worker_survey_options *options,
                                                  pen_worker_survey **out_survey);
// Measures. The order comes from outside:
//   CORRUPT  it names what is not here, or asks for what nobody measures
// Else as pen_measure_op.
PEN_NODISCARD pen_status pen_worker_survey_carry_out(pen_worker_survey *survey,
                                                     const pen_survey_order *order,
                                                     pen_survey_answer *out_answer);
// What a device that was measured could not take into use, and why, a line each; NULL: nothing.
const char *pen_worker_survey_lacks(const pen_worker_survey *survey, uint32_t device);
// Ends its threads; what comes now is refused.
void pen_worker_survey_close(pen_worker_survey *survey);
// Frames that the transport still reads: none may be when it is destroyed, nor may one arrive.
uint32_t pen_worker_survey_lent_count(pen_worker_survey *survey);

// ---- from the transport; errors are of the sender
PEN_NODISCARD pen_status pen_worker_survey_begin(pen_worker_survey *survey, uint32_t peer,
                                                 const pen_frame *frame,
                                                 pen_memory_place *out_place);
void pen_worker_survey_end(pen_worker_survey *survey, uint32_t peer, const uint32_t *checksums,
                           bool is_compared);
void pen_worker_survey_let_go(pen_worker_survey *survey, uint64_t token);
PEN_NODISCARD pen_status pen_worker_survey_take_credit(pen_worker_survey *survey, uint32_t peer,
                                                       uint64_t sequence);

// Accepts NULL.
void pen_worker_survey_destroy(pen_worker_survey *survey);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_H
