#include "graph/passes/fuse/attention_pattern.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

// Scores that this much or more is taken from do not count: their exponentials are 0.
#define PATTERN_HIDDEN (-1e4)
// Nodes between the product of q and k and the softmax, at most.
#define PATTERN_DEPTH 8

typedef struct pattern {
    const pen_graph *graph;
    const pen_readers *readers;
} pattern;

static const pen_node *pattern_producer(const pattern *p, pen_value_id value, const pen_op *op) {
    if (!pen_value_is(value)) return NULL;
    const pen_node_id producer = pen_graph_value(p->graph, value)->producer;
    if (!pen_node_is(producer)) return NULL;
    const pen_node *node = pen_graph_node(p->graph, producer);
    return node->op == op ? node : NULL;
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
    const pen_node *node = pattern_producer(p, value, PEN_OP(mul));
    double number;
    uint32_t of = 0;
    if (node != NULL) {
        of = pattern_number(p, node->inputs[0], &number) ? 1 : 0;
        if (of == 0 && !pattern_number(p, node->inputs[1], &number)) return false;
        *out_factor = number;
    } else {
        node = pattern_producer(p, value, PEN_OP(div));
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
    const pen_node *node = pattern_producer(p, value, PEN_OP(transpose));
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

// ---- operands

// The value under another shape, of the same elements in the same order.
static bool pattern_view(const pattern *p, pen_value_id value, pen_value_id *out_source) {
    const pen_node_id producer = pen_graph_value(p->graph, value)->producer;
    if (!pen_node_is(producer)) return false;
    const pen_node *node = pen_graph_node(p->graph, producer);
    if (!node->op->is_view || node->op->stops_gradient) return false;
    *out_source = node->inputs[0];
    return true;
}

// Follows views back to a value of the shape.
static bool pattern_viewed_as(const pattern *p, pen_value_id value, const pen_shape *shape,
                              pen_value_id *out_source) {
    while (!pen_shape_equal(pattern_shape(p, value), shape)) {
        if (!pattern_view(p, value, &value)) return false;
    }
    *out_source = value;
    return true;
}

// Whether `value` has each head of another value several times, one behind the other: expanded
// between two views. `axis` is that of the heads.
static bool pattern_expanded(const pattern *p, pen_value_id value, uint32_t axis,
                             pen_value_id *out_source) {
    const pen_shape *shape = pattern_shape(p, value);
    pen_value_id wide;
    if (!pattern_view(p, value, &wide)) return false;
    const pen_node *node = pattern_producer(p, wide, PEN_OP(expand));
    const pen_shape *to = pattern_shape(p, wide);
    if (node == NULL || to->rank != shape->rank + 1) return false;
    pen_shape from = *to, source = *shape;
    from.dims[axis + 1] = 1;
    source.dims[axis] = to->dims[axis];
    if (to->dims[axis] * to->dims[axis + 1] != shape->dims[axis]) return false;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (d != axis && shape->dims[d] != to->dims[d < axis ? d : d + 1]) return false;
    }
    if (!pen_shape_equal(pattern_shape(p, node->inputs[0]), &from)) return false;
    return pattern_viewed_as(p, node->inputs[0], &source, out_source);
}

// The same where the heads were split, each expanded, and all joined again.
static bool pattern_interleaved(const pattern *p, pen_value_id value, uint32_t axis,
                                pen_value_id *out_source) {
    const pen_node *join = pattern_producer(p, value, PEN_OP(concat));
    const int64_t rank = pattern_shape(p, value)->rank;
    const pen_node *split = NULL;
    if (join == NULL || (pen_node_int(join, "axis") + rank) % rank != (int64_t)axis) return false;
    const int64_t times = pattern_shape(p, join->inputs[0])->dims[axis];
    for (uint32_t i = 0; i < join->input_count; i++) {
        pen_value_id head;
        if (pattern_shape(p, join->inputs[i])->dims[axis] != times) return false;
        if (!pattern_expanded(p, join->inputs[i], axis, &head)) return false;
        const pen_node *of = pattern_producer(p, head, PEN_OP(split));
        if (of == NULL || (i > 0 && of != split)) return false;
        if (of->output_count != join->input_count || !pen_value_same(of->outputs[i], head)) {
            return false;
        }
        split = of;
    }
    if (split == NULL || (pen_node_int(split, "axis") + rank) % rank != (int64_t)axis) return false;
    *out_source = split->inputs[0];
    return true;
}

static bool pattern_repeated(const pattern *p, pen_value_id value, bool by_row,
                             pen_value_id *out_source) {
    const uint32_t rank = pattern_shape(p, value)->rank;
    if (rank < 3) return false;
    const uint32_t axis = by_row ? rank - 2 : rank - 3;
    return pattern_expanded(p, value, axis, out_source) ||
           pattern_interleaved(p, value, axis, out_source);
}

// Takes in factors and, unless it lies so already, the transpose from rows to heads; of k and v
// also heads that are repeated.
static void pattern_operand(const pattern *p, pen_value_id *value, bool *by_row, double *scale,
                            bool may_repeat) {
    pen_value_id source;
    double factor;
    for (int i = 0; i < 6; i++) {
        if (scale != NULL && pattern_scaled(p, *value, &source, &factor)) {
            *scale *= factor;
        } else if (!*by_row && pattern_transposed(p, *value, pattern_swaps_heads, &source)) {
            *by_row = true;
        } else if (!may_repeat || !pattern_repeated(p, *value, *by_row, &source)) {
            return;
        }
        *value = source;
    }
}

// The same, of an operand whose first dimensions are split.
static void pattern_split_operand(const pattern *p, const pen_attention_match *match,
                                  pen_value_id *value, bool *by_row, double *scale) {
    const pen_shape wanted = pen_attention_operand_shape(match, pattern_shape(p, *value));
    if (!*by_row || match->kept > 2) {
        // values that lie split already, perhaps by row
        pattern_viewed_as(p, *value, &wanted, value);
    }
    const bool is_split = pattern_shape(p, *value)->rank == match->scores.rank;
    if (!is_split && match->kept == 2) return; // heads are not apart
    pattern_operand(p, value, by_row, scale, value != &match->q);
}

pen_shape pen_attention_operand_shape(const pen_attention_match *match, const pen_shape *shape) {
    if (shape->rank >= match->scores.rank) return *shape;
    pen_shape split = match->scores;
    for (uint32_t d = 0; d < match->kept; d++) {
        split.dims[split.rank - 1 - d] = shape->dims[shape->rank - 1 - d];
    }
    return split;
}

// How many of the last dimensions of two shapes are the same.
static uint32_t pattern_common(const pen_shape *a, const pen_shape *b) {
    uint32_t count = 0;
    while (count < a->rank && count < b->rank &&
           a->dims[a->rank - 1 - count] == b->dims[b->rank - 1 - count]) {
        count++;
    }
    return count;
}

// Takes note of a shape of the scores: the one with the most dimensions counts. False where
// another does not merely have the first of these in one.
static bool pattern_note_shape(const pattern *p, pen_value_id scores, pen_attention_match *match) {
    const pen_shape *shape = pattern_shape(p, scores);
    const uint32_t common = pattern_common(shape, &match->scores);
    const uint32_t less = shape->rank < match->scores.rank ? shape->rank : match->scores.rank;
    if (common < 2 || common + 1 < less) return false;
    if (shape->rank == match->scores.rank) return common == shape->rank;
    if (shape->rank > match->scores.rank) match->scores = *shape;
    return true;
}

// ---- the scores

// Transpositions before the product are taken in: the op reads operands by row or by head.
static bool pattern_product(const pattern *p, pen_value_id scores, pen_attention_match *match) {
    const pen_node *node = pattern_producer(p, scores, PEN_OP(matmul));
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
    const pen_shape *shape = pattern_shape(p, scores);
    const bool is_split = shape->rank < match->scores.rank;
    match->kept = !is_split || pattern_common(shape, &match->scores) > 2 ? 3 : 2;
    pattern_split_operand(p, match, &match->q, &match->q_by_row, &match->scale);
    pattern_split_operand(p, match, &match->k, &match->k_by_row, &match->scale);
    return true;
}

// What a constant mask adds to the score at a place. `hides`: booleans that are true where the
// score does not count.
static double pattern_mask_number(const pen_value *mask, bool hides, int64_t at) {
    double number = 0;
    const char *data = mask->data;
    if (mask->type.element == PEN_BOOL) {
        return (data[at] != 0) != hides ? 0 : (double)-INFINITY;
    }
    if (mask->type.element == PEN_FLOAT64) {
        memcpy(&number, data + at * 8, sizeof number);
        return number;
    }
    float narrow;
    memcpy(&narrow, data + at * 4, sizeof narrow);
    return (double)narrow;
}

// Whether a constant mask lets each row see what is not behind it, and nothing else. `out_hidden`:
// the greatest number where it does not.
static bool pattern_is_causal(const pattern *p, pen_value_id id, bool hides, double *out_hidden) {
    const pen_value *mask = pen_graph_value(p->graph, id);
    const pen_element_type element = mask->type.element;
    const pen_shape *shape = &mask->type.shape;
    if (mask->kind != PEN_VALUE_CONSTANT || shape->rank < 2 || mask->data == NULL) return false;
    if (element != PEN_BOOL && element != PEN_FLOAT32 && element != PEN_FLOAT64) return false;
    const int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    if (rows * columns != pen_shape_element_count(shape) || rows < 2 || columns < 2) return false;
    *out_hidden = (double)-INFINITY;
    for (int64_t i = 0; i < rows * columns; i++) {
        const double number = pattern_mask_number(mask, hides, i);
        const bool is_seen = i % columns <= i / columns;
        if (is_seen ? number != 0 : !(number <= PATTERN_HIDDEN)) return false;
        if (!is_seen && number > *out_hidden) *out_hidden = number;
    }
    return true;
}

// Whether a causal mask may be read off `mask`, which must have a row and a column for each score.
static bool pattern_spans(const pattern *p, pen_value_id mask, pen_value_id scores) {
    const pen_shape *a = pattern_shape(p, mask), *b = pattern_shape(p, scores);
    return a->rank >= 2 && a->dims[a->rank - 1] == b->dims[b->rank - 1] &&
           a->dims[a->rank - 2] == b->dims[b->rank - 2];
}

// Whether among the masks that were met is one, not causal, that is filled in or, else, added.
static bool pattern_has_mask(const pen_attention_match *match, bool filled) {
    for (uint32_t i = 0; i < match->mask_count; i++) {
        const pen_attention_mask *m = &match->masks[i];
        if (!m->is_causal && pen_value_is(m->condition) == filled) return true;
    }
    return false;
}

// `factor` is what the scores are multiplied by behind the mask.
static bool pattern_add_mask(const pattern *p, pen_value_id mask, pen_value_id scores,
                             double factor, pen_attention_match *match) {
    pen_attention_mask m = {
        .added = mask,
        .condition = PEN_VALUE_NONE,
        .rank = pattern_shape(p, scores)->rank, // until all is known
    };
    m.is_causal = pattern_spans(p, mask, scores) && factor >= 0.1 &&
                  pattern_is_causal(p, mask, false, &m.hidden);
    if (match->mask_count == PEN_ATTENTION_MASKS) return false;
    // a mask that is filled in hides whatever is added to it
    if (!m.is_causal && (factor != 1 || pattern_has_mask(match, true))) return false;
    match->masks[match->mask_count++] = m;
    return true;
}

static bool pattern_fill(const pattern *p, const pen_node *node, uint32_t filled,
                         pen_value_id scores, double factor, pen_attention_match *match) {
    double fill, hidden;
    const pen_value_id condition = node->inputs[0];
    if (!pattern_number(p, node->inputs[filled], &fill) || !(fill <= PATTERN_HIDDEN)) return false;
    pen_attention_mask m = {
        .added = PEN_VALUE_NONE,
        .condition = condition,
        .filled_where_true = filled == 1,
        .hidden = fill * factor,
        .rank = pattern_shape(p, scores)->rank,
    };
    m.is_causal = pattern_spans(p, condition, scores) && factor >= 0.1 &&
                  pattern_is_causal(p, condition, filled == 1, &hidden);
    if (match->mask_count == PEN_ATTENTION_MASKS) return false;
    if (!m.is_causal && (factor != 1 || pattern_has_mask(match, false))) return false;
    match->masks[match->mask_count++] = m;
    return true;
}

// Which causal masks become the attribute, and what all that are filled in hold where they hide.
// Beside those of the data, which may hide all that a row sees, what comes behind the row counts
// unless its scores are -inf in the end: then a causal mask is one more condition of the same fill.
// Masks lie as they were met, the last that the scores went through first.
static bool pattern_settle_masks(pen_attention_match *match) {
    uint32_t of_data = 0, kept = 0;
    while (of_data < match->mask_count &&
           (match->masks[of_data].is_causal || !pen_value_is(match->masks[of_data].condition))) {
        of_data++;
    }
    const bool is_filled = of_data < match->mask_count;
    match->fill = is_filled ? match->masks[of_data].hidden : (double)-INFINITY;
    for (uint32_t i = 0; i < match->mask_count; i++) {
        const pen_attention_mask *m = &match->masks[i];
        const bool stays_hidden =
            isinf(m->hidden) && (isinf(match->fill) || i < of_data); // nothing fills it again
        if (m->is_causal && (!is_filled || stays_hidden)) {
            match->causal = true;
            continue;
        }
        if (is_filled && (!pen_value_is(m->condition) || m->hidden != match->fill)) return false;
        match->masks[kept++] = *m;
    }
    match->mask_count = kept;
    return true;
}

// What is left of the masks' shapes where the scores are split: dimensions before those that the
// scores had in common must be 1.
static bool pattern_fit_masks(const pattern *p, pen_attention_match *match) {
    for (uint32_t i = 0; i < match->mask_count; i++) {
        pen_attention_mask *m = &match->masks[i];
        const pen_shape *mask = pattern_shape(p, pen_value_is(m->added) ? m->added : m->condition);
        // scores of fewer dimensions differ from the split ones in the first
        const bool is_split = m->rank < match->scores.rank;
        const uint32_t common = is_split ? m->rank - 1 : m->rank;
        for (uint32_t d = 0; d + common < mask->rank; d++) {
            if (mask->dims[d] != 1) return false;
        }
        m->rank = mask->rank < common ? mask->rank : common;
    }
    return true;
}

// Follows the scores from the softmax back to the product; `factor` as above.
static bool pattern_scores(const pattern *p, pen_value_id scores, double factor, int depth,
                           pen_attention_match *match) {
    if (depth == 0 || p->readers->is_visible[scores.index]) return false;
    if (pen_readers_count(p->readers, scores) != 1) return false;
    pen_attention_match at = *match;
    if (!pattern_note_shape(p, scores, &at)) return false;
    if (pattern_product(p, scores, &at)) {
        at.scale *= factor;
        *match = at;
        return true;
    }
    *match = at;
    pen_value_id source;
    double own;
    if (pattern_view(p, scores, &source)) {
        return pattern_scores(p, source, factor, depth - 1, match);
    }
    if (pattern_scaled(p, scores, &source, &own)) {
        return pattern_scores(p, source, factor * own, depth - 1, match);
    }
    const pen_node *where = pattern_producer(p, scores, PEN_OP(where));
    const pen_node *sum = pattern_producer(p, scores, PEN_OP(add));
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

// ---- the whole

static pen_shape pattern_logical(const pattern *p, const pen_attention_match *match,
                                 pen_value_id value, bool by_row) {
    pen_shape shape = pen_attention_operand_shape(match, pattern_shape(p, value));
    const bool is_apart = match->kept > 2 || pattern_shape(p, value)->rank == match->scores.rank;
    if (by_row && !is_apart) shape.rank = 0; // cannot be split
    if (!by_row || !is_apart) return shape;
    const int64_t heads = shape.dims[shape.rank - 2];
    shape.dims[shape.rank - 2] = shape.dims[shape.rank - 3];
    shape.dims[shape.rank - 3] = heads;
    return shape;
}

// The op takes operands of one batch; heads of k and v may be fewer.
static bool pattern_fits(const pattern *p, const pen_attention_match *match) {
    const pen_shape q = pattern_logical(p, match, match->q, match->q_by_row);
    const pen_shape k = pattern_logical(p, match, match->k, match->k_by_row);
    const pen_shape v = pattern_logical(p, match, match->v, match->v_by_row);
    const uint32_t rank = match->scores.rank;
    if (q.rank != rank || k.rank != rank || v.rank != rank) return false;
    for (uint32_t d = 0; d + 2 < rank; d++) {
        if (q.dims[d] != match->scores.dims[d] || k.dims[d] != v.dims[d]) return false;
        const bool is_head = d + 3 == rank;
        if (q.dims[d] == k.dims[d]) continue;
        if (!is_head || k.dims[d] == 0 || q.dims[d] % k.dims[d] != 0) return false;
    }
    return true;
}

// The dropout that makes `value`, read once; what it drops.
static bool pattern_dropout(const pattern *p, pen_value_id value, pen_attention_match *match,
                            pen_value_id *out_source) {
    const pen_node *node = pattern_producer(p, value, PEN_OP(dropout));
    double training;
    if (node == NULL || pen_node_is(match->dropout) || node->input_count < 3) return false;
    if (!pattern_number(p, node->inputs[2], &training) || training == 0) return false;
    match->ratio = 0.5;
    if (pen_value_is(node->inputs[1]) && !pattern_number(p, node->inputs[1], &match->ratio)) {
        return false;
    }
    if (node->output_count > 1 && pen_value_is(node->outputs[1])) {
        const pen_value_id mask = node->outputs[1];
        if (p->readers->is_visible[mask.index] || pen_readers_count(p->readers, mask) > 0) {
            return false;
        }
    }
    match->dropout = pen_graph_value(p->graph, value)->producer;
    *out_source = node->inputs[0];
    return true;
}

// Follows what multiplies v back to the scores, past a dropout and views.
static bool pattern_weights(const pattern *p, pen_value_id weights, pen_attention_match *match,
                            pen_value_id *out_scores) {
    match->scores = *pattern_shape(p, weights);
    for (int i = 0; i < PATTERN_DEPTH; i++) {
        if (p->readers->is_visible[weights.index]) return false;
        if (pen_readers_count(p->readers, weights) != 1) return false;
        if (!pattern_note_shape(p, weights, match)) return false;
        const pen_node *softmax = pattern_producer(p, weights, PEN_OP(softmax));
        if (softmax == NULL) {
            if (pattern_dropout(p, weights, match, &weights)) continue;
            if (pattern_view(p, weights, &weights)) continue;
            return false;
        }
        const int64_t axis = pen_node_int(softmax, "axis");
        *out_scores = softmax->inputs[0];
        return axis == -1 || axis == (int64_t)pattern_shape(p, weights)->rank - 1;
    }
    return false;
}

// From the last product backwards, as that is where all ways of writing attention agree.
bool pen_attention_find(const pen_graph *graph, const pen_readers *readers, pen_node_id node,
                        pen_attention_match *out_match) {
    const pattern p = {graph, readers};
    const pen_node *product = pen_graph_node(graph, node);
    if (product->op != PEN_OP(matmul)) return false;
    if (pen_node_int(product, "transA") != 0 || pen_node_int(product, "transB") != 0) return false;
    pen_attention_match match = {.v = product->inputs[1],
                                 .y = product->outputs[0],
                                 .last = node,
                                 .scale = 1,
                                 .dropout = PEN_NODE_NONE};
    pen_value_id scores;
    if (pattern_shape(&p, product->inputs[0])->rank < 2) return false;
    if (!pattern_weights(&p, product->inputs[0], &match, &scores)) return false;
    if (!pattern_scores(&p, scores, 1, PATTERN_DEPTH, &match)) return false;
    if (!pattern_settle_masks(&match) || !pattern_fit_masks(&p, &match)) return false;
    pattern_split_operand(&p, &match, &match.v, &match.v_by_row, NULL);
    if (!pattern_fits(&p, &match)) return false;
    const pen_node_id behind = pen_readers_only(readers, match.y);
    if (pen_node_is(behind) && match.kept > 2) {
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
