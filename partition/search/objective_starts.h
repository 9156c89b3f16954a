// Placements to start from, for objectives that searches of loads do not know (step time, traffic).
#ifndef PEN_PARTITION_SEARCH_OBJECTIVE_STARTS_H
#define PEN_PARTITION_SEARCH_OBJECTIVE_STARTS_H

#include "partition/search/initial_placement.h"

// Segments on as many devices as may be used and on fewer, of the problem that stands in; for
// traffic, whole parts too. Each is judged by the objective; the best is the start, its value the
// objective's, INFINITY where no schedule fits it. As many devices are used as must be.
//   DOES_NOT_FIT   no right placement was found
//   OUT_OF_MEMORY
//   others         the step-time function's
PEN_NODISCARD pen_status pen_objective_start(const pen_problem *problem,
                                             const pen_initial_options *options, pen_arena *arena,
                                             pen_initial_placement *out_start);

#endif // PEN_PARTITION_SEARCH_OBJECTIVE_STARTS_H
