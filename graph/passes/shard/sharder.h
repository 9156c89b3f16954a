// The contract of this folder: a graph that is being cut, for the files that do it.
//
// Values are of the old graph where a parameter is called `value`, `node` or `like`, and of the new
// one in arrays of pieces and where a comment says so.
#ifndef PEN_GRAPH_PASSES_SHARD_SHARDER_H
#define PEN_GRAPH_PASSES_SHARD_SHARDER_H

#include "graph/analysis/readers.h"
#include "graph/graph.h"
#include "graph/passes/copy_graph.h"

// How a value is cut: dimension `axis` is `blocks` equal parts, and piece s has of each part the
// indices from bounds[s] up to bounds[s + 1].
typedef struct shard_cut {
    uint32_t ways; // 0: it is whole
    uint32_t axis;
    int64_t blocks;
    const int64_t *bounds; // [ways + 1]
} shard_cut;

typedef struct shard_pieces {
    shard_cut cut;
    const pen_value_id *values; // [ways], of the new graph
} shard_pieces;

typedef struct sharder {
    const pen_graph *from;
    pen_graph_copy copy;
    pen_arena *arena;
    const uint32_t *ways; // [node_count]
    pen_readers readers;
    shard_pieces *pieces;      // [value_count]
    pen_node_id *whole_reader; // [value_count] of parameters that are read whole, by which
    pen_node_id at;            // the node that is being cut
} sharder;

// A rule looks at a node whose inputs are done. It makes the outputs, in pieces or whole, and says
// so; or leaves the node to the others.
typedef pen_status (*shard_rule)(sharder *s, pen_node_id node, bool *out_done);

// shard_product.c, shard_embedding.c: nodes that were chosen
pen_status pen_shard_product(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_embedding(sharder *s, pen_node_id node, bool *out_done);
bool pen_shard_is_product(const pen_graph *graph, pen_node_id node);
bool pen_shard_is_embedding(const pen_graph *graph, pen_node_id node);
// The dimension of its parameter that the columns of a product are.
uint32_t pen_shard_column_axis(const pen_node *node);
// shard_follow.c, shard_attention.c, shard_loss.c: nodes that read pieces
pen_status pen_shard_elementwise(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_view(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_transpose(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_split(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_pick(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_dropout(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_attention(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_cross_entropy(sharder *s, pen_node_id node, bool *out_done);
pen_status pen_shard_accuracy(sharder *s, pen_node_id node, bool *out_done);

// ---- shard_values.c: values in pieces

// Pieces of nearly equal size, of an extent in units that are not cut. The extent has at least
// `ways` units.
pen_status pen_shard_bounds(sharder *s, int64_t extent, int64_t unit, uint32_t ways,
                            const int64_t **out_bounds);
// Whether the cuts are the same but for the axis.
bool pen_shard_same_bounds(const shard_cut *a, const shard_cut *b);
// Elements of piece `piece` along the axis.
int64_t pen_shard_extent(const shard_cut *cut, uint32_t piece);

// The cut of a value; its `ways` are 0 where it is whole.
const shard_cut *pen_shard_cut_of(const sharder *s, pen_value_id value);
void pen_shard_set(sharder *s, pen_value_id value, const shard_cut *cut,
                   const pen_value_id *pieces);
// Makes sure that copy.values has the value whole, and gives it.
pen_status pen_shard_whole(sharder *s, pen_value_id value, pen_value_id *out_whole);
// The value in such pieces, made where it has none: parameters become slices.
pen_status pen_shard_cut_value(sharder *s, pen_value_id value, const shard_cut *cut,
                               const pen_value_id **out_pieces);
// An operand that broadcasts to what is cut `from_end` dimensions before its last one: in pieces
// where it has the dimension, else the whole for each. NONE stays NONE.
pen_status pen_shard_operand(sharder *s, pen_value_id value, const shard_cut *cut,
                             uint32_t from_end, const pen_value_id **out_pieces);

// ---- shard_owned.c: indices into what is in pieces

// Indices whole, under a shape with as many elements.
pen_status pen_shard_indices(sharder *s, pen_node_id like, pen_value_id value,
                             const pen_shape *shape, pen_value_id *out_indices);

typedef struct shard_owned {
    pen_value_id is_here; // bool, of the indices' shape: whether the piece has it
    pen_value_id indices; // within the piece; 0 for those that it has not
} shard_owned;
// All values are of the new graph. Indices that are in no piece are so in one of them.
pen_status pen_shard_own(sharder *s, pen_node_id like, const shard_cut *cut, uint32_t piece,
                         pen_value_id indices, shard_owned *out_owned);
pen_status pen_shard_where(sharder *s, pen_node_id like, pen_value_id condition, pen_value_id a,
                           pen_value_id b, pen_value_id *out_value);

// ---- shard_nodes.c: nodes of the new graph

// A new node beside those of `like`, called LIKE/SUFFIX; all values are of the new graph.
typedef struct shard_node {
    const pen_op *op;
    const char *suffix;
    const pen_value_id *inputs;
    uint32_t input_count;
    const pen_attribute_given *attributes;
    uint32_t attribute_count;
    const char *output; // name of its output; NULL: any
} shard_node;
pen_status pen_shard_add(sharder *s, pen_node_id like, const shard_node *node,
                         pen_value_id *out_value);
// A node of one or two operands, called after the op.
pen_status pen_shard_apply(sharder *s, pen_node_id like, const pen_op *op, pen_value_id a,
                           pen_value_id b, pen_value_id *out_value);
// What a reduction over an axis, which stays with size 1, gives.
pen_status pen_shard_reduce(sharder *s, pen_node_id like, const pen_op *op, pen_value_id value,
                            int64_t axis, pen_value_id *out_value);
pen_status pen_shard_constant(sharder *s, pen_element_type element, double number,
                              pen_value_id *out_value);
pen_status pen_shard_reshape(sharder *s, pen_node_id like, const pen_shape *shape,
                             const char *output, pen_value_id *value);
typedef struct shard_list {
    uint32_t count;
    const pen_value_id *values; // [count]
} shard_list;
// Side by side along an axis.
pen_status pen_shard_concat(sharder *s, pen_node_id like, const shard_list *list, uint32_t axis,
                            const char *output, pen_value_id *out_value);
// ((0 + 1) + 2) + …; `output`: the name of the last sum, or NULL.
pen_status pen_shard_sum(sharder *s, pen_node_id like, const shard_list *list, const char *output,
                         pen_value_id *out_value);

// Copies of `node`, one for each piece: inputs[i][s] is input i of piece s. Output o is cut as
// `cuts[o]` says.
pen_status pen_shard_map(sharder *s, pen_node_id node, const pen_value_id *const *inputs,
                         uint32_t input_count, const shard_cut *cuts);

#endif // PEN_GRAPH_PASSES_SHARD_SHARDER_H
