#include <math.h>
#include <string.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"

typedef struct binary_rule {
    double (*number)(double a, double b); // NULL: of integers alone
    int64_t (*integer)(const pen_reference_call *call, int64_t a, int64_t b);
    bool divides; // integers must not be 0
} binary_rule;

static pen_status binary_check_divisors(const pen_reference_call *call) {
    const pen_tensor *b = &call->inputs[1];
    if (!pen_element_is_integer(b->type.element)) return PEN_OK;
    for (int64_t k = 0; k < pen_tensor_count(b); k++) {
        if (pen_tensor_get_int(b, k) != 0) continue;
        return pen_error(PEN_INVALID_INPUT, "%s '%s': division of an integer by 0",
                         call->node->op->name, call->node->name);
    }
    return PEN_OK;
}

// y = f(a, b) in double, or, for integer types, in int64.
static pen_status binary_run(const pen_reference_call *call) {
    const binary_rule *rule = call->rule;
    const pen_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool is_exact =
        pen_element_is_integer(a->type.element) && pen_element_is_integer(b->type.element);
    const pen_shape *shapes[2] = {&a->type.shape, &b->type.shape};
    PEN_ASSERT(is_exact || rule->number != NULL);
    if (rule->divides) PEN_TRY(binary_check_divisors(call));
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &y->type.shape, 2, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        if (is_exact) {
            pen_tensor_set_int(y, walk.position,
                               rule->integer(call, pen_tensor_get_int(a, walk.index[0]),
                                             pen_tensor_get_int(b, walk.index[1])));
        } else {
            pen_tensor_set(
                y, walk.position,
                rule->number(pen_tensor_get(a, walk.index[0]), pen_tensor_get(b, walk.index[1])));
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

typedef struct binary_gradient {
    double (*gradient)(double dy, double a, double b);
} binary_gradient;

// dx = f(dy, a, b) at each position of dy, to which a and b broadcast.
static pen_status binary_backward_run(const pen_reference_call *call) {
    const binary_gradient *rule = call->rule;
    const pen_tensor *in = call->inputs, *out = &call->outputs[0];
    const pen_shape *shapes[2] = {&in[1].type.shape, &in[2].type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &out->type.shape, 2, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        pen_tensor_set(out, walk.position,
                       rule->gradient(pen_tensor_get(&in[0], walk.position),
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

// The rule says whether the sum is divided by the number of operands.
static pen_status variadic_add(const pen_reference_call *call) {
    const bool is_mean = *(const bool *)call->rule;
    const double scale = is_mean ? 1.0 / call->node->input_count : 1;
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

// The rule says whether the largest is wanted, or the smallest.
static pen_status extremum_run(const pen_reference_call *call) {
    const bool largest = *(const bool *)call->rule;
    variadic_walk walk;
    PEN_TRY(variadic_start(&walk, call, 0));
    for (; pen_broadcast_more(&walk.walks[0]); variadic_next(&walk)) {
        const uint32_t best = variadic_winner(&walk, largest);
        reference_copy_element(&call->outputs[0], walk.walks[0].position, &walk.operands[best],
                               walk.walks[best].index[0]);
    }
    return PEN_OK;
}

// Operands that tie share the gradient equally.
static pen_status extremum_backward_run(const pen_reference_call *call) {
    const bool largest = *(const bool *)call->rule;
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

#define BINARY(...) binary_run, PEN_REFERENCE_RULE(binary_rule, __VA_ARGS__)
#define BINARY_GRADIENT(of) binary_backward_run, PEN_REFERENCE_RULE(binary_gradient, of)

static const pen_reference_kernel elementwise_kernels[] = {
    {"add", BINARY(.number = add_number, .integer = add_integer)},
    {"sub", BINARY(.number = sub_number, .integer = sub_integer)},
    {"mul", BINARY(.number = mul_number, .integer = mul_integer)},
    {"div", BINARY(.number = div_number, .integer = div_integer, .divides = true)},
    {"pow", BINARY(.number = pow, .integer = pow_integer)},
    {"mod", BINARY(.number = fmod, .integer = mod_integer, .divides = true)},
    {"bit_shift", BINARY(.integer = shift_integer)},
    {"div_backward_divisor", BINARY_GRADIENT(div_gradient_of_divisor)},
    {"pow_backward_base", BINARY_GRADIENT(pow_gradient_of_base)},
    {"pow_backward_exponent", BINARY_GRADIENT(pow_gradient_of_exponent)},
    {"sum", variadic_add, PEN_REFERENCE_RULE(bool, false)},
    {"mean", variadic_add, PEN_REFERENCE_RULE(bool, true)},
    {"max", extremum_run, PEN_REFERENCE_RULE(bool, true)},
    {"min", extremum_run, PEN_REFERENCE_RULE(bool, false)},
    {"max_backward", extremum_backward_run, PEN_REFERENCE_RULE(bool, true)},
    {"min_backward", extremum_backward_run, PEN_REFERENCE_RULE(bool, false)},
};

PEN_REFERENCE_FAMILY(elementwise);
