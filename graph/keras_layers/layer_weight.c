// Weights: parameters and states of the graph, their first contents, and Keras' view of them.

#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/reserve.h"
#include "graph/graph.h"
#include "graph/keras_layers/layer_builder.h"

uint32_t pen_layer_weight_count(const pen_layer_builder *builder) {
    return builder->weight_count;
}

const pen_layer_weight *pen_layer_weight_at(const pen_layer_builder *builder, uint32_t index) {
    PEN_ASSERT(index < builder->weight_count);
    return &builder->weights[index]->weight;
}

// Where the element at `position` of Keras' weight stands in the parameter.
static int64_t weight_offset(const pen_layer_weight *weight, const int64_t *position) {
    int64_t offset = weight->offset;
    for (uint32_t d = 0; d < weight->shape.rank; d++) {
        int64_t at = position[d];
        if (weight->block_count > 1 && d == weight->block_axis) {
            const int64_t length = weight->shape.dims[d] / weight->block_count;
            at = weight->block_order[at / length] * length + at % length;
        }
        offset += at * weight->strides[d];
    }
    return offset;
}

static void weight_next(const pen_layer_weight *weight, int64_t *position) {
    for (uint32_t d = weight->shape.rank; d-- > 0;) {
        if (++position[d] < weight->shape.dims[d]) break;
        position[d] = 0;
    }
}

static void weight_scatter(const pen_layer_weight *weight, const unsigned char *numbers,
                           float *contents) {
    const int64_t count = pen_shape_element_count(&weight->shape);
    int64_t position[PEN_RANK_LIMIT] = {0};
    for (int64_t i = 0; i < count; i++) {
        memcpy(&contents[weight_offset(weight, position)], numbers + (size_t)i * sizeof(float),
               sizeof(float));
        weight_next(weight, position);
    }
}

void pen_layer_weight_read(const pen_layer_weight *weight, const void *contents, void *numbers) {
    const int64_t count = pen_shape_element_count(&weight->shape);
    const unsigned char *from = contents;
    unsigned char *to = numbers;
    int64_t position[PEN_RANK_LIMIT] = {0};
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * sizeof(float),
               from + (size_t)weight_offset(weight, position) * sizeof(float), sizeof(float));
        weight_next(weight, position);
    }
}

static pen_layer_record *weight_find(const pen_layer_builder *builder,
                                     const pen_layer_weight *weight) {
    for (uint32_t i = 0; i < builder->weight_count; i++) {
        if (&builder->weights[i]->weight == weight) return builder->weights[i];
    }
    return NULL;
}

void pen_layer_builder_expect_contents(pen_layer_builder *builder, uint64_t bytes_limit) {
    builder->expects_contents = true;
    builder->bytes_limit =
        bytes_limit < PEN_LAYER_CONTENTS_BYTES_LIMIT ? bytes_limit : PEN_LAYER_CONTENTS_BYTES_LIMIT;
}

void pen_layer_weight_fill(pen_layer_builder *builder, const pen_layer_weight *weight,
                           const void *numbers) {
    pen_layer_record *record = weight_find(builder, weight);
    PEN_ASSERT(record != NULL && record->contents != NULL);
    weight_scatter(weight, numbers, record->contents);
}

static pen_status weight_append(pen_layer_builder *builder, const char *name,
                                pen_layer_record *record) {
    PEN_TRY(PEN_RESERVE(builder->arena, &builder->weights, builder->weight_count,
                        &builder->weight_capacity, 64));
    PEN_TRY(pen_name_map_add(&builder->weight_names, name, builder->weight_count));
    builder->weights[builder->weight_count++] = record;
    return PEN_OK;
}

// The parameter itself, with room for its contents.
static pen_status weight_make_value(const pen_layer_call *call, const char *name, bool is_state,
                                    const pen_shape *stored, pen_value_id *out_value) {
    pen_layer_builder *builder = call->builder;
    float *contents = NULL;
    pen_value spec = {.name = name,
                      .kind = is_state ? PEN_VALUE_STATE : PEN_VALUE_PARAMETER,
                      .type = {PEN_FLOAT32, *stored},
                      .trainable = !is_state && builder->trains,
                      .source = call->source};
    PEN_TRY(pen_tensor_type_check(&spec.type));
    spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    if (!builder->is_dry) {
        const uint64_t limit =
            builder->expects_contents ? builder->bytes_limit : PEN_LAYER_CONTENTS_BYTES_LIMIT;
        if (spec.data_bytes > limit || builder->contents_bytes > limit - spec.data_bytes) {
            return pen_error(PEN_INVALID_INPUT, "the weights so far are above %llu bytes%s",
                             (unsigned long long)limit,
                             builder->expects_contents ? ", more than is made of a file of its size"
                                                       : "");
        }
        builder->contents_bytes += spec.data_bytes;
        PEN_TRY(PEN_NEW(builder->arena, (size_t)pen_shape_element_count(stored), &contents));
        spec.data = contents;
    }
    return pen_graph_add_own_value(builder->graph, &spec, out_value);
}

static pen_status weight_found_again(const pen_layer_record *record, const pen_layer_weight *weight,
                                     pen_value_id *out_value) {
    if (!pen_shape_equal(&record->weight.shape, &weight->shape)) {
        char before[PEN_SHAPE_TEXT_BYTES], now[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "it is applied a second time, and its %s would have to be %s, but is %s",
                         weight->name, pen_shape_format(&weight->shape, now),
                         pen_shape_format(&record->weight.shape, before));
    }
    *out_value = record->weight.value;
    return PEN_OK;
}

// Weights that stay zero and weights that a file will fill need no numbers drawn. An LSTM's forget
// gate starts at 1.
static pen_status weight_first_contents(pen_layer_builder *builder, const char *name,
                                        const pen_layer_contents *contents,
                                        const pen_layer_record *record) {
    const int64_t count = pen_shape_element_count(&record->weight.shape);
    const pen_layer_initializer *initializer = &contents->options.initializer;
    const bool is_zeros = initializer->kind == PEN_LAYER_ZEROS && !contents->is_forget;
    if (is_zeros || count == 0 || builder->expects_contents) return PEN_OK;
    pen_arena *scratch = NULL;
    float *numbers = NULL;
    PEN_TRY(pen_arena_create(&scratch));
    pen_status status = PEN_NEW(scratch, (size_t)count, &numbers);
    if (status == PEN_OK) {
        status =
            pen_layer_initialize(initializer, builder->seed, name, &record->weight.shape, numbers);
    }
    for (int64_t i = count / 4; status == PEN_OK && contents->is_forget && i < count / 2; i++) {
        numbers[i] = 1; // input, forget, cell and output gate
    }
    if (status == PEN_OK) {
        weight_scatter(&record->weight, (const unsigned char *)numbers, record->contents);
    }
    pen_arena_destroy(scratch);
    return status;
}

// A layer that is applied twice finds its weights by name and shares them.
pen_status pen_layer_add_weight(const pen_layer_call *call, const pen_layer_weight *weight,
                                const pen_layer_contents *contents, const pen_shape *stored,
                                pen_value_id *io_value) {
    pen_layer_builder *builder = call->builder;
    const char *name;
    pen_layer_record *record = NULL;
    PEN_TRY(pen_arena_format(builder->arena, &name, "%s/%s", call->name, weight->name));
    const uint32_t before = pen_name_map_find(&builder->weight_names, name);
    if (before != PEN_NAME_MAP_NONE) {
        return weight_found_again(builder->weights[before], weight, io_value);
    }
    if (!pen_value_is(*io_value)) {
        PEN_TRY(weight_make_value(call, name, contents->is_state, stored, io_value));
        PEN_TRY(pen_layer_penalize_weight(call, weight->name, &contents->options.regularizer,
                                          *io_value));
    }
    PEN_TRY(PEN_NEW(builder->arena, 1, &record));
    record->weight = *weight;
    record->weight.value = *io_value;
    if (record->weight.block_count == 0) record->weight.block_count = 1;
    PEN_TRY(
        pen_arena_copy_text(builder->arena, call->name, strlen(call->name), &record->weight.layer));
    PEN_TRY(pen_arena_copy_text(builder->arena, weight->name, strlen(weight->name),
                                &record->weight.name));
    // ours, made above: a graph keeps contents as constant
    record->contents = (float *)(uintptr_t)pen_graph_value(builder->graph, *io_value)->data;
    PEN_TRY(weight_append(builder, name, record));
    if (builder->is_dry) return PEN_OK;
    return weight_first_contents(builder, name, contents, record);
}

pen_status pen_layer_add_bias(const pen_layer_call *call, const pen_layer_weight_options *options,
                              int64_t count, pen_value_id *out_value) {
    *out_value = PEN_VALUE_NONE;
    if (options == NULL) return PEN_OK;
    const pen_layer_whole_weight bias = {
        .name = "bias", .shape = {1, {count}}, .contents.options = *options};
    return pen_layer_add_whole_weight(call, &bias, out_value);
}

pen_status pen_layer_add_whole_weight(const pen_layer_call *call,
                                      const pen_layer_whole_weight *spec, pen_value_id *out_value) {
    pen_layer_weight weight = {.name = spec->name, .shape = spec->shape};
    const pen_tensor_type type = {PEN_FLOAT32, spec->shape};
    pen_shape stored = spec->shape;
    PEN_TRY(pen_tensor_type_check(&type));
    for (uint32_t d = 0; spec->axes != NULL && d < stored.rank; d++) {
        stored.dims[spec->axes[d]] = spec->shape.dims[d];
    }
    for (uint32_t d = 0; d < stored.rank; d++) {
        const uint32_t axis = spec->axes == NULL ? d : spec->axes[d];
        weight.strides[d] = pen_shape_count(&stored, axis + 1, stored.rank);
    }
    *out_value = PEN_VALUE_NONE;
    return pen_layer_add_weight(call, &weight, &spec->contents, &stored, out_value);
}
