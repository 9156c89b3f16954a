// What operators with windows over the last dimensions share: convolutions, pools, resizing.
//
// PyTorch takes such an operand with a batch or without, ours want one: it is put in front of a
// single example, and taken away from the result.
//
// Threads: as the draft.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_SPATIAL_H
#define PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_SPATIAL_H

#include "graph/import/pytorch/pt2_convert.h"

#define PEN_PT2_SPATIAL_LIMIT 3

typedef struct pen_pt2_spatial {
    pen_value_id input;                   // [batch, channels, …]
    uint32_t rank;                        // dimensions besides these two
    bool is_single;                       // the operand has no batch
    int64_t sizes[PEN_PT2_SPATIAL_LIMIT]; // PEN_DIMENSION_UNKNOWN where the file leaves them open
} pen_pt2_spatial;

// The rank that stands in the operator's name, "aten.max_pool2d.default": 1 to 3; 0: none does.
uint32_t pen_pt2_spatial_rank(const pen_pt2_draft *draft);

// As pen_pt2_ints_each, of numbers within 32 bits, so that products of two are numbers.
PEN_NODISCARD pen_status pen_pt2_spatial_ints(pen_pt2_draft *draft, const char *name, uint32_t rank,
                                              int64_t fallback, int64_t *out_integers);

// The operand `name`, of `rank` dimensions besides channels and batch, which are the
// result's, too. UNSUPPORTED for others.
PEN_NODISCARD pen_status pen_pt2_spatial_read(pen_pt2_draft *draft, const char *name, uint32_t rank,
                                              pen_pt2_spatial *out_spatial);

// Result 0 of the node is `value`, whose batch is taken away again where it was put in.
PEN_NODISCARD pen_status pen_pt2_spatial_set(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                                             uint32_t result, pen_value_id value);
// Adds the node itself, of one output, likewise.
PEN_NODISCARD pen_status pen_pt2_spatial_give(pen_pt2_draft *draft, const pen_pt2_spatial *spatial,
                                              const char *op_name, pen_node_inputs inputs,
                                              pen_node_attributes attributes);

// Weights of sums along one dimension: of [to][from].
typedef struct pen_pt2_mixture {
    uint32_t dimension; // besides batch and channels
    int64_t to, from;
    const double *numbers;
} pen_pt2_mixture;

// Of *io_value, [batch, channels, …] with `rank` dimensions more, `to` sums of the elements along a
// dimension in place of its elements. The weights are copied.
PEN_NODISCARD pen_status pen_pt2_spatial_mix(pen_pt2_draft *draft, uint32_t rank,
                                             const pen_pt2_mixture *weights,
                                             pen_value_id *io_value);

#endif // PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_SPATIAL_H
