// The way back from a maximum pool whose indices were kept.
//
//   max_unpool(x, indices, output_shape; kernel_shape, pads, strides)
//   max_unpool_backward(dy, indices; shape, …)     dx: dy at the places where x was put
//
// Indices count the elements of the tensor that the pool had, as its sizes and the attributes
// give it; with output_shape (a constant) that tensor lies at the beginning of a larger one. They
// come from data, and are checked when the kernel runs.

#include <stddef.h>

#include "graph/op_table.h"
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
    const pen_node *node = pen_gradient_node(context);
    const pen_attribute_given *attributes;
    uint32_t count;
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    PEN_TRY(pen_gradient_attributes(context, &attributes, &count));
    const pen_value_id operands[] = {pen_gradient_of_output(context, 0), node->inputs[1],
                                     pen_gradient_input(context, 2)};
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = "max_unpool_backward",
                                              .suffix = "backward",
                                              .for_input = 0,
                                              .inputs = operands,
                                              .input_count = node->input_count,
                                              .attributes = attributes,
                                              .attribute_count = count,
                                          });
}

static const pen_attribute_schema unpool_attributes[] = {
    {.name = "kernel_shape", .kind = PEN_ATTRIBUTE_INTS, .required = true},
    {.name = "pads", .kind = PEN_ATTRIBUTE_INTS},
    {.name = "strides", .kind = PEN_ATTRIBUTE_INTS},
};

#define UNPOOL(op, does, rule, gradient_rule)                                                      \
    {                                                                                              \
        .name = #op, .summary = does, .input_min = 2, .input_max = 3, .output_min = 1,             \
        .output_max = 1, .attributes = unpool_attributes, .attribute_count = 3,                    \
        .constant_inputs = 1u << 2, .infer = rule, .gradient = gradient_rule,                      \
        .bytes = pen_bytes_moved                                                                   \
    }

static const pen_op unpool_ops[] = {
    UNPOOL(max_unpool, "elements put back where a maximum pool found them, zeros elsewhere",
           max_unpool_infer, max_unpool_gradient),
    UNPOOL(max_unpool_backward, "gradient of max_unpool", max_unpool_backward_infer, NULL),
};

const pen_op_family pen_unpool_family = {"unpool", unpool_ops,
                                         sizeof unpool_ops / sizeof *unpool_ops};
