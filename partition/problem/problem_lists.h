// Lists of ids, as the edges of graphs whose nodes are numbers.
#ifndef PEN_PARTITION_PROBLEM_PROBLEM_LISTS_H
#define PEN_PARTITION_PROBLEM_PROBLEM_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_problem_edge {
    uint32_t source;
    uint32_t target;
} pen_problem_edge;

// Lists of ids, one for each of `count` owners: those of owner i are
// ids[first[i]] … ids[first[i + 1] - 1].
typedef struct pen_problem_lists {
    uint32_t *first; // [count + 1]
    uint32_t *ids;
} pen_problem_lists;

// The targets of each source (`reversed`: the sources of each target), ascending and each once.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_lists_build(uint32_t owner_count,
                                                 const pen_problem_edge *edges, uint32_t edge_count,
                                                 bool reversed, pen_arena *arena,
                                                 pen_problem_lists *out_lists);

#endif // PEN_PARTITION_PROBLEM_PROBLEM_LISTS_H
