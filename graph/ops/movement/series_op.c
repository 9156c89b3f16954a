// Ops that go along an axis in order, or cut along a diagonal.
//
//   trilu(x, k)                      one triangle of the last two dimensions, zeros elsewhere
//   cum_sum(x, axis)                 running sums
//   reverse_sequence(x, lengths)     the first lengths[b] elements of each sequence, backwards
//
// All are linear, and their gradients are themselves: trilu as it is, cum_sum from the other end,
// reverse_sequence as it is.

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"

// Input `input`, which must be a constant of one integer. `fallback` where it is left out.
static pen_status series_integer(const pen_infer_context *context, uint32_t input, const char *what,
                                 int64_t fallback, int64_t *out_integer) {
    uint32_t count;
    const int64_t *integers;
    *out_integer = fallback;
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    PEN_TRY(pen_infer_ints(context, input, &count, &integers));
    if (count != 1) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "%s has %u elements, it must have one",
                               what, count);
    }
    *out_integer = integers[0];
    return PEN_OK;
}

static pen_status trilu_infer(pen_infer_context *context) {
    int64_t k;
    const pen_tensor_type *type = pen_infer_input(context, 0);
    if (type->shape.rank < 2) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the input has %u dimensions, at least 2 are needed",
                               type->shape.rank);
    }
    PEN_TRY(series_integer(context, 1, "k", 0, &k));
    return pen_infer_set(context, 0, type);
}

static pen_status cum_sum_infer(pen_infer_context *context) {
    int64_t given;
    uint32_t axis;
    const pen_tensor_type *type = pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_NUMBER));
    PEN_TRY(series_integer(context, 1, "axis", 0, &given));
    PEN_TRY(pen_infer_axis(context, type->shape.rank, given, &axis));
    return pen_infer_set(context, 0, type);
}

// Only shapes are checked here: lengths are data, which the kernel checks.
static pen_status reverse_sequence_infer(pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const pen_tensor_type *type = pen_infer_input(context, 0);
    const pen_tensor_type *lengths = pen_infer_input(context, 1);
    uint32_t batch, time;
    PEN_TRY(pen_infer_axis(context, type->shape.rank, pen_node_int(node, "batch_axis"), &batch));
    PEN_TRY(pen_infer_axis(context, type->shape.rank, pen_node_int(node, "time_axis"), &time));
    if (batch == time) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "batch_axis and time_axis are both %u; they must differ", batch);
    }
    PEN_TRY(pen_infer_check_element(context, 1,
                                    PEN_ELEMENT_BIT(PEN_INT64) | PEN_ELEMENT_BIT(PEN_INT32)));
    if (lengths->shape.rank != 1 || lengths->shape.dims[0] != type->shape.dims[batch]) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "the lengths have shape %s, they must have one of %lld elements",
                               pen_shape_format(&lengths->shape, text),
                               (long long)type->shape.dims[batch]);
    }
    return pen_infer_set(context, 0, type);
}

// The op itself on dy, with the same second operand; NULL: with the same attributes, too.
static pen_status series_again(pen_gradient_context *context, const pen_attribute_given *attributes,
                               uint32_t attribute_count) {
    const pen_value_id operands[] = {pen_gradient_of_output(context, 0),
                                     pen_gradient_input(context, 1)};
    return pen_gradient_emit_set(context, &(pen_gradient_emission){
                                              .op_name = pen_gradient_node(context)->op->name,
                                              .inputs = operands,
                                              .input_count = pen_value_is(operands[1]) ? 2 : 1,
                                              .repeats_attributes = attributes == NULL,
                                              .attributes = attributes,
                                              .attribute_count = attribute_count,
                                          });
}

static pen_status series_gradient(pen_gradient_context *context) {
    return pen_gradient_needed(context, 0) ? series_again(context, NULL, 0) : PEN_OK;
}

static pen_status cum_sum_gradient(pen_gradient_context *context) {
    const pen_node *node = pen_gradient_node(context);
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_attribute_given attributes[] = {
        pen_attribute_int("exclusive", pen_node_int(node, "exclusive")),
        pen_attribute_int("reverse", pen_node_int(node, "reverse") == 0),
    };
    return series_again(context, attributes, 2);
}

static const pen_attribute_schema trilu_attributes[] = {
    PEN_INT_OR("upper", 1),
};
static const pen_attribute_schema cum_sum_attributes[] = {
    PEN_INT_OR("exclusive", 0),
    PEN_INT_OR("reverse", 0),
};
static const pen_attribute_schema reverse_sequence_attributes[] = {
    PEN_INT_OR("batch_axis", 1),
    PEN_INT_OR("time_axis", 0),
};

static const pen_op series_ops[] = {
    {"trilu", "the upper or lower triangle of matrices, zeros elsewhere", PEN_TAKES(1, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(trilu_attributes), .constant_inputs = 1u << 1,
     .in_place_inputs = 1, .infer = trilu_infer, .gradient = series_gradient},
    {"cum_sum", "running sums along an axis", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(cum_sum_attributes), .constant_inputs = 1u << 1, .infer = cum_sum_infer,
     .gradient = cum_sum_gradient, .output_flops = 1},
    {"reverse_sequence", "the beginning of each sequence backwards, as long as its length says",
     PEN_TAKES(2, 2), PEN_GIVES(1, 1), PEN_ATTRIBUTES(reverse_sequence_attributes),
     .infer = reverse_sequence_infer, .gradient = series_gradient},
};

PEN_OP_FAMILY(series);
