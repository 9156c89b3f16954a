// How the operands of an attention lie in memory.
//
// Read by the shape rule, the cost formulas and every device's kernel, so that all agree.
#ifndef PEN_GRAPH_OPS_PRODUCT_ATTENTION_GEOMETRY_H
#define PEN_GRAPH_OPS_PRODUCT_ATTENTION_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

// Elements from one step to the next. Numbers of a row lie behind each other.
typedef struct pen_attention_strides {
    int64_t outer;
    int64_t head; // of its own heads
    int64_t row;
    int64_t shared; // how many heads of q read one of these, 1 or more
} pen_attention_strides;

// Attention `i` of outer_count * head_count is that of outer i / head_count, head i % head_count.
typedef struct pen_attention_geometry {
    int64_t outer_count;
    int64_t head_count;
    int64_t query_count; // rows of q and y
    int64_t key_count;   // rows of k and v
    int64_t depth;       // numbers in a row of q and k
    int64_t value_depth; // numbers in a row of v and y
    pen_attention_strides q, k, v, y;
    pen_shape batch; // the dimensions before rows, heads last
    pen_shape output;
    bool has_mask;
    pen_shape mask_batch;          // of the mask: broadcasts to `batch`
    int64_t mask_row, mask_column; // strides of the mask, 0 where it repeats
    int64_t mask_size;             // numbers of the mask for one attention
} pen_attention_geometry;

// Of an `attention` node or, with `first` the position of q among the operands, of its backward.
// `mask` is the position of the mask, which may be left out. The operands are typed.
//   INVALID_INPUT  shapes that do not go together
PEN_NODISCARD pen_status pen_attention_geometry_of(const pen_graph *graph, const pen_node *node,
                                                   uint32_t first, uint32_t mask,
                                                   pen_attention_geometry *out_geometry);

// Where attention `index` begins in an operand, in elements.
int64_t pen_attention_offset(const pen_attention_geometry *geometry,
                             const pen_attention_strides *strides, int64_t index);

// The random numbers of a node that drops some of its probabilities: number
// (index * query_count + row) * key_count + key tells of one of attention `index`.
pen_random_key pen_attention_random_key(const pen_node *node, uint64_t seed, uint64_t step,
                                        uint64_t microbatch);

// What scores are where a boolean mask of the node hides them.
double pen_attention_fill(const pen_node *node);

// Where the mask of attention `index` begins, in elements.
int64_t pen_attention_mask_offset(const pen_attention_geometry *geometry, int64_t index);

#endif // PEN_GRAPH_OPS_PRODUCT_ATTENTION_GEOMETRY_H
