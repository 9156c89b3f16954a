// What a problem keeps of what it is made from.
//
// Only problem.c needs this.
#ifndef PEN_PARTITION_PROBLEM_PROBLEM_ADOPT_H
#define PEN_PARTITION_PROBLEM_PROBLEM_ADOPT_H

#include "partition/problem/problem.h"

// A copy of `given`, right as far as its figures are, in which nothing is left unsaid: every device
// has a microbatch in flight, and what is forbidden by name costs infinitely much. Devices for
// which the same is forbidden go on sharing a kind. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_adopt(const pen_problem_given *given, pen_arena *arena,
                                           pen_problem_given *out_given);

#endif // PEN_PARTITION_PROBLEM_PROBLEM_ADOPT_H
