// Nodes, and the layouts of what they read.

#include <string.h>

#include "base/limits.h"
#include "graph/graph.h"
#include "graph/keras_layers/layer_builder.h"

pen_status pen_layer_give(pen_layer_result *result, pen_layer_tensor tensor) {
    PEN_ASSERT(result->count < PEN_LAYER_OUTPUT_LIMIT);
    result->tensors[result->count++] = tensor;
    return PEN_OK;
}

pen_layer_tensor pen_layer_tensor_make(pen_value_id value, const pen_shape *shape) {
    return (pen_layer_tensor){.value = value, .element = PEN_FLOAT32, .shape = *shape};
}

pen_status pen_layer_sizes(const pen_option_list *given, const char *option, uint32_t count,
                           const int64_t *fallback, int64_t *out_sizes) {
    const int64_t *numbers = given->items;
    if (given->count > 1 && given->count != count) {
        return pen_error(PEN_INVALID_INPUT, "%s has %u numbers, expected one, or %u", option,
                         given->count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        out_sizes[i] = given->count == 0   ? fallback[i]
                       : given->count == 1 ? numbers[0]
                                           : numbers[i];
    }
    return PEN_OK;
}

// ---- nodes

static pen_status node_name(const pen_layer_call *call, const char *suffix, const char **out_name) {
    *out_name = call->name;
    if (suffix == NULL) return PEN_OK;
    return pen_arena_format(call->builder->arena, out_name, "%s/%s", call->name, suffix);
}

pen_status pen_layer_add_node(const pen_layer_call *call, const pen_layer_node *node,
                              const pen_value_id **out_values) {
    pen_graph *graph = call->builder->graph;
    const char *name;
    pen_node_id made;
    PEN_TRY(node_name(call, node->suffix, &name));
    pen_node_spec spec = pen_node_spec_make(node->op, name);
    spec.source = call->source;
    pen_node_spec_fill(&spec, node->inputs, node->attributes);
    spec.output_count = node->output_count;
    PEN_TRY(pen_graph_add_node(graph, &spec, &made));
    *out_values = pen_graph_node(graph, made)->outputs;
    return PEN_OK;
}

pen_status pen_layer_add(const pen_layer_call *call, const char *op, const char *suffix,
                         pen_node_inputs inputs, pen_node_attributes attributes,
                         pen_value_id *out_value) {
    const pen_layer_node node = {op, suffix, inputs, attributes, .output_count = 1};
    const pen_value_id *outputs;
    PEN_TRY(pen_layer_add_node(call, &node, &outputs));
    *out_value = outputs[0];
    return PEN_OK;
}

pen_status pen_layer_map(const pen_layer_call *call, const char *op, const char *suffix,
                         pen_value_id x, pen_value_id *out_value) {
    return pen_layer_add(call, op, suffix, PEN_INPUTS(x), PEN_NO_ATTRIBUTES, out_value);
}

pen_status pen_layer_pair(const pen_layer_call *call, const char *op, const char *suffix,
                          pen_value_id a, pen_value_id b, pen_value_id *out_value) {
    return pen_layer_add(call, op, suffix, PEN_INPUTS(a, b), PEN_NO_ATTRIBUTES, out_value);
}

pen_status pen_layer_concat(const pen_layer_call *call, const char *suffix, pen_node_inputs inputs,
                            int64_t axis, pen_value_id *out_value) {
    return pen_layer_add(call, "concat", suffix, inputs, PEN_WITH(pen_attribute_int("axis", axis)),
                         out_value);
}

pen_status pen_layer_number_of(const pen_layer_call *call, const char *suffix,
                               pen_element_type element, double number, pen_value_id *out_value) {
    const char *name;
    PEN_TRY(node_name(call, suffix, &name));
    return pen_graph_constant_number(call->builder->graph, name, element, number, out_value);
}

pen_status pen_layer_number(const pen_layer_call *call, const char *suffix, double number,
                            pen_value_id *out_value) {
    return pen_layer_number_of(call, suffix, PEN_FLOAT32, number, out_value);
}

pen_status pen_layer_ints(const pen_layer_call *call, const char *suffix, uint32_t count,
                          const int64_t *integers, pen_value_id *out_value) {
    const char *name;
    PEN_TRY(node_name(call, suffix, &name));
    return pen_graph_constant_ints(call->builder->graph, name, count, integers, out_value);
}

pen_status pen_layer_floats(const pen_layer_call *call, const char *suffix, const pen_shape *shape,
                            float **out_numbers, pen_value_id *out_value) {
    const pen_tensor_type type = {PEN_FLOAT32, *shape};
    const char *name;
    char text[PEN_SHAPE_TEXT_BYTES];
    PEN_TRY(pen_tensor_type_check(&type));
    if (pen_tensor_type_bytes(&type) > PEN_LAYER_CONSTANT_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it needs a constant %s, which is above %u bytes",
                         pen_tensor_type_format(&type, text), PEN_LAYER_CONSTANT_BYTES_LIMIT);
    }
    PEN_TRY(PEN_NEW(pen_layer_arena(call), (size_t)pen_shape_element_count(shape), out_numbers));
    PEN_TRY(node_name(call, suffix, &name));
    return pen_graph_constant(call->builder->graph, name, &type, *out_numbers, out_value);
}

pen_status pen_layer_reshape(const pen_layer_call *call, pen_value_id value, const pen_shape *shape,
                             const char *suffix, pen_value_id *out_value) {
    int64_t dims[PEN_RANK_LIMIT];
    pen_value_id wanted;
    memcpy(dims, shape->dims, sizeof dims);
    if (shape->rank > 0 && dims[0] == PEN_LAYER_BATCH) dims[0] = 0; // as it is
    PEN_TRY(pen_layer_ints(call, "shape", shape->rank, dims, &wanted));
    return pen_layer_pair(call, "reshape", suffix, value, wanted, out_value);
}

pen_status pen_layer_transpose(const pen_layer_call *call, pen_value_id value,
                               const pen_shape *shape, const int64_t *axes,
                               pen_value_id *out_value) {
    pen_shape moved = {.rank = shape->rank};
    int64_t newest = -1; // of the axes whose dimension is not 1
    bool is_view = shape->rank > 0 && axes[0] == 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        moved.dims[i] = shape->dims[axes[i]];
        if (moved.dims[i] == 1) continue;
        is_view = is_view && axes[i] > newest;
        newest = axes[i];
    }
    if (is_view) return pen_layer_reshape(call, value, &moved, "reshape", out_value);
    return pen_layer_add(call, "transpose", "transpose", PEN_INPUTS(value),
                         PEN_WITH(pen_attribute_ints("perm", shape->rank, axes)), out_value);
}

pen_status pen_layer_slice(const pen_layer_call *call, pen_value_id value, const char *suffix,
                           pen_layer_range range, pen_value_id *out_value) {
    pen_value_id starts, ends, axes, steps;
    PEN_TRY(pen_layer_ints(call, "starts", 1, &range.start, &starts));
    PEN_TRY(pen_layer_ints(call, "ends", 1, &range.end, &ends));
    PEN_TRY(pen_layer_ints(call, "axes", 1, &range.axis, &axes));
    PEN_TRY(pen_layer_ints(call, "steps", 1, &range.step, &steps));
    return pen_layer_add(call, "slice", suffix, PEN_INPUTS(value, starts, ends, axes, steps),
                         PEN_NO_ATTRIBUTES, out_value);
}

// ---- layouts

// The shape in which a tensor's value lies.
static pen_shape layout_shape(const pen_layer_tensor *tensor) {
    pen_shape shape = tensor->shape;
    if (!tensor->is_moved) return shape;
    const int64_t channels = shape.dims[shape.rank - 1];
    memmove(shape.dims + 2, shape.dims + 1, (shape.rank - 2) * sizeof shape.dims[0]);
    shape.dims[1] = channels;
    return shape;
}

pen_status pen_layer_plain(const pen_layer_call *call, const pen_layer_tensor *tensor,
                           pen_layer_tensor *out_tensor) {
    pen_layer_tensor plain = *tensor;
    if (tensor->is_moved) {
        int64_t axes[PEN_RANK_LIMIT] = {0};
        const uint32_t rank = tensor->shape.rank;
        for (uint32_t i = 1; i + 1 < rank; i++) {
            axes[i] = i + 1;
        }
        axes[rank - 1] = 1;
        const pen_shape shape = layout_shape(tensor);
        PEN_TRY(pen_layer_transpose(call, tensor->value, &shape, axes, &plain.value));
        plain.is_moved = false;
    }
    *out_tensor = plain;
    return PEN_OK;
}

static pen_status layout_move(const pen_layer_call *call, const pen_layer_tensor *tensor,
                              pen_value_id *out_value) {
    int64_t axes[PEN_RANK_LIMIT] = {0};
    const uint32_t rank = tensor->shape.rank;
    axes[1] = rank - 1;
    for (uint32_t i = 2; i < rank; i++) {
        axes[i] = i - 1;
    }
    return pen_layer_transpose(call, tensor->value, &tensor->shape, axes, out_value);
}

pen_status pen_layer_take_spatial(const pen_layer_call *call, const pen_layer_tensor *tensor,
                                  pen_layer_format format, pen_layer_spatial *out_spatial) {
    const uint32_t rank = tensor->shape.rank;
    const bool is_last = format == PEN_LAYER_CHANNELS_LAST;
    PEN_ASSERT(rank >= 2 && rank - 2 <= PEN_LAYER_SPATIAL_LIMIT);
    pen_layer_spatial spatial = {.value = tensor->value, .rank = rank - 2};
    spatial.channels = tensor->shape.dims[is_last ? rank - 1 : 1];
    memcpy(spatial.sizes, tensor->shape.dims + (is_last ? 1 : 2),
           spatial.rank * sizeof spatial.sizes[0]);
    if (is_last && !tensor->is_moved && rank > 2) {
        PEN_TRY(layout_move(call, tensor, &spatial.value));
    } else if (!is_last && tensor->is_moved) {
        pen_layer_tensor plain;
        PEN_TRY(pen_layer_plain(call, tensor, &plain));
        spatial.value = plain.value;
    }
    *out_spatial = spatial;
    return PEN_OK;
}

pen_layer_tensor pen_layer_give_spatial(const pen_layer_spatial *spatial, pen_layer_format format) {
    const bool is_last = format == PEN_LAYER_CHANNELS_LAST;
    pen_layer_tensor tensor = {.value = spatial->value, .element = PEN_FLOAT32};
    tensor.shape.rank = spatial->rank + 2;
    tensor.shape.dims[0] = PEN_LAYER_BATCH;
    tensor.shape.dims[is_last ? spatial->rank + 1 : 1] = spatial->channels;
    memcpy(tensor.shape.dims + (is_last ? 1 : 2), spatial->sizes,
           spatial->rank * sizeof spatial->sizes[0]);
    tensor.is_moved = is_last && spatial->rank > 0;
    return tensor;
}
