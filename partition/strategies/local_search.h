// The search that `local_search` and `auto` share.
#ifndef PEN_PARTITION_STRATEGIES_LOCAL_SEARCH_H
#define PEN_PARTITION_STRATEGIES_LOCAL_SEARCH_H

#include <stdatomic.h>

#include "partition/search/initial_placement.h"

typedef struct pen_local_search_options {
    uint64_t seed;
    double begin;            // by pen_clock_seconds
    double deadline;         // likewise
    double seconds;          // nominal; as many steps are planned as that allows
    bool is_counted;         // the deadline only ends the search, nothing follows the clock
    bool is_fresh;           // one long cycle that owes nothing to the placement given
    double value;            // of the placement given, as far as known; INFINITY: not
    const uint32_t *origin;  // a right placement that hot cycles start from; NULL: none
    double enough;           // stops at this value of the objective
    const atomic_bool *stop; // stops when it becomes true; NULL: never
} pen_local_search_options;

// Whether an objective is always searched in counted steps, whatever the options say.
bool pen_local_search_counts(const pen_problem *problem);

// Nominal seconds after which a search in counted steps is not worth going on with.
double pen_local_search_enough_seconds(const pen_problem *problem);

// Nominal seconds of the search of `local_search` in counted steps, behind its start.
double pen_local_search_seconds(const pen_problem *problem, double time_limit_seconds);

// Whether fresh cycles help to place the problem.
bool pen_local_search_has_fresh(const pen_problem *problem);

// Improves a right placement; `line` has every group once, in the order of a start's line.
// Cycles of pen_multilevel_cycle.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_local_search_run(const pen_problem *problem, const uint32_t *line,
                                              const pen_local_search_options *options,
                                              uint32_t *device_of_group, double *out_value);

// A right placement to search from: segments where they fit, or whatever fits. DOES_NOT_FIT,
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_local_search_start(const pen_problem *problem,
                                                const pen_initial_options *options,
                                                pen_arena *arena, pen_initial_placement *out_start,
                                                double *out_bound);

#endif // PEN_PARTITION_STRATEGIES_LOCAL_SEARCH_H
