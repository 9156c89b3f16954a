// Attention's gradients. The team shares out units, lists of attentions that one thread does in
// order because they add to the same numbers: the heads that share a k and v, and, where the mask
// has a gradient, attentions of one mask. What belongs to a unit depends on the shapes alone, so
// that the sums are the same on any team.
#include "device/cpu/kernels/loops/attention_block.h"
#include "device/cpu/onednn/onednn_gemm.h"
#include "graph/graph.h"

// Where a mask has a gradient and fewer numbers of its own than this, several units sum parts of
// it.
#define ATTENTION_MASK_UNITS 16

// Attention order[i], first_of[u] <= i < first_of[u + 1], is unit u's.
typedef struct attention_backward_state {
    attention_state forward;
    bool has_mask_gradient;
    int64_t unit_count;
    int64_t *order;    // NULL: unit u has the `k.shared` attentions that follow each other
    int64_t *first_of; // [unit_count + 1], with an order
    int64_t parts;     // of the sum over the attentions of a mask, each of a unit
    int64_t mask_count;
    int64_t masks_at; // of the parts in the workspace, in elements; with several
} attention_backward_state;

static bool attention_backward_supports(const pen_cpu_request *request) {
    return attention_supports_with(request, 1, 5);
}

// Attentions by mask, and the units that share those of a mask.
static pen_status attention_order_by_mask(pen_arena *arena, attention_backward_state *state) {
    const pen_attention_geometry *g = &state->forward.g;
    const int64_t count = g->outer_count * g->head_count;
    const int64_t masks = pen_shape_element_count(&g->mask_batch);
    const int64_t each = count / masks;
    const int64_t wanted = (ATTENTION_MASK_UNITS + masks - 1) / masks;
    const bool is_one = g->k.shared > 1; // heads that share a k have several masks
    int64_t *filled;
    state->mask_count = masks;
    state->parts = is_one ? 1 : wanted < each ? wanted : each;
    state->unit_count = is_one ? 1 : masks * state->parts;
    PEN_TRY(PEN_NEW(arena, (size_t)count, &state->order));
    PEN_TRY(PEN_NEW(arena, (size_t)masks, &filled));
    PEN_TRY(PEN_NEW(arena, (size_t)state->unit_count + 1, &state->first_of));
    for (int64_t index = 0; index < count; index++) {
        const int64_t mask = pen_attention_mask_offset(g, index) / g->mask_size;
        state->order[is_one ? index : mask * each + filled[mask]++] = index;
    }
    for (int64_t unit = 0; !is_one && unit < state->unit_count; unit++) {
        const int64_t mask = unit / state->parts, part = unit % state->parts;
        state->first_of[unit] = mask * each + part * each / state->parts;
    }
    state->first_of[state->unit_count] = count;
    return PEN_OK;
}

// Heads that share keys and values form a unit, whose sums one thread makes in a fixed order.
static pen_status attention_backward_prepare(const pen_cpu_request *request, void **out_state,
                                             uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    attention_backward_state *state;
    attention_state *forward;
    PEN_TRY(attention_prepare_with(request, 1, 5, &forward));
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    const pen_attention_geometry *g = &forward->g;
    forward->lane_elements = attention_lane(forward, forward->threshold != 0 ? 3 : 2);
    state->forward = *forward;
    state->unit_count = g->outer_count * g->head_count / g->k.shared;
    state->has_mask_gradient = node->output_count > 3 && pen_value_is(node->outputs[3]);
    state->masks_at = forward->lane_elements * request->thread_count;
    int64_t elements = state->masks_at;
    if (state->has_mask_gradient && g->outer_count * g->head_count > 0) {
        PEN_TRY(attention_order_by_mask(request->arena, state));
        if (state->parts > 1) elements += state->unit_count * g->mask_size;
    }
    *out_workspace_bytes = (uint64_t)elements * sizeof(float);
    *out_state = state;
    return PEN_OK;
}

// What the backward pass of one attention reads and writes besides its block.
typedef struct attention_backward {
    const float *dy, *y;
    float *dq, *dk, *dv;
    float *dmask;  // NULL: not wanted
    float *p, *ds; // [rows][keys] of a block
    float *kept;   // likewise, what is left of p, which may be p itself
} attention_backward;

// ds = p (dp - sum of dy y), 0 where a boolean mask hides, where ds holds the gradient of what is
// left of p.
static void attention_score_gradients(const attention_block *b, const attention_backward *t) {
    const pen_attention_geometry *g = &b->state->g;
    for (int64_t row = b->first; row < b->last; row++) {
        const float *dy = t->dy + row * g->y.row, *y = t->y + row * g->y.row;
        const float *p = t->p + (row - b->first) * b->keys;
        const float *kept = t->kept + (row - b->first) * b->keys;
        float *ds = t->ds + (row - b->first) * b->keys;
        const float keep = b->state->keep;
        float mean = 0;
#pragma omp simd reduction(+ : mean)
        for (int64_t i = 0; i < g->value_depth; i++) {
            mean += dy[i] * y[i];
        }
        if (b->state->threshold != 0) {
#pragma omp simd
            for (int64_t i = 0; i < b->keys; i++) {
                ds[i] = kept[i] != 0 ? ds[i] / keep : 0.0f;
            }
        }
#pragma omp simd
        for (int64_t i = 0; i < b->keys; i++) {
            ds[i] = p[i] * (ds[i] - mean);
        }
        if (b->state->mask_is_bool) {
            // a row that is hidden wholly may have no numbers for p
            const int64_t count = attention_seen(b, row);
            attention_fill_row(b, row, 0, ds);
            memset(ds + count, 0, (size_t)(b->keys - count) * sizeof *ds);
        }
    }
}

// dmask += ds
static void attention_backward_mask(const attention_block *b, const attention_backward *t) {
    const int64_t step = b->state->g.mask_column;
    for (int64_t row = b->first; row < b->last; row++) {
        const float *ds = t->ds + (row - b->first) * b->keys;
        float *to = t->dmask + row * b->state->g.mask_row;
        const int64_t count = attention_seen(b, row);
        if (step == 0) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < count; i++) {
                sum += ds[i];
            }
            to[0] += sum;
            continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            to[i] += ds[i];
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
                           .a = t->kept,
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

static pen_status attention_backward_block(const attention_block *b, pen_random_key key,
                                           const attention_backward *t) {
    PEN_TRY(attention_scores(b, t->p));
    attention_softmax(b, t->p);
    if (b->state->threshold != 0) attention_drop(b, key, t->p, t->kept);
    PEN_TRY(attention_backward_values(b, t));
    attention_score_gradients(b, t);
    if (t->dmask != NULL) attention_backward_mask(b, t);
    return attention_backward_keys(b, t);
}

// The first head of those that share k and v finds them undefined.
static void attention_clear_keys(const pen_attention_geometry *g, const attention_backward *t) {
    for (int64_t key = 0; key < g->key_count; key++) {
        memset(t->dk + key * g->k.row, 0, (size_t)g->depth * sizeof *t->dk);
        memset(t->dv + key * g->v.row, 0, (size_t)g->value_depth * sizeof *t->dv);
    }
}

// `dmask`: of all masks, or where the unit's part of its mask is; NULL without.
static pen_status attention_backward_one(const pen_cpu_call *call, int64_t index,
                                         pen_random_key key, float *dmask) {
    const attention_backward_state *all = call->state;
    const attention_state *state = &all->forward;
    const pen_attention_geometry *g = &state->g;
    const int64_t square = state->block_rows * g->key_count;
    float *lane = attention_lane_of(state, call->workspace);
    attention_backward t = {
        .dy = (const float *)call->inputs[0] + pen_attention_offset(g, &g->y, index),
        .y = (const float *)call->inputs[4] + pen_attention_offset(g, &g->y, index),
        .dq = (float *)call->outputs[0] + pen_attention_offset(g, &g->q, index),
        .dk = (float *)call->outputs[1] + pen_attention_offset(g, &g->k, index),
        .dv = (float *)call->outputs[2] + pen_attention_offset(g, &g->v, index),
        .dmask = dmask,
        .p = lane,
        .ds = lane + square,
        .kept = state->threshold != 0 ? lane + 2 * square : lane,
    };
    if (dmask != NULL && all->parts == 1) t.dmask += pen_attention_mask_offset(g, index);
    if (index % g->head_count % g->k.shared == 0) attention_clear_keys(g, &t);
    const void *mask = g->has_mask ? call->inputs[5] : NULL;
    for (int64_t block = 0; block < state->block_count; block++) {
        const attention_block b = attention_block_of(state, call->inputs + 1, mask, index, block);
        PEN_TRY(attention_backward_block(&b, key, &t));
    }
    return PEN_OK;
}

static float *attention_mask_sums(const pen_cpu_call *call) {
    const attention_backward_state *state = call->state;
    if (!state->has_mask_gradient) return NULL;
    if (state->parts > 1) return (float *)call->workspace + state->masks_at;
    return call->outputs[3];
}

static pen_status attention_backward_unit(const pen_cpu_call *call, int64_t unit,
                                          pen_random_key key) {
    const attention_backward_state *state = call->state;
    const int64_t shared = state->forward.g.k.shared;
    const int64_t first = state->order != NULL ? state->first_of[unit] : unit * shared;
    const int64_t last = state->order != NULL ? state->first_of[unit + 1] : first + shared;
    float *dmask = attention_mask_sums(call);
    if (dmask != NULL && state->parts > 1) dmask += unit * state->forward.g.mask_size;
    for (int64_t i = first; i < last; i++) {
        const int64_t index = state->order != NULL ? state->order[i] : i;
        PEN_TRY(attention_backward_one(call, index, key, dmask));
    }
    return PEN_OK;
}

// Adds up the parts of each mask's gradient, in order.
static void attention_sum_masks(const pen_cpu_call *call) {
    const attention_backward_state *state = call->state;
    const int64_t size = state->forward.g.mask_size;
    const float *parts = attention_mask_sums(call);
    float *out = call->outputs[3];
    for (int64_t mask = 0; mask < state->mask_count; mask++) {
        memcpy(out + mask * size, parts + mask * state->parts * size, (size_t)size * sizeof *out);
        for (int64_t part = 1; part < state->parts; part++) {
            const float *from = parts + (mask * state->parts + part) * size;
#pragma omp simd
            for (int64_t i = 0; i < size; i++) {
                out[mask * size + i] += from[i];
            }
        }
    }
}

// Units are shared out in fixed shares; gradients of masks are summed in parts of fixed number, so
// that no sum depends on the team.
static pen_status attention_backward_run(const pen_cpu_call *call) {
    const attention_backward_state *state = call->state;
    const pen_attention_geometry *g = &state->forward.g;
    const pen_random_key key = attention_key(&state->forward, call->run);
    float *sums = attention_mask_sums(call);
    if (sums != NULL) {
        const int64_t size = state->mask_count * state->parts * g->mask_size;
        memset(sums, 0, (size_t)size * sizeof *sums);
    }
    pen_status first = PEN_OK;
    const int64_t count = g->outer_count * g->head_count;
#pragma omp parallel for schedule(static) if (attention_is_worth_a_team(&state->forward, count))
    for (int64_t unit = 0; unit < state->unit_count; unit++) {
        const pen_status status = attention_backward_unit(call, unit, key);
        if (status == PEN_OK) continue;
#pragma omp critical(attention_status)
        first = pen_status_join(first, status);
    }
    if (sums != NULL && state->parts > 1) attention_sum_masks(call);
    return first;
}

static const pen_cpu_kernel attention_backward_kernels[] = {
    {PEN_CPU_ENTRY("attention_backward", "cpu", attention_backward_supports,
                   attention_backward_prepare, attention_backward_run)},
};

PEN_CPU_FAMILY_OF(attention_backward);
