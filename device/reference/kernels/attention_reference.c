#include <math.h>

#include "device/reference/reference_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/product/attention_geometry.h"

// One row of scores at a time. Operands by their letters in graph/ops/product/attention_op.c.
typedef struct attention_row {
    const pen_attention_geometry *g;
    const pen_tensor *q, *k, *v, *mask; // mask: NULL without
    double scale;
    double fill; // what hidden scores are
    double dropout;
    pen_random_key key;
    int64_t index; // of the attention
    int64_t row;   // of q
    int64_t count; // of rows of k that the row sees
} attention_row;

static int64_t attention_at(const attention_row *at, const pen_attention_strides *strides,
                            int64_t row) {
    return pen_attention_offset(at->g, strides, at->index) + row * strides->row;
}

static int64_t attention_mask_at(const attention_row *at, int64_t key) {
    return pen_attention_mask_offset(at->g, at->index) + at->row * at->g->mask_row +
           key * at->g->mask_column;
}

static double attention_dot(const pen_tensor *a, int64_t a_at, const pen_tensor *b, int64_t b_at,
                            int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += pen_tensor_get(a, a_at + i) * pen_tensor_get(b, b_at + i);
    }
    return sum;
}

// Whether a boolean mask hides the score of a key, whatever it would be.
static bool attention_hides(const attention_row *at, int64_t key) {
    return at->mask != NULL && at->mask->type.element == PEN_BOOL &&
           pen_tensor_get(at->mask, attention_mask_at(at, key)) == 0;
}

static double attention_score(const attention_row *at, int64_t key) {
    if (attention_hides(at, key)) return at->fill;
    const double score =
        at->scale * attention_dot(at->q, attention_at(at, &at->g->q, at->row), at->k,
                                  attention_at(at, &at->g->k, key), at->g->depth);
    if (at->mask == NULL || at->mask->type.element == PEN_BOOL) return score;
    return score + pen_tensor_get(at->mask, attention_mask_at(at, key));
}

// The probabilities of a row: softmax of its scores.
static void attention_softmax(const attention_row *at, double *scores) {
    double largest = (double)-INFINITY, sum = 0;
    for (int64_t key = 0; key < at->count; key++) {
        scores[key] = attention_score(at, key);
        if (scores[key] > largest || isnan(scores[key])) largest = scores[key];
    }
    for (int64_t key = 0; key < at->count; key++) {
        scores[key] = exp(scores[key] - largest);
        sum += scores[key];
    }
    for (int64_t key = 0; key < at->count; key++) {
        scores[key] /= sum;
    }
}

// What a probability is multiplied by on its way to v.
static double attention_kept(const attention_row *at, int64_t key) {
    if (at->dropout == 0) return 1;
    const int64_t row = at->index * at->g->query_count + at->row;
    const uint64_t number = (uint64_t)(row * at->g->key_count + key);
    const double drawn = (double)pen_random_uniform(at->key, number);
    return drawn >= at->dropout ? 1 / (1 - at->dropout) : 0;
}

static void attention_forward_row(const pen_reference_call *call, const attention_row *at,
                                  double *scores) {
    const pen_attention_geometry *g = at->g;
    attention_softmax(at, scores);
    for (int64_t key = 0; key < at->count; key++) {
        scores[key] *= attention_kept(at, key);
    }
    for (int64_t i = 0; i < g->value_depth; i++) {
        double sum = 0;
        for (int64_t key = 0; key < at->count; key++) {
            sum += scores[key] * pen_tensor_get(at->v, attention_at(at, &g->v, key) + i);
        }
        pen_tensor_set(&call->outputs[0], attention_at(at, &g->y, at->row) + i, sum);
    }
}

static void attention_add(const pen_tensor *to, int64_t at, double number) {
    pen_tensor_set(to, at, pen_tensor_get(to, at) + number);
}

// Scores of the row are made again from q and k; a dot of dy and y stands for the sum over keys in
// softmax's gradient.
static void attention_backward_row(const pen_reference_call *call, const attention_row *at,
                                   double *scores) {
    const pen_attention_geometry *g = at->g;
    const pen_tensor *dy = &call->inputs[0], *y = &call->inputs[4];
    const int64_t dy_at = attention_at(at, &g->y, at->row);
    const int64_t q_at = attention_at(at, &g->q, at->row);
    attention_softmax(at, scores);
    const double mean = attention_dot(dy, dy_at, y, dy_at, g->value_depth);
    for (int64_t key = 0; key < at->count; key++) {
        const double p = scores[key], kept = attention_kept(at, key);
        const int64_t k_at = attention_at(at, &g->k, key), v_at = attention_at(at, &g->v, key);
        const double dp = kept * attention_dot(dy, dy_at, at->v, v_at, g->value_depth);
        const double ds = attention_hides(at, key) ? 0 : p * (dp - mean);
        for (int64_t i = 0; i < g->value_depth; i++) {
            attention_add(&call->outputs[2], v_at + i, p * kept * pen_tensor_get(dy, dy_at + i));
        }
        for (int64_t i = 0; i < g->depth; i++) {
            const double q = pen_tensor_get(at->q, q_at + i), k = pen_tensor_get(at->k, k_at + i);
            attention_add(&call->outputs[0], q_at + i, at->scale * ds * k);
            attention_add(&call->outputs[1], k_at + i, at->scale * ds * q);
        }
        if (pen_reference_output(call, 3) == NULL) continue;
        attention_add(&call->outputs[3], attention_mask_at(at, key), ds);
    }
}

typedef void (*attention_row_fn)(const pen_reference_call *call, const attention_row *at,
                                 double *scores);

// One row of queries at a time, so that scratch holds scores of one row alone.
static pen_status attention_run(const pen_reference_call *call, uint32_t first, uint32_t mask,
                                attention_row_fn run) {
    pen_attention_geometry g;
    PEN_TRY(pen_attention_geometry_of(call->graph, call->node, first, mask, &g));
    double *scores;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)g.key_count, &scores));
    attention_row at = {
        .g = &g,
        .q = &call->inputs[first],
        .k = &call->inputs[first + 1],
        .v = &call->inputs[first + 2],
        .mask = g.has_mask ? &call->inputs[mask] : NULL,
        .scale = pen_node_float(call->node, "scale"),
        .fill = pen_attention_fill(call->node),
        .dropout = pen_node_float(call->node, "dropout"),
    };
    if (at.dropout != 0) {
        at.key = pen_attention_random_key(call->node, call->seed, call->step, call->microbatch);
    }
    const bool causal = pen_node_int(call->node, "causal") != 0;
    for (at.index = 0; at.index < g.outer_count * g.head_count; at.index++) {
        for (at.row = 0; at.row < g.query_count; at.row++) {
            at.count = causal && at.row + 1 < g.key_count ? at.row + 1 : g.key_count;
            run(call, &at, scores);
        }
    }
    return PEN_OK;
}

static pen_status attention_forward(const pen_reference_call *call) {
    return attention_run(call, 0, 3, attention_forward_row);
}

static pen_status attention_backward(const pen_reference_call *call) {
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        if (call->outputs[i].data == NULL) continue;
        for (int64_t k = 0; k < pen_tensor_count(&call->outputs[i]); k++) {
            pen_tensor_set(&call->outputs[i], k, 0);
        }
    }
    return attention_run(call, 1, 5, attention_backward_row);
}

static const pen_reference_kernel attention_kernels[] = {
    {"attention", attention_forward, NULL},
    {"attention_backward", attention_backward, NULL},
};

PEN_REFERENCE_FAMILY(attention);
