// A block: a list of nodes that is imported as a whole, the model's or that of a loop's function.
//
// A loop (While) has two blocks of its own, its condition and its body; a conditional (If) those of
// its two branches. They are made before anything is built, so that what cannot be imported is
// known of all of them at once.
//
// Lifetime: in the flat list's arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_BLOCK_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/import/tensorflow/graphdef_flatten.h"
#include "graph/import/tensorflow/graphdef_resolve.h"

#define PEN_GRAPHDEF_ARGUMENT "_Arg" // the operator of what a function is given

typedef struct pen_graphdef_control pen_graphdef_control;

typedef struct pen_graphdef_block {
    pen_graphdef_flat *flat;
    uint32_t output_count;
    const pen_graphdef_input *outputs; // [output_count]
    pen_graphdef_order order;
    uint32_t argument_count;
    uint32_t *arguments;             // [argument_count], nodes of the flat list
    pen_graphdef_control **controls; // [flat's count]; NULL for all that is no While and no If
    const char *shared_name;         // inner: the names of most nodes begin as this one does,
    size_t shared_bytes;             // for so many bytes
} pen_graphdef_block;

enum {
    PEN_GRAPHDEF_CONDITION = 0, // parts of a While
    PEN_GRAPHDEF_ROUND = 1,
    PEN_GRAPHDEF_THEN = 0, // parts of an If
    PEN_GRAPHDEF_ELSE = 1,
    PEN_GRAPHDEF_PART_COUNT = 2,
};
struct pen_graphdef_control {
    bool is_while;
    pen_graphdef_block parts[PEN_GRAPHDEF_PART_COUNT];
};

// Fills in order and controls of a block that has its flat list and outputs.
//   INVALID_INPUT, UNSUPPORTED (as in flattening and resolving), OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graphdef_block_prepare(pen_graphdef_block *block);

// Whether the node is a While or an If.
bool pen_graphdef_is_control(const pen_graphdef_node *node);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_BLOCK_H
