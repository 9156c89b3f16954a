// Which elements a slice takes, resolved to plain numbers: for shape rules and for kernels.
#ifndef PEN_GRAPH_OPS_MOVEMENT_SLICE_RANGE_H
#define PEN_GRAPH_OPS_MOVEMENT_SLICE_RANGE_H

#include <stdint.h>

#include "base/status.h"
#include "graph/tensor_type.h"

// A slice as ONNX writes it.
typedef struct pen_slice_spec {
    uint32_t count;
    const int64_t *starts; // [count]
    const int64_t *ends;   // [count], outside; both may be negative (from the end) or far out
    const int64_t *axes;   // [count], or NULL: 0, 1, …
    const int64_t *steps;  // [count], or NULL: 1
} pen_slice_spec;

// Element i along dimension d of the result is element start[d] + i * step[d] of the operand.
typedef struct pen_slice_range {
    pen_shape shape; // of the result
    int64_t start[PEN_RANK_LIMIT];
    int64_t step[PEN_RANK_LIMIT];
} pen_slice_range;

// INVALID_INPUT: an axis outside of `shape` or named twice, a step of 0.
PEN_NODISCARD pen_status pen_slice_resolve(const pen_slice_spec *spec, const pen_shape *shape,
                                           pen_slice_range *out_range);

#endif // PEN_GRAPH_OPS_MOVEMENT_SLICE_RANGE_H
