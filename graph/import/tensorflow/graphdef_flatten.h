// One list of nodes: functions are put in the place of their calls.
//
// A call becomes an IdentityN of what the function returns, each argument an Identity of what is
// given, and the function's nodes follow under "<call>/<name>". So a call's outputs keep their
// name, and nobody else needs to know that there are functions. Conditionals (If) on constant
// predicates are calls of the branch taken.
//
// Lifetime: the list is in the arena; nodes borrow the model's.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FLATTEN_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FLATTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"
#include "graph/import/tensorflow/graphdef_model.h"

typedef enum pen_graphdef_truth {
    PEN_GRAPHDEF_NOT_SEEN = 0,
    PEN_GRAPHDEF_BEING_SEEN,
    PEN_GRAPHDEF_UNKNOWN,
    PEN_GRAPHDEF_FALSE,
    PEN_GRAPHDEF_TRUE,
} pen_graphdef_truth;

typedef struct pen_graphdef_flat {
    pen_arena *arena;
    const pen_graphdef *source;
    pen_name_map index; // of nodes, by name
    pen_name_map functions;
    uint64_t *function_sizes; // nodes that a call leads to at least; 0: not counted yet
    uint32_t count;
    uint32_t capacity;
    pen_graphdef_node *nodes; // [count]; `output_name` of no input is set
    uint8_t *depths;          // [count], calls around the node
    uint8_t *truths;          // [count], pen_graphdef_truth of output 0, as far as it was asked for
    uint64_t inlined_bytes;
} pen_graphdef_flat;

//   INVALID_INPUT  two nodes of one name, functions that call themselves, or too much of something
PEN_NODISCARD pen_status pen_graphdef_flatten(const pen_graphdef *graph, pen_arena *arena,
                                              pen_graphdef_flat *out_flat);

// Adds a node at the end. INVALID_INPUT: its name is taken.
PEN_NODISCARD pen_status pen_graphdef_flat_add(pen_graphdef_flat *flat,
                                               const pen_graphdef_node *node);

// The same for a graph of the functions of `whole`: a part of it. What both inline counts together.
PEN_NODISCARD pen_status pen_graphdef_flatten_part(pen_graphdef_flat *whole,
                                                   const pen_graphdef *graph,
                                                   pen_graphdef_flat *out_flat);

// The node of that name; UINT32_MAX when there is none.
uint32_t pen_graphdef_flat_find(const pen_graphdef_flat *flat, const char *name);

// Whether `input` is a constant truth: of a constant, of a placeholder's default, or of what `not`,
// `and`, `or` make of them. A placeholder of a bool without a default counts as false: it asks
// whether the model is being trained.
PEN_NODISCARD pen_status pen_graphdef_flat_truth(pen_graphdef_flat *flat,
                                                 const pen_graphdef_input *input,
                                                 pen_graphdef_truth *out_truth);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FLATTEN_H
