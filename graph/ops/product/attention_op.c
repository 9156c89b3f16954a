// Scaled dot product attention, of several heads at once, without the square of scores:
//
//   attention(q, k, v, mask; scale, causal, …) → y
//     s = scale * q k^T + mask;  p = softmax of each row of s;  y = p v
//   attention_backward(dy, q, k, v, y, mask; as above) → dq, dk, dv, dmask
//     dv = p^T dy;  dp = dy v^T;  ds = p (dp - sum of dy y of each row)
//     dq = scale * ds k;  dk = scale * ds^T q;  dmask = ds, summed over what was broadcast
//   (Dao et al., "FlashAttention", NeurIPS 2022, appendix B; but p is made from s again, for a
//   logarithm of the sums is not exact enough where a mask hides a whole row by a large number)
//
// q is (…, heads, rows, numbers), k and v likewise; they may have fewer heads, which as many heads
// of q as come on one share in order. An operand with the attribute `q_by_row` (k, v, y) lies as
// (…, rows, heads, numbers) instead, as products with weight matrices make it. A mask broadcasts to
// (…, heads, rows of q, rows of k): floating ones are added to the scores; where boolean
// ones are false, the score is `fill` (-inf by default) whatever q and k are, and ds is 0. So a row
// that is hidden wholly weighs all values the same, or gives no numbers with -inf. With `causal`,
// row i of q sees rows 0 to i of k.
//
// With `dropout`, what multiplies v is p with elements set to 0 and the others divided by
// 1 - dropout, as by a dropout (graph/ops/elementwise/dropout_op.c) of p of the shape (…, heads,
// rows of q, rows of k), `seed` and the name `stream`: each pass draws the numbers again, none are
// kept.
//
// flops = rows * keys * (2 * depth + 2 * value depth + 5), half of it with `causal`; backward,
// where p is computed again, rows * keys * (6 * depth + 4 * value depth + 6).

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/ops/product/attention_geometry.h"
#include "graph/ops/shared/infer_checks.h"

enum { ATTENTION_MASK = 3, ATTENTION_BACKWARD_MASK = 5 };

static pen_status attention_check_dropout(const pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const double ratio = pen_node_float(node, "dropout");
    if (!(ratio >= 0 && ratio < 1)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "dropout is %g; it may be 0 or more, and below 1", ratio);
    }
    if (ratio == 0 || pen_node_has(node, "stream")) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "dropout is %g, but no stream of random numbers is named", ratio);
}

static pen_status attention_check_fill(const pen_infer_context *context, uint32_t mask) {
    const pen_node *node = pen_infer_node(context);
    if (!pen_node_has(node, "fill")) return PEN_OK;
    const double fill = pen_node_float(node, "fill");
    if (!(fill < (double)INFINITY)) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "fill is %g; it may be -inf or a finite number", fill);
    }
    if (pen_infer_has_input(context, mask) && pen_infer_input(context, mask)->element == PEN_BOOL) {
        return PEN_OK;
    }
    return pen_infer_error(
        context, PEN_INVALID_INPUT, "fill is given, which needs a boolean mask; %s",
        pen_infer_has_input(context, mask) ? "this one is added to the scores" : "there is none");
}

// Checks attributes, operands first … first + 2, and the mask.
static pen_status attention_check_operands(const pen_infer_context *context, uint32_t first,
                                           uint32_t mask) {
    PEN_TRY(attention_check_dropout(context));
    PEN_TRY(attention_check_fill(context, mask));
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    for (uint32_t i = 1; i < first + 3; i++) {
        PEN_TRY(pen_infer_check_same_element(context, i, 0));
    }
    if (!pen_infer_has_input(context, mask)) return PEN_OK;
    if (pen_infer_input(context, mask)->element == PEN_BOOL) return PEN_OK;
    return pen_infer_check_same_element(context, mask, 0);
}

static pen_status attention_infer(pen_infer_context *context) {
    PEN_TRY(attention_check_operands(context, 0, ATTENTION_MASK));
    pen_attention_geometry geometry;
    PEN_TRY(pen_infer_wrap(context, pen_attention_geometry_of(pen_infer_graph(context),
                                                              pen_infer_node(context), 0,
                                                              ATTENTION_MASK, &geometry)));
    const pen_element_type element = pen_infer_input(context, 0)->element;
    const pen_tensor_type y = {element, geometry.output};
    return pen_infer_set(context, 0, &y);
}

static pen_status attention_backward_infer(pen_infer_context *context) {
    PEN_TRY(attention_check_operands(context, 1, ATTENTION_BACKWARD_MASK));
    pen_attention_geometry geometry;
    PEN_TRY(pen_infer_wrap(context, pen_attention_geometry_of(pen_infer_graph(context),
                                                              pen_infer_node(context), 1,
                                                              ATTENTION_BACKWARD_MASK, &geometry)));
    PEN_TRY(pen_infer_check_same_element(context, 4, 0));
    PEN_TRY(pen_infer_check_shape(context, 0, &geometry.output));
    PEN_TRY(pen_infer_check_shape(context, 4, &geometry.output));
    for (uint32_t i = 0; i < 3; i++) {
        PEN_TRY(pen_infer_set(context, i, pen_infer_input(context, i + 1)));
    }
    if (!pen_infer_has_output(context, 3)) return PEN_OK;
    if (!geometry.has_mask) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the gradient of a mask needs one");
    }
    return pen_infer_set(context, 3, pen_infer_input(context, ATTENTION_BACKWARD_MASK));
}

// One node makes all gradients, because they share the scores; the mask's is made only if it is
// needed.
static pen_status attention_gradient(pen_gradient_context *context) {
    uint32_t for_input = 0;
    while (!pen_gradient_needed(context, for_input)) {
        for_input++;
    }
    const pen_value_id inputs[] = {
        pen_gradient_of_output(context, 0), pen_gradient_input(context, 0),
        pen_gradient_input(context, 1),     pen_gradient_input(context, 2),
        pen_gradient_output(context, 0),    pen_gradient_input(context, ATTENTION_MASK)};
    const bool mask_is_needed = pen_gradient_needed(context, ATTENTION_MASK);
    const pen_gradient_emission emission = {
        .for_input = for_input,
        .inputs = inputs,
        .input_count = 6,
        .repeats_attributes = true,
        .output_count = mask_is_needed ? 4 : 3,
    };
    pen_value_id outputs[4];
    PEN_TRY(pen_gradient_emit(context, &emission, outputs));
    for (uint32_t i = 0; i < emission.output_count; i++) {
        if (pen_gradient_needed(context, i)) pen_gradient_set(context, i, outputs[i]);
    }
    return PEN_OK;
}

static uint64_t attention_count_flops(const pen_graph *graph, const pen_node *node, uint32_t first,
                                      uint64_t of_depth, uint64_t of_value_depth, uint64_t rest) {
    pen_attention_geometry g;
    const pen_status status =
        pen_attention_geometry_of(graph, node, first, (uint32_t)node->input_count, &g);
    PEN_ASSERT(status == PEN_OK); // the shape rule passed
    const uint64_t squares =
        (uint64_t)(g.outer_count * g.head_count * g.query_count) * (uint64_t)g.key_count;
    const uint64_t flops =
        squares * (of_depth * (uint64_t)g.depth + of_value_depth * (uint64_t)g.value_depth + rest);
    return pen_node_int(node, "causal") != 0 ? flops / 2 : flops;
}

static uint64_t attention_flops(const pen_graph *graph, pen_node_id node) {
    return attention_count_flops(graph, pen_graph_node(graph, node), 0, 2, 2, 5);
}

static uint64_t attention_backward_flops(const pen_graph *graph, pen_node_id node) {
    return attention_count_flops(graph, pen_graph_node(graph, node), 1, 6, 4, 6);
}

// ---- how positions of y read the operands

// Scores that this much or more is taken from, or that are this low, do not count: their
// exponentials are 0.
#define ATTENTION_HIDDEN (-1e4)

// Whether a mask hides the score at `place`, whatever it is.
static bool attention_hides(const pen_node *node, const pen_value *mask, int64_t place) {
    const char *data = mask->data;
    if (mask->type.element == PEN_BOOL) {
        return data[place] == 0 && pen_attention_fill(node) <= ATTENTION_HIDDEN;
    }
    float added;
    memcpy(&added, data + (size_t)place * sizeof added, sizeof added);
    return (double)added <= ATTENTION_HIDDEN;
}

// Whether a constant mask hides from each row what comes behind it, and not all before that.
static bool attention_mask_is_causal(const pen_graph *graph, const pen_node *node) {
    if (node->input_count <= ATTENTION_MASK || !pen_value_is(node->inputs[ATTENTION_MASK])) {
        return false;
    }
    const pen_value *mask = pen_graph_value(graph, node->inputs[ATTENTION_MASK]);
    const pen_shape *shape = &mask->type.shape;
    const bool is_known = mask->kind == PEN_VALUE_CONSTANT && mask->data != NULL &&
                          (mask->type.element == PEN_BOOL || mask->type.element == PEN_FLOAT32);
    if (!is_known || shape->rank < 2) return false;
    const int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    if (rows < 2 || rows != columns) return false;
    for (int64_t at = 0; at < pen_shape_element_count(shape); at += columns) {
        const int64_t row = at / columns % rows;
        bool sees = false;
        for (int64_t c = 0; c < columns; c++) {
            const bool hides = attention_hides(node, mask, at + c);
            if (c > row && !hides) return false;
            sees = sees || (c <= row && !hides);
        }
        if (!sees) return false;
    }
    return true;
}

// Where rows stand in an operand, or in y.
static uint32_t attention_row_axis(const pen_graph *graph, const pen_node *node, pen_value_id value,
                                   const char *by_row) {
    return pen_value_type(graph, value)->shape.rank - (pen_node_int(node, by_row) != 0 ? 3 : 2);
}

// A row of y reads its row of q and of the mask, and of k and v those that it sees.
static pen_axis_link attention_axis(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                    uint32_t input) {
    static const char *const by_row[] = {"q_by_row", "k_by_row", "v_by_row"};
    const pen_value_id operand = node->inputs[input];
    if (axis != attention_row_axis(graph, node, node->outputs[0], "y_by_row") ||
        pen_node_float(node, "dropout") > 0) {
        return pen_axis_unknown();
    }
    if (input == ATTENTION_MASK) {
        return pen_axis_broadcast(&pen_value_type(graph, operand)->shape, 2, 0);
    }
    const uint32_t rows = attention_row_axis(graph, node, operand, by_row[input]);
    if (input == 0) return pen_axis_same(rows);
    const bool looks_back =
        pen_node_int(node, "causal") != 0 || attention_mask_is_causal(graph, node);
    return looks_back ? (pen_axis_link){PEN_READS_EARLIER, rows} : pen_axis_all();
}

static const pen_attribute_schema attention_attributes[] = {
    PEN_FLOAT_OR("scale", 1),   PEN_INT_OR("causal", 0),   PEN_MAY("fill", FLOAT),
    PEN_FLOAT_OR("dropout", 0), PEN_MAY("seed", INT),      PEN_MAY("stream", TEXT),
    PEN_INT_OR("q_by_row", 0),  PEN_INT_OR("k_by_row", 0), PEN_INT_OR("v_by_row", 0),
    PEN_INT_OR("y_by_row", 0),
};

static const pen_op attention_ops[] = {
    {"attention", "softmax(scale * q k^T + mask) v", PEN_TAKES(3, 4), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(attention_attributes), .infer = attention_infer, .gradient = attention_gradient,
     .flops = attention_flops, .axis_rule = attention_axis},
    {"attention_backward", "gradients of q, k, v and the mask from (dy, q, k, v, y, mask)",
     PEN_TAKES(5, 6), PEN_GIVES(3, 4), PEN_ATTRIBUTES(attention_attributes),
     .infer = attention_backward_infer, .flops = attention_backward_flops},
};

PEN_OP_FAMILY(attention);
