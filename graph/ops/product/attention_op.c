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

static const pen_attribute_schema attention_attributes[] = {
    PEN_FLOAT_OR("scale", 1),   PEN_INT_OR("causal", 0),   PEN_MAY("fill", FLOAT),
    PEN_FLOAT_OR("dropout", 0), PEN_MAY("seed", INT),      PEN_MAY("stream", TEXT),
    PEN_INT_OR("q_by_row", 0),  PEN_INT_OR("k_by_row", 0), PEN_INT_OR("v_by_row", 0),
    PEN_INT_OR("y_by_row", 0),
};

static const pen_op attention_ops[] = {
    {"attention", "softmax(scale * q k^T + mask) v", PEN_TAKES(3, 4), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(attention_attributes), .infer = attention_infer, .gradient = attention_gradient,
     .flops = attention_flops},
    {"attention_backward", "gradients of q, k, v and the mask from (dy, q, k, v, y, mask)",
     PEN_TAKES(5, 6), PEN_GIVES(3, 4), PEN_ATTRIBUTES(attention_attributes),
     .infer = attention_backward_infer, .flops = attention_backward_flops},
};

PEN_OP_FAMILY(attention);
