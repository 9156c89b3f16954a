#include "graph/ops/elementwise/elementwise_rule.h"

#include "graph/graph.h"
#include "graph/ops/shared/shape_rule.h"

static pen_status infer_map(pen_infer_context *context, uint32_t elements) {
    PEN_TRY(pen_infer_check_element(context, 0, elements));
    return pen_infer_set(context, 0, pen_infer_input(context, 0));
}

pen_status pen_infer_float_map(pen_infer_context *context) {
    return infer_map(context, PEN_ELEMENTS_FLOAT);
}

pen_status pen_infer_signed_map(pen_infer_context *context) {
    return infer_map(context, PEN_ELEMENTS_SIGNED);
}

pen_status pen_infer_number_map(pen_infer_context *context) {
    return infer_map(context, PEN_ELEMENTS_NUMBER);
}

pen_status pen_infer_alike(pen_infer_context *context) {
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_tensor_type *type = pen_infer_input(context, 0);
    for (uint32_t i = 1; i < pen_infer_node(context)->input_count; i++) {
        PEN_TRY(pen_infer_check_shape(context, i, &type->shape));
    }
    return pen_infer_set(context, 0, type);
}

pen_status pen_infer_broadcast(const pen_infer_context *context, uint32_t first,
                               pen_shape *out_shape) {
    *out_shape = pen_infer_input(context, first)->shape;
    for (uint32_t i = first + 1; i < pen_infer_node(context)->input_count; i++) {
        if (!pen_infer_has_input(context, i)) {
            return pen_infer_error(context, PEN_INVALID_INPUT, "input %u is left out", i);
        }
        const pen_shape so_far = *out_shape;
        const pen_shape *next = &pen_infer_input(context, i)->shape;
        PEN_TRY(pen_infer_wrap(context, pen_shape_broadcast(&so_far, next, out_shape)));
    }
    return PEN_OK;
}

pen_status pen_infer_broadcasts_to(const pen_infer_context *context, uint32_t input,
                                   const pen_shape *shape) {
    const pen_shape *found = &pen_infer_input(context, input)->shape;
    pen_shape common;
    PEN_TRY(pen_infer_wrap(context, pen_shape_broadcast(found, shape, &common)));
    if (pen_shape_equal(&common, shape)) return PEN_OK;
    char found_text[PEN_SHAPE_TEXT_BYTES], shape_text[PEN_SHAPE_TEXT_BYTES];
    return pen_infer_error(
        context, PEN_INVALID_INPUT, "input %u is %s, which does not broadcast to %s", input,
        pen_shape_format(found, found_text), pen_shape_format(shape, shape_text));
}

pen_status pen_infer_same_elements(const pen_infer_context *context, uint32_t first,
                                   uint32_t elements) {
    PEN_TRY(pen_infer_check_element(context, first, elements));
    for (uint32_t i = first + 1; i < pen_infer_node(context)->input_count; i++) {
        if (!pen_infer_has_input(context, i)) continue;
        PEN_TRY(pen_infer_check_same_element(context, i, first));
    }
    return PEN_OK;
}

static uint64_t value_elements(const pen_graph *graph, pen_value_id value) {
    return (uint64_t)pen_shape_element_count(&pen_value_type(graph, value)->shape);
}

uint64_t pen_flops_of_output(const pen_graph *graph, pen_node_id node) {
    return value_elements(graph, pen_graph_node(graph, node)->outputs[0]);
}

uint64_t pen_flops_of_input(const pen_graph *graph, pen_node_id node) {
    return value_elements(graph, pen_graph_node(graph, node)->inputs[0]);
}
