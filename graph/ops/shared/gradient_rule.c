#include "graph/ops/shared/gradient_rule.h"

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/shared/gradient_context.h"

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

// Every attribute of the forward node that is present, and then `more` of others.
static pen_status gradient_attributes(const pen_gradient_context *context,
                                      const pen_gradient_emission *emission, pen_node_spec *spec) {
    const pen_node *node = pen_gradient_node(context);
    const uint32_t more = emission->attribute_count;
    pen_attribute_given *given;
    PEN_TRY(PEN_NEW(pen_graph_arena(context->graph), node->op->attribute_count + more, &given));
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        const pen_attribute_schema *schema = &node->op->attributes[i];
        if (!node->attributes[i].present) continue;
        given[spec->attribute_count++] =
            (pen_attribute_given){schema->name, schema->kind, node->attributes[i]};
    }
    for (uint32_t i = 0; i < more; i++) {
        given[spec->attribute_count++] = emission->attributes[i];
    }
    spec->attributes = given;
    return PEN_OK;
}

// A spec of the op that the emission says, "<forward name>/<suffix>".
static pen_status gradient_spec(const pen_gradient_context *context,
                                const pen_gradient_emission *emission, pen_node_spec *out_spec) {
    const pen_node *forward = pen_gradient_node(context);
    pen_arena *arena = pen_graph_arena(context->graph);
    const char *suffix = emission->suffix != NULL ? emission->suffix : "backward";
    const char *op_name = emission->op_name, *name;
    if (op_name == NULL) {
        PEN_TRY(pen_arena_format(arena, &op_name, "%s_backward", forward->op->name));
    }
    PEN_TRY(pen_arena_format(arena, &name, "%s/%s", forward->name, suffix));
    *out_spec = pen_node_spec_make(op_name, name);
    return PEN_OK;
}

// A node for the gradient of a parameter gets another role: it may wait, since only the update
// reads it.
pen_status pen_gradient_emit(pen_gradient_context *context, const pen_gradient_emission *emission,
                             pen_value_id *out_outputs) {
    const pen_value_id input = pen_gradient_input(context, emission->for_input);
    const bool is_weight =
        pen_value_is(input) && pen_graph_value(context->graph, input)->kind == PEN_VALUE_PARAMETER;
    pen_node_spec spec;
    PEN_TRY(gradient_spec(context, emission, &spec));
    spec.role = is_weight ? PEN_ROLE_BACKWARD_WEIGHT : PEN_ROLE_BACKWARD_INPUT;
    spec.source = pen_gradient_node(context)->source;
    spec.gradient_of = context->node;
    spec.inputs = emission->inputs;
    spec.input_count = emission->input_count;
    spec.output_count = emission->output_count == 0 ? 1 : emission->output_count;
    if (emission->repeats_attributes) {
        PEN_TRY(gradient_attributes(context, emission, &spec));
    } else {
        spec.attributes = emission->attributes;
        spec.attribute_count = emission->attribute_count;
    }
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

pen_status pen_gradient_emit_set(pen_gradient_context *context,
                                 const pen_gradient_emission *emission) {
    pen_value_id gradient = PEN_VALUE_NONE;
    PEN_TRY(pen_gradient_emit(context, emission, &gradient));
    pen_gradient_set(context, emission->for_input, gradient);
    return PEN_OK;
}

pen_status pen_gradient_emit_backward(pen_gradient_context *context, uint32_t input_count,
                                      const pen_value_id *inputs) {
    return pen_gradient_emit_set(context, &(pen_gradient_emission){.inputs = inputs,
                                                                   .input_count = input_count,
                                                                   .repeats_attributes = true});
}

pen_status pen_gradient_apply(pen_gradient_context *context, uint32_t for_input,
                              const char *op_name, pen_value_id a, pen_value_id b,
                              pen_value_id *out_output) {
    const pen_value_id operands[2] = {a, b};
    return pen_gradient_emit(context,
                             &(pen_gradient_emission){.op_name = op_name,
                                                      .suffix = op_name,
                                                      .for_input = for_input,
                                                      .inputs = operands,
                                                      .input_count = pen_value_is(b) ? 2 : 1},
                             out_output);
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

// Where an operand was stretched, its gradient is the sum over the stretched dimensions.
pen_status pen_gradient_unbroadcast(pen_gradient_context *context, uint32_t for_input,
                                    pen_value_id gradient, pen_value_id *out_output) {
    const pen_graph *graph = context->graph;
    const pen_shape from = pen_value_type(graph, gradient)->shape;
    const pen_shape to = pen_value_type(graph, pen_gradient_input(context, for_input))->shape;
    *out_output = gradient;
    if (pen_shape_equal(&from, &to)) return PEN_OK;
    int64_t axes[PEN_RANK_LIMIT];
    const uint32_t axis_count = gradient_broadcast_axes(&from, &to, axes);
    pen_value_id operands[2] = {gradient, PEN_VALUE_NONE};
    if (axis_count > 0) {
        const pen_attribute_given keepdims = pen_attribute_int("keepdims", 1);
        PEN_TRY(pen_gradient_ints(context, "axes", axis_count, axes, &operands[1]));
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
    operands[0] = *out_output;
    PEN_TRY(pen_gradient_ints(context, "shape", to.rank, to.dims, &operands[1]));
    return pen_gradient_emit(context,
                             &(pen_gradient_emission){.op_name = "reshape",
                                                      .suffix = "unbroadcast_shape",
                                                      .for_input = for_input,
                                                      .inputs = operands,
                                                      .input_count = 2},
                             out_output);
}

pen_status pen_gradient_set_summed(pen_gradient_context *context, uint32_t for_input,
                                   pen_value_id gradient) {
    PEN_TRY(pen_gradient_unbroadcast(context, for_input, gradient, &gradient));
    pen_gradient_set(context, for_input, gradient);
    return PEN_OK;
}

pen_status pen_gradient_ints(pen_gradient_context *context, const char *suffix, uint32_t count,
                             const int64_t *integers, pen_value_id *out_value) {
    pen_graph *graph = pen_gradient_graph(context);
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/%s",
                             pen_gradient_node(context)->name, suffix));
    return pen_graph_constant_ints(graph, name, count, integers, out_value);
}

pen_status pen_gradient_zeros(pen_gradient_context *context, uint32_t for_input,
                              const pen_tensor_type *type, pen_value_id *out_value) {
    pen_value_id shape;
    PEN_TRY(pen_gradient_ints(context, "zeros_shape", type->shape.rank, type->shape.dims, &shape));
    const pen_attribute_given attributes[] = {
        pen_attribute_text("element", pen_element_name(type->element)),
        pen_attribute_float("value", 0),
    };
    const pen_gradient_emission emission = {
        .op_name = "constant_of_shape",
        .suffix = "zeros",
        .for_input = for_input,
        .inputs = &shape,
        .input_count = 1,
        .attributes = attributes,
        .attribute_count = 2,
    };
    return pen_gradient_emit(context, &emission, out_value);
}

pen_status pen_gradient_scatter(pen_gradient_context *context, const char *op_name,
                                pen_value_id indices, const pen_attribute_given *attributes) {
    const pen_tensor_type type =
        *pen_value_type(pen_gradient_graph(context), pen_gradient_input(context, 0));
    pen_value_id operands[] = {PEN_VALUE_NONE, indices, pen_gradient_of_output(context, 0)};
    PEN_TRY(pen_gradient_zeros(context, 0, &type, &operands[0]));
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = op_name,
                                              .for_input = 0,
                                              .inputs = operands,
                                              .input_count = 3,
                                              .attributes = attributes,
                                              .attribute_count = 2,
                                          });
}

pen_status pen_gradient_is_zero(pen_gradient_context *context) {
    (void)context;
    return PEN_OK;
}

static pen_status gradient_from(pen_gradient_context *context, pen_value_id operand) {
    const pen_value_id operands[2] = {pen_gradient_of_output(context, 0), operand};
    return pen_gradient_emit_backward(context, 2, operands);
}

pen_status pen_gradient_from_input(pen_gradient_context *context) {
    return gradient_from(context, pen_gradient_input(context, 0));
}

pen_status pen_gradient_from_output(pen_gradient_context *context) {
    return gradient_from(context, pen_gradient_output(context, 0));
}
