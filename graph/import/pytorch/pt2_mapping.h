// The contract of the table of PyTorch's operators: how each becomes operators of ours.
//
// An operator is called as in the file, without "torch.ops.": "aten.add.Tensor". Families are one
// file each under ops/. What changes its first argument in place, "aten.add_.Tensor", needs no row
// of its own: that of "aten.add.Tensor" is taken.
//
// Threads: immutable.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_MAPPING_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/import/pytorch/pt2_convert.h"

// Whether the result shows the bytes of argument 0, so that a change of one is a change of both.
typedef enum pen_pt2_view {
    PEN_PT2_VIEW_NEVER,
    PEN_PT2_VIEW_ALWAYS,        // slice, transpose, view
    PEN_PT2_VIEW_IF_CONTIGUOUS, // reshape, flatten, contiguous: where argument 0 is contiguous
    PEN_PT2_VIEW_IF_SAME_TYPE,  // to.dtype, type_as: where the element stays the same
} pen_pt2_view;

// A change of what a view shows. The draft is that of the view's own node, argument 0 being as it
// was before.
typedef struct pen_pt2_change {
    pen_value_id changed; // what the view shows now
    uint32_t result;      // which of the node's results it is: of split, unbind
} pen_pt2_change;

typedef struct pen_pt2_mapping {
    const char *target;  // "aten.relu.default"
    const char *op_name; // ours, for conversions that serve several; or NULL
    pen_status (*convert)(pen_pt2_draft *draft);
    pen_pt2_view view;
    // What argument 0 becomes when the view is changed. NULL: a scatter does it, which is right for
    // any view, and slow for large ones.
    pen_status (*write_back)(pen_pt2_draft *draft, const pen_pt2_change *change,
                             pen_value_id *out_value);
    const char *trains_by; // the argument that says whether it trains, of what evaluates otherwise
    bool is_nothing;       // it has no results that anything reads: an assertion
} pen_pt2_mapping;

// A row without more to say, and one with our name for it: PEN_PT2_ROW("outer.default", outer) has
// convert_outer for "aten.outer.default".
#define PEN_PT2_ROW(aten, of)                                                                      \
    { .target = "aten." aten, .convert = convert_##of }
#define PEN_PT2_NAMED(aten, name, of)                                                              \
    { .target = "aten." aten, .op_name = name, .convert = convert_##of }

// The row of an operator; NULL when it is not known. *out_in_place: it changes argument 0.
const pen_pt2_mapping *pen_pt2_mapping_find(const char *target, bool *out_in_place);
// Entry `index` of the table; NULL behind its end.
const pen_pt2_mapping *pen_pt2_mapping_at(uint32_t index);

// The families of the table.
typedef struct pen_pt2_family {
    const pen_pt2_mapping *mappings;
    uint32_t count;
} pen_pt2_family;
// At the end of a family's file: PEN_PT2_FAMILY(pen_pt2_products, product_rows);
#define PEN_PT2_FAMILY(name, table)                                                                \
    const pen_pt2_family name = {.mappings = (table), .count = sizeof(table) / sizeof *(table)}
extern const pen_pt2_family pen_pt2_activations;    // ops/pt2_activation.c
extern const pen_pt2_family pen_pt2_adaptive_pools; // ops/pt2_adaptive.c
extern const pen_pt2_family pen_pt2_attentions;     // ops/pt2_attention.c
extern const pen_pt2_family pen_pt2_cells;          // ops/pt2_cell.c
extern const pen_pt2_family pen_pt2_convolutions;   // ops/pt2_convolution.c
extern const pen_pt2_family pen_pt2_creations;      // ops/pt2_creation.c
extern const pen_pt2_family pen_pt2_dropouts;       // ops/pt2_dropout.c
extern const pen_pt2_family pen_pt2_elementwise;    // ops/pt2_elementwise.c
extern const pen_pt2_family pen_pt2_indexings;      // ops/pt2_indexing.c
extern const pen_pt2_family pen_pt2_logic;          // ops/pt2_logic.c
extern const pen_pt2_family pen_pt2_losses;         // ops/pt2_loss.c
extern const pen_pt2_family pen_pt2_movements;      // ops/pt2_movement.c
extern const pen_pt2_family pen_pt2_normalizations; // ops/pt2_normalization.c
extern const pen_pt2_family pen_pt2_paddings;       // ops/pt2_padding.c
extern const pen_pt2_family pen_pt2_pools;          // ops/pt2_pooling.c
extern const pen_pt2_family pen_pt2_products;       // ops/pt2_product.c
extern const pen_pt2_family pen_pt2_randoms;        // ops/pt2_random.c
extern const pen_pt2_family pen_pt2_recurrents;     // ops/pt2_recurrent.c
extern const pen_pt2_family pen_pt2_reductions;     // ops/pt2_reduction.c
extern const pen_pt2_family pen_pt2_resizes;        // ops/pt2_resize.c
extern const pen_pt2_family pen_pt2_selections;     // ops/pt2_selection.c
extern const pen_pt2_family pen_pt2_series;         // ops/pt2_series.c
extern const pen_pt2_family pen_pt2_slicings;       // ops/pt2_slicing.c
extern const pen_pt2_family pen_pt2_smooth_resizes; // ops/pt2_smooth.c
extern const pen_pt2_family pen_pt2_symbols;        // ops/pt2_symbol.c
extern const pen_pt2_family pen_pt2_windows;        // ops/pt2_window.c

// Conversions for rows of several families: op(self) and op(self, other) in the result's element,
// `op_name` being the row's.
pen_status pen_pt2_convert_unary(pen_pt2_draft *draft);
pen_status pen_pt2_convert_binary(pen_pt2_draft *draft);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_MAPPING_H
