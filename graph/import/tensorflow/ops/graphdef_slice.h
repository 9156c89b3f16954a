// StridedSlice of TensorFlow: its masks, resolved.
//
// Threads: plain data.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_SLICE_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_SLICE_H

#include "graph/import/tensorflow/graphdef_convert.h"

// What a strided slice does: a slice along `axes`, then squeezed and unsqueezed axes.
typedef struct pen_graphdef_slice {
    uint32_t count;
    int64_t axes[PEN_RANK_LIMIT], starts[PEN_RANK_LIMIT], ends[PEN_RANK_LIMIT];
    int64_t steps[PEN_RANK_LIMIT];
    uint32_t squeezed_count;
    int64_t squeezed[PEN_RANK_LIMIT]; // of the slice's result
    uint32_t added_count;
    int64_t added[PEN_RANK_LIMIT]; // of the whole's result
} pen_graphdef_slice;

// Reads the node's masks. `rank` is the operand's, or 0 when that is not known; it is needed when
// an ellipsis stands before other dimensions.
//   UNSUPPORTED, INVALID_INPUT
PEN_NODISCARD pen_status pen_graphdef_slice_read(const pen_graphdef_node *node,
                                                 const pen_graphdef_ints_known *begin,
                                                 const pen_graphdef_ints_known *end,
                                                 const pen_graphdef_ints_known *strides,
                                                 uint32_t rank, pen_graphdef_slice *out_slice);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_SLICE_H
