#include "graph/passes/attention_pattern.h"

#include <math.h>
#include <string.h>

#include "graph/op.h"

// Scores that this much or more is taken from do not count: their exponentials are 0.
#define PATTERN_HIDDEN (-1e4)
// Nodes between the product of q and k and the softmax, at most.
#define PATTERN_DEPTH 8

typedef struct pattern {
    const pen_graph *graph;
    const pen_readers *readers;
    const bool *is_trained;
} pattern;

static const pen_node *pattern_producer(const pattern *p, pen_value_id value, const char *op_name) {
    if (!pen_value_is(value)) return NULL;
    const pen_node_id producer = pen_graph_value(p->graph, value)->producer;
    if (!pen_node_is(producer)) return NULL;
    const pen_node *node = pen_graph_node(p->graph, producer);
    return strcmp(node->op->name, op_name) == 0 ? node : NULL;
}

static const pen_shape *pattern_shape(const pattern *p, pen_value_id value) {
    return &pen_value_type(p->graph, value)->shape;
}

static bool pattern_number(const pattern *p, pen_value_id value, double *out_number) {
    if (!pen_value_is(value) || pen_graph_value(p->graph, value)->kind != PEN_VALUE_CONSTANT) {
        return false;
    }
    if (pen_shape_element_count(pattern_shape(p, value)) != 1) return false;
    const pen_status status = pen_value_read_number(p->graph, value, out_number);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "then it is no number for us");
    return false;
}

// Whether `value` is another value of its type times a number.
static bool pattern_scaled(const pattern *p, pen_value_id value, pen_value_id *out_source,
                           double *out_factor) {
    const pen_node *node = pattern_producer(p, value, "mul");
    double number;
    uint32_t of = 0;
    if (node != NULL) {
        of = pattern_number(p, node->inputs[0], &number) ? 1 : 0;
        if (of == 0 && !pattern_number(p, node->inputs[1], &number)) return false;
        *out_factor = number;
    } else {
        node = pattern_producer(p, value, "div");
        if (node == NULL || !pattern_number(p, node->inputs[1], &number) || number == 0) {
            return false;
        }
        *out_factor = 1 / number;
    }
    *out_source = node->inputs[of];
    return pen_shape_equal(pattern_shape(p, *out_source), pattern_shape(p, value));
}

// Whether `value` is transposed: `third`, `second`, `first` are the last three numbers of perm,
// counted from the rank; dimensions before stay.
static bool pattern_transposed(const pattern *p, pen_value_id value, const uint32_t from_end[3],
                               pen_value_id *out_source) {
    const pen_node *node = pattern_producer(p, value, "transpose");
    const uint32_t rank = pattern_shape(p, value)->rank;
    if (node == NULL || rank < 3) return false;
    uint32_t count;
    const int64_t *perm = pen_node_ints(node, "perm", &count);
    for (uint32_t d = 0; d < rank; d++) {
        const int64_t axis = perm != NULL ? perm[d] : (int64_t)(rank - 1 - d);
        const uint32_t expected = d + 3 < rank ? d : rank - from_end[d + 3 - rank];
        if (axis != (int64_t)expected) return false;
    }
    *out_source = node->inputs[0];
    return true;
}

static const uint32_t pattern_swaps_heads[3] = {2, 3, 1}; // rows and heads
static const uint32_t pattern_swaps_last[3] = {3, 1, 2};
static const uint32_t pattern_turns_keys[3] = {2, 1, 3}; // (rows, heads, numbers) of k, for k^T

// Takes in factors and, unless it lies so already, the transpose from rows to heads.
static void pattern_operand(const pattern *p, pen_value_id *value, bool *by_row, double *scale) {
    pen_value_id source;
    double factor;
    for (int i = 0; i < 4; i++) {
        if (scale != NULL && pattern_scaled(p, *value, &source, &factor)) {
            *scale *= factor;
        } else if (!*by_row && pattern_transposed(p, *value, pattern_swaps_heads, &source)) {
            *by_row = true;
        } else {
            return;
        }
        *value = source;
    }
}

static bool pattern_product(const pattern *p, pen_value_id scores, pen_attention_match *match) {
    const pen_node *node = pattern_producer(p, scores, "matmul");
    if (node == NULL || pen_node_int(node, "transA") != 0) return false;
    match->q = node->inputs[0];
    match->k = node->inputs[1];
    if (pen_node_int(node, "transB") == 0) {
        pen_value_id source;
        double factor;
        if (pattern_scaled(p, match->k, &source, &factor)) {
            match->scale *= factor;
            match->k = source;
        }
        if (pattern_transposed(p, match->k, pattern_turns_keys, &source)) {
            match->k_by_row = true;
        } else if (!pattern_transposed(p, match->k, pattern_swaps_last, &source)) {
            return false;
        }
        match->k = source;
    }
    pattern_operand(p, &match->q, &match->q_by_row, &match->scale);
    pattern_operand(p, &match->k, &match->k_by_row, &match->scale);
    return true;
}

// What a constant mask holds at a place: whether the score there counts. `hides`: booleans that
// are true where it does not.
static bool pattern_counts(const pen_value *mask, bool hides, int64_t at, bool *out_is_clear) {
    double number = 0;
    *out_is_clear = true;
    const char *data = mask->data;
    if (mask->type.element == PEN_BOOL) return (data[at] != 0) != hides;
    if (mask->type.element == PEN_FLOAT64) {
        memcpy(&number, data + at * 8, sizeof number);
    } else {
        float narrow;
        memcpy(&narrow, data + at * 4, sizeof narrow);
        number = (double)narrow;
    }
    *out_is_clear = number == 0 || number <= PATTERN_HIDDEN;
    return number == 0;
}

// Whether a constant mask lets each row see what is not behind it, and nothing else.
static bool pattern_is_causal(const pattern *p, pen_value_id id, bool hides) {
    const pen_value *mask = pen_graph_value(p->graph, id);
    const pen_element_type element = mask->type.element;
    const pen_shape *shape = &mask->type.shape;
    if (mask->kind != PEN_VALUE_CONSTANT || shape->rank < 2 || mask->data == NULL) return false;
    if (element != PEN_BOOL && element != PEN_FLOAT32 && element != PEN_FLOAT64) return false;
    const int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    if (rows * columns != pen_shape_element_count(shape) || rows < 2 || columns < 2) return false;
    for (int64_t i = 0; i < rows * columns; i++) {
        bool is_clear;
        const bool counts = pattern_counts(mask, hides, i, &is_clear);
        if (!is_clear || counts != (i % columns <= i / columns)) return false;
    }
    return true;
}

static bool pattern_has_mask(const pen_attention_match *match) {
    return pen_value_is(match->mask) || pen_value_is(match->condition);
}

// Whether a causal mask may be read off `mask`, which must have a row and a column for each score.
static bool pattern_spans(const pattern *p, pen_value_id mask, pen_value_id scores) {
    const pen_shape *a = pattern_shape(p, mask), *b = pattern_shape(p, scores);
    return a->rank >= 2 && a->dims[a->rank - 1] == b->dims[b->rank - 1] &&
           a->dims[a->rank - 2] == b->dims[b->rank - 2];
}

// `factor` is what the scores are multiplied by behind the mask.
static bool pattern_add_mask(const pattern *p, pen_value_id mask, pen_value_id scores,
                             double factor, pen_attention_match *match) {
    if (p->is_trained[mask.index]) return false;
    if (pattern_spans(p, mask, scores) && pattern_is_causal(p, mask, false) && factor >= 0.1) {
        match->causal = true;
        return true;
    }
    if (pattern_has_mask(match) || factor != 1) return false;
    match->mask = mask;
    return true;
}

static bool pattern_fill(const pattern *p, const pen_node *node, uint32_t filled,
                         pen_value_id scores, double factor, pen_attention_match *match) {
    double fill;
    const pen_value_id condition = node->inputs[0];
    if (!pattern_number(p, node->inputs[filled], &fill) || !(fill <= PATTERN_HIDDEN)) return false;
    if (pattern_spans(p, condition, scores) && pattern_is_causal(p, condition, filled == 1) &&
        factor >= 0.1) {
        match->causal = true;
        return true;
    }
    if (pattern_has_mask(match) || factor != 1) return false;
    match->condition = condition;
    match->fill = node->inputs[filled];
    match->filled_where_true = filled == 1;
    return true;
}

// Follows the scores from the softmax back to the product; `factor` as above.
static bool pattern_scores(const pattern *p, pen_value_id scores, double factor, int depth,
                           pen_attention_match *match) {
    if (depth == 0 || p->readers->is_visible[scores.index]) return false;
    if (pen_readers_count(p->readers, scores) != 1) return false;
    pen_attention_match at = *match;
    if (pattern_product(p, scores, &at)) {
        at.scale *= factor;
        *match = at;
        return true;
    }
    pen_value_id source;
    double own;
    if (pattern_scaled(p, scores, &source, &own)) {
        return pattern_scores(p, source, factor * own, depth - 1, match);
    }
    const pen_node *where = pattern_producer(p, scores, "where");
    const pen_node *sum = pattern_producer(p, scores, "add");
    for (uint32_t i = 0; (where != NULL || sum != NULL) && i < 2; i++) {
        source = where != NULL ? where->inputs[1 + i] : sum->inputs[i];
        if (!pen_shape_equal(pattern_shape(p, source), pattern_shape(p, scores))) continue;
        at = *match;
        const bool fits = where != NULL
                              ? pattern_fill(p, where, 2 - i, scores, factor, &at)
                              : pattern_add_mask(p, sum->inputs[1 - i], scores, factor, &at);
        if (!fits || !pattern_scores(p, source, factor, depth - 1, &at)) continue;
        *match = at;
        return true;
    }
    return false;
}

static pen_shape pattern_logical(const pattern *p, pen_value_id value, bool by_row) {
    pen_shape shape = *pattern_shape(p, value);
    if (!by_row) return shape;
    const int64_t heads = shape.dims[shape.rank - 2];
    shape.dims[shape.rank - 2] = shape.dims[shape.rank - 3];
    shape.dims[shape.rank - 3] = heads;
    return shape;
}

// The op takes operands of one batch.
static bool pattern_fits(const pattern *p, const pen_attention_match *match) {
    const pen_shape q = pattern_logical(p, match->q, match->q_by_row);
    const pen_shape k = pattern_logical(p, match->k, match->k_by_row);
    const pen_shape v = pattern_logical(p, match->v, match->v_by_row);
    if (q.rank < 2 || q.rank != k.rank || q.rank != v.rank) return false;
    for (uint32_t d = 0; d + 2 < q.rank; d++) {
        if (q.dims[d] != k.dims[d] || q.dims[d] != v.dims[d]) return false;
    }
    return true;
}

bool pen_attention_find(const pen_graph *graph, const pen_readers *readers, const bool *is_trained,
                        pen_node_id node, pen_attention_match *out_match) {
    const pattern p = {graph, readers, is_trained};
    const pen_node *product = pen_graph_node(graph, node);
    if (strcmp(product->op->name, "matmul") != 0) return false;
    if (pen_node_int(product, "transA") != 0 || pen_node_int(product, "transB") != 0) return false;
    const pen_value_id weights = product->inputs[0];
    const pen_node *softmax = pattern_producer(&p, weights, "softmax");
    const int64_t rank = pattern_shape(&p, weights)->rank;
    if (softmax == NULL || readers->is_visible[weights.index]) return false;
    if (pen_readers_count(readers, weights) != 1) return false;
    const int64_t axis = pen_node_int(softmax, "axis");
    if (axis != -1 && axis != rank - 1) return false;
    pen_attention_match match = {.v = product->inputs[1],
                                 .y = product->outputs[0],
                                 .last = node,
                                 .mask = PEN_VALUE_NONE,
                                 .condition = PEN_VALUE_NONE,
                                 .fill = PEN_VALUE_NONE,
                                 .scale = 1};
    if (!pattern_scores(&p, softmax->inputs[0], 1, PATTERN_DEPTH, &match)) return false;
    pattern_operand(&p, &match.v, &match.v_by_row, NULL);
    if (!pattern_fits(&p, &match)) return false;
    const pen_node_id behind = pen_readers_only(readers, match.y);
    if (pen_node_is(behind)) {
        pen_value_id source;
        const pen_value_id turned = pen_graph_node(graph, behind)->outputs[0];
        if (pattern_transposed(&p, turned, pattern_swaps_heads, &source)) {
            match.y_by_row = true;
            match.y = turned;
            match.last = behind;
        }
    }
    *out_match = match;
    return true;
}
