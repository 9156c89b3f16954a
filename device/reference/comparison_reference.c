#include <math.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_position.h"
#include "graph/op.h"

typedef bool (*comparison_test)(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j);

static pen_status comparison_run(const pen_reference_call *call, comparison_test test) {
    const pen_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const pen_shape *shapes[2] = {&a->type.shape, &b->type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &y->type.shape, 2, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        pen_tensor_set_int(y, walk.position, test(a, walk.index[0], b, walk.index[1]));
    }
    return PEN_OK;
}

static bool test_equal(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return reference_compare(a, i, b, j) == REFERENCE_EQUAL;
}
static bool test_less(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return reference_compare(a, i, b, j) == REFERENCE_LESS;
}
static bool test_less_or_equal(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    const reference_order order = reference_compare(a, i, b, j);
    return order == REFERENCE_LESS || order == REFERENCE_EQUAL;
}
static bool test_greater(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return test_less(b, j, a, i);
}
static bool test_greater_or_equal(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return test_less_or_equal(b, j, a, i);
}
static bool test_and(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return pen_tensor_get_int(a, i) && pen_tensor_get_int(b, j);
}
static bool test_or(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return pen_tensor_get_int(a, i) || pen_tensor_get_int(b, j);
}
static bool test_xor(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j) {
    return pen_tensor_get_int(a, i) != pen_tensor_get_int(b, j);
}

static pen_status comparison_equal(const pen_reference_call *call) {
    return comparison_run(call, test_equal);
}
static pen_status comparison_less(const pen_reference_call *call) {
    return comparison_run(call, test_less);
}
static pen_status comparison_less_or_equal(const pen_reference_call *call) {
    return comparison_run(call, test_less_or_equal);
}
static pen_status comparison_greater(const pen_reference_call *call) {
    return comparison_run(call, test_greater);
}
static pen_status comparison_greater_or_equal(const pen_reference_call *call) {
    return comparison_run(call, test_greater_or_equal);
}
static pen_status comparison_and(const pen_reference_call *call) {
    return comparison_run(call, test_and);
}
static pen_status comparison_or(const pen_reference_call *call) {
    return comparison_run(call, test_or);
}
static pen_status comparison_xor(const pen_reference_call *call) {
    return comparison_run(call, test_xor);
}

static pen_status comparison_not(const pen_reference_call *call) {
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        pen_tensor_set_int(&call->outputs[0], k, !pen_tensor_get_int(&call->inputs[0], k));
    }
    return PEN_OK;
}

static pen_status comparison_isnan(const pen_reference_call *call) {
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        pen_tensor_set_int(&call->outputs[0], k, isnan(pen_tensor_get(&call->inputs[0], k)));
    }
    return PEN_OK;
}

static pen_status comparison_isinf(const pen_reference_call *call) {
    const bool negative = pen_node_int(call->node, "detect_negative") != 0;
    const bool positive = pen_node_int(call->node, "detect_positive") != 0;
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        const double x = pen_tensor_get(&call->inputs[0], k);
        pen_tensor_set_int(&call->outputs[0], k, isinf(x) && (x < 0 ? negative : positive));
    }
    return PEN_OK;
}

static pen_status comparison_where(const pen_reference_call *call) {
    const pen_tensor *in = call->inputs, *y = &call->outputs[0];
    const pen_shape *shapes[3] = {&in[0].type.shape, &in[1].type.shape, &in[2].type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &y->type.shape, 3, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const int chosen = pen_tensor_get_int(&in[0], walk.index[0]) ? 1 : 2;
        reference_copy_element(y, walk.position, &in[chosen], walk.index[chosen]);
    }
    return PEN_OK;
}

static pen_status comparison_where_backward(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *condition = &call->inputs[1];
    const pen_tensor *dx = &call->outputs[0];
    const bool when = pen_node_int(call->node, "when") != 0;
    const pen_shape *shapes[1] = {&condition->type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &dx->type.shape, 1, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const bool holds = pen_tensor_get_int(condition, walk.index[0]) != 0;
        pen_tensor_set(dx, walk.position, holds == when ? pen_tensor_get(dy, walk.position) : 0);
    }
    return PEN_OK;
}

static const pen_reference_kernel comparison_kernels[] = {
    {"equal", comparison_equal},
    {"less", comparison_less},
    {"less_or_equal", comparison_less_or_equal},
    {"greater", comparison_greater},
    {"greater_or_equal", comparison_greater_or_equal},
    {"and", comparison_and},
    {"or", comparison_or},
    {"xor", comparison_xor},
    {"not", comparison_not},
    {"isnan", comparison_isnan},
    {"isinf", comparison_isinf},
    {"where", comparison_where},
    {"where_backward", comparison_where_backward},
};

const pen_reference_family pen_comparison_reference = {
    comparison_kernels, sizeof comparison_kernels / sizeof *comparison_kernels};
