#include "graph/ops/product/attention_geometry.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/op.h"

static pen_status attention_mismatch(const char *what, const pen_shape *a, const pen_shape *b) {
    char a_text[PEN_SHAPE_TEXT_BYTES], b_text[PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "%s, %s and %s", what, pen_shape_format(a, a_text),
                     pen_shape_format(b, b_text));
}

static void attention_swap(pen_shape *shape) {
    const int64_t heads = shape->dims[shape->rank - 3];
    shape->dims[shape->rank - 3] = shape->dims[shape->rank - 2];
    shape->dims[shape->rank - 2] = heads;
}

// The shape (…, heads, rows, numbers) of an operand that may lie as (…, rows, heads, numbers).
static pen_status attention_logical(const pen_shape *stored, bool by_row, const char *name,
                                    pen_shape *out_shape) {
    const uint32_t least = by_row ? 3 : 2;
    if (stored->rank < least) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "%s is %s, expected at least %u dimensions", name,
                         pen_shape_format(stored, text), least);
    }
    *out_shape = *stored;
    if (by_row) attention_swap(out_shape);
    return PEN_OK;
}

// Strides of an operand of the logical shape `shape`, which `q_heads` heads read.
static pen_attention_strides attention_strides(const pen_shape *shape, bool by_row,
                                               int64_t q_heads) {
    const int64_t heads = shape->rank > 2 ? shape->dims[shape->rank - 3] : 1;
    const int64_t rows = shape->dims[shape->rank - 2], numbers = shape->dims[shape->rank - 1];
    return (pen_attention_strides){
        .outer = heads * rows * numbers,
        .head = by_row ? numbers : rows * numbers,
        .row = by_row ? heads * numbers : numbers,
        .shared = heads > 0 ? q_heads / heads : 1,
    };
}

// q may have more heads than k and v, which are shared then.
static pen_status attention_check(const pen_shape *q, const pen_shape *k, const pen_shape *v) {
    const uint32_t rank = q->rank;
    if (k->rank != rank) return attention_mismatch("q and k differ in rank", q, k);
    if (v->rank != rank) return attention_mismatch("q and v differ in rank", q, v);
    for (uint32_t d = 0; d + 3 < rank; d++) {
        if (q->dims[d] != k->dims[d]) return attention_mismatch("q and k differ in batch", q, k);
        if (q->dims[d] != v->dims[d]) return attention_mismatch("q and v differ in batch", q, v);
    }
    if (rank > 2 && k->dims[rank - 3] != v->dims[rank - 3]) {
        return attention_mismatch("k and v differ in their heads", k, v);
    }
    const int64_t heads = rank > 2 ? k->dims[rank - 3] : 1;
    const int64_t q_heads = rank > 2 ? q->dims[rank - 3] : 1;
    if (heads != q_heads && (heads == 0 || q_heads % heads != 0)) {
        return attention_mismatch("the heads of q are not a multiple of those of k", q, k);
    }
    if (q->dims[rank - 1] != k->dims[rank - 1]) {
        return attention_mismatch("rows of q and k differ in length", q, k);
    }
    if (k->dims[rank - 2] != v->dims[rank - 2]) {
        return attention_mismatch("k and v differ in their count of rows", k, v);
    }
    return PEN_OK;
}

static pen_status attention_set_mask(const pen_shape *mask, pen_attention_geometry *g) {
    pen_shape square = g->batch, common;
    square.dims[square.rank++] = g->query_count;
    square.dims[square.rank++] = g->key_count;
    PEN_TRY(pen_shape_broadcast(mask, &square, &common));
    if (!pen_shape_equal(&common, &square)) {
        return attention_mismatch("the mask does not broadcast to the scores", mask, &square);
    }
    const int64_t columns = mask->rank > 0 ? mask->dims[mask->rank - 1] : 1;
    const int64_t rows = mask->rank > 1 ? mask->dims[mask->rank - 2] : 1;
    g->has_mask = true;
    g->mask_batch = *mask;
    g->mask_batch.rank = mask->rank > 2 ? mask->rank - 2 : 0;
    g->mask_row = rows > 1 ? columns : 0;
    g->mask_column = columns > 1 ? 1 : 0;
    g->mask_size = rows * columns;
    return PEN_OK;
}

// Operands may lie by head or by row: strides hide that from the kernels.
pen_status pen_attention_geometry_of(const pen_graph *graph, const pen_node *node, uint32_t first,
                                     uint32_t mask, pen_attention_geometry *out_geometry) {
    const bool q_by_row = pen_node_int(node, "q_by_row") != 0;
    const bool k_by_row = pen_node_int(node, "k_by_row") != 0;
    const bool v_by_row = pen_node_int(node, "v_by_row") != 0;
    const bool y_by_row = pen_node_int(node, "y_by_row") != 0;
    pen_shape q, k, v;
    const pen_value_id *operands = node->inputs + first;
    PEN_TRY(attention_logical(&pen_value_type(graph, operands[0])->shape, q_by_row, "q", &q));
    PEN_TRY(attention_logical(&pen_value_type(graph, operands[1])->shape, k_by_row, "k", &k));
    PEN_TRY(attention_logical(&pen_value_type(graph, operands[2])->shape, v_by_row, "v", &v));
    PEN_TRY(attention_check(&q, &k, &v));
    pen_shape y = q, batch = q;
    y.dims[y.rank - 1] = v.dims[v.rank - 1];
    batch.rank -= 2;
    if (y_by_row && y.rank < 3) {
        return attention_mismatch("without heads y cannot lie by row, q and v are", &q, &v);
    }
    const int64_t heads = q.rank > 2 ? q.dims[q.rank - 3] : 1;
    pen_attention_geometry g = {
        .head_count = heads,
        .outer_count = pen_shape_count(&q, 0, q.rank > 2 ? q.rank - 3 : 0),
        .query_count = q.dims[q.rank - 2],
        .key_count = k.dims[k.rank - 2],
        .depth = q.dims[q.rank - 1],
        .value_depth = v.dims[v.rank - 1],
        .q = attention_strides(&q, q_by_row, heads),
        .k = attention_strides(&k, k_by_row, heads),
        .v = attention_strides(&v, v_by_row, heads),
        .y = attention_strides(&y, y_by_row, heads),
        .batch = batch,
        .output = y,
    };
    if (y_by_row) attention_swap(&g.output);
    if (mask < node->input_count && pen_value_is(node->inputs[mask])) {
        PEN_TRY(attention_set_mask(&pen_value_type(graph, node->inputs[mask])->shape, &g));
    }
    *out_geometry = g;
    return PEN_OK;
}

int64_t pen_attention_offset(const pen_attention_geometry *geometry,
                             const pen_attention_strides *strides, int64_t index) {
    const int64_t head = index % geometry->head_count / strides->shared;
    return index / geometry->head_count * strides->outer + head * strides->head;
}

pen_random_key pen_attention_random_key(const pen_node *node, uint64_t seed, uint64_t step,
                                        uint64_t microbatch) {
    return (pen_random_key){
        pen_node_has(node, "seed") ? (uint64_t)pen_node_int(node, "seed") : seed,
        pen_random_stream(pen_node_stream(node), step, microbatch),
    };
}

double pen_attention_fill(const pen_node *node) {
    return pen_node_has(node, "fill") ? pen_node_float(node, "fill") : (double)-INFINITY;
}

int64_t pen_attention_mask_offset(const pen_attention_geometry *geometry, int64_t index) {
    const pen_shape *mask = &geometry->mask_batch;
    int64_t rest = index, stride = 1, at = 0;
    for (uint32_t d = 0; d < mask->rank; d++) { // counted from the last dimension
        const int64_t dim = geometry->batch.dims[geometry->batch.rank - 1 - d];
        const int64_t own = mask->dims[mask->rank - 1 - d];
        if (own > 1) at += rest % dim * stride;
        rest /= dim;
        stride *= own;
    }
    return at * geometry->mask_size;
}
