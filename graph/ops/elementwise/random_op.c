// Random tensors.
//
//   bernoulli(x; dtype)                            1 where a number of the stream is below x, else
//   0 multinomial(x; sample_size, dtype)             classes drawn by logarithms of their shares
//   random_uniform(; shape, low, high, dtype)      random_uniform_like(x; low, high, dtype)
//   random_normal(; shape, mean, scale, dtype)     random_normal_like(x; mean, scale, dtype)
//
// Element i is made of number i of the node's stream (graph/op.h, pen_node_stream) at the step and
// microbatch; `seed` takes the place of the job's. So the numbers depend neither on placement nor
// on schedule. `dtype` is the name of an element type. Nothing has a gradient: what is drawn does
// not change with x but in steps.

#include <stddef.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"

// The element type that `dtype` says; without it, `fallback`.
static pen_status random_element(const pen_infer_context *context, pen_element_type fallback,
                                 pen_element_type *out_element) {
    const pen_node *node = pen_infer_node(context);
    *out_element = fallback;
    if (!pen_node_has(node, "dtype")) return PEN_OK;
    return pen_infer_wrap(context, pen_element_find(pen_node_text(node, "dtype"), out_element));
}

static pen_status random_check_float(const pen_infer_context *context, pen_element_type element) {
    if (pen_element_is_float(element)) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "dtype is %s, it must be a floating type",
                           pen_element_name(element));
}

static pen_status random_like_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(random_element(context, type.element, &type.element));
    PEN_TRY(random_check_float(context, type.element));
    return pen_infer_set(context, 0, &type);
}

static pen_status random_infer(pen_infer_context *context) {
    uint32_t count;
    pen_element_type element;
    const int64_t *dims = pen_node_ints(pen_infer_node(context), "shape", &count);
    PEN_TRY(random_element(context, PEN_FLOAT32, &element));
    PEN_TRY(random_check_float(context, element));
    if (count > PEN_RANK_LIMIT) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "shape has %u dimensions, at most %d are possible", count,
                               PEN_RANK_LIMIT);
    }
    const pen_tensor_type type = pen_tensor_type_make(element, count, dims);
    return pen_infer_set(context, 0, &type);
}

static pen_status bernoulli_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(random_element(context, type.element, &type.element));
    return pen_infer_set(context, 0, &type);
}

// The kind of integer is an attribute, as the result has nothing to take it from.
static pen_status multinomial_infer(pen_infer_context *context) {
    pen_tensor_type type = *pen_infer_input(context, 0);
    const int64_t samples = pen_node_int(pen_infer_node(context), "sample_size");
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    if (type.shape.rank != 2 || type.shape.dims[1] < 1 || samples < 1) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(
            context, PEN_INVALID_INPUT,
            "%lld samples of an input of shape %s; at least 1 of [batch,classes] "
            "are possible",
            (long long)samples, pen_shape_format(&type.shape, text));
    }
    PEN_TRY(random_element(context, PEN_INT32, &type.element));
    if (type.element != PEN_INT32 && type.element != PEN_INT64) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "dtype is %s, it must be int32 or int64",
                               pen_element_name(type.element));
    }
    type.shape.dims[1] = samples;
    return pen_infer_set(context, 0, &type);
}

#define RANDOM_COMMON PEN_MAY("seed", FLOAT), PEN_MAY("stream", TEXT), PEN_MAY("dtype", TEXT)

static const pen_attribute_schema bernoulli_attributes[] = {RANDOM_COMMON};
static const pen_attribute_schema multinomial_attributes[] = {
    RANDOM_COMMON,
    PEN_INT_OR("sample_size", 1),
};
static const pen_attribute_schema uniform_attributes[] = {
    RANDOM_COMMON, PEN_FLOAT_OR("low", 0), PEN_FLOAT_OR("high", 1),
    PEN_MUST("shape", INTS), // not those like another
};
static const pen_attribute_schema normal_attributes[] = {
    RANDOM_COMMON, PEN_FLOAT_OR("mean", 0), PEN_FLOAT_OR("scale", 1),
    PEN_MUST("shape", INTS), // not those like another
};

#define RANDOM_OP(op, does, inputs, schema, count, rule)                                           \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(inputs, inputs), PEN_GIVES(1, 1),                  \
        .attributes = schema, .attribute_count = count, .is_random = true, .infer = rule,          \
        .gradient = (inputs) == 0 ? NULL : pen_gradient_is_zero                                    \
    }

static const pen_op random_ops[] = {
    RANDOM_OP(bernoulli, "1 with the probability that each element says, else 0", 1,
              bernoulli_attributes, 3, bernoulli_infer),
    RANDOM_OP(multinomial, "classes drawn by the logarithms of their shares", 1,
              multinomial_attributes, 4, multinomial_infer),
    RANDOM_OP(random_uniform, "numbers drawn evenly from a range", 0, uniform_attributes, 6,
              random_infer),
    RANDOM_OP(random_uniform_like, "numbers drawn evenly from a range, in the input's shape", 1,
              uniform_attributes, 5, random_like_infer),
    RANDOM_OP(random_normal, "numbers drawn from a normal distribution", 0, normal_attributes, 6,
              random_infer),
    RANDOM_OP(random_normal_like, "numbers of a normal distribution, in the input's shape", 1,
              normal_attributes, 5, random_like_infer),
};

PEN_OP_FAMILY(random);
