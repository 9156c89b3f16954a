#include "graph/ops/reduction/layer_norm_geometry.h"

#include <inttypes.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"

static bool layer_norm_begins(const pen_node *node, const char *text) {
    return strncmp(node->op->name, text, strlen(text)) == 0;
}

bool pen_layer_norm_is_backward(const pen_node *node) {
    const char *name = node->op->name;
    const size_t length = strlen(name), tail = strlen("_backward");
    return length > tail && strcmp(name + length - tail, "_backward") == 0;
}

static pen_status layer_norm_mismatch(const pen_shape *weights, const pen_shape *x,
                                      const char *expected) {
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the weights are %s and the input is %s; expected %s",
                     pen_shape_format(weights, texts[0]), pen_shape_format(x, texts[1]), expected);
}

// Weights repeat over the leading dimensions that are normalised and that they have not.
static pen_status layer_norm_find_trailing(const pen_node *node, const pen_shape *x,
                                           const pen_shape *weights, pen_layer_norm *norm) {
    uint32_t axis;
    PEN_TRY(pen_shape_axis(x->rank, pen_node_int(node, "axis"), &axis));
    norm->is_centred = layer_norm_begins(node, "layer_");
    norm->rows = pen_shape_count(x, 0, axis);
    norm->columns = pen_shape_count(x, axis, x->rank);
    norm->classes = 1;
    norm->run = 1;
    norm->segments = norm->columns;
    if (weights == NULL) return PEN_OK;
    uint32_t ones = 0;
    while (ones < weights->rank && weights->dims[ones] == 1)
        ones++;
    const uint32_t rank = weights->rank - ones;
    bool fits = rank <= x->rank - axis;
    for (uint32_t d = 0; fits && d < rank; d++) {
        fits = weights->dims[ones + d] == x->dims[x->rank - rank + d];
    }
    if (!fits) {
        return layer_norm_mismatch(weights, x, "the dimensions from the axis on, or the last ones");
    }
    norm->segments = pen_shape_element_count(weights);
    return PEN_OK;
}

// Whether there are `count` weights, along one dimension of maybe several.
static bool layer_norm_is_vector(const pen_shape *weights, int64_t count) {
    bool found = count == 1;
    for (uint32_t d = 0; d < weights->rank; d++) {
        if (weights->dims[d] == count) {
            found = true;
        } else if (weights->dims[d] != 1) {
            return false;
        }
    }
    return found && pen_shape_element_count(weights) == count;
}

// Instance and group normalization are rows of channels: the same kernels run them.
static pen_status layer_norm_find_channels(const pen_node *node, const pen_shape *x,
                                           const pen_shape *weights, pen_layer_norm *norm) {
    char text[PEN_SHAPE_TEXT_BYTES];
    if (x->rank < 2) {
        return pen_error(PEN_INVALID_INPUT, "the input is %s; expected a batch and channels",
                         pen_shape_format(x, text));
    }
    const int64_t channels = x->dims[1], size = pen_shape_count(x, 2, x->rank);
    const bool by_group = layer_norm_begins(node, "group_");
    const int64_t groups = by_group ? pen_node_int(node, "num_groups") : channels;
    if (groups < 1 ? channels != 0 || by_group : channels % groups != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "num_groups is %" PRId64 ", which does not divide the %" PRId64
                         " channels",
                         groups, channels);
    }
    norm->is_centred = true;
    norm->rows = x->dims[0] * groups;
    norm->columns = groups == 0 ? 0 : channels / groups * size;
    norm->classes = groups;
    norm->segments = groups == 0 ? 0 : channels / groups;
    norm->run = size;
    if (weights == NULL) return PEN_OK;
    if (layer_norm_is_vector(weights, channels)) return PEN_OK;
    if (!by_group || !layer_norm_is_vector(weights, groups)) {
        return layer_norm_mismatch(
            weights, x, by_group ? "a number a channel, or a group" : "a number a channel");
    }
    norm->segments = 1;
    norm->run = norm->columns;
    return PEN_OK;
}

pen_status pen_layer_norm_find(const pen_node *node, const pen_shape *x, const pen_shape *weights,
                               pen_layer_norm *out_norm) {
    pen_layer_norm norm = {0};
    if (layer_norm_begins(node, "layer_") || layer_norm_begins(node, "rms_")) {
        PEN_TRY(layer_norm_find_trailing(node, x, weights, &norm));
    } else {
        PEN_TRY(layer_norm_find_channels(node, x, weights, &norm));
    }
    norm.weight_count = norm.classes * norm.segments;
    *out_norm = norm;
    return PEN_OK;
}

void pen_layer_norm_of(const pen_graph *graph, const pen_node *node, pen_layer_norm *out_norm) {
    const uint32_t x = pen_layer_norm_is_backward(node) ? 1 : 0, scale = x + 1;
    const bool has_scale = scale < node->input_count && pen_value_is(node->inputs[scale]);
    const pen_status status = pen_layer_norm_find(
        node, &pen_value_type(graph, node->inputs[x])->shape,
        has_scale ? &pen_value_type(graph, node->inputs[scale])->shape : NULL, out_norm);
    PEN_ASSERT(status == PEN_OK);
}
