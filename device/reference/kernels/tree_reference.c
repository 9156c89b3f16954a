// Sums over the lanes of a step (graph/ops/training/tree_op.c), element by element.

#include <string.h>

#include "device/reference/reference_kernel.h"
#include "device/running_statistic.h"
#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/op.h"

// The sum as the element type has it.
static double tree_add(const pen_tensor *tensor, double left, double right) {
    return tensor->type.element == PEN_FLOAT32 ? (double)(float)(left + right) : left + right;
}

// Element by element: the last block is added first, and the sum is rounded each time.
static pen_status tree_sum_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *stack = &call->outputs[0];
    const int64_t first = pen_node_int(call->node, "first"), end = pen_node_int(call->node, "end");
    const int64_t count = pen_tensor_count(x);
    if (!call->ends_lane) return PEN_OK;
    if (call->lane < first || call->lane >= end) {
        return pen_error(PEN_INTERNAL, "'%s' has no room for lane %u", call->node->name,
                         call->lane);
    }
    uint32_t added = 0;
    const pen_lane_range range = {(uint32_t)first, (uint32_t)end, call->lane_count};
    const uint32_t place = pen_node_int(call->node, "apart") != 0
                               ? call->lane - (uint32_t)first
                               : pen_lane_place(range, call->lane, &added);
    for (int64_t k = 0; k < count; k++) {
        double sum = pen_tensor_get(x, k);
        for (uint32_t b = place + added; b-- > place;) {
            sum = tree_add(x, pen_tensor_get(stack, b * count + k), sum);
        }
        pen_tensor_set(stack, place * count + k, sum);
    }
    return PEN_OK;
}

// What is left of the tree: blocks that are not yet halves of a whole.
typedef struct tree_rest {
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    double sums[PEN_LANE_BLOCKS];
    uint32_t count;
} tree_rest;

static void tree_join(tree_rest *rest, const pen_tensor *like) {
    rest->count -= 1;
    const uint32_t left = rest->count - 1;
    rest->sums[left] = tree_add(like, rest->sums[left], rest->sums[rest->count]);
    rest->blocks[left].count += rest->blocks[rest->count].count;
}

static void tree_push(tree_rest *rest, pen_lane_block block, double sum, const pen_tensor *like) {
    rest->blocks[rest->count] = block;
    rest->sums[rest->count++] = sum;
    while (rest->count > 1 &&
           pen_lane_blocks_pair(rest->blocks[rest->count - 2], rest->blocks[rest->count - 1])) {
        tree_join(rest, like);
    }
}

// Element by element: blocks in the order of their lanes, as pairs become complete; then the rest,
// from the last one.
static pen_status tree_total_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const int64_t count = pen_tensor_count(y);
    uint32_t bound_count;
    const int64_t *bounds = pen_node_ints(call->node, "bounds", &bound_count);
    for (int64_t k = 0; k < count; k++) {
        tree_rest rest = {.count = 0};
        for (uint32_t i = 0; i < call->node->input_count; i++) {
            pen_lane_block blocks[PEN_LANE_BLOCKS];
            const pen_lane_range range = {(uint32_t)bounds[i], (uint32_t)bounds[i + 1],
                                          call->lane_count};
            const uint32_t block_count = pen_lane_blocks_there(range, blocks);
            for (uint32_t b = 0; b < block_count; b++) {
                tree_push(&rest, blocks[b], pen_tensor_get(&call->inputs[i], b * count + k), y);
            }
        }
        while (rest.count > 1) {
            tree_join(&rest, y);
        }
        pen_tensor_set(y, k, rest.count == 0 ? 0 : rest.sums[0]);
    }
    return PEN_OK;
}

static pen_status rows_total_run(const pen_reference_call *call) {
    char *to = call->outputs[0].data;
    uint32_t bound_count;
    const int64_t *bounds = pen_node_ints(call->node, "bounds", &bound_count);
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        const pen_tensor *rows = &call->inputs[i];
        const size_t bytes = (size_t)pen_tensor_type_bytes(&rows->type);
        if (bounds[i] < call->lane_count) {
            memcpy(to, rows->data, bytes);
        } else {
            memset(to, 0, bytes);
        }
        to += bytes;
    }
    return PEN_OK;
}

static pen_status fold_rows_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *rows = &call->inputs[1];
    const double momentum = pen_node_float(call->node, "momentum");
    const int64_t count = pen_tensor_count(x), most = rows->type.shape.dims[0];
    for (int64_t k = 0; k < count; k++) {
        double value = pen_tensor_get(x, k);
        for (int64_t m = 0; m < most && m < call->microbatch_count; m++) {
            const double row = pen_tensor_get(rows, m * count + k);
            value = pen_running_statistic(value, momentum, row);
            if (x->type.element == PEN_FLOAT32) value = (double)(float)value;
        }
        pen_tensor_set(&call->outputs[0], k, value);
    }
    return PEN_OK;
}

static const pen_reference_kernel tree_kernels[] = {
    {"tree_sum", tree_sum_run, NULL},
    {"tree_total", tree_total_run, NULL},
    {"rows_total", rows_total_run, NULL},
    {"fold_rows", fold_rows_run, NULL},
};

PEN_REFERENCE_FAMILY(tree);
