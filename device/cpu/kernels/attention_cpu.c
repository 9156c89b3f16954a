// Attention, a block of rows of q at a time: the scores of a block lie in the workspace, and never
// more of them. The formulas are at the top of graph/ops/attention_op.c.
//
// The team shares out blocks (forward) and attentions (backward, where the blocks of one add to the
// same dk and dv, in order): the same sums on any team.
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/class_line.h"
#include "device/cpu/onednn_gemm.h"
#include "graph/ops/attention_geometry.h"

#include <limits.h>
#include <omp.h>
#include <string.h>

#define ATTENTION_BLOCK_ROWS 64
// Of scores in a block, where its rows are long.
#define ATTENTION_BLOCK_ELEMENTS (1 << 18)
// Below this many scores an attention is not worth a team.
#define ATTENTION_TEAM_ELEMENTS 4096

typedef struct attention_state {
    pen_attention_geometry g;
    float scale;
    bool causal;
    bool mask_is_bool;
    int64_t block_rows;
    int64_t block_count;   // for one attention
    int64_t lane_elements; // of workspace for one thread
} attention_state;

// One attention, and the rows [first, last) of q.
typedef struct attention_block {
    const attention_state *state;
    const float *q, *k, *v; // where those of this attention begin
    const void *mask;       // NULL: none
    int64_t first, last;
    int64_t keys; // the rows of k that some row of the block sees
} attention_block;

static bool attention_is_float(const pen_cpu_request *request, pen_value_id id) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(request->graph, id);
    return value->type.element == PEN_FLOAT32 && value->layout == PEN_LAYOUT_PLAIN;
}

static bool attention_supports_with(const pen_cpu_request *request, uint32_t first, uint32_t mask) {
    const pen_node *node = request->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_bool = i == mask && pen_value_is(node->inputs[i]) &&
                             pen_value_type(request->graph, node->inputs[i])->element == PEN_BOOL;
        if (!is_bool && !attention_is_float(request, node->inputs[i])) return false;
    }
    pen_attention_geometry g;
    const pen_status status = pen_attention_geometry_of(request->graph, node, first, mask, &g);
    if (status != PEN_OK) {
        pen_status_ignore(status, "prepare reports it");
        return false;
    }
    return g.query_count > 0 && g.key_count > 0 && g.depth > 0 && g.value_depth > 0 &&
           g.key_count < INT_MAX / 8 && g.q.row < INT_MAX && g.k.row < INT_MAX &&
           g.v.row < INT_MAX && g.y.row < INT_MAX;
}

static bool attention_supports(const pen_cpu_request *request) {
    return attention_supports_with(request, 0, 3);
}

// The gradient of a mask is the reference's.
static bool attention_backward_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    if (node->output_count > 3 && pen_value_is(node->outputs[3])) return false;
    return attention_supports_with(request, 1, 5);
}

static pen_status attention_prepare_with(const pen_cpu_request *request, uint32_t first,
                                         uint32_t mask, attention_state **out_state) {
    attention_state *state;
    const pen_node *node = request->node;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(pen_attention_geometry_of(request->graph, node, first, mask, &state->g));
    state->scale = (float)pen_node_float(node, "scale");
    state->causal = pen_node_int(node, "causal") != 0;
    state->mask_is_bool = state->g.has_mask &&
                          pen_value_type(request->graph, node->inputs[mask])->element == PEN_BOOL;
    const int64_t fitting = ATTENTION_BLOCK_ELEMENTS / state->g.key_count;
    const int64_t rows = fitting < 8 ? 8 : fitting;
    state->block_rows = rows < ATTENTION_BLOCK_ROWS ? rows : ATTENTION_BLOCK_ROWS;
    state->block_count = (state->g.query_count + state->block_rows - 1) / state->block_rows;
    *out_state = state;
    return PEN_OK;
}

// Lanes are whole lines of the cache.
static int64_t attention_lane(const attention_state *state, int64_t squares) {
    const int64_t elements = squares * state->block_rows * state->g.key_count;
    return (elements + 15) / 16 * 16;
}

static pen_status attention_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    attention_state *state;
    PEN_TRY(attention_prepare_with(request, 0, 3, &state));
    state->lane_elements = attention_lane(state, 1);
    *out_workspace_bytes = (uint64_t)state->lane_elements * request->thread_count * sizeof(float);
    *out_state = state;
    return PEN_OK;
}

static pen_status attention_backward_prepare(const pen_cpu_request *request, void **out_state,
                                             uint64_t *out_workspace_bytes) {
    attention_state *state;
    PEN_TRY(attention_prepare_with(request, 1, 5, &state));
    state->lane_elements = attention_lane(state, 2);
    *out_workspace_bytes = (uint64_t)state->lane_elements * request->thread_count * sizeof(float);
    *out_state = state;
    return PEN_OK;
}

static int64_t attention_at(const attention_state *state, const pen_attention_strides *strides,
                            int64_t index) {
    const int64_t heads = state->g.head_count;
    return index / heads * strides->outer + index % heads * strides->head;
}

static attention_block attention_block_of(const attention_state *state, void *const *operands,
                                          const void *mask, int64_t index, int64_t block) {
    const pen_attention_geometry *g = &state->g;
    const int64_t first = block * state->block_rows, end = first + state->block_rows;
    const int64_t last = end < g->query_count ? end : g->query_count;
    const int64_t mask_at = g->has_mask ? pen_attention_mask_offset(g, index) : 0;
    return (attention_block){
        .state = state,
        .q = (const float *)operands[0] + attention_at(state, &g->q, index),
        .k = (const float *)operands[1] + attention_at(state, &g->k, index),
        .v = (const float *)operands[2] + attention_at(state, &g->v, index),
        .mask = !g->has_mask          ? NULL
                : state->mask_is_bool ? (const void *)((const uint8_t *)mask + mask_at)
                                      : (const void *)((const float *)mask + mask_at),
        .first = first,
        .last = last,
        .keys = state->causal && last < g->key_count ? last : g->key_count,
    };
}

// How many rows of k row `row` sees.
static int64_t attention_seen(const attention_block *b, int64_t row) {
    return b->state->causal && row + 1 < b->keys ? row + 1 : b->keys;
}

static void attention_mask_row(const attention_block *b, int64_t row, int64_t count,
                               float *scores) {
    const int64_t step = b->state->g.mask_column, first = row * b->state->g.mask_row;
    if (b->state->mask_is_bool) {
        const uint8_t *mask = (const uint8_t *)b->mask + first;
        for (int64_t i = 0; i < count; i++) {
            scores[i] = mask[i * step] != 0 ? scores[i] : -INFINITY;
        }
    } else {
        const float *mask = (const float *)b->mask + first;
        for (int64_t i = 0; i < count; i++) {
            scores[i] += mask[i * step];
        }
    }
}

// scores = scale * q k^T, rows `keys` apart, with the mask.
static pen_status attention_scores(const attention_block *b, float *scores) {
    const pen_attention_geometry *g = &b->state->g;
    const pen_gemm product = {
        .m = b->last - b->first,
        .n = b->keys,
        .k = g->depth,
        .trans_b = true,
        .alpha = b->state->scale,
        .a = b->q + b->first * g->q.row,
        .b = b->k,
        .c = scores,
        .lda = g->q.row,
        .ldb = g->k.row,
        .ldc = b->keys,
    };
    PEN_TRY(pen_onednn_sgemm(&product));
    for (int64_t row = b->first; b->mask != NULL && row < b->last; row++) {
        attention_mask_row(b, row, attention_seen(b, row), scores + (row - b->first) * b->keys);
    }
    return PEN_OK;
}

// scores → p
static void attention_softmax(const attention_block *b, float *scores) {
    for (int64_t row = b->first; row < b->last; row++) {
        float *line = scores + (row - b->first) * b->keys;
        const int64_t count = attention_seen(b, row);
        const float largest = class_line_largest(line, count, 1);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < count; i++) {
            line[i] = vector_exp(line[i] - largest);
            sum += line[i];
        }
        const float share = 1.0f / sum;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            line[i] *= share;
        }
        memset(line + count, 0, (size_t)(b->keys - count) * sizeof *line);
    }
}

static pen_status attention_forward_block(const attention_block *b, float *scores, float *y) {
    const pen_attention_geometry *g = &b->state->g;
    PEN_TRY(attention_scores(b, scores));
    attention_softmax(b, scores);
    const pen_gemm product = {
        .m = b->last - b->first,
        .n = g->value_depth,
        .k = b->keys,
        .alpha = 1,
        .a = scores,
        .b = b->v,
        .c = y + b->first * g->y.row,
        .lda = b->keys,
        .ldb = g->v.row,
        .ldc = g->y.row,
    };
    return pen_onednn_sgemm(&product);
}

static float *attention_lane_of(const pen_cpu_call *call) {
    const attention_state *state = call->state;
    return (float *)call->workspace + omp_get_thread_num() * state->lane_elements;
}

static bool attention_is_worth_a_team(const attention_state *state, int64_t attention_count) {
    return attention_count * state->g.query_count * state->g.key_count > ATTENTION_TEAM_ELEMENTS;
}

static pen_status attention_run(const pen_cpu_call *call) {
    const attention_state *state = call->state;
    const pen_attention_geometry *g = &state->g;
    const int64_t count = g->outer_count * g->head_count;
    const void *mask = g->has_mask ? call->inputs[3] : NULL;
    pen_status first = PEN_OK;
#pragma omp parallel for schedule(static) if (attention_is_worth_a_team(state, count))
    for (int64_t i = 0; i < count * state->block_count; i++) {
        const int64_t index = i / state->block_count;
        const attention_block b =
            attention_block_of(state, call->inputs, mask, index, i % state->block_count);
        float *y = (float *)call->outputs[0] + attention_at(state, &g->y, index);
        const pen_status status = attention_forward_block(&b, attention_lane_of(call), y);
        if (status == PEN_OK) continue;
#pragma omp critical(attention_status)
        first = pen_status_join(first, status);
    }
    return first;
}

// What the backward pass of one attention reads and writes besides its block.
typedef struct attention_backward {
    const float *dy, *y;
    float *dq, *dk, *dv;
    float *p, *ds; // [rows][keys] of a block
} attention_backward;

// ds = p (dp - sum of dy y), where ds holds dp.
static void attention_score_gradients(const attention_block *b, const attention_backward *t) {
    const pen_attention_geometry *g = &b->state->g;
    for (int64_t row = b->first; row < b->last; row++) {
        const float *dy = t->dy + row * g->y.row, *y = t->y + row * g->y.row;
        const float *p = t->p + (row - b->first) * b->keys;
        float *ds = t->ds + (row - b->first) * b->keys;
        float mean = 0;
#pragma omp simd reduction(+ : mean)
        for (int64_t i = 0; i < g->value_depth; i++) {
            mean += dy[i] * y[i];
        }
#pragma omp simd
        for (int64_t i = 0; i < b->keys; i++) {
            ds[i] = p[i] * (ds[i] - mean);
        }
    }
}

// dv += p^T dy;  dp = dy v^T
static pen_status attention_backward_values(const attention_block *b, const attention_backward *t) {
    const pen_attention_geometry *g = &b->state->g;
    const float *dy = t->dy + b->first * g->y.row;
    const int64_t rows = b->last - b->first;
    const pen_gemm of_v = {.m = b->keys,
                           .n = g->value_depth,
                           .k = rows,
                           .trans_a = true,
                           .alpha = 1,
                           .beta = 1,
                           .a = t->p,
                           .b = dy,
                           .c = t->dv,
                           .lda = b->keys,
                           .ldb = g->y.row,
                           .ldc = g->v.row};
    const pen_gemm of_p = {.m = rows,
                           .n = b->keys,
                           .k = g->value_depth,
                           .trans_b = true,
                           .alpha = 1,
                           .a = dy,
                           .b = b->v,
                           .c = t->ds,
                           .lda = g->y.row,
                           .ldb = g->v.row,
                           .ldc = b->keys};
    PEN_TRY(pen_onednn_sgemm(&of_v));
    return pen_onednn_sgemm(&of_p);
}

// dq = scale * ds k;  dk += scale * ds^T q
static pen_status attention_backward_keys(const attention_block *b, const attention_backward *t) {
    const pen_attention_geometry *g = &b->state->g;
    const int64_t rows = b->last - b->first;
    const pen_gemm of_q = {.m = rows,
                           .n = g->depth,
                           .k = b->keys,
                           .alpha = b->state->scale,
                           .a = t->ds,
                           .b = b->k,
                           .c = t->dq + b->first * g->q.row,
                           .lda = b->keys,
                           .ldb = g->k.row,
                           .ldc = g->q.row};
    const pen_gemm of_k = {.m = b->keys,
                           .n = g->depth,
                           .k = rows,
                           .trans_a = true,
                           .alpha = b->state->scale,
                           .beta = 1,
                           .a = t->ds,
                           .b = b->q + b->first * g->q.row,
                           .c = t->dk,
                           .lda = b->keys,
                           .ldb = g->q.row,
                           .ldc = g->k.row};
    PEN_TRY(pen_onednn_sgemm(&of_q));
    return pen_onednn_sgemm(&of_k);
}

static pen_status attention_backward_block(const attention_block *b, const attention_backward *t) {
    PEN_TRY(attention_scores(b, t->p));
    attention_softmax(b, t->p);
    PEN_TRY(attention_backward_values(b, t));
    attention_score_gradients(b, t);
    return attention_backward_keys(b, t);
}

static pen_status attention_backward_one(const pen_cpu_call *call, int64_t index) {
    const attention_state *state = call->state;
    const pen_attention_geometry *g = &state->g;
    float *lane = attention_lane_of(call);
    const attention_backward t = {
        .dy = (const float *)call->inputs[0] + attention_at(state, &g->y, index),
        .y = (const float *)call->inputs[4] + attention_at(state, &g->y, index),
        .dq = (float *)call->outputs[0] + attention_at(state, &g->q, index),
        .dk = (float *)call->outputs[1] + attention_at(state, &g->k, index),
        .dv = (float *)call->outputs[2] + attention_at(state, &g->v, index),
        .p = lane,
        .ds = lane + state->block_rows * g->key_count,
    };
    for (int64_t key = 0; key < g->key_count; key++) {
        memset(t.dk + key * g->k.row, 0, (size_t)g->depth * sizeof *t.dk);
        memset(t.dv + key * g->v.row, 0, (size_t)g->value_depth * sizeof *t.dv);
    }
    const void *mask = g->has_mask ? call->inputs[5] : NULL;
    for (int64_t block = 0; block < state->block_count; block++) {
        const attention_block b = attention_block_of(state, call->inputs + 1, mask, index, block);
        PEN_TRY(attention_backward_block(&b, &t));
    }
    return PEN_OK;
}

static pen_status attention_backward_run(const pen_cpu_call *call) {
    const attention_state *state = call->state;
    const int64_t count = state->g.outer_count * state->g.head_count;
    pen_status first = PEN_OK;
#pragma omp parallel for schedule(static) if (attention_is_worth_a_team(state, count))
    for (int64_t index = 0; index < count; index++) {
        const pen_status status = attention_backward_one(call, index);
        if (status == PEN_OK) continue;
#pragma omp critical(attention_status)
        first = pen_status_join(first, status);
    }
    return first;
}

static const pen_cpu_kernel attention_kernels[] = {
    {
        .op_name = "attention",
        .name = "cpu",
        .supports = attention_supports,
        .prepare = attention_prepare,
        .run = attention_run,
    },
    {
        .op_name = "attention_backward",
        .name = "cpu",
        .supports = attention_backward_supports,
        .prepare = attention_backward_prepare,
        .run = attention_backward_run,
    },
};

extern const pen_cpu_family PEN_CPU_FAMILY(attention);
const pen_cpu_family PEN_CPU_FAMILY(attention) = {attention_kernels, sizeof attention_kernels /
                                                                         sizeof *attention_kernels};
