// A block of rows of an attention: its scores, probabilities, and what is left of these by a
// dropout, as the forward and the backward kernel make them. The scores of a block lie in the
// workspace, and never more of them. The formulas are at the top of
// graph/ops/product/attention_op.c.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_ATTENTION_BLOCK_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_ATTENTION_BLOCK_H

#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/class_line.h"
#include "device/cpu/kernels/loops/gemm_one_row.h"
#include "device/cpu/kernels/loops/random_lines.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/product/attention_geometry.h"

#define ATTENTION_BLOCK_ROWS 64
// Of scores in a block, where its rows are long.
#define ATTENTION_BLOCK_ELEMENTS (1 << 18)
// Below this many products of two numbers, some 10 us, an attention is not worth a team.
#define ATTENTION_TEAM_PRODUCTS (1 << 17)

typedef struct attention_state {
    pen_attention_geometry g;
    float scale;
    bool causal;
    bool mask_is_bool;
    float fill; // what scores are that a boolean mask hides
    const pen_node *node;
    float threshold; // of random numbers: below it, probabilities are dropped; 0: none are
    float keep;      // 1 - dropout
    int64_t block_rows;
    int64_t block_count;   // for one attention
    int64_t lane_elements; // of workspace for one thread
} attention_state;

// One attention, and the rows [first, last) of q.
typedef struct attention_block {
    const attention_state *state;
    const float *q, *k, *v; // where those of this attention begin
    const void *mask;       // NULL: none
    int64_t index;
    int64_t first, last;
    int64_t keys; // the rows of k that some row of the block sees
} attention_block;

static inline bool attention_is_float(const pen_cpu_request *request, pen_value_id id) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(request->graph, id);
    return value->type.element == PEN_FLOAT32 && value->layout == PEN_LAYOUT_PLAIN;
}

static inline bool attention_supports_with(const pen_cpu_request *request, uint32_t first,
                                           uint32_t mask) {
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
    return g.outer_count * g.head_count > 0 && g.query_count > 0 && g.key_count > 0 &&
           g.depth > 0 && g.value_depth > 0 && g.key_count < INT_MAX / 8 && g.q.row < INT_MAX &&
           g.k.row < INT_MAX && g.v.row < INT_MAX && g.y.row < INT_MAX;
}

// Blocks have as many rows as let their scores stay in the cache, for whatever number of keys.
static inline pen_status attention_prepare_with(const pen_cpu_request *request, uint32_t first,
                                                uint32_t mask, attention_state **out_state) {
    attention_state *state;
    const pen_node *node = request->node;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(pen_attention_geometry_of(request->graph, node, first, mask, &state->g));
    state->scale = (float)pen_node_float(node, "scale");
    state->causal = pen_node_int(node, "causal") != 0;
    state->fill = (float)pen_attention_fill(node);
    state->node = node;
    state->threshold = random_threshold(pen_node_float(node, "dropout"));
    state->keep = (float)(1 - pen_node_float(node, "dropout"));
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
static inline int64_t attention_lane(const attention_state *state, int64_t squares) {
    const int64_t elements = squares * state->block_rows * state->g.key_count;
    return (elements + 15) / 16 * 16;
}

// Where the operands of a block begin; keys that no row of it may see are left out.
static inline attention_block attention_block_of(const attention_state *state,
                                                 void *const *operands, const void *mask,
                                                 int64_t index, int64_t block) {
    const pen_attention_geometry *g = &state->g;
    const int64_t first = block * state->block_rows, end = first + state->block_rows;
    const int64_t last = end < g->query_count ? end : g->query_count;
    const int64_t mask_at = g->has_mask ? pen_attention_mask_offset(g, index) : 0;
    return (attention_block){
        .state = state,
        .q = (const float *)operands[0] + pen_attention_offset(g, &g->q, index),
        .k = (const float *)operands[1] + pen_attention_offset(g, &g->k, index),
        .v = (const float *)operands[2] + pen_attention_offset(g, &g->v, index),
        .mask = !g->has_mask          ? NULL
                : state->mask_is_bool ? (const void *)((const uint8_t *)mask + mask_at)
                                      : (const void *)((const float *)mask + mask_at),
        .index = index,
        .first = first,
        .last = last,
        .keys = state->causal && last < g->key_count ? last : g->key_count,
    };
}

// How many rows of k row `row` sees.
static inline int64_t attention_seen(const attention_block *b, int64_t row) {
    return b->state->causal && row + 1 < b->keys ? row + 1 : b->keys;
}

// Puts `fill` where a boolean mask hides what the row sees.
static inline void attention_fill_row(const attention_block *b, int64_t row, float fill,
                                      float *line) {
    const int64_t step = b->state->g.mask_column, count = attention_seen(b, row);
    const uint8_t *mask = (const uint8_t *)b->mask + row * b->state->g.mask_row;
    if (step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            line[i] = mask[i] != 0 ? line[i] : fill;
        }
    } else if (mask[0] == 0) {
        for (int64_t i = 0; i < count; i++) {
            line[i] = fill;
        }
    }
}

static inline void attention_mask_row(const attention_block *b, int64_t row, float *scores) {
    if (b->state->mask_is_bool) {
        attention_fill_row(b, row, b->state->fill, scores);
        return;
    }
    const int64_t step = b->state->g.mask_column, count = attention_seen(b, row);
    const float *mask = (const float *)b->mask + row * b->state->g.mask_row;
    for (int64_t i = 0; i < count; i++) {
        scores[i] += mask[i * step];
    }
}

// scores = scale * q k^T, rows `keys` apart, with the mask. A block has one row for each token of
// a model of language.
static inline pen_status attention_scores(const attention_block *b, float *scores) {
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
    PEN_TRY(gemm_one_row_or_library(&product));
    for (int64_t row = b->first; b->mask != NULL && row < b->last; row++) {
        attention_mask_row(b, row, scores + (row - b->first) * b->keys);
    }
    return PEN_OK;
}

// scores → p
static inline void attention_softmax(const attention_block *b, float *scores) {
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

// The calling thread's part of the workspace.
static inline float *attention_lane_of(const attention_state *state, void *workspace) {
    return (float *)workspace + omp_get_thread_num() * state->lane_elements;
}

static inline bool attention_is_worth_a_team(const attention_state *state,
                                             int64_t attention_count) {
    const pen_attention_geometry *g = &state->g;
    const double scores = (double)attention_count * (double)g->query_count * (double)g->key_count;
    return scores * (double)(g->depth + g->value_depth) > ATTENTION_TEAM_PRODUCTS;
}

static inline pen_random_key attention_key(const attention_state *state,
                                           const pen_run_context *run) {
    if (state->threshold == 0) return (pen_random_key){0};
    return pen_attention_random_key(state->node, run->seed, run->step, run->microbatch);
}

// p → what multiplies v, which may be p itself.
static inline void attention_drop(const attention_block *b, pen_random_key key, const float *p,
                                  float *kept) {
    const attention_state *state = b->state;
    const float keep = state->keep, threshold = state->threshold;
    for (int64_t row = b->first; row < b->last; row++) {
        const float *from = p + (row - b->first) * b->keys;
        float *to = kept + (row - b->first) * b->keys;
        const int64_t number = (b->index * state->g.query_count + row) * state->g.key_count;
        for (int64_t i = -(number % 4); i < b->keys; i += RANDOM_LINE) {
            float uniform[RANDOM_LINE];
            random_line(key, (uint64_t)(number + i) / 4, uniform);
            const int64_t first = i < 0 ? 0 : i;
            const int64_t last = i + RANDOM_LINE < b->keys ? i + RANDOM_LINE : b->keys;
            for (int64_t at = first; at < last; at++) {
                to[at] = uniform[at - i] >= threshold ? from[at] / keep : 0.0f;
            }
        }
    }
}

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_ATTENTION_BLOCK_H
