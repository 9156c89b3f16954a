// Whether one position of an output depends on the input's positions up to its own alone, and what
// has to be computed for it where that is so.
//
// The search goes from the output back to the input. One position of the output along an axis reads
// of each operand one position, positions up to it, or all of it, as the operators say
// (graph/axis_link.h). By induction over the nodes, what is reached so depends on no later position
// of the input, unless a node reads all positions of something that depends on the input, or says
// nothing. Such a node is told.
//
// Lifetime: the result lives in the arena it was made with.
// Threads:  as the graph.
#ifndef PEN_GRAPH_ANALYSIS_CAUSALITY_H
#define PEN_GRAPH_ANALYSIS_CAUSALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

#define PEN_AXIS_NONE UINT32_MAX

// Positions stand along an axis of each.
typedef struct pen_causality_request {
    pen_value_id input;
    uint32_t input_axis;
    pen_value_id output;
    uint32_t output_axis;
} pen_causality_request;

typedef struct pen_causality {
    const bool *follows;      // [value_count]: it depends on the input
    const uint32_t *axis;     // [value_count]: one position along it is needed; PEN_AXIS_NONE: not
    const bool *is_whole;     // [value_count]: all of it is needed, and it does not follow
    const pen_value_id *kept; // [kept_count], by id: those whose earlier positions are read, too
    uint32_t kept_count;
} pen_causality;

//   UNSUPPORTED  it cannot be shown; says at which node, and why
PEN_NODISCARD pen_status pen_causality_find(const pen_graph *graph,
                                            const pen_causality_request *request, pen_arena *arena,
                                            pen_causality *out_causality);

#endif // PEN_GRAPH_ANALYSIS_CAUSALITY_H
