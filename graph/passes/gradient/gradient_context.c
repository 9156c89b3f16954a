#include "graph/passes/gradient/gradient_context.h"

#include <stdio.h>

pen_graph *pen_gradient_graph(pen_gradient_context *context) {
    return context->graph;
}

const pen_node *pen_gradient_node(const pen_gradient_context *context) {
    return pen_graph_node(context->graph, context->node);
}

pen_value_id pen_gradient_input(const pen_gradient_context *context, uint32_t input) {
    const pen_node *node = pen_gradient_node(context);
    return input < node->input_count ? node->inputs[input] : PEN_VALUE_NONE;
}

pen_value_id pen_gradient_output(const pen_gradient_context *context, uint32_t output) {
    const pen_node *node = pen_gradient_node(context);
    return output < node->output_count ? node->outputs[output] : PEN_VALUE_NONE;
}

pen_value_id pen_gradient_of_output(const pen_gradient_context *context, uint32_t output) {
    const pen_node *node = pen_gradient_node(context);
    return output < node->output_count ? context->of_output[output] : PEN_VALUE_NONE;
}

bool pen_gradient_needed(const pen_gradient_context *context, uint32_t input) {
    const pen_value_id value = pen_gradient_input(context, input);
    return pen_value_is(value) && context->needed[value.index];
}

void pen_gradient_set(pen_gradient_context *context, uint32_t input, pen_value_id gradient) {
    const pen_tensor_type *expected =
        pen_value_type(context->graph, pen_gradient_input(context, input));
    PEN_ASSERT(pen_tensor_type_equal(expected, pen_value_type(context->graph, gradient)));
    context->of_input[input] = gradient;
}

pen_status pen_gradient_emit(pen_gradient_context *context, const pen_gradient_emission *emission,
                             pen_value_id *out_outputs) {
    const pen_node *forward = pen_gradient_node(context);
    const char *suffix = emission->suffix != NULL ? emission->suffix : emission->op_name;
    const char *name;
    PEN_TRY(
        pen_arena_format(pen_graph_arena(context->graph), &name, "%s/%s", forward->name, suffix));
    const pen_value_id input = pen_gradient_input(context, emission->for_input);
    const bool is_weight =
        pen_value_is(input) && pen_graph_value(context->graph, input)->kind == PEN_VALUE_PARAMETER;
    pen_node_spec spec = pen_node_spec_make(emission->op_name, name);
    spec.role = is_weight ? PEN_ROLE_BACKWARD_WEIGHT : PEN_ROLE_BACKWARD_INPUT;
    spec.source = forward->source;
    spec.gradient_of = context->node;
    spec.inputs = emission->inputs;
    spec.input_count = emission->input_count;
    spec.attributes = emission->attributes;
    spec.attribute_count = emission->attribute_count;
    spec.output_count = emission->output_count == 0 ? 1 : emission->output_count;
    pen_node_id node;
    PEN_TRY(pen_graph_add_node(context->graph, &spec, &node));
    const pen_node *added = pen_graph_node(context->graph, node);
    for (uint32_t i = 0; i < spec.output_count; i++) {
        PEN_ASSERT(pen_value_type(context->graph, added->outputs[i])->element !=
                   PEN_ELEMENT_UNKNOWN);
        out_outputs[i] = added->outputs[i];
    }
    return PEN_OK;
}

// The axes over which a gradient of shape `from` is summed to have shape `to`.
static uint32_t gradient_broadcast_axes(const pen_shape *from, const pen_shape *to, int64_t *axes) {
    uint32_t count = 0;
    const uint32_t extra = from->rank - to->rank;
    for (uint32_t d = 0; d < from->rank; d++) {
        const bool repeated = d < extra || (to->dims[d - extra] == 1 && from->dims[d] != 1);
        if (repeated) axes[count++] = d;
    }
    return count;
}

pen_status pen_gradient_unbroadcast(pen_gradient_context *context, uint32_t for_input,
                                    pen_value_id gradient, pen_value_id *out_output) {
    pen_graph *graph = context->graph;
    const pen_shape from = pen_value_type(graph, gradient)->shape;
    const pen_shape to = pen_value_type(graph, pen_gradient_input(context, for_input))->shape;
    *out_output = gradient;
    if (pen_shape_equal(&from, &to)) return PEN_OK;
    int64_t axes[PEN_RANK_LIMIT];
    const uint32_t axis_count = gradient_broadcast_axes(&from, &to, axes);
    const char *forward_name = pen_gradient_node(context)->name;
    if (axis_count > 0) {
        const char *name;
        PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/axes", forward_name));
        pen_value_id operands[2] = {gradient, PEN_VALUE_NONE};
        PEN_TRY(pen_graph_constant_ints(graph, name, axis_count, axes, &operands[1]));
        const pen_attribute_given keepdims = pen_attribute_int("keepdims", 1);
        PEN_TRY(pen_gradient_emit(context,
                                  &(pen_gradient_emission){.op_name = "reduce_sum",
                                                           .suffix = "unbroadcast",
                                                           .for_input = for_input,
                                                           .inputs = operands,
                                                           .input_count = 2,
                                                           .attributes = &keepdims,
                                                           .attribute_count = 1},
                                  out_output));
    }
    if (from.rank == to.rank) return PEN_OK;
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/shape", forward_name));
    pen_value_id operands[2] = {*out_output, PEN_VALUE_NONE};
    PEN_TRY(pen_graph_constant_ints(graph, name, to.rank, to.dims, &operands[1]));
    return pen_gradient_emit(context,
                             &(pen_gradient_emission){.op_name = "reshape",
                                                      .suffix = "unbroadcast_shape",
                                                      .for_input = for_input,
                                                      .inputs = operands,
                                                      .input_count = 2},
                             out_output);
}

pen_status pen_gradient_attributes(pen_gradient_context *context,
                                   const pen_attribute_given **out_attributes,
                                   uint32_t *out_count) {
    const pen_node *node = pen_gradient_node(context);
    pen_attribute_given *given;
    PEN_TRY(PEN_NEW(pen_graph_arena(context->graph), node->op->attribute_count, &given));
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        if (!node->attributes[i].present) continue;
        given[count++] = (pen_attribute_given){node->op->attributes[i].name,
                                               node->op->attributes[i].kind, node->attributes[i]};
    }
    *out_attributes = given;
    *out_count = count;
    return PEN_OK;
}
