// A second opinion on placements, from the definitions in partition/problem/problem.h and latency.h
// alone: slow, and sharing no code with the product.
#ifndef PEN_TESTS_SUPPORT_PLACEMENT_JUDGE_H
#define PEN_TESTS_SUPPORT_PLACEMENT_JUDGE_H

#include "base/arena.h"
#include "partition/problem/problem.h"

// What is wrong with a placement of all nodes, or NULL.
const char *placement_judge_fault(const pen_problem_given *given, const uint32_t *device_of_node);

// Loads of all devices [device_count], and bytes there.
void placement_judge_loads(const pen_problem_given *given, const uint32_t *device_of_node,
                           double *out_load, double *out_bytes);

// The objective's value.
double placement_judge_value(const pen_problem_given *given, const uint32_t *device_of_node,
                             pen_arena *arena);

// Tries every device for every node: the best value of a right placement, INFINITY when there is
// none. For a few nodes.
double placement_judge_best(const pen_problem_given *given, pen_arena *arena);

// Whether the values are equal but for rounding.
bool placement_judge_same(double a, double b);

#endif // PEN_TESTS_SUPPORT_PLACEMENT_JUDGE_H
