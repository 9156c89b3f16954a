// A graph of layers, one application after another.

#include "graph/keras_layers/layer_builder.h"

#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "base/reserve.h"
#include "graph/graph.h"

pen_status pen_layer_builder_new(pen_graph *graph, uint64_t seed, pen_layer_builder **out_builder) {
    pen_layer_builder *builder = NULL;
    pen_arena *arena = pen_graph_arena(graph);
    PEN_TRY(PEN_NEW(arena, 1, &builder));
    PEN_TRY(PEN_NEW(arena, pen_layer_count(), &builder->name_counts));
    builder->graph = graph;
    builder->arena = arena;
    builder->seed = seed;
    pen_name_map_init(&builder->weight_names, arena);
    pen_name_map_init(&builder->layer_names, arena);
    *out_builder = builder;
    return PEN_OK;
}

pen_graph *pen_layer_graph(const pen_layer_call *call) {
    return call->builder->graph;
}

pen_arena *pen_layer_arena(const pen_layer_call *call) {
    return call->builder->arena;
}

const char *pen_layer_shape_format(const pen_shape *shape, char out_text[PEN_SHAPE_TEXT_BYTES]) {
    pen_shape rest = *shape;
    if (shape->rank == 0 || shape->dims[0] >= 0) return pen_shape_format(shape, out_text);
    rest.rank -= 1;
    memmove(rest.dims, rest.dims + 1, rest.rank * sizeof rest.dims[0]);
    char inner[PEN_SHAPE_TEXT_BYTES];
    (void)pen_shape_format(&rest, inner);
    size_t length = strlen(inner);
    if (length > PEN_SHAPE_TEXT_BYTES - 4) length = PEN_SHAPE_TEXT_BYTES - 4;
    memcpy(out_text, "[?", 2);
    const size_t comma = rest.rank > 0 ? 1 : 0;
    if (comma > 0) out_text[2] = ',';
    memcpy(out_text + 2 + comma, inner + 1, length - 1);
    out_text[2 + comma + length - 1] = '\0';
    return out_text;
}

// ---- inputs and outputs

static pen_status layer_check_shape(const char *name, const pen_shape *shape) {
    int64_t product = 1;
    if (shape->rank + 1 > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%s' has %u dimensions without the batch; at most %d are possible",
                         name, shape->rank, PEN_RANK_LIMIT - 1);
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        const int64_t size = shape->dims[i];
        if (size < 1 || size > PEN_LAYER_ELEMENTS_LIMIT / product) {
            return pen_error(PEN_INVALID_INPUT,
                             "input '%s': dimension %u is %" PRId64
                             "; sizes of 1 and more are possible, and %lld elements",
                             name, i, size, PEN_LAYER_ELEMENTS_LIMIT);
        }
        product *= size;
    }
    return PEN_OK;
}

pen_status pen_layer_add_input(pen_layer_builder *builder, const char *name,
                               pen_element_type element, const pen_shape *shape, pen_source source,
                               pen_layer_tensor *out_tensor) {
    pen_value spec = {.name = name, .kind = PEN_VALUE_INPUT, .source = source};
    pen_layer_tensor tensor = {.element = element};
    PEN_TRY(layer_check_shape(name, shape));
    tensor.shape.rank = shape->rank + 1;
    tensor.shape.dims[0] = PEN_LAYER_BATCH;
    memcpy(tensor.shape.dims + 1, shape->dims, shape->rank * sizeof shape->dims[0]);
    spec.type = (pen_tensor_type){element, tensor.shape};
    PEN_TRY(pen_graph_add_symbol(builder->graph, "batch", &spec.type.shape.dims[0]));
    PEN_TRY(pen_graph_add_value(builder->graph, &spec, &tensor.value));
    *out_tensor = tensor;
    return PEN_OK;
}

// Whether a value is computed, and is no output yet.
static bool layer_is_free(const pen_graph *graph, pen_value_id value) {
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        if (pen_value_same(pen_graph_output(graph, i), value)) return false;
    }
    return pen_graph_value(graph, value)->kind == PEN_VALUE_COMPUTED;
}

// Types are kept with the batch as a named dimension, as they are shown to the caller.
static pen_status layer_note_output(pen_layer_builder *builder, const pen_layer_tensor *tensor) {
    const uint32_t count = pen_graph_output_count(builder->graph);
    pen_tensor_type type = {tensor->element, tensor->shape};
    uint32_t capacity = builder->output_capacity;
    PEN_TRY(PEN_RESERVE(builder->arena, &builder->output_types, count, &capacity, 4));
    PEN_TRY(
        PEN_RESERVE(builder->arena, &builder->output_masks, count, &builder->output_capacity, 4));
    PEN_TRY(pen_graph_add_symbol(builder->graph, "batch", &type.shape.dims[0]));
    builder->output_types[count] = type;
    builder->output_masks[count] = tensor->mask_rank > 0 ? tensor->mask : PEN_VALUE_NONE;
    return PEN_OK;
}

const pen_tensor_type *pen_layer_output_types(const pen_layer_builder *builder) {
    return builder->output_types;
}

pen_status pen_layer_add_output(pen_layer_builder *builder, const pen_layer_tensor *tensor,
                                const char *name) {
    const pen_layer_call call = {.builder = builder, .name = name};
    pen_layer_tensor output;
    PEN_TRY(layer_note_output(builder, tensor));
    PEN_TRY(pen_layer_plain(&call, tensor, &output));
    if (!layer_is_free(builder->graph, output.value)) {
        PEN_TRY(pen_layer_map(&call, "identity", "output", output.value, &output.value));
    }
    PEN_TRY(pen_graph_rename_value(builder->graph, output.value, name));
    return pen_graph_add_output(builder->graph, output.value);
}

// ---- layers

// Ranks are checked once for all layers, with the meaning of the dimensions in the message.
static pen_status layer_check_inputs(const pen_layer_call *call) {
    const pen_layer *layer = call->layer;
    if (call->input_count < layer->input_min || call->input_count > layer->input_max) {
        const bool few = call->input_count < layer->input_min;
        return pen_error(PEN_INVALID_INPUT, "it reads %u, expected at %s %u", call->input_count,
                         few ? "least" : "most", few ? layer->input_min : layer->input_max);
    }
    for (uint32_t i = 0; i < call->input_count && layer->input_rank > 0; i++) {
        const pen_shape *shape = &call->inputs[i].shape;
        if (shape->rank == layer->input_rank) continue;
        static const char *const expected[] = {"",
                                               "",
                                               "(batch, features)",
                                               "(batch, steps, channels)",
                                               "(batch, height, width, channels)",
                                               "(batch, depth, height, width, channels)"};
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "its input is %s, expected %u dimensions, as %s; reshape can add some",
                         pen_layer_shape_format(shape, text), layer->input_rank,
                         expected[layer->input_rank]);
    }
    return PEN_OK;
}

static pen_status layer_note(const pen_layer_call *call) {
    pen_layer_builder *builder = call->builder;
    const uint32_t index = (uint32_t)(call->layer - pen_layer_at(0));
    const uint32_t before = pen_name_map_find(&builder->layer_names, call->name);
    builder->is_again = before != PEN_NAME_MAP_NONE;
    if (!builder->is_again) {
        const char *name;
        PEN_TRY(pen_arena_copy_text(builder->arena, call->name, strlen(call->name), &name));
        return pen_name_map_add(&builder->layer_names, name, index);
    }
    if (before == index) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "a layer of this name is a %s", pen_layer_at(before)->name);
}

// So that products of sizes, in the layers behind it, stay within 64 bits.
static pen_status layer_check_result(const pen_shape *shape) {
    int64_t product = 1;
    for (uint32_t i = 1; i < shape->rank; i++) {
        if (shape->dims[i] >= 1 && shape->dims[i] <= PEN_LAYER_ELEMENTS_LIMIT / product) {
            product *= shape->dims[i];
            continue;
        }
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "its result is %s, expected at most %lld elements",
                         pen_layer_shape_format(shape, text), PEN_LAYER_ELEMENTS_LIMIT);
    }
    return PEN_OK;
}

void pen_layer_builder_set_dry(pen_layer_builder *builder) {
    builder->is_dry = true;
}

static pen_status layer_build(const pen_layer_call *call, pen_layer_result *out_result) {
    PEN_TRY(layer_check_inputs(call));
    PEN_TRY(layer_note(call));
    call->builder->trains = ((const pen_layer_common *)call->options)->trainable;
    PEN_TRY(call->layer->build(call, out_result));
    for (uint32_t i = 0; i < out_result->count; i++) {
        const pen_layer_common *common = call->options;
        PEN_TRY(layer_check_result(&out_result->tensors[i].shape));
        PEN_TRY(pen_layer_penalize_result(call, &common->activity_regularizer,
                                          &out_result->tensors[i]));
    }
    return pen_layer_pass_masks(call, out_result);
}

pen_status pen_layer_apply(pen_layer_builder *builder, const pen_layer_call *given,
                           pen_layer_result *out_result) {
    pen_layer_call own = *given;
    const pen_layer_call *call = &own;
    own.builder = builder;
    *out_result = (pen_layer_result){.count = 0};
    const pen_status status = layer_build(call, out_result);
    if (status == PEN_OK || pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    const pen_status whole = pen_error(pen_status_get_code(status), "%s '%.100s': %s",
                                       call->layer->name, call->name, pen_status_message(status));
    pen_status_ignore(status, "its message goes on behind the layer");
    if (call->source.file == NULL) return whole;
    return pen_status_at_position(whole, call->source.file, call->source.line, call->source.column);
}

pen_status pen_layer_make_name(pen_layer_builder *builder, const pen_layer *layer,
                               const char **out_name) {
    uint32_t *count = &builder->name_counts[layer - pen_layer_at(0)];
    for (;; *count += 1) {
        *out_name = layer->name;
        if (*count > 0) {
            PEN_TRY(pen_arena_format(builder->arena, out_name, "%s_%u", layer->name, *count));
        }
        const uint32_t taken = pen_name_map_find(&builder->layer_names, *out_name);
        if (taken == PEN_NAME_MAP_NONE) return PEN_OK;
    }
}
