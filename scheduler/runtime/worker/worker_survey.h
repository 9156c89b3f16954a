// A worker's side of a survey (run_survey.h): opens devices and measures what it is asked to.
//
// Devices are opened when something is first asked of them, and stay open. A node is measured
// alone, on memory of its own, as in the process that asks (device/measure_op.h).
//
// Lifetime: pen_worker_survey_create to pen_worker_survey_destroy; the spec outlives it.
// Threads:  one, the worker's.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_H

#include "scheduler/runtime/run/run_spec.h"
#include "scheduler/runtime/run/run_survey.h"

typedef struct pen_worker_survey pen_worker_survey;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_survey_create(const pen_run_spec *spec, uint32_t worker,
                                                  pen_worker_survey **out_survey);
// Measures. The order comes from outside:
//   CORRUPT  it names what is not here, or asks for what nobody measures
// Else as pen_measure_op.
PEN_NODISCARD pen_status pen_worker_survey_carry_out(pen_worker_survey *survey,
                                                     const pen_survey_order *order,
                                                     pen_survey_answer *out_answer);
// Accepts NULL.
void pen_worker_survey_destroy(pen_worker_survey *survey);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_H
