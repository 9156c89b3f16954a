// Finds normalisations of each example by itself, from the division by the deviation on: upwards
// to what is normalised, downwards to the weights.

#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/fuse/fuse_layers.h"

// ---- upwards

// What a mean goes over: the dimensions from `axis` on, kept as 1.
typedef struct norm_mean {
    pen_node_id node;
    pen_value_id of;
    uint32_t axis;
} norm_mean;

// The op normalises the last dimensions, so the mean's axes must be those, without a gap.
static bool norm_trailing_axes(pen_fuse_match *match, pen_node_id mean, uint32_t rank,
                               uint32_t *out_axis) {
    const pen_value_id axes = pen_fuse_input(match, mean, 1);
    uint32_t count;
    const int64_t *given;
    if (!pen_value_is(axes) || rank == 0) return false;
    const pen_value *value = pen_graph_value(match->graph, axes);
    if (value->kind != PEN_VALUE_CONSTANT || value->data == NULL) return false;
    const pen_status status = pen_value_read_ints(match->graph, axes, &count, &given);
    if (status != PEN_OK) {
        pen_status_ignore(status, "such axes match nothing");
        return false;
    }
    bool reduced[PEN_RANK_LIMIT] = {false};
    for (uint32_t i = 0; i < count; i++) {
        const int64_t axis = given[i] < 0 ? given[i] + rank : given[i];
        if (axis < 0 || axis >= rank) return false;
        reduced[axis] = true;
    }
    uint32_t axis = rank;
    while (axis > 0 && reduced[axis - 1])
        axis--;
    for (uint32_t d = 0; d < axis; d++) {
        if (reduced[d]) return false;
    }
    *out_axis = axis;
    return axis < rank;
}

static bool norm_find_mean(pen_fuse_match *match, pen_value_id value, norm_mean *out_mean) {
    const pen_node_id node = pen_fuse_made_by(match, value, PEN_OP(reduce_mean));
    if (!pen_node_is(node)) return false;
    if (pen_node_int(pen_graph_node(match->graph, node), "keepdims") == 0) return false;
    out_mean->node = node;
    out_mean->of = pen_fuse_behind(match, pen_fuse_input(match, node, 0));
    return norm_trailing_axes(match, node, pen_fuse_type(match, out_mean->of)->shape.rank,
                              &out_mean->axis);
}

// Two values are alike if they are one, or differences of the same two.
static bool norm_alike(pen_fuse_match *match, pen_value_id a, pen_value_id b) {
    if (pen_fuse_same(match, a, b)) return true;
    const pen_node_id first = pen_fuse_made_by(match, a, PEN_OP(sub));
    if (!pen_node_is(first)) return false;
    const pen_node_id second = pen_fuse_made_by(match, b, PEN_OP(sub));
    return pen_node_is(second) &&
           pen_fuse_same(match, pen_fuse_input(match, first, 0),
                         pen_fuse_input(match, second, 0)) &&
           pen_fuse_same(match, pen_fuse_input(match, first, 1), pen_fuse_input(match, second, 1));
}

// value is root², written as a power or as a product.
static bool norm_find_square(pen_fuse_match *match, pen_value_id value, pen_value_id *out_root) {
    const pen_node_id power = pen_fuse_made_by(match, value, PEN_OP(pow));
    if (pen_node_is(power)) {
        *out_root = pen_fuse_behind(match, pen_fuse_input(match, power, 0));
        return pen_fuse_is_number(match, pen_fuse_input(match, power, 1), 2);
    }
    const pen_node_id product = pen_fuse_made_by(match, value, PEN_OP(mul));
    if (!pen_node_is(product)) return false;
    *out_root = pen_fuse_behind(match, pen_fuse_input(match, product, 0));
    return norm_alike(match, *out_root, pen_fuse_input(match, product, 1));
}

// value is sqrt(of).
static bool norm_find_root(pen_fuse_match *match, pen_value_id value, pen_value_id *out_of) {
    const pen_node_id root = pen_fuse_made_by(match, value, PEN_OP(sqrt));
    if (pen_node_is(root)) {
        *out_of = pen_fuse_input(match, root, 0);
        return true;
    }
    const pen_node_id power = pen_fuse_made_by(match, value, PEN_OP(pow));
    if (!pen_node_is(power)) return false;
    *out_of = pen_fuse_input(match, power, 0);
    return pen_fuse_is_number(match, pen_fuse_input(match, power, 1), 0.5);
}

// value is 1 / sqrt(of).
static bool norm_find_inverse_root(pen_fuse_match *match, pen_value_id value,
                                   pen_value_id *out_of) {
    const pen_node_id reciprocal = pen_fuse_made_by(match, value, PEN_OP(reciprocal));
    if (pen_node_is(reciprocal)) {
        return norm_find_root(match, pen_fuse_input(match, reciprocal, 0), out_of);
    }
    const pen_node_id quotient = pen_fuse_made_by(match, value, PEN_OP(div));
    if (pen_node_is(quotient)) {
        return pen_fuse_is_number(match, pen_fuse_input(match, quotient, 0), 1) &&
               norm_find_root(match, pen_fuse_input(match, quotient, 1), out_of);
    }
    const pen_node_id power = pen_fuse_made_by(match, value, PEN_OP(pow));
    if (!pen_node_is(power)) return false;
    *out_of = pen_fuse_input(match, power, 0);
    return pen_fuse_is_number(match, pen_fuse_input(match, power, 1), -0.5);
}

// What the anchor divides, and the square of what it divides by.
static bool norm_find_division(pen_fuse_match *match, pen_node_id anchor, pen_value_id *out_top,
                               pen_value_id *out_square) {
    if (pen_fuse_is(match, anchor, PEN_OP(div))) {
        *out_top = pen_fuse_input(match, anchor, 0);
        return norm_find_root(match, pen_fuse_input(match, anchor, 1), out_square);
    }
    if (!pen_fuse_is(match, anchor, PEN_OP(mul))) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const pen_fuse_match before = *match;
        *out_top = pen_fuse_input(match, anchor, 1 - i);
        if (norm_find_inverse_root(match, pen_fuse_input(match, anchor, i), out_square)) {
            return true;
        }
        *match = before;
    }
    return false;
}

typedef struct norm_found {
    pen_value_id x;
    uint32_t axis;
    double epsilon;
    bool is_centred;
} norm_found;

static bool norm_find_epsilon(pen_fuse_match *match, pen_value_id sum, pen_value_id *out_variance,
                              double *out_epsilon) {
    const pen_node_id node = pen_fuse_made_by(match, sum, PEN_OP(add));
    if (!pen_node_is(node)) return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (!pen_fuse_number(match, pen_fuse_input(match, node, i), out_epsilon)) continue;
        *out_variance = pen_fuse_input(match, node, 1 - i);
        return *out_epsilon >= 0;
    }
    return false;
}

// RMS normalization, and layer normalization if its input is a distance from the mean.
static bool norm_find(pen_fuse_match *match, pen_node_id anchor, norm_found *found) {
    pen_value_id top, sum, variance, root;
    norm_mean squares, mean;
    if (!norm_find_division(match, anchor, &top, &sum)) return false;
    if (!norm_find_epsilon(match, sum, &variance, &found->epsilon)) return false;
    if (!norm_find_mean(match, variance, &squares)) return false;
    if (!norm_find_square(match, squares.of, &root)) return false;
    if (!norm_alike(match, root, top)) return false;
    pen_fuse_join(match, anchor);
    found->x = root;
    found->axis = squares.axis;
    found->is_centred = false;
    const pen_fuse_match before = *match;
    const pen_node_id difference = pen_fuse_made_by(match, root, PEN_OP(sub));
    if (pen_node_is(difference) &&
        norm_find_mean(match, pen_fuse_input(match, difference, 1), &mean) &&
        pen_fuse_same(match, mean.of, pen_fuse_input(match, difference, 0)) &&
        mean.axis == found->axis) {
        found->x = mean.of;
        found->is_centred = true;
    } else {
        *match = before;
    }
    return true;
}

// ---- downwards

// Whether a value of `weight` repeats over the leading dimensions of x alone.
static bool norm_weight_fits(const pen_tensor_type *weight, const pen_tensor_type *x,
                             uint32_t axis) {
    uint32_t ones = 0;
    const uint32_t inner = x->shape.rank - axis;
    if (weight->element != x->element || weight->shape.rank > x->shape.rank) return false;
    while (weight->shape.rank - ones > inner && weight->shape.dims[ones] == 1)
        ones++;
    if (weight->shape.rank - ones != inner) return false;
    for (uint32_t d = 0; d < inner; d++) {
        if (weight->shape.dims[ones + d] != x->shape.dims[axis + d]) return false;
    }
    return true;
}

// The operand that the only reader of the last node, an `op`, combines its result with; NONE
// when there is no such reader.
static pen_node_id norm_next(pen_fuse_match *match, const pen_op *op, pen_value_id *out_other) {
    pen_value_id read;
    const pen_node_id reader = pen_fuse_reader(match, pen_fuse_output(match, match->last), &read);
    if (!pen_fuse_is(match, reader, op)) return PEN_NODE_NONE;
    const pen_value_id first = pen_fuse_input(match, reader, 0);
    *out_other = pen_value_same(first, read) ? pen_fuse_input(match, reader, 1) : first;
    return reader;
}

// Weight and bias are taken in if they fit; without them it stays a normalization.
bool pen_fuse_layer_norm(pen_fuse_match *match, pen_node_id anchor) {
    norm_found found;
    if (!norm_find(match, anchor, &found)) return false;
    const pen_tensor_type *x = pen_fuse_type(match, found.x);
    match->last = anchor;
    match->op = found.is_centred ? PEN_OP(layer_normalization) : PEN_OP(rms_normalization);
    match->attributes[match->attribute_count++] = pen_attribute_float("epsilon", found.epsilon);
    match->attributes[match->attribute_count++] = pen_attribute_int("axis", found.axis);
    match->inputs[match->input_count++] = found.x;
    pen_value_id weight;
    pen_node_id next = norm_next(match, PEN_OP(mul), &weight);
    if (!pen_node_is(next) || !norm_weight_fits(pen_fuse_type(match, weight), x, found.axis)) {
        return pen_tensor_type_equal(x, pen_fuse_type(match, pen_fuse_output(match, anchor)));
    }
    pen_fuse_join(match, next);
    match->last = next;
    match->inputs[match->input_count++] = weight;
    const pen_tensor_type *scale = pen_fuse_type(match, weight);
    next = found.is_centred ? norm_next(match, PEN_OP(add), &weight) : PEN_NODE_NONE;
    if (pen_node_is(next) && pen_tensor_type_equal(pen_fuse_type(match, weight), scale)) {
        pen_fuse_join(match, next);
        match->last = next;
        match->inputs[match->input_count++] = weight;
    }
    return pen_tensor_type_equal(x, pen_fuse_type(match, pen_fuse_output(match, match->last)));
}

// ---- as a product and a sum

// As TensorFlow writes it: x * m + (bias - mean * m), where m = scale / deviation.
typedef struct norm_affine {
    norm_mean mean;
    pen_value_id m, scale, bias; // scale may be NONE
} norm_affine;

// value is bias - mean * m.
static bool norm_find_offset(pen_fuse_match *match, pen_value_id value, norm_affine *affine) {
    const pen_node_id difference = pen_fuse_made_by(match, value, PEN_OP(sub));
    if (!pen_node_is(difference)) return false;
    affine->bias = pen_fuse_input(match, difference, 0);
    const pen_node_id product =
        pen_fuse_made_by(match, pen_fuse_input(match, difference, 1), PEN_OP(mul));
    for (uint32_t i = 0; pen_node_is(product) && i < 2; i++) {
        affine->m = pen_fuse_input(match, product, 1 - i);
        if (norm_find_mean(match, pen_fuse_input(match, product, i), &affine->mean)) return true;
    }
    return false;
}

// m is 1 / sqrt(of), or that times a scale.
static bool norm_find_factor(pen_fuse_match *match, norm_affine *affine, pen_value_id *out_of) {
    affine->scale = PEN_VALUE_NONE;
    pen_fuse_match before = *match;
    if (norm_find_inverse_root(match, affine->m, out_of)) return true;
    *match = before;
    const pen_node_id product = pen_fuse_made_by(match, affine->m, PEN_OP(mul));
    for (uint32_t i = 0; pen_node_is(product) && i < 2; i++) {
        before = *match;
        affine->scale = pen_fuse_input(match, product, 1 - i);
        if (norm_find_inverse_root(match, pen_fuse_input(match, product, i), out_of)) return true;
        *match = before;
    }
    return false;
}

// The mean of squares around `mean`, to which an epsilon is added.
static bool norm_find_variance(pen_fuse_match *match, pen_value_id sum, const norm_mean *mean,
                               double *out_epsilon) {
    pen_value_id variance, root;
    norm_mean squares;
    if (!norm_find_epsilon(match, sum, &variance, out_epsilon)) return false;
    if (!norm_find_mean(match, variance, &squares) || squares.axis != mean->axis) return false;
    if (!norm_find_square(match, squares.of, &root)) return false;
    const pen_node_id difference = pen_fuse_made_by(match, root, PEN_OP(sub));
    return pen_node_is(difference) &&
           pen_fuse_same(match, pen_fuse_input(match, difference, 0), mean->of) &&
           pen_fuse_same(match, pen_fuse_input(match, difference, 1),
                         pen_fuse_output(match, mean->node));
}

static bool norm_find_affine(pen_fuse_match *match, pen_node_id anchor, uint32_t product_input,
                             norm_affine *affine, double *out_epsilon) {
    pen_value_id sum;
    if (!norm_find_offset(match, pen_fuse_input(match, anchor, 1 - product_input), affine)) {
        return false;
    }
    const pen_node_id product =
        pen_fuse_made_by(match, pen_fuse_input(match, anchor, product_input), PEN_OP(mul));
    if (!pen_node_is(product)) return false;
    const pen_value_id other = pen_fuse_other(match, product, affine->mean.of);
    if (!pen_fuse_same(match, other, affine->m)) return false;
    return norm_find_factor(match, affine, &sum) &&
           norm_find_variance(match, sum, &affine->mean, out_epsilon);
}

// The same arithmetic multiplied out, into a factor and an offset, as some exporters write it.
bool pen_fuse_affine_norm(pen_fuse_match *match, pen_node_id anchor) {
    norm_affine affine;
    double epsilon = 0;
    bool is_found = false;
    if (!pen_fuse_is(match, anchor, PEN_OP(add))) return false;
    for (uint32_t i = 0; i < 2 && !is_found; i++) {
        *match = pen_fuse_match_begin(match->graph, match->readers);
        is_found = norm_find_affine(match, anchor, i, &affine, &epsilon);
    }
    if (!is_found) return false;
    const pen_tensor_type *x = pen_fuse_type(match, affine.mean.of);
    const pen_tensor_type *bias = pen_fuse_type(match, affine.bias);
    const uint32_t axis = affine.mean.axis;
    if (!pen_value_is(affine.scale) || !norm_weight_fits(bias, x, axis)) return false;
    if (!pen_tensor_type_equal(pen_fuse_type(match, affine.scale), bias)) return false;
    pen_fuse_join(match, anchor);
    match->last = anchor;
    match->op = PEN_OP(layer_normalization);
    match->attributes[match->attribute_count++] = pen_attribute_float("epsilon", epsilon);
    match->attributes[match->attribute_count++] = pen_attribute_int("axis", axis);
    const pen_value_id inputs[] = {affine.mean.of, affine.scale, affine.bias};
    memcpy(match->inputs, inputs, sizeof inputs);
    match->input_count = 3;
    return pen_tensor_type_equal(x, pen_fuse_type(match, pen_fuse_output(match, anchor)));
}

// ---- groups

// Whether all elements of a constant are `number`.
static bool group_is_all(const pen_fuse_match *match, pen_value_id id, float number) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(match->graph, id);
    if (value->kind != PEN_VALUE_CONSTANT || value->data == NULL) return false;
    if (value->type.element != PEN_FLOAT32) return false;
    for (int64_t i = 0; i < pen_shape_element_count(&value->type.shape); i++) {
        float found;
        memcpy(&found, (const char *)value->data + (size_t)i * sizeof found, sizeof found);
        if (found != number) return false;
    }
    return true;
}

// A number a channel: a given [channels, 1, …], or the vector that this is made of; NONE: neither.
static pen_value_id group_weight(pen_fuse_match *match, pen_value_id value,
                                 const pen_tensor_type *x) {
    const pen_shape *shape = &pen_fuse_type(match, value)->shape;
    const int64_t channels = x->shape.dims[1];
    const uint32_t first = shape->rank + 1 == x->shape.rank ? 0 : 1;
    if (shape->rank + 1 - first != x->shape.rank || pen_shape_element_count(shape) != channels ||
        shape->dims[first] != channels) {
        return PEN_VALUE_NONE;
    }
    if (pen_fuse_type(match, value)->element != x->element) return PEN_VALUE_NONE;
    if (pen_graph_value(match->graph, value)->kind != PEN_VALUE_COMPUTED) return value;
    pen_node_id view = pen_fuse_made_by(match, value, PEN_OP(unsqueeze));
    if (!pen_node_is(view)) view = pen_fuse_made_by(match, value, PEN_OP(reshape));
    if (!pen_node_is(view)) return PEN_VALUE_NONE;
    const pen_value_id vector = pen_fuse_behind(match, pen_fuse_input(match, view, 0));
    const pen_tensor_type *type = pen_fuse_type(match, vector);
    const bool fits =
        type->shape.rank == 1 && type->shape.dims[0] == channels && type->element == x->element;
    return fits ? vector : PEN_VALUE_NONE;
}

// An instance normalisation without weights between two reshapes that undo each other.
typedef struct norm_reshaped {
    pen_value_id x;
    const pen_tensor_type *type; // of x, and of the result
    const pen_shape *parts;      // the shape in between
} norm_reshaped;

// Joins these nodes, and begins the match of `op` with x and epsilon.
static bool norm_find_reshaped(pen_fuse_match *match, pen_node_id anchor, const pen_op *op,
                               norm_reshaped *out) {
    if (!pen_fuse_is(match, anchor, PEN_OP(instance_normalization))) return false;
    if (!group_is_all(match, pen_fuse_input(match, anchor, 1), 1)) return false;
    if (!group_is_all(match, pen_fuse_input(match, anchor, 2), 0)) return false;
    const pen_node_id parts =
        pen_fuse_made_by(match, pen_fuse_input(match, anchor, 0), PEN_OP(reshape));
    pen_value_id read;
    const pen_node_id whole = pen_fuse_reader(match, pen_fuse_output(match, anchor), &read);
    if (!pen_node_is(parts) || !pen_fuse_is(match, whole, PEN_OP(reshape))) return false;
    out->x = pen_fuse_behind(match, pen_fuse_input(match, parts, 0));
    out->type = pen_fuse_type(match, out->x);
    out->parts = &pen_fuse_type(match, pen_fuse_output(match, parts))->shape;
    pen_fuse_join(match, anchor);
    pen_fuse_join(match, whole);
    match->last = whole;
    match->op = op;
    match->attributes[match->attribute_count++] = pen_attribute_float(
        "epsilon", pen_node_float(pen_graph_node(match->graph, anchor), "epsilon"));
    match->inputs[match->input_count++] = out->x;
    return pen_tensor_type_equal(out->type, pen_fuse_type(match, pen_fuse_output(match, whole)));
}

// The axis from which on x has rows of `columns` elements; its rank where there is none.
static uint32_t row_axis(const pen_shape *x, int64_t columns) {
    uint32_t axis = x->rank;
    int64_t count = 1;
    while (axis > 0 && count < columns)
        count *= x->dims[--axis];
    return count == columns && axis < x->rank ? axis : x->rank;
}

// Keras' way: reshape to [1, rows, columns, 1], normalise these, reshape back, and weigh.
bool pen_fuse_row_norm(pen_fuse_match *match, pen_node_id anchor) {
    norm_reshaped found;
    if (!norm_find_reshaped(match, anchor, PEN_OP(layer_normalization), &found)) return false;
    const int64_t columns = pen_shape_count(found.parts, 2, found.parts->rank);
    const uint32_t axis = row_axis(&found.type->shape, columns);
    if (axis == found.type->shape.rank) return false;
    match->attributes[match->attribute_count++] = pen_attribute_int("axis", axis);
    const pen_op *const steps[] = {PEN_OP(mul), PEN_OP(add)};
    for (uint32_t i = 0; i < 2; i++) {
        pen_value_id weight = PEN_VALUE_NONE;
        const pen_node_id next = norm_next(match, steps[i], &weight);
        if (!pen_node_is(next)) break;
        const pen_tensor_type *given = pen_fuse_type(match, weight);
        if (!norm_weight_fits(given, found.type, axis)) break;
        if (i == 1 && !pen_tensor_type_equal(given, pen_fuse_type(match, match->inputs[1]))) break;
        pen_fuse_join(match, next);
        match->last = next;
        match->inputs[match->input_count++] = weight;
    }
    return pen_tensor_type_equal(found.type,
                                 pen_fuse_type(match, pen_fuse_output(match, match->last)));
}

// PyTorch's export: reshape to [batch, groups, rest], normalise these with weights of 1 and 0,
// reshape back, and weigh the channels.
bool pen_fuse_group_norm(pen_fuse_match *match, pen_node_id anchor) {
    norm_reshaped found;
    if (!norm_find_reshaped(match, anchor, PEN_OP(group_normalization), &found)) return false;
    const pen_shape *shape = &found.type->shape, *parts = found.parts;
    if (parts->rank != 3 || shape->rank < 2 || parts->dims[0] != shape->dims[0] ||
        parts->dims[1] < 1 || shape->dims[1] % parts->dims[1] != 0) {
        return false;
    }
    match->attributes[match->attribute_count++] = pen_attribute_int("num_groups", parts->dims[1]);
    const pen_op *const steps[] = {PEN_OP(mul), PEN_OP(add)};
    for (uint32_t i = 0; i < 2; i++) {
        pen_value_id weight = PEN_VALUE_NONE;
        const pen_node_id next = norm_next(match, steps[i], &weight);
        if (pen_node_is(next)) weight = group_weight(match, weight, found.type);
        if (!pen_node_is(next) || !pen_value_is(weight)) break;
        pen_fuse_join(match, next);
        match->last = next;
        match->inputs[match->input_count++] = weight;
    }
    return true;
}
