// The best schedule that a limited amount of work finds: all the generators that have a name, list
// schedules under several rules, halves and windows, and the best of them improved by search.
// Never slower than the fastest named one that fits.
#ifndef PEN_SCHEDULER_SCHEDULE_AUTO_SCHEDULE_H
#define PEN_SCHEDULER_SCHEDULE_AUTO_SCHEDULE_H

#include "scheduler/schedule/schedule.h"

typedef struct pen_auto_options {
    uint64_t seed;
    uint64_t work_limit;            // tasks simulated; 0: the named ones alone
    const pen_schedule *given;      // tried too, where it is one of the stages; NULL: none
    bool (*is_over)(void *context); // NULL: never; asked now and then
    void *context;
} pen_auto_options;

#define PEN_AUTO_SEED 1
#define PEN_AUTO_WORK 150000u // of the generator

typedef struct pen_auto_report {
    double best_named_seconds; // of a schedule with a name; INFINITY: none fits
    double seconds;
    double lower_bound; // that no schedule of these stages can beat, memory or not
} pen_auto_report;

// Equal arguments give equal schedules, unless is_over stops it. out_report may be NULL.
//   INVALID_INPUT  the stage graph contradicts itself
//   DOES_NOT_FIT   no schedule was found that keeps the devices within their memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_auto_schedule(const pen_stage_graph *graph,
                                           const pen_auto_options *options, pen_arena *arena,
                                           const pen_schedule **out_schedule,
                                           pen_auto_report *out_report);

#endif // PEN_SCHEDULER_SCHEDULE_AUTO_SCHEDULE_H
