// Binds symbols to sizes, infers every type, and folds what is constant, in one walk: shape
// arithmetic (shape, gather, concat …) must be folded before the reshape that it steers can be
// inferred.
#ifndef PEN_GRAPH_PASSES_INFER_SHAPES_H
#define PEN_GRAPH_PASSES_INFER_SHAPES_H

#include "base/status.h"
#include "graph/graph_types.h"

// Computes the outputs of `node`, all of whose inputs are constants (or, for `shape` and `size`,
// have a known shape): writes `out_data[i]`, allocated by the caller at the size of output i's
// type (NULL where it is left out).
typedef pen_status (*pen_evaluate_fn)(void *context, const pen_graph *graph, pen_node_id node,
                                      void *const *out_data);

typedef struct pen_symbol_binding {
    const char *symbol;
    int64_t size; // > 0
} pen_symbol_binding;

typedef struct pen_infer_options {
    const pen_symbol_binding *bindings;
    uint32_t binding_count;
    pen_evaluate_fn evaluate; // NULL: nothing is folded
    void *evaluate_context;
} pen_infer_options;

// Types every value of `graph` and turns results that are constant, and at most
// PEN_FOLD_BYTES_LIMIT bytes (all of them: PEN_FOLD_TOTAL_BYTES_LIMIT), into constants. Their
// producers stay in the node list, unread; remove_dead drops them.
//   INVALID_INPUT  a symbol is not bound, shapes do not go together
//   UNSUPPORTED    a shape depends on data
PEN_NODISCARD pen_status pen_infer_shapes(pen_graph *graph, const pen_infer_options *options);

#endif // PEN_GRAPH_PASSES_INFER_SHAPES_H
