// Finds x g(x), a gated activation, by its gate: an erf, a tanh, a sigmoid or a hard one. What goes
// into the gate is taken apart as a polynomial in x, and what comes out of it as a product of x and
// numbers, so that the order and grouping that an exporter chose do not matter.

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/fuse/fuse_layers.h"

#define GELU_DEGREE 3
#define GELU_DEPTH 8 // of the expression that goes into the gate

typedef struct gelu_polynomial {
    double of[GELU_DEGREE + 1]; // coefficients of x^0, x^1, …
} gelu_polynomial;

static bool polynomial_of(pen_fuse_match *match, pen_value_id value, pen_value_id x, uint32_t depth,
                          gelu_polynomial *out);

static bool polynomial_multiply(const gelu_polynomial *a, const gelu_polynomial *b,
                                gelu_polynomial *out) {
    gelu_polynomial product = {{0}};
    for (uint32_t i = 0; i <= GELU_DEGREE; i++) {
        for (uint32_t k = 0; k <= GELU_DEGREE; k++) {
            const double term = a->of[i] * b->of[k];
            if (i + k <= GELU_DEGREE) {
                product.of[i + k] += term;
            } else if (term != 0) {
                return false;
            }
        }
    }
    *out = product;
    return true;
}

static bool polynomial_power(const gelu_polynomial *a, double exponent, gelu_polynomial *out) {
    if (exponent != 1 && exponent != 2 && exponent != 3) return false;
    gelu_polynomial power = *a;
    for (int i = 1; i < (int)exponent; i++) {
        if (!polynomial_multiply(&power, a, &power)) return false;
    }
    *out = power;
    return true;
}

static bool polynomial_is_number(const gelu_polynomial *a) {
    return a->of[1] == 0 && a->of[2] == 0 && a->of[3] == 0;
}

static bool polynomial_combine(const pen_op *op, const gelu_polynomial *a, const gelu_polynomial *b,
                               gelu_polynomial *out) {
    if (op == PEN_OP(mul)) return polynomial_multiply(a, b, out);
    if (op == PEN_OP(pow)) {
        return polynomial_is_number(b) && polynomial_power(a, b->of[0], out);
    }
    const bool divides = op == PEN_OP(div);
    if (divides && (!polynomial_is_number(b) || b->of[0] == 0)) return false;
    const double sign = op == PEN_OP(sub) ? -1 : 1;
    for (uint32_t i = 0; i <= GELU_DEGREE; i++) {
        out->of[i] = divides ? a->of[i] / b->of[0] : a->of[i] + sign * b->of[i];
    }
    return true;
}

// The node that makes `value`, of arithmetic that polynomials are made of.
static bool polynomial_of_node(pen_fuse_match *match, pen_value_id value, pen_value_id x,
                               uint32_t depth, gelu_polynomial *out) {
    const pen_op *const ops[] = {PEN_OP(mul), PEN_OP(add), PEN_OP(sub), PEN_OP(div), PEN_OP(pow)};
    for (uint32_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const pen_node_id node = pen_fuse_made_by(match, value, ops[i]);
        if (!pen_node_is(node)) continue;
        gelu_polynomial a, b;
        return polynomial_of(match, pen_fuse_input(match, node, 0), x, depth + 1, &a) &&
               polynomial_of(match, pen_fuse_input(match, node, 1), x, depth + 1, &b) &&
               polynomial_combine(ops[i], &a, &b, out);
    }
    const pen_node_id node = pen_fuse_made_by(match, value, PEN_OP(neg));
    if (!pen_node_is(node)) return false;
    const gelu_polynomial minus = {{-1}};
    return polynomial_of(match, pen_fuse_input(match, node, 0), x, depth + 1, out) &&
           polynomial_multiply(out, &minus, out);
}

static bool polynomial_of(pen_fuse_match *match, pen_value_id value, pen_value_id x, uint32_t depth,
                          gelu_polynomial *out) {
    gelu_polynomial found = {{0}};
    if (depth > GELU_DEPTH) return false;
    if (pen_fuse_same(match, value, x)) {
        found.of[1] = 1;
    } else if (!pen_fuse_number(match, value, &found.of[0])) {
        return polynomial_of_node(match, value, x, depth, out);
    }
    *out = found;
    return true;
}

// ---- what comes out of the gate

typedef struct gelu_product {
    double number;
    pen_value_id x; // NONE until met
} gelu_product;

// Takes a factor in: a number, x, or x times a number.
static bool product_take(pen_fuse_match *match, gelu_product *product, pen_value_id factor) {
    double number;
    if (pen_fuse_number(match, factor, &number)) {
        product->number *= number;
        return true;
    }
    if (pen_value_is(product->x)) return false;
    product->x = pen_fuse_behind(match, factor);
    return true;
}

// x may itself be a product; here it is one of x and 1/2, or of x and 2 divided by.
static bool product_split(pen_fuse_match *match, gelu_product *product) {
    double number;
    const pen_value_id factor = product->x;
    const pen_node_id node = pen_fuse_made_by(match, factor, PEN_OP(mul));
    if (pen_node_is(node)) {
        for (uint32_t i = 0; i < 2; i++) {
            if (!pen_fuse_number(match, pen_fuse_input(match, node, i), &number)) continue;
            product->number *= number;
            product->x = pen_fuse_behind(match, pen_fuse_input(match, node, 1 - i));
            return true;
        }
        return false;
    }
    const pen_node_id quotient = pen_fuse_made_by(match, factor, PEN_OP(div));
    if (!pen_node_is(quotient)) return false;
    if (!pen_fuse_number(match, pen_fuse_input(match, quotient, 1), &number) || number == 0) {
        return false;
    }
    product->number /= number;
    product->x = pen_fuse_behind(match, pen_fuse_input(match, quotient, 0));
    return true;
}

// Follows the gate's value through products, to the one whose number is `number`.
static bool product_follow(pen_fuse_match *match, pen_value_id value, double number,
                           gelu_product *product) {
    *product = (gelu_product){1, PEN_VALUE_NONE};
    while (!match->is_full) {
        pen_value_id read;
        const pen_node_id reader = pen_fuse_reader(match, value, &read);
        const bool divides = pen_fuse_is(match, reader, PEN_OP(div));
        if (!divides && !pen_fuse_is(match, reader, PEN_OP(mul))) return false;
        pen_fuse_join(match, reader);
        double divisor;
        if (divides) {
            if (!pen_fuse_number(match, pen_fuse_input(match, reader, 1), &divisor)) return false;
            product->number /= divisor;
        } else if (!product_take(match, product, pen_fuse_other(match, reader, read))) {
            return false;
        }
        match->last = reader;
        if (pen_value_is(product->x) && pen_fuse_near(product->number, number)) return true;
        gelu_product split = *product;
        if (pen_value_is(product->x)) {
            const pen_fuse_match before = *match;
            if (product_split(match, &split) && pen_fuse_near(split.number, number)) {
                *product = split;
                return true;
            }
            *match = before;
        }
        value = pen_fuse_output(match, reader);
    }
    return false;
}

static bool polynomial_is(const gelu_polynomial *a, double c0, double c1, double c3) {
    return a->of[0] == c0 && a->of[2] == 0 && pen_fuse_near(a->of[1], c1) &&
           (c3 == 0 ? a->of[3] == 0 : pen_fuse_near(a->of[3], c3));
}

// ---- gates

typedef struct gelu_gate gelu_gate;
struct gelu_gate {
    pen_known_op op; // that makes the gate
    bool adds_one;   // to what this makes
    double number;   // that the product is multiplied by
    // Whether `into`, what goes into `node`, makes it the gate; says what stands for it all.
    bool (*is)(pen_fuse_match *match, pen_node_id node, const gelu_polynomial *into);
};

static bool gelu_is_erf(pen_fuse_match *match, pen_node_id node, const gelu_polynomial *into) {
    (void)node;
    match->op = PEN_OP(gelu);
    match->attributes[match->attribute_count++] = pen_attribute_text("approximate", "none");
    return polynomial_is(into, 0, 0.70710678118654752, 0);
}

static bool gelu_is_tanh(pen_fuse_match *match, pen_node_id node, const gelu_polynomial *into) {
    const double k = 0.79788456080286536; // sqrt(2 / pi)
    (void)node;
    match->op = PEN_OP(gelu);
    match->attributes[match->attribute_count++] = pen_attribute_text("approximate", "tanh");
    return polynomial_is(into, 0, k, k * 0.044715);
}

static bool gelu_is_sigmoid(pen_fuse_match *match, pen_node_id node, const gelu_polynomial *into) {
    (void)node;
    match->op = PEN_OP(swish);
    match->attributes[match->attribute_count++] = pen_attribute_float("alpha", into->of[1]);
    return into->of[1] != 0 && polynomial_is(into, 0, into->of[1], 0);
}

// hard_sigmoid: x / 6 + 1/2, held between 0 and 1.
static bool gelu_is_hard(pen_fuse_match *match, pen_node_id id, const gelu_polynomial *into) {
    const pen_node *node = pen_graph_node(match->graph, id);
    match->op = PEN_OP(hard_swish);
    return pen_fuse_near(pen_node_float(node, "alpha"), 1.0 / 6) &&
           pen_node_float(node, "beta") == 0.5 && polynomial_is(into, 0, 1, 0);
}

// The same as 1/6 of x + 3, held between 0 and 6.
static bool gelu_is_clip(pen_fuse_match *match, pen_node_id node, const gelu_polynomial *into) {
    double low, high;
    match->op = PEN_OP(hard_swish);
    return pen_fuse_number(match, pen_fuse_input(match, node, 1), &low) && low == 0 &&
           pen_fuse_number(match, pen_fuse_input(match, node, 2), &high) && high == 6 &&
           polynomial_is(into, 3, 1, 0);
}

static const gelu_gate gelu_gates[] = {
    {PEN_KNOWN_erf, true, 0.5, gelu_is_erf},
    {PEN_KNOWN_tanh, true, 0.5, gelu_is_tanh},
    {PEN_KNOWN_sigmoid, false, 1, gelu_is_sigmoid},
    {PEN_KNOWN_hard_sigmoid, false, 1, gelu_is_hard},
    {PEN_KNOWN_clip, false, 1.0 / 6, gelu_is_clip},
};

static const gelu_gate *gelu_gate_of(const pen_fuse_match *match, pen_node_id node) {
    for (size_t i = 0; i < sizeof gelu_gates / sizeof *gelu_gates; i++) {
        if (pen_fuse_is(match, node, pen_op_known(gelu_gates[i].op))) return &gelu_gates[i];
    }
    return NULL;
}

// Exporters write GELU in different orders: products and sums are followed whichever side they
// stand on.
bool pen_fuse_gelu(pen_fuse_match *match, pen_node_id anchor) {
    const gelu_gate *gate = gelu_gate_of(match, anchor);
    if (gate == NULL) return false;
    pen_fuse_join(match, anchor);
    pen_value_id value = pen_fuse_output(match, anchor);
    if (gate->adds_one) {
        pen_value_id read;
        const pen_node_id sum = pen_fuse_reader(match, value, &read);
        if (!pen_fuse_is(match, sum, PEN_OP(add))) return false;
        if (!pen_fuse_is_number(match, pen_fuse_other(match, sum, read), 1)) return false;
        pen_fuse_join(match, sum);
        value = pen_fuse_output(match, sum);
    }
    gelu_product product;
    gelu_polynomial into;
    if (!product_follow(match, value, gate->number, &product)) return false;
    if (!polynomial_of(match, pen_fuse_input(match, anchor, 0), product.x, 0, &into)) return false;
    if (!gate->is(match, anchor, &into)) return false;
    match->inputs[match->input_count++] = product.x;
    return pen_tensor_type_equal(pen_fuse_type(match, product.x),
                                 pen_fuse_type(match, pen_fuse_output(match, match->last)));
}
