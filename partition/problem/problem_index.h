// The parts of a problem that are found by sorting and searching: lists, components, outputs.
//
// Only problem.c, and strategies that make graphs of their own, need this.
#ifndef PEN_PARTITION_PROBLEM_PROBLEM_INDEX_H
#define PEN_PARTITION_PROBLEM_PROBLEM_INDEX_H

#include "partition/problem/problem.h"

// The targets of each source (`reversed`: the sources of each target), ascending and each once.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_lists_build(uint32_t owner_count,
                                                 const pen_problem_edge *edges, uint32_t edge_count,
                                                 bool reversed, pen_arena *arena,
                                                 pen_problem_lists *out_lists);

// Strongly connected components: out_component[i] is a number below `count` that is equal for i and
// j exactly when each reaches the other, and larger for what comes earlier. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_components(uint32_t count, const pen_problem_lists *after,
                                                pen_arena *arena, uint32_t *out_component,
                                                uint32_t *out_component_count);

// Fills in the outputs of a problem whose groups are known. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_form_outputs(pen_problem *problem, pen_arena *arena);

#endif // PEN_PARTITION_PROBLEM_PROBLEM_INDEX_H
