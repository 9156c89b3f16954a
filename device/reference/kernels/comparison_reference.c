#include <math.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_position.h"
#include "graph/op.h"

typedef struct comparison_rule {
    bool (*holds)(const pen_tensor *a, int64_t i, const pen_tensor *b, int64_t j);
} comparison_rule;

static pen_status comparison_run(const pen_reference_call *call) {
    const comparison_rule *rule = call->rule;
    const pen_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const pen_shape *shapes[2] = {&a->type.shape, &b->type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &y->type.shape, 2, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        pen_tensor_set_int(y, walk.position, rule->holds(a, walk.index[0], b, walk.index[1]));
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

#define COMPARISON(test) comparison_run, PEN_REFERENCE_RULE(comparison_rule, test)

static const pen_reference_kernel comparison_kernels[] = {
    {"equal", COMPARISON(test_equal)},
    {"less", COMPARISON(test_less)},
    {"less_or_equal", COMPARISON(test_less_or_equal)},
    {"greater", COMPARISON(test_greater)},
    {"greater_or_equal", COMPARISON(test_greater_or_equal)},
    {"and", COMPARISON(test_and)},
    {"or", COMPARISON(test_or)},
    {"xor", COMPARISON(test_xor)},
    {"not", comparison_not, NULL},
    {"isnan", comparison_isnan, NULL},
    {"isinf", comparison_isinf, NULL},
    {"where", comparison_where, NULL},
    {"where_backward", comparison_where_backward, NULL},
};

PEN_REFERENCE_FAMILY(comparison);
