// Sums over the lanes of a step (graph/ops/training/tree_op.c). Every element is added on its own,
// in the order of the tree, so threads and vectors do not matter for the bits.
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/op.h"

#define TREE_TEAM_BYTES 131072
// Floats that one thread adds at a time.
#define TREE_PIECE 256

// A block that a total reads, and how many pairs are complete with it.
typedef struct tree_block {
    const char *sums;
    uint32_t joins;
} tree_block;

typedef struct tree_state {
    const pen_node *node;
    bool is_double;
    size_t bytes; // of a sum
    uint32_t first, end;
    bool is_apart; // lanes are not added
    uint32_t stack_count;
    const int64_t *bounds;
    tree_block *blocks; // room for those of all stacks, written when it runs
} tree_state;

static bool tree_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_value *y = pen_graph_value(request->graph, node->outputs[0]);
    if (y->layout != PEN_LAYOUT_PLAIN) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value *x = pen_graph_value(request->graph, node->inputs[i]);
        if (x->layout != PEN_LAYOUT_PLAIN) return false;
    }
    return y->type.element == PEN_FLOAT32 || y->type.element == PEN_FLOAT64;
}

static pen_status tree_make(const pen_cpu_request *request, pen_value_id sum,
                            tree_state **out_state) {
    const pen_tensor_type *type = pen_value_type(request->graph, sum);
    PEN_TRY(PEN_NEW(request->arena, 1, out_state));
    **out_state = (tree_state){.node = request->node,
                               .is_double = type->element == PEN_FLOAT64,
                               .bytes = (size_t)pen_tensor_type_bytes(type)};
    return PEN_OK;
}

static pen_status tree_sum_prepare(const pen_cpu_request *request, void **out_state,
                                   uint64_t *out_workspace_bytes) {
    tree_state *state;
    PEN_TRY(tree_make(request, request->node->inputs[0], &state));
    state->first = (uint32_t)pen_node_int(request->node, "first");
    state->end = (uint32_t)pen_node_int(request->node, "end");
    state->is_apart = pen_node_int(request->node, "apart") != 0;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status tree_total_prepare(const pen_cpu_request *request, void **out_state,
                                     uint64_t *out_workspace_bytes) {
    tree_state *state;
    uint32_t bound_count;
    PEN_TRY(tree_make(request, request->node->outputs[0], &state));
    state->stack_count = request->node->input_count;
    state->bounds = pen_node_ints(request->node, "bounds", &bound_count);
    PEN_TRY(PEN_NEW(request->arena, (size_t)state->stack_count * PEN_LANE_BLOCKS, &state->blocks));
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// Some elements of all sums: from byte `at` on.
typedef struct tree_span {
    const tree_state *state;
    size_t at, bytes;
} tree_span;

typedef union tree_piece {
    float floats[TREE_PIECE];
    double doubles[TREE_PIECE / 2];
} tree_piece;

static tree_span tree_span_at(const tree_state *state, size_t at) {
    const size_t left = state->bytes - at;
    return (tree_span){state, at, left < sizeof(tree_piece) ? left : sizeof(tree_piece)};
}

#define TREE_ADD(type)                                                                             \
    static void tree_add_##type(const type *left, const type *right, type *sum, size_t count) {    \
        for (size_t k = 0; k < count; k++) {                                                       \
            sum[k] = left[k] + right[k];                                                           \
        }                                                                                          \
    }
TREE_ADD(float)
TREE_ADD(double)

static void tree_add(const tree_span *span, const void *left, const void *right, void *sum) {
    if (span->state->is_double) {
        tree_add_double(left, right, sum, span->bytes / sizeof(double));
    } else {
        tree_add_float(left, right, sum, span->bytes / sizeof(float));
    }
}

// ---- a lane that ends

// Adds the sum of a lane to the blocks before it that it completes, the last one first; the result
// takes the place of the first of them.
static void tree_push(const tree_span *span, const pen_cpu_call *call, uint32_t place,
                      uint32_t added) {
    const size_t stride = span->state->bytes;
    char *stack = (char *)call->outputs[0] + span->at;
    const void *sum = (const char *)call->inputs[0] + span->at;
    tree_piece part;
    if (added == 0) memcpy(stack + place * stride, sum, span->bytes);
    for (uint32_t b = place + added; b-- > place; sum = &part) {
        tree_add(span, stack + b * stride, sum,
                 b == place ? stack + place * stride : (void *)&part);
    }
}

// The parts of a sum are shared out among the threads.
static pen_status tree_sum_run(const pen_cpu_call *call) {
    const tree_state *state = call->state;
    const uint32_t lane = call->run->lane;
    if (!call->run->ends_lane) return PEN_OK;
    if (lane < state->first || lane >= state->end) {
        return pen_error(PEN_INTERNAL, "'%s' has no room for lane %u", state->node->name, lane);
    }
    uint32_t added = 0;
    const pen_lane_range range = {state->first, state->end, call->run->lane_count};
    const uint32_t place =
        state->is_apart ? lane - state->first : pen_lane_place(range, lane, &added);
#pragma omp parallel for schedule(static) if (state->bytes > TREE_TEAM_BYTES)
    for (size_t at = 0; at < state->bytes; at += sizeof(tree_piece)) {
        const tree_span span = tree_span_at(state, at);
        tree_push(&span, call, place, added);
    }
    return PEN_OK;
}

// ---- the total

// Lists the blocks that the step has, with what each completes; the last one completes the rest.
static uint32_t tree_list_blocks(const tree_state *state, const pen_cpu_call *call) {
    pen_lane_block rest[PEN_LANE_BLOCKS], blocks[PEN_LANE_BLOCKS];
    uint32_t count = 0, depth = 0;
    for (uint32_t i = 0; i < state->stack_count; i++) {
        const pen_lane_range range = {(uint32_t)state->bounds[i], (uint32_t)state->bounds[i + 1],
                                      call->run->lane_count};
        const uint32_t block_count = pen_lane_blocks_there(range, blocks);
        for (uint32_t b = 0; b < block_count; b++) {
            uint32_t joins = 0;
            rest[depth++] = blocks[b];
            for (; depth > 1 && pen_lane_blocks_pair(rest[depth - 2], rest[depth - 1]); depth--) {
                rest[depth - 2].count *= 2;
                joins++;
            }
            const char *stack = call->inputs[i];
            state->blocks[count++] = (tree_block){stack + b * state->bytes, joins};
        }
    }
    if (count > 0) state->blocks[count - 1].joins += depth - 1;
    return count;
}

// Adds the blocks of a list. What is not yet whole waits in `parts`; the first of these is y.
static void tree_add_blocks(const tree_span *span, uint32_t block_count, char *y,
                            tree_piece *parts) {
    const void *rest[PEN_LANE_BLOCKS];
    uint32_t depth = 0;
    for (uint32_t b = 0; b < block_count; b++) {
        const tree_block *block = &span->state->blocks[b];
        rest[depth++] = block->sums + span->at;
        for (uint32_t j = 0; j < block->joins && depth > 1; j++, depth--) {
            void *sum = depth == 2 ? (void *)y : &parts[depth - 2];
            tree_add(span, rest[depth - 2], rest[depth - 1], sum);
            rest[depth - 2] = sum;
        }
    }
    if (depth == 0) memset(y, 0, span->bytes);
    if (depth > 0 && rest[0] != y) memcpy(y, rest[0], span->bytes);
}

static pen_status tree_total_run(const pen_cpu_call *call) {
    const tree_state *state = call->state;
    const uint32_t block_count = tree_list_blocks(state, call);
#pragma omp parallel for schedule(static) if (state->bytes > TREE_TEAM_BYTES)
    for (size_t at = 0; at < state->bytes; at += sizeof(tree_piece)) {
        const tree_span span = tree_span_at(state, at);
        tree_piece parts[PEN_LANE_BLOCKS / 2 + 2];
        tree_add_blocks(&span, block_count, (char *)call->outputs[0] + at, parts);
    }
    return PEN_OK;
}

static const pen_cpu_kernel tree_kernels[] = {
    {PEN_CPU_ENTRY("tree_sum", "cpu", tree_supports, tree_sum_prepare, tree_sum_run),
     .can_accumulate = true},
    {PEN_CPU_ENTRY("tree_total", "cpu", tree_supports, tree_total_prepare, tree_total_run)},
};

PEN_CPU_FAMILY_OF(tree);
