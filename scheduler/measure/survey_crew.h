// The workers that a job names, asked to measure: a run of their own in which nothing is trained.
//
// Whoever is asked must be of this build and have this instruction set, as for a training. Every
// wait has a deadline: the job's for the rendezvous, then its lease for a worker that is silent,
// and one for each order.
//
// Lifetime: pen_survey_crew_create to pen_survey_crew_destroy; what the options name outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_MEASURE_SURVEY_CREW_H
#define PEN_SCHEDULER_MEASURE_SURVEY_CREW_H

#include "graph/passes/cut/cut.h"
#include "partition/costs/cluster.h"
#include "scheduler/job/job.h"
#include "scheduler/runtime/run/run_survey.h"

// A device that takes part.
typedef struct pen_survey_seat {
    uint32_t device;      // of the cluster
    const pen_part *part; // whose nodes it measures; NULL where links are measured
} pen_survey_seat;

typedef struct pen_survey_crew_options {
    const pen_job *job;
    const pen_cluster *cluster;   // of the job
    const pen_survey_seat *seats; // [seat_count], at least one
    uint32_t seat_count;
    pen_run_survey survey;
    bool is_insecure; // other machines are reached without TLS
} pen_survey_crew_options;

typedef struct pen_survey_crew pen_survey_crew;

// Calls the workers and waits until all are there. Processes of this machine that a training would
// start are started, and this process takes part where a seat is in it.
//   INVALID_INPUT  with the position of a host on another machine, where TLS is missing
//   UNAVAILABLE    workers are missing at the deadline; with their addresses and why
//   CANCELLED      a worker is of another build or instruction set; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_survey_crew_create(const pen_survey_crew_options *options,
                                                pen_survey_crew **out_crew);
// The worker of a seat measures; `order->device` is the seat. What could not be measured is
// *out_failure. As pen_coordinator_await_survey
PEN_NODISCARD pen_status pen_survey_crew_ask(pen_survey_crew *crew, const pen_survey_order *order,
                                             pen_survey_answer *out_answer,
                                             pen_status *out_failure);
// The same in two halves, so that several workers are busy at once: what each was asked is awaited.
void pen_survey_crew_order(pen_survey_crew *crew, const pen_survey_order *order);
PEN_NODISCARD pen_status pen_survey_crew_await(pen_survey_crew *crew, const pen_survey_order *order,
                                               pen_survey_answer *out_answer,
                                               pen_status *out_failure);
// The number of the worker of a seat, counted from 1, and its name for people.
uint32_t pen_survey_crew_worker(const pen_survey_crew *crew, uint32_t seat);
const char *pen_survey_crew_name(const pen_survey_crew *crew, uint32_t seat);
// Accepts NULL.
void pen_survey_crew_destroy(pen_survey_crew *crew);

#endif // PEN_SCHEDULER_MEASURE_SURVEY_CREW_H
