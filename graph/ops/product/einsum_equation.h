// Equations of einsum, "bij,bjk->bik", read against the shapes of the operands.
//
// Letters name dimensions; "..." stands for any number of them, matched from the last one as in
// NumPy's broadcasting. Without "->" the result has the dimensions of "...", then those letters
// that appear once, in alphabetical order. A dimension of size 1 is repeated where another operand
// has more under the same label.
//
// Threads: pure functions of their arguments.
#ifndef PEN_GRAPH_OPS_PRODUCT_EINSUM_EQUATION_H
#define PEN_GRAPH_OPS_PRODUCT_EINSUM_EQUATION_H

#include <stdint.h>

#include "base/limits.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/tensor_type.h"

#define PEN_EINSUM_OPERANDS_LIMIT 16
// Labels are 0 to 25 for "A" to "Z", 26 to 51 for "a" to "z", then the dimensions of "...", the
// last one of them first.
#define PEN_EINSUM_LETTERS 52
#define PEN_EINSUM_LABELS (PEN_EINSUM_LETTERS + PEN_RANK_LIMIT)

typedef struct pen_einsum_term {
    uint32_t rank;
    uint8_t labels[PEN_RANK_LIMIT]; // [rank]
} pen_einsum_term;

typedef struct pen_einsum {
    uint32_t operand_count;
    pen_einsum_term operands[PEN_EINSUM_OPERANDS_LIMIT]; // [operand_count]
    pen_einsum_term output;
    int64_t sizes[PEN_EINSUM_LABELS]; // 0: the label is not there; sizes of 0 are refused
} pen_einsum;

// Reads `equation` for operands of these shapes, [operand_count].
//   INVALID_INPUT  it is no equation, or the shapes do not go with it
PEN_NODISCARD pen_status pen_einsum_read(const char *equation, uint32_t operand_count,
                                         const pen_shape *const *shapes, pen_einsum *out_einsum);

// The same for a node and its operands in `graph`.
PEN_NODISCARD pen_status pen_einsum_of(const pen_graph *graph, const pen_node *node,
                                       pen_einsum *out_einsum);

// The shape of a term.
pen_shape pen_einsum_shape(const pen_einsum *einsum, const pen_einsum_term *term);

// Writes an equation of terms, with a letter for each label: at most PEN_EINSUM_TEXT_BYTES.
// INVALID_INPUT when it has more labels than there are letters.
#define PEN_EINSUM_TEXT_BYTES ((PEN_EINSUM_OPERANDS_LIMIT + 1) * (PEN_RANK_LIMIT + 2))
PEN_NODISCARD pen_status pen_einsum_write(const pen_einsum_term *operands, uint32_t operand_count,
                                          const pen_einsum_term *output,
                                          char out_text[PEN_EINSUM_TEXT_BYTES]);

#endif // PEN_GRAPH_OPS_PRODUCT_EINSUM_EQUATION_H
