// Attention, a block of rows of q at a time. The team shares out the blocks.
#include "device/cpu/kernels/loops/attention_block.h"

static bool attention_supports(const pen_cpu_request *request) {
    return attention_supports_with(request, 0, 3);
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

// Scores of a block, softmax, dropout, and the product with the values: the scores live no longer
// than that.
static pen_status attention_forward_block(const attention_block *b, pen_random_key key,
                                          float *scores, float *y) {
    const pen_attention_geometry *g = &b->state->g;
    PEN_TRY(attention_scores(b, scores));
    attention_softmax(b, scores);
    if (b->state->threshold != 0) attention_drop(b, key, scores, scores);
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
    return gemm_one_row_or_library(&product);
}

// The team shares out blocks of rows; each thread has scores of one block in its part of the
// workspace.
static pen_status attention_run(const pen_cpu_call *call) {
    const attention_state *state = call->state;
    const pen_attention_geometry *g = &state->g;
    const int64_t count = g->outer_count * g->head_count;
    const void *mask = g->has_mask ? call->inputs[3] : NULL;
    const pen_random_key key = attention_key(state, call->run);
    pen_status first = PEN_OK;
#pragma omp parallel for schedule(static) if (attention_is_worth_a_team(state, count))
    for (int64_t i = 0; i < count * state->block_count; i++) {
        const int64_t index = i / state->block_count;
        const attention_block b =
            attention_block_of(state, call->inputs, mask, index, i % state->block_count);
        float *y = (float *)call->outputs[0] + pen_attention_offset(g, &g->y, index);
        float *lane = attention_lane_of(state, call->workspace);
        const pen_status status = attention_forward_block(&b, key, lane, y);
        if (status == PEN_OK) continue;
#pragma omp critical(attention_status)
        first = pen_status_join(first, status);
    }
    return first;
}

static const pen_cpu_kernel attention_kernels[] = {
    {PEN_CPU_ENTRY("attention", "cpu", attention_supports, attention_prepare, attention_run)},
};

PEN_CPU_FAMILY_OF(attention);
