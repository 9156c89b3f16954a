// Makes problems: from what anyone may give, or from another problem.
#ifndef PEN_PARTITION_PROBLEM_PROBLEM_BUILD_H
#define PEN_PARTITION_PROBLEM_PROBLEM_BUILD_H

#include "partition/problem/problem.h"

// Forms the groups: nodes of one colour, and of a contiguous problem all that lie on cycles then.
// What is forbidden by name is infinite in the costs of the problem's own copy of `given`, which
// may have more kinds.
//   INVALID_INPUT  a cycle of nodes, two pins in one group, costs that are no numbers, bounds of
//                  devices used that contradict, step time without function or microbatches
//   DOES_NOT_FIT   a group that can run nowhere: no device takes all its nodes, or has the memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_build(const pen_problem_given *given, pen_arena *arena,
                                           pen_problem **out_problem);

// The same problem with groups put together: the nodes of all groups g with equal `class_of_group`
// form one. Classes are any numbers below group_count. Contiguous or not as asked; cycles are
// merged as in pen_problem_build, and errors are the same.
PEN_NODISCARD pen_status pen_problem_merge(const pen_problem *problem,
                                           const uint32_t *class_of_group, bool is_contiguous,
                                           pen_arena *arena, pen_problem **out_problem);

#endif // PEN_PARTITION_PROBLEM_PROBLEM_BUILD_H
