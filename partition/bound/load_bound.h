// A lower bound of the largest load, from compute costs and memory.
#ifndef PEN_PARTITION_BOUND_LOAD_BOUND_H
#define PEN_PARTITION_BOUND_LOAD_BOUND_H

#include "partition/problem/problem.h"

// The least largest load were groups divisible and data moved for nothing: with two classes of
// devices exactly, with more, or where memory forces groups elsewhere, from below. Each group must
// still fit somewhere, whole. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_load_bound(const pen_problem *problem, pen_arena *arena,
                                        double *out_bound);

#endif // PEN_PARTITION_BOUND_LOAD_BOUND_H
