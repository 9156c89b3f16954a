// Made-up contents for tensors, such that kernels take as long as on real ones and none of them is
// refused.
//
// Floats are random in (0.1, 0.9), or in (-0.9, 0.9) where signs vary in a model and nothing takes
// their root or logarithm; half of them are 0 behind a relu. Integers are classes and positions
// that their readers know: in [1, limit), or 0 where the limit is 1. The same bytes every time.
#ifndef PEN_DEVICE_MEASURE_FILL_H
#define PEN_DEVICE_MEASURE_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph_types.h"
#include "graph/tensor_type.h"

typedef struct pen_measure_contents {
    pen_element_type element;
    bool is_signed;    // floats
    bool is_rectified; // those that would be negative are 0
    uint64_t limit;    // integers
} pen_measure_contents;

void pen_measure_fill(const pen_measure_contents *contents, void *out_bytes, uint64_t bytes);

// For an operand of a node.
pen_measure_contents pen_measure_contents_of(const pen_graph *graph, pen_node_id node,
                                             pen_value_id value);

// The limit below which integers of an input are valid to the node that reads them.
uint64_t pen_measure_integer_limit(const pen_graph *graph, pen_node_id node);

#endif // PEN_DEVICE_MEASURE_FILL_H
