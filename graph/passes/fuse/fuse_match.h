// What passes that look for an operator's spelling in several nodes share: walking from values to
// those who make and read them, past nodes that change nothing, and remembering what was met.
//
// Lifetime: a match lives on the caller's stack and borrows the graph and its readers.
// Threads:  one at a time a match.
#ifndef PEN_GRAPH_PASSES_FUSE_FUSE_MATCH_H
#define PEN_GRAPH_PASSES_FUSE_FUSE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/analysis/readers.h"
#include "graph/attribute.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

#define PEN_FUSE_NODE_LIMIT 48
#define PEN_FUSE_OPERAND_LIMIT 6

// The nodes of a spelling, and the node that is to stand in place of the last of them.
typedef struct pen_fuse_match {
    const pen_graph *graph;
    const pen_readers *readers;
    uint32_t node_count;
    pen_node_id nodes[PEN_FUSE_NODE_LIMIT];
    bool passes[PEN_FUSE_NODE_LIMIT]; // changes nothing: others may read it too
    bool is_full;                     // there were more nodes
    const pen_op *op;
    pen_node_id last; // of one output
    pen_value_id inputs[PEN_FUSE_OPERAND_LIMIT];
    uint32_t input_count;
    pen_attribute_given attributes[PEN_FUSE_OPERAND_LIMIT];
    uint32_t attribute_count;
} pen_fuse_match;

// Looks for a spelling that `anchor` is part of. Fills `match`; false: there is none.
typedef bool (*pen_fuse_rule)(pen_fuse_match *match, pen_node_id anchor);

pen_fuse_match pen_fuse_match_begin(const pen_graph *graph, const pen_readers *readers);

// Whether every value that the match's nodes make, but the last, is read by them alone.
bool pen_fuse_is_closed(const pen_fuse_match *match);

// The value behind nodes that change nothing (identity, a cast to the same type); these join.
pen_value_id pen_fuse_behind(pen_fuse_match *match, pen_value_id value);
bool pen_fuse_same(pen_fuse_match *match, pen_value_id a, pen_value_id b);

// The operator `op` that makes `value`, which joins; PEN_NODE_NONE when another makes it.
pen_node_id pen_fuse_made_by(pen_fuse_match *match, pen_value_id value, const pen_op *op);

// The only node that reads `value`, past nodes that change nothing, which join; it does not.
// *out_value is what it reads. PEN_NODE_NONE when none does, or several do.
pen_node_id pen_fuse_reader(pen_fuse_match *match, pen_value_id value, pen_value_id *out_value);
void pen_fuse_join(pen_fuse_match *match, pen_node_id node);

bool pen_fuse_is(const pen_fuse_match *match, pen_node_id node, const pen_op *op);
pen_value_id pen_fuse_input(const pen_fuse_match *match, pen_node_id node, uint32_t input);
pen_value_id pen_fuse_output(const pen_fuse_match *match, pen_node_id node);
const pen_tensor_type *pen_fuse_type(const pen_fuse_match *match, pen_value_id value);

// Whether `value` is a floating or integer constant of one element; reads it.
bool pen_fuse_number(pen_fuse_match *match, pen_value_id value, double *out_number);
// Whether it is near `number`, as exporters write numbers that were rounded to float32.
bool pen_fuse_is_number(pen_fuse_match *match, pen_value_id value, double number);
bool pen_fuse_near(double found, double number);

// The operand of `node`, of two, that is not `value`, whichever comes first.
pen_value_id pen_fuse_other(pen_fuse_match *match, pen_node_id node, pen_value_id value);

#endif // PEN_GRAPH_PASSES_FUSE_FUSE_MATCH_H
