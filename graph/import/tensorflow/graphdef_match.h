// Patterns in the body of a loop: which node makes a value, seen through what passes values on.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MATCH_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/import/tensorflow/graphdef_block.h"

// An output of a node of the body's list.
typedef struct pen_graphdef_place {
    uint32_t node; // UINT32_MAX: none
    uint32_t output;
} pen_graphdef_place;

// What `input` names, followed to the node that makes it.
pen_graphdef_place pen_graphdef_match(const pen_graphdef_block *block,
                                      const pen_graphdef_input *input);
// Operand `input` of the node at `place`.
pen_graphdef_place pen_graphdef_match_operand(const pen_graphdef_block *block,
                                              pen_graphdef_place place, uint32_t input);
bool pen_graphdef_match_op(const pen_graphdef_block *block, pen_graphdef_place place,
                           const char *op);
// Whether `op` with two operands makes it; writes them.
bool pen_graphdef_match_two(const pen_graphdef_block *block, pen_graphdef_place place,
                            const char *op, pen_graphdef_place out_operands[2]);
// Whether it is argument `argument`.
bool pen_graphdef_match_argument(const pen_graphdef_block *block, pen_graphdef_place place,
                                 uint32_t argument);
bool pen_graphdef_match_same(pen_graphdef_place a, pen_graphdef_place b);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MATCH_H
