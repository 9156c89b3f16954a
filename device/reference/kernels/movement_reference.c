// For each element of the output, where it comes from.

#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"

// Copies between `whole` and `part`, whose elements lie from `start` on along `axis` of `whole`.
static void movement_copy_part(const pen_tensor *whole, const pen_tensor *part, uint32_t axis,
                               int64_t start, bool into_whole) {
    for (int64_t k = 0; k < pen_tensor_count(part); k++) {
        int64_t at[PEN_RANK_LIMIT] = {0};
        reference_position_of(&part->type.shape, k, at);
        at[axis] += start;
        const int64_t whole_index = reference_index_of(&whole->type.shape, at);
        if (into_whole) {
            reference_copy_element(whole, whole_index, part, k);
        } else {
            reference_copy_element(part, k, whole, whole_index);
        }
    }
}

static pen_status concat_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const uint32_t axis = reference_axis(call, &y->type.shape);
    int64_t start = 0;
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        movement_copy_part(y, &call->inputs[i], axis, start, true);
        start += call->inputs[i].type.shape.dims[axis];
    }
    return PEN_OK;
}

static pen_status split_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    const uint32_t axis = reference_axis(call, &x->type.shape);
    const bool has_sizes = pen_reference_input(call, 1) != NULL;
    int64_t start = 0;
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        if (call->outputs[i].data != NULL) {
            movement_copy_part(x, &call->outputs[i], axis, start, false);
        }
        start += has_sizes ? pen_tensor_get_int(&call->inputs[1], i)
                           : x->type.shape.dims[axis] / call->node->output_count;
    }
    return PEN_OK;
}

static pen_status transpose_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const uint32_t rank = x->type.shape.rank;
    uint32_t count;
    const int64_t *perm = pen_node_ints(call->node, "perm", &count);
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        int64_t at[PEN_RANK_LIMIT], from[PEN_RANK_LIMIT];
        reference_position_of(&y->type.shape, k, at);
        for (uint32_t d = 0; d < rank; d++) {
            from[perm != NULL ? (uint32_t)perm[d] : rank - 1 - d] = at[d];
        }
        reference_copy_element(y, k, x, reference_index_of(&x->type.shape, from));
    }
    return PEN_OK;
}

static pen_status expand_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_shape *shapes[] = {&x->type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &y->type.shape, 1, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        reference_copy_element(y, walk.position, x, walk.index[0]);
    }
    return PEN_OK;
}

// The element of a tensor of `base` that element `index` of its repetition repeats.
static int64_t tile_source(const pen_shape *tiled, const pen_shape *base, int64_t index) {
    int64_t at[PEN_RANK_LIMIT];
    reference_position_of(tiled, index, at);
    for (uint32_t d = 0; d < base->rank; d++) {
        at[d] %= base->dims[d];
    }
    return reference_index_of(base, at);
}

static pen_status tile_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        reference_copy_element(y, k, x, tile_source(&y->type.shape, &x->type.shape, k));
    }
    return PEN_OK;
}

static pen_status tile_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    const int64_t count = pen_tensor_count(dx);
    double *sums;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &sums));
    for (int64_t k = 0; k < pen_tensor_count(dy); k++) {
        sums[tile_source(&dy->type.shape, &dx->type.shape, k)] += pen_tensor_get(dy, k);
    }
    reference_store_sums(dx, sums);
    return PEN_OK;
}

// A place in the plane and in the channels of the deeper tensor stands for one in the wider:
// with block row i and column j, DCR has the channel (i * b + j) * C + c, CRD c * b * b + i * b +
// j.
static pen_status space_run(const pen_reference_call *call) {
    const bool to_depth = strcmp(call->node->op->name, "space_to_depth") == 0;
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_shape *wide = to_depth ? &x->type.shape : &y->type.shape;
    const pen_shape *deep = to_depth ? &y->type.shape : &x->type.shape;
    const int64_t b = pen_node_int(call->node, "blocksize");
    const bool depth_first = strcmp(pen_node_text(call->node, "mode"), "DCR") == 0;
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        int64_t at[PEN_RANK_LIMIT] = {0}; // in the wider tensor
        reference_position_of(wide, k, at);
        const int64_t block = at[2] % b * b + at[3] % b;
        const int64_t channel = depth_first ? block * wide->dims[1] + at[1] : at[1] * b * b + block;
        const int64_t place[] = {at[0], channel, at[2] / b, at[3] / b};
        const int64_t deep_index = reference_index_of(deep, place);
        if (to_depth) {
            reference_copy_element(y, deep_index, x, k);
        } else {
            reference_copy_element(y, k, x, deep_index);
        }
    }
    return PEN_OK;
}

static const pen_reference_kernel movement_kernels[] = {
    {"concat", concat_run, NULL},
    {"split", split_run, NULL},
    {"transpose", transpose_run, NULL},
    {"expand", expand_run, NULL},
    {"tile", tile_run, NULL},
    {"tile_backward", tile_backward_run, NULL},
    {"space_to_depth", space_run, NULL},
    {"depth_to_space", space_run, NULL},
};

PEN_REFERENCE_FAMILY(movement);
