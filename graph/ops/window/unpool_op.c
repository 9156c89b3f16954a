// The way back from a maximum pool whose indices were kept.
//
//   max_unpool(x, indices, output_shape; kernel_shape, pads, strides)
//   max_unpool_backward(dy, indices; shape, …)     dx: dy at the places where x was put
//
// Indices count the elements of the tensor that the pool had, as its sizes and the attributes
// give it; with output_shape (a constant) that tensor lies at the beginning of a larger one. They
// come from data, and are checked when the kernel runs.

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"
#include "graph/ops/window/unpool_shape.h"

static pen_status unpool_check(const pen_infer_context *context, const pen_shape *x,
                               pen_unpool_shape *out_shape) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_element(context, 1, PEN_ELEMENT_BIT(PEN_INT64)));
    PEN_TRY(pen_infer_check_shape(context, 1, x));
    return pen_infer_wrap(context, pen_unpool_shape_of(pen_infer_graph(context),
                                                       pen_infer_node(context), x, out_shape));
}

static pen_status max_unpool_infer(pen_infer_context *context) {
    pen_unpool_shape shape;
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(unpool_check(context, &type.shape, &shape));
    type.shape = shape.output;
    return pen_infer_set(context, 0, &type);
}

static pen_status max_unpool_backward_infer(pen_infer_context *context) {
    pen_unpool_shape shape;
    const pen_tensor_type type = {pen_infer_input(context, 0)->element,
                                  pen_infer_input(context, 1)->shape};
    PEN_TRY(unpool_check(context, &type.shape, &shape));
    PEN_TRY(pen_infer_check_shape(context, 0, &shape.output));
    return pen_infer_set(context, 0, &type);
}

static pen_status max_unpool_gradient(pen_gradient_context *context) {
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_value_id operands[] = {pen_gradient_of_output(context, 0),
                                     pen_gradient_input(context, 1),
                                     pen_gradient_input(context, 2)};
    return pen_gradient_emit_backward(context, pen_gradient_node(context)->input_count, operands);
}

static const pen_attribute_schema unpool_attributes[] = {
    PEN_MUST("kernel_shape", INTS),
    PEN_MAY("pads", INTS),
    PEN_MAY("strides", INTS),
};

#define UNPOOL(op, does, rule, gradient_rule)                                                      \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(2, 3), PEN_GIVES(1, 1),                            \
        PEN_ATTRIBUTES(unpool_attributes), .constant_inputs = 1u << 2, .infer = rule,              \
        .gradient = gradient_rule, .bytes = pen_bytes_moved, .work = PEN_WORK_POOLING              \
    }

static const pen_op unpool_ops[] = {
    UNPOOL(max_unpool, "elements put back where a maximum pool found them, zeros elsewhere",
           max_unpool_infer, max_unpool_gradient),
    UNPOOL(max_unpool_backward, "gradient of max_unpool", max_unpool_backward_infer, NULL),
};

PEN_OP_FAMILY(unpool);
