// Annealing of placements for objectives that searches of loads do not know: step time, judged by
// the problem's own function, and traffic, kept up to date as groups move. How many devices are
// used may change on the way: a device that is empty has any place in the order of devices.
#ifndef PEN_PARTITION_SEARCH_OBJECTIVE_ANNEAL_H
#define PEN_PARTITION_SEARCH_OBJECTIVE_ANNEAL_H

#include "base/annealing.h"
#include "partition/problem/problem.h"

// As pen_latency_anneal. Only placements that keep memory, order and number of devices are looked
// at, if `device_of_group` does. Steps differ much in what they cost: cooling follows the nominal
// time of what was done, against that of `step_count` steps, never the clock. Step time: schedules
// may lack memory for the start; *out_value is INFINITY when one was found for no placement.
//   OUT_OF_MEMORY
//   others         the step-time function's, but for DOES_NOT_FIT
PEN_NODISCARD pen_status pen_objective_anneal(const pen_problem *problem, const uint32_t *line,
                                              const pen_annealing_options *options,
                                              uint32_t *device_of_group, double *out_value);

// The nominal time of a step that weighs a placement, for planning how many there are.
double pen_objective_anneal_step_seconds(const pen_problem *problem);

#endif // PEN_PARTITION_SEARCH_OBJECTIVE_ANNEAL_H
