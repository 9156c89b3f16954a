// Tensors made from shapes and numbers, and casts.

#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/op.h"

static pen_status shape_run(const pen_reference_call *call) {
    const pen_shape *shape = &call->inputs[0].type.shape;
    int64_t start = pen_node_int(call->node, "start");
    if (start < 0) start = start + shape->rank < 0 ? 0 : start + shape->rank;
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        pen_tensor_set_int(&call->outputs[0], k, shape->dims[start + k]);
    }
    return PEN_OK;
}

static pen_status size_run(const pen_reference_call *call) {
    pen_tensor_set_int(&call->outputs[0], 0, pen_tensor_count(&call->inputs[0]));
    return PEN_OK;
}

static pen_status range_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        if (pen_element_is_float(y->type.element)) {
            const double delta = pen_tensor_get(&call->inputs[2], 0);
            pen_tensor_set(y, k, pen_tensor_get(&call->inputs[0], 0) + (double)k * delta);
        } else {
            // unsigned: a range may pass through the end of int64 where uint64 goes on
            const uint64_t delta = (uint64_t)pen_tensor_get_int(&call->inputs[2], 0);
            const uint64_t start = (uint64_t)pen_tensor_get_int(&call->inputs[0], 0);
            pen_tensor_set_int(y, k, (int64_t)(start + (uint64_t)k * delta));
        }
    }
    return PEN_OK;
}

static pen_status constant_of_shape_run(const pen_reference_call *call) {
    const double value = pen_node_float(call->node, "value");
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        pen_tensor_set(&call->outputs[0], k, value);
    }
    return PEN_OK;
}

static pen_status cast_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const bool exact =
        !pen_element_is_float(x->type.element) && !pen_element_is_float(y->type.element);
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        if (exact) {
            pen_tensor_set_int(y, k, pen_tensor_get_int(x, k));
        } else {
            pen_tensor_set(y, k, pen_tensor_get(x, k));
        }
    }
    return PEN_OK;
}

static pen_status eye_like_run(const pen_reference_call *call) {
    const pen_tensor *y = &call->outputs[0];
    const int64_t columns = y->type.shape.dims[1];
    const int64_t diagonal = pen_node_int(call->node, "k");
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        pen_tensor_set_int(y, k, k % columns - k / columns == diagonal);
    }
    return PEN_OK;
}

// The axis is taken out of a position of the result: what remains is the position of its index.
static pen_status one_hot_run(const pen_reference_call *call) {
    const pen_tensor *indices = &call->inputs[0], *values = &call->inputs[2];
    const pen_tensor *y = &call->outputs[0];
    uint32_t axis;
    PEN_TRY(pen_shape_axis(y->type.shape.rank, pen_node_int(call->node, "axis"), &axis));
    const int64_t depth = y->type.shape.dims[axis];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        int64_t at[PEN_RANK_LIMIT] = {0};
        reference_position_of(&y->type.shape, k, at);
        const int64_t level = at[axis];
        for (uint32_t d = axis; d + 1 < y->type.shape.rank; d++) {
            at[d] = at[d + 1];
        }
        const int64_t from = reference_index_of(&indices->type.shape, at);
        double index = pen_tensor_get(indices, from);
        if (index < 0) index += (double)depth;
        // an index outside of the depth switches nothing on
        reference_copy_element(y, k, values, index == (double)level ? 1 : 0);
    }
    return PEN_OK;
}

static pen_status non_zero_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t found_count = y->type.shape.dims[1];
    int64_t found = 0;
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        if (pen_tensor_get(x, k) == 0) continue;
        int64_t at[PEN_RANK_LIMIT] = {0};
        reference_position_of(&x->type.shape, k, at);
        for (uint32_t d = 0; d < x->type.shape.rank; d++) {
            pen_tensor_set_int(y, (int64_t)d * found_count + found, at[d]);
        }
        found += 1;
    }
    return PEN_OK;
}

static const pen_reference_kernel constant_kernels[] = {
    {"shape", shape_run, NULL},     {"size", size_run, NULL},
    {"range", range_run, NULL},     {"constant_of_shape", constant_of_shape_run, NULL},
    {"cast", cast_run, NULL},       {"eye_like", eye_like_run, NULL},
    {"one_hot", one_hot_run, NULL}, {"non_zero", non_zero_run, NULL},
};

PEN_REFERENCE_FAMILY(constant);
