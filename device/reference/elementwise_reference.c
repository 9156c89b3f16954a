#include <math.h>
#include <string.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_position.h"
#include "graph/op.h"

typedef double (*binary_number)(double a, double b);
typedef int64_t (*binary_integer)(const pen_reference_call *call, int64_t a, int64_t b);

// y = f(a, b) in double, or, for integer types, in int64.
static pen_status binary_run(const pen_reference_call *call, binary_number number,
                             binary_integer integer) {
    const pen_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool is_exact =
        pen_element_is_integer(a->type.element) && pen_element_is_integer(b->type.element);
    const pen_shape *shapes[2] = {&a->type.shape, &b->type.shape};
    PEN_ASSERT(is_exact || number != NULL); // shifts are of integers alone
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &y->type.shape, 2, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        if (is_exact) {
            pen_tensor_set_int(y, walk.position,
                               integer(call, pen_tensor_get_int(a, walk.index[0]),
                                       pen_tensor_get_int(b, walk.index[1])));
        } else {
            pen_tensor_set(
                y, walk.position,
                number(pen_tensor_get(a, walk.index[0]), pen_tensor_get(b, walk.index[1])));
        }
    }
    return PEN_OK;
}

// Integer arithmetic is done on unsigned numbers, which wrap.
static int64_t add_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    (void)call;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t sub_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    (void)call;
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static int64_t mul_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    (void)call;
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static bool elementwise_is_uint64(const pen_reference_call *call) {
    return call->inputs[0].type.element == PEN_UINT64;
}

static int64_t div_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    if (elementwise_is_uint64(call)) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t mod_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    if (elementwise_is_uint64(call)) return (int64_t)((uint64_t)a % (uint64_t)b);
    const int64_t remainder = b == -1 ? 0 : a % b; // has the sign of a
    const bool wrong_sign = remainder != 0 && (remainder < 0) != (b < 0);
    return wrong_sign && pen_node_int(call->node, "fmod") == 0 ? remainder + b : remainder;
}

// By squaring; wraps. A negative exponent gives the truncated reciprocal, and 0 for a base of 0.
static int64_t pow_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    if (b < 0 && call->inputs[1].type.element != PEN_UINT64) {
        const int64_t sign = b % 2 == 0 ? 1 : a;
        return a == 1 || a == -1 ? sign : 0;
    }
    uint64_t result = 1, factor = (uint64_t)a;
    for (uint64_t exponent = (uint64_t)b; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result *= factor;
        factor *= factor;
    }
    return (int64_t)result;
}

static int64_t shift_integer(const pen_reference_call *call, int64_t a, int64_t b) {
    const uint64_t bits = (uint64_t)a, by = (uint64_t)b;
    const bool is_left = strcmp(pen_node_text(call->node, "direction"), "LEFT") == 0;
    return by > 63 ? 0 : (int64_t)(is_left ? bits << by : bits >> by);
}

static double add_number(double a, double b) {
    return a + b;
}
static double sub_number(double a, double b) {
    return a - b;
}
static double mul_number(double a, double b) {
    return a * b;
}
static double div_number(double a, double b) {
    return a / b;
}

static pen_status elementwise_add(const pen_reference_call *call) {
    return binary_run(call, add_number, add_integer);
}
static pen_status elementwise_sub(const pen_reference_call *call) {
    return binary_run(call, sub_number, sub_integer);
}
static pen_status elementwise_mul(const pen_reference_call *call) {
    return binary_run(call, mul_number, mul_integer);
}
static pen_status elementwise_check_divisors(const pen_reference_call *call) {
    const pen_tensor *b = &call->inputs[1];
    if (!pen_element_is_integer(b->type.element)) return PEN_OK;
    for (int64_t k = 0; k < pen_tensor_count(b); k++) {
        if (pen_tensor_get_int(b, k) != 0) continue;
        return pen_error(PEN_INVALID_INPUT, "%s '%s': division of an integer by 0",
                         call->node->op->name, call->node->name);
    }
    return PEN_OK;
}

static pen_status elementwise_div(const pen_reference_call *call) {
    PEN_TRY(elementwise_check_divisors(call));
    return binary_run(call, div_number, div_integer);
}
static pen_status elementwise_pow(const pen_reference_call *call) {
    return binary_run(call, pow, pow_integer);
}
static pen_status elementwise_mod(const pen_reference_call *call) {
    PEN_TRY(elementwise_check_divisors(call));
    return binary_run(call, fmod, mod_integer);
}
static pen_status elementwise_shift(const pen_reference_call *call) {
    return binary_run(call, NULL, shift_integer); // integers alone
}

// dx = f(dy, a, b) at each position of dy, to which a and b broadcast.
static pen_status binary_backward_run(const pen_reference_call *call,
                                      double (*gradient)(double dy, double a, double b)) {
    const pen_tensor *in = call->inputs, *out = &call->outputs[0];
    const pen_shape *shapes[2] = {&in[1].type.shape, &in[2].type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &out->type.shape, 2, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        pen_tensor_set(out, walk.position,
                       gradient(pen_tensor_get(&in[0], walk.position),
                                pen_tensor_get(&in[1], walk.index[0]),
                                pen_tensor_get(&in[2], walk.index[1])));
    }
    return PEN_OK;
}

static double div_gradient_of_divisor(double dy, double y, double b) {
    return -dy * y / b;
}
// 0 for an exponent of 0, also where the base is 0.
static double pow_gradient_of_base(double dy, double a, double b) {
    return b == 0 ? 0 : dy * b * pow(a, b - 1);
}
// 0 where 0 is raised to a power that is not negative.
static double pow_gradient_of_exponent(double dy, double a, double b) {
    return a == 0 && b >= 0 ? 0 : dy * pow(a, b) * log(a);
}

static pen_status elementwise_div_backward(const pen_reference_call *call) {
    return binary_backward_run(call, div_gradient_of_divisor);
}
static pen_status elementwise_pow_backward_base(const pen_reference_call *call) {
    return binary_backward_run(call, pow_gradient_of_base);
}
static pen_status elementwise_pow_backward_exponent(const pen_reference_call *call) {
    return binary_backward_run(call, pow_gradient_of_exponent);
}

// Walks over any number of operands in step.
typedef struct variadic_walk {
    uint32_t count;
    const pen_tensor *operands; // [count]
    pen_broadcast_walk *walks;  // [count]
} variadic_walk;

static pen_status variadic_start(variadic_walk *walk, const pen_reference_call *call,
                                 uint32_t first) {
    walk->count = call->node->input_count - first;
    walk->operands = call->inputs + first;
    PEN_TRY(PEN_NEW(call->scratch, walk->count, &walk->walks));
    for (uint32_t i = 0; i < walk->count; i++) {
        const pen_shape *shapes[1] = {&walk->operands[i].type.shape};
        pen_broadcast_start(&walk->walks[i], &call->outputs[0].type.shape, 1, shapes);
    }
    return PEN_OK;
}

static void variadic_next(variadic_walk *walk) {
    for (uint32_t i = 0; i < walk->count; i++) {
        pen_broadcast_next(&walk->walks[i]);
    }
}

static pen_status variadic_add(const pen_reference_call *call, double scale) {
    variadic_walk walk;
    PEN_TRY(variadic_start(&walk, call, 0));
    for (; pen_broadcast_more(&walk.walks[0]); variadic_next(&walk)) {
        double sum = 0;
        for (uint32_t i = 0; i < walk.count; i++) {
            sum += pen_tensor_get(&walk.operands[i], walk.walks[i].index[0]);
        }
        pen_tensor_set(&call->outputs[0], walk.walks[0].position, sum * scale);
    }
    return PEN_OK;
}

static pen_status elementwise_sum(const pen_reference_call *call) {
    return variadic_add(call, 1);
}
static pen_status elementwise_mean(const pen_reference_call *call) {
    return variadic_add(call, 1.0 / call->node->input_count);
}

// The operand that has the extremum at the current position: the first of equals.
static uint32_t variadic_winner(const variadic_walk *walk, bool largest) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < walk->count; i++) {
        if (reference_wins(largest, &walk->operands[i], walk->walks[i].index[0],
                           &walk->operands[best], walk->walks[best].index[0])) {
            best = i;
        }
    }
    return best;
}

static pen_status extremum_run(const pen_reference_call *call, bool largest) {
    variadic_walk walk;
    PEN_TRY(variadic_start(&walk, call, 0));
    for (; pen_broadcast_more(&walk.walks[0]); variadic_next(&walk)) {
        const uint32_t best = variadic_winner(&walk, largest);
        reference_copy_element(&call->outputs[0], walk.walks[0].position, &walk.operands[best],
                               walk.walks[best].index[0]);
    }
    return PEN_OK;
}

static pen_status extremum_backward_run(const pen_reference_call *call, bool largest) {
    const uint32_t subject = (uint32_t)pen_node_int(call->node, "index");
    variadic_walk walk;
    PEN_TRY(variadic_start(&walk, call, 1));
    for (; pen_broadcast_more(&walk.walks[0]); variadic_next(&walk)) {
        const int64_t position = walk.walks[0].position;
        const uint32_t best = variadic_winner(&walk, largest);
        const double extremum = pen_tensor_get(&walk.operands[best], walk.walks[best].index[0]);
        uint32_t ties = 0;
        bool among = false;
        for (uint32_t i = 0; i < walk.count; i++) {
            if (pen_tensor_get(&walk.operands[i], walk.walks[i].index[0]) != extremum) continue;
            ties += 1;
            among |= i == subject;
        }
        const double dy = pen_tensor_get(&call->inputs[0], position);
        pen_tensor_set(&call->outputs[0], position, among ? dy / ties : 0);
    }
    return PEN_OK;
}

static pen_status elementwise_max(const pen_reference_call *call) {
    return extremum_run(call, true);
}
static pen_status elementwise_min(const pen_reference_call *call) {
    return extremum_run(call, false);
}
static pen_status elementwise_max_backward(const pen_reference_call *call) {
    return extremum_backward_run(call, true);
}
static pen_status elementwise_min_backward(const pen_reference_call *call) {
    return extremum_backward_run(call, false);
}

static const pen_reference_kernel elementwise_kernels[] = {
    {"add", elementwise_add},
    {"sub", elementwise_sub},
    {"mul", elementwise_mul},
    {"div", elementwise_div},
    {"pow", elementwise_pow},
    {"mod", elementwise_mod},
    {"bit_shift", elementwise_shift},
    {"div_backward_divisor", elementwise_div_backward},
    {"pow_backward_base", elementwise_pow_backward_base},
    {"pow_backward_exponent", elementwise_pow_backward_exponent},
    {"sum", elementwise_sum},
    {"mean", elementwise_mean},
    {"max", elementwise_max},
    {"min", elementwise_min},
    {"max_backward", elementwise_max_backward},
    {"min_backward", elementwise_min_backward},
};

const pen_reference_family pen_elementwise_reference = {
    elementwise_kernels, sizeof elementwise_kernels / sizeof *elementwise_kernels};
