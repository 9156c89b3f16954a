// Sums of products by an equation (graph/ops/product/einsum_equation.h).
//
//   einsum(a, b, …; equation)
//
// The gradient of an operand is again an einsum, of dy and the other operands. Where the operand
// has dimensions that none of those has, ones stand for them; where it has one twice (a diagonal),
// an identity matrix ties two labels together.
//
// flops = operands * product of the sizes of all labels: what the plain loops do. As one matrix
// product (graph/passes/fuse/lower_einsum.h) it is as much.

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/product/einsum_equation.h"
#include "graph/ops/shared/shape_rule.h"

static pen_status einsum_infer(pen_infer_context *context) {
    pen_einsum einsum;
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_NUMBER));
    PEN_TRY(pen_infer_wrap(
        context, pen_einsum_of(pen_infer_graph(context), pen_infer_node(context), &einsum)));
    const pen_tensor_type type = {pen_infer_input(context, 0)->element,
                                  pen_einsum_shape(&einsum, &einsum.output)};
    return pen_infer_set(context, 0, &type);
}

static uint64_t einsum_flops(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    pen_einsum einsum;
    const pen_status status = pen_einsum_of(graph, node, &einsum);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the shape rule has said it");
        return 0;
    }
    double flops = node->input_count;
    for (uint32_t label = 0; label < PEN_EINSUM_LABELS; label++) {
        if (einsum.sizes[label] > 0) flops *= (double)einsum.sizes[label];
    }
    return flops < 0x1p62 ? (uint64_t)flops : UINT64_C(1) << 62;
}

// ---- gradient

// The einsum that gives the gradient of one operand.
typedef struct einsum_back {
    pen_gradient_context *context;
    uint32_t for_input;
    pen_einsum einsum; // the forward one
    pen_einsum_term terms[PEN_EINSUM_OPERANDS_LIMIT];
    pen_value_id operands[PEN_EINSUM_OPERANDS_LIMIT];
    uint32_t count;
    pen_einsum_term target; // the operand's labels, made different, without its repeated sizes of 1
} einsum_back;

static pen_status back_add(einsum_back *back, const pen_einsum_term *term, pen_value_id operand) {
    if (back->count == PEN_EINSUM_OPERANDS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "einsum '%s' has too many operands for a gradient",
                         pen_gradient_node(back->context)->name);
    }
    back->terms[back->count] = *term;
    back->operands[back->count++] = operand;
    return PEN_OK;
}

static bool term_has(const pen_einsum_term *term, uint8_t label) {
    return memchr(term->labels, label, term->rank) != NULL;
}

static bool back_has(const einsum_back *back, uint8_t label) {
    for (uint32_t i = 0; i < back->count; i++) {
        if (term_has(&back->terms[i], label)) return true;
    }
    return false;
}

// Ones along a label that is in the operand alone.
static pen_status back_add_ones(einsum_back *back, uint8_t label) {
    const pen_tensor_type *like = pen_value_type(
        pen_gradient_graph(back->context), pen_gradient_input(back->context, back->for_input));
    const pen_attribute_given attributes[] = {
        pen_attribute_text("element", pen_element_name(like->element)),
        pen_attribute_float("value", 1),
    };
    const pen_einsum_term term = {1, {label}};
    pen_value_id shape, ones;
    PEN_TRY(pen_gradient_ints(back->context, "ones_shape", 1, &back->einsum.sizes[label], &shape));
    const pen_gradient_emission emission = {.op_name = "constant_of_shape",
                                            .suffix = "ones",
                                            .for_input = back->for_input,
                                            .inputs = &shape,
                                            .input_count = 1,
                                            .attributes = attributes,
                                            .attribute_count = 2};
    PEN_TRY(pen_gradient_emit(back->context, &emission, &ones));
    return back_add(back, &term, ones);
}

// An identity matrix of `label` and `twin`.
static pen_status back_add_identity(einsum_back *back, uint8_t label, uint8_t twin) {
    const pen_element_type element =
        pen_value_type(pen_gradient_graph(back->context),
                       pen_gradient_input(back->context, back->for_input))
            ->element;
    const int64_t size = back->einsum.sizes[label];
    const pen_tensor_type type = pen_tensor_type_make(element, 2, (const int64_t[]){size, size});
    const pen_einsum_term term = {2, {label, twin}};
    pen_value_id zeros, identity;
    PEN_TRY(pen_gradient_zeros(back->context, back->for_input, &type, &zeros));
    const pen_gradient_emission emission = {.op_name = "eye_like",
                                            .suffix = "identity",
                                            .for_input = back->for_input,
                                            .inputs = &zeros,
                                            .input_count = 1};
    PEN_TRY(pen_gradient_emit(back->context, &emission, &identity));
    return back_add(back, &term, identity);
}

// dy and the other operands.
static pen_status back_start(einsum_back *back) {
    const pen_einsum *einsum = &back->einsum;
    PEN_TRY(back_add(back, &einsum->output, pen_gradient_of_output(back->context, 0)));
    for (uint32_t i = 0; i < einsum->operand_count; i++) {
        if (i == back->for_input) continue;
        PEN_TRY(back_add(back, &einsum->operands[i], pen_gradient_input(back->context, i)));
    }
    return PEN_OK;
}

static pen_status back_aim(einsum_back *back) {
    const pen_einsum_term *own = &back->einsum.operands[back->for_input];
    const pen_shape *shape = &pen_value_type(pen_gradient_graph(back->context),
                                             pen_gradient_input(back->context, back->for_input))
                                  ->shape;
    for (uint32_t d = 0; d < own->rank; d++) {
        const uint8_t label = own->labels[d];
        if (shape->dims[d] == 1 && back->einsum.sizes[label] != 1) continue; // it was repeated
        if (!term_has(&back->target, label)) {
            if (!back_has(back, label)) PEN_TRY(back_add_ones(back, label));
            back->target.labels[back->target.rank++] = label;
            continue;
        }
        const uint8_t twin = (uint8_t)(PEN_EINSUM_LABELS + d);
        PEN_TRY(back_add_identity(back, label, twin));
        back->target.labels[back->target.rank++] = twin;
    }
    return PEN_OK;
}

// The gradient of a product of sums is such a product, with the result's gradient in place of the
// operand.
static pen_status einsum_gradient_of(pen_gradient_context *context, uint32_t input) {
    einsum_back back = {.context = context, .for_input = input};
    pen_graph *graph = pen_gradient_graph(context);
    char equation[PEN_EINSUM_TEXT_BYTES], suffix[32];
    PEN_TRY(pen_einsum_of(graph, pen_gradient_node(context), &back.einsum));
    PEN_TRY(back_start(&back));
    PEN_TRY(back_aim(&back));
    PEN_TRY(pen_einsum_write(back.terms, back.count, &back.target, equation));
    snprintf(suffix, sizeof suffix, "backward_%u", input);
    const pen_attribute_given attribute = pen_attribute_text("equation", equation);
    const pen_gradient_emission emission = {.op_name = "einsum",
                                            .suffix = suffix,
                                            .for_input = input,
                                            .inputs = back.operands,
                                            .input_count = back.count,
                                            .attributes = &attribute,
                                            .attribute_count = 1};
    pen_value_id gradient, wanted;
    PEN_TRY(pen_gradient_emit(context, &emission, &gradient));
    const pen_shape shape = pen_value_type(graph, pen_gradient_input(context, input))->shape;
    if (!pen_shape_equal(&shape, &pen_value_type(graph, gradient)->shape)) {
        PEN_TRY(pen_gradient_ints(context, "shape", shape.rank, shape.dims, &wanted));
        PEN_TRY(pen_gradient_apply(context, input, "reshape", gradient, wanted, &gradient));
    }
    pen_gradient_set(context, input, gradient);
    return PEN_OK;
}

static pen_status einsum_gradient(pen_gradient_context *context) {
    for (uint32_t i = 0; i < pen_gradient_node(context)->input_count; i++) {
        if (pen_gradient_needed(context, i)) PEN_TRY(einsum_gradient_of(context, i));
    }
    return PEN_OK;
}

static const pen_attribute_schema einsum_attributes[] = {
    PEN_MUST("equation", TEXT),
};

static const pen_op einsum_ops[] = {
    {"einsum", "sums of products by an equation", PEN_TAKES(1, PEN_VARIADIC), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(einsum_attributes), .infer = einsum_infer, .gradient = einsum_gradient,
     .flops = einsum_flops},
};

PEN_OP_FAMILY(einsum);
