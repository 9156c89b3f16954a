// Lists of tensors (TensorList, and TensorArray of older graphs), known while importing.
//
// A list never changes: what sets an element makes another list, which refers to the one before.
// So rounds of a loop cost what they add, and a list that is given up costs nothing.
//
// Lifetime: in the arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_LIST_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_LIST_H

#include <stdint.h>

#include "graph/import/tensorflow/graphdef_convert.h"

struct pen_graphdef_list {
    int64_t counts[PEN_GRAPHDEF_TRIALS]; // elements; -1: not known
    // What is set last. NULL: nothing is.
    pen_graphdef_result *item;
    uint32_t index;
    const pen_graphdef_list *before; // the list without it
    // All elements, along the first axis, of a list in which nothing is set. NONE: they have no
    // contents.
    pen_graphdef_value whole;
    pen_graphdef_result **parts; // [counts], its elements, once one was asked for; else NULL
};

// A list of which all elements are in `whole`.
PEN_NODISCARD pen_status pen_graphdef_list_of(const pen_graphdef_draft *draft,
                                              pen_graphdef_value whole,
                                              pen_graphdef_list **out_list);

// `list` with another element `index`.
PEN_NODISCARD pen_status pen_graphdef_list_set(const pen_graphdef_draft *draft,
                                               const pen_graphdef_list *list, uint32_t index,
                                               pen_graphdef_result *item,
                                               pen_graphdef_list **out_list);

// Output `output` of the node is the list. Always PEN_OK.
pen_status pen_graphdef_set_list(pen_graphdef_draft *draft, uint32_t output,
                                 pen_graphdef_list *list);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_LIST_H
