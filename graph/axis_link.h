// The contract of how one position of a node's output depends on those of its inputs, a fact of an
// operator; op_axis.c reads them. From these facts follows whether a model looks back only, and
// what of a node has to be computed for one position (graph/analysis/causality.h).
//
// Threads: any.
#ifndef PEN_GRAPH_AXIS_LINK_H
#define PEN_GRAPH_AXIS_LINK_H

#include <stdint.h>

#include "graph/graph_types.h"
#include "graph/tensor_type.h"

typedef enum pen_axis_reads {
    PEN_READS_UNKNOWN, // nothing is known
    PEN_READS_ALL,     // a position of the output may read all of the input
    PEN_READS_SAME,    // position p reads position p of the input's axis, and gives the same where
                       // the input has that position alone
    PEN_READS_EARLIER, // position p reads positions 0 to p of the input's axis
} pen_axis_reads;

typedef struct pen_axis_link {
    pen_axis_reads reads;
    uint32_t axis; // of the input; with SAME and EARLIER
} pen_axis_link;

// The rule of an operator: how positions along `axis` of the outputs, which have one rank, read
// input `input`, which is there. The node is typed.
typedef pen_axis_link (*pen_axis_rule)(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                       uint32_t input);

// What the node's operator says, by its rule or by its other facts. Constants that steer shapes
// are read by all positions.
pen_axis_link pen_node_axis_link(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                 uint32_t input);

// For rules: the attribute "axis" of the node, which is typed, counted from the front of `rank`
// dimensions.
uint32_t pen_axis_given(const pen_node *node, uint32_t rank);
// For rules. `of` broadcasts to a shape of `rank` dimensions, of which `axis` is one.
pen_axis_link pen_axis_broadcast(const pen_shape *of, uint32_t rank, uint32_t axis);
// The rule of operators that broadcast all inputs to the output.
pen_axis_link pen_axis_elementwise(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                   uint32_t input);

static inline pen_axis_link pen_axis_unknown(void) {
    return (pen_axis_link){PEN_READS_UNKNOWN, 0};
}
static inline pen_axis_link pen_axis_all(void) {
    return (pen_axis_link){PEN_READS_ALL, 0};
}
static inline pen_axis_link pen_axis_same(uint32_t axis) {
    return (pen_axis_link){PEN_READS_SAME, axis};
}

#endif // PEN_GRAPH_AXIS_LINK_H
