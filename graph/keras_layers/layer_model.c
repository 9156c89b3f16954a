#include "graph/keras_layers/layer_model.h"

#include <string.h>

#include "base/name_map.h"
#include "base/reserve.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/keras_layers/layer_choices.h"
#include "graph/keras_layers/layer_list.h"

// ---- tables

static const pen_option_field layer_entry_fields[] = {
#define LAYER_FIELD(symbol, class_name, options_table, function, rank, least, most, says)          \
    {.key = #symbol,                                                                               \
     .kind = PEN_OPTION_MAPPING,                                                                   \
     .offset = offsetof(pen_layer_entry, options),                                                 \
     .table = &pen_layer_##options_table##_options,                                                \
     .help = (says)},
    PEN_LAYERS(LAYER_FIELD)
#undef LAYER_FIELD
};
static const pen_option_table layer_entry_table = {
    PEN_OPTION_FIELDS(pen_layer_entry, layer_entry_fields),
    .chosen_offset = offsetof(pen_layer_entry, chosen),
    .explain = pen_layer_explain_layer,
};
const pen_option_field pen_layer_entry_item = {.kind = PEN_OPTION_ONE_OF,
                                               .table = &layer_entry_table};

// int32 is taken as int64, which is what data of whole numbers are
static const char *const layer_input_elements[] = {"float32", "int64", "int32", NULL};
static const pen_option_field layer_input_fields[] = {
    PEN_LAYER_SIZES(pen_layer_model_input, shape, NULL, true, "its shape, without the batch"),
    PEN_LAYER_CHOICE(pen_layer_model_input, dtype, layer_input_elements, "float32",
                     "type of its elements"),
};
static const pen_option_table layer_input_table = {
    PEN_OPTION_FIELDS(pen_layer_model_input, layer_input_fields)};
const pen_option_field pen_layer_model_input_item = {.kind = PEN_OPTION_MAPPING,
                                                     .table = &layer_input_table};

typedef struct layer_model_whole {
    pen_layer_model model;
} layer_model_whole;

static const pen_option_field layer_model_fields[] = {
    PEN_LAYER_MODEL_FIELDS(layer_model_whole, model),
};
const pen_option_table pen_layer_model_table = {
    .help = "A model of layers.", PEN_OPTION_FIELDS(pen_layer_model, layer_model_fields)};

// ---- building

typedef struct assembly_applied {
    const char *name;
    const pen_layer *layer;
    const void *options;
} assembly_applied;

typedef struct layer_assembly {
    const pen_option_source *source;
    pen_graph *graph;
    pen_arena *arena;
    pen_layer_builder *builder;
    pen_name_map names;        // of tensors
    pen_layer_tensor *tensors; // [tensor_capacity]
    const char **tensor_names; // [tensor_capacity]
    uint32_t tensor_count;
    uint32_t tensor_capacity;
    assembly_applied *applied; // [layers of the model], those so far
    uint32_t applied_count;
    uint32_t last; // the tensor that the layer before gave; PEN_NAME_MAP_NONE: none yet
} layer_assembly;

static pen_source assembly_source(const layer_assembly *assembly, const void *field) {
    const pen_yaml_node *node = pen_option_find_node(assembly->source, field);
    if (node == NULL) return (pen_source){.file = NULL};
    return (pen_source){.file = node->file, .line = node->line, .column = node->column};
}

// Inputs and results of layers share one space of names.
static pen_status assembly_add(layer_assembly *assembly, const char *name,
                               const pen_layer_tensor *tensor) {
    if (pen_name_map_find(&assembly->names, name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "two inputs or layers are called '%.100s'", name);
    }
    uint32_t capacity = assembly->tensor_capacity;
    PEN_TRY(PEN_RESERVE(assembly->arena, &assembly->tensor_names, assembly->tensor_count, &capacity,
                        64));
    PEN_TRY(PEN_RESERVE(assembly->arena, &assembly->tensors, assembly->tensor_count,
                        &assembly->tensor_capacity, 64));
    PEN_TRY(pen_name_map_add(&assembly->names, name, assembly->tensor_count));
    assembly->tensor_names[assembly->tensor_count] = name;
    assembly->tensors[assembly->tensor_count++] = *tensor;
    return PEN_OK;
}

static pen_status assembly_refuse_name(const layer_assembly *assembly, const char *name) {
    const char *possible;
    pen_text text;
    pen_text_init(&text, assembly->arena);
    pen_text_add_names(&text, name, assembly->tensor_names, assembly->tensor_count, 12);
    PEN_TRY(pen_text_finish(&text, &possible));
    return pen_error(PEN_INVALID_INPUT, "no input or layer before is called '%.100s'%s%s", name,
                     assembly->tensor_count > 0 ? "; possible: " : "", possible);
}

static pen_status assembly_find(const layer_assembly *assembly, const char *name,
                                pen_layer_tensor *out_tensor) {
    const uint32_t index = pen_name_map_find(&assembly->names, name);
    if (index == PEN_NAME_MAP_NONE) return assembly_refuse_name(assembly, name);
    *out_tensor = assembly->tensors[index];
    return PEN_OK;
}

static pen_status assembly_input(layer_assembly *assembly, const pen_layer_model_input *input) {
    static const pen_element_type elements[] = {PEN_FLOAT32, PEN_INT64, PEN_INT64};
    pen_shape shape = {.rank = input->shape.count};
    const int64_t *sizes = input->shape.items;
    pen_layer_tensor tensor;
    memcpy(shape.dims, sizes, shape.rank * sizeof *sizes);
    PEN_TRY(pen_layer_add_input(assembly->builder, input->key, elements[input->dtype], &shape,
                                assembly_source(assembly, &input->key), &tensor));
    assembly->last = assembly->tensor_count;
    return assembly_add(assembly, input->key, &tensor);
}

// What a layer reads: those that it names, or the one before.
static pen_status assembly_operands(const layer_assembly *assembly, const pen_layer *layer,
                                    const pen_layer_common *common, pen_layer_tensor **out_operands,
                                    uint32_t *out_count) {
    const char *const *names = common->from.items;
    const uint32_t count = common->from.count;
    pen_layer_tensor *operands = NULL;
    *out_count = 0;
    PEN_TRY(PEN_NEW(assembly->arena, count + 1u, &operands));
    *out_operands = operands;
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(assembly_find(assembly, names[i], &operands[i]));
    }
    *out_count = count;
    if (count > 0 || layer->input_max == 0) return PEN_OK;
    if (assembly->last == PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT,
                         "the model has no input: give it 'inputs', or a first layer "
                         "'input: {shape: [28, 28, 1]}'");
    }
    operands[0] = assembly->tensors[assembly->last];
    *out_count = 1;
    return PEN_OK;
}

static pen_status assembly_results(layer_assembly *assembly, const char *name,
                                   const pen_layer_result *result) {
    assembly->last = assembly->tensor_count;
    for (uint32_t i = 0; i < result->count; i++) {
        const char *part = name;
        if (i > 0) PEN_TRY(pen_arena_format(assembly->arena, &part, "%s:%u", name, i));
        PEN_TRY(assembly_add(assembly, part, &result->tensors[i]));
    }
    return PEN_OK;
}

// The builder does not see shared layers: they are counted here.
static pen_status assembly_make_name(layer_assembly *assembly, const pen_layer *layer,
                                     const char **out_name) {
    if (layer != pen_layer_at(PEN_LAYER_AT_shared)) {
        return pen_layer_make_name(assembly->builder, layer, out_name);
    }
    *out_name = layer->name;
    for (uint32_t i = 1; pen_name_map_find(&assembly->names, *out_name) != PEN_NAME_MAP_NONE; i++) {
        PEN_TRY(pen_arena_format(assembly->arena, out_name, "%s_%u", layer->name, i));
    }
    return PEN_OK;
}

// The entry of the layer that a shared one applies again.
static pen_status assembly_find_shared(const layer_assembly *assembly, const char *name,
                                       const assembly_applied **out_applied) {
    const char **names = NULL;
    PEN_TRY(PEN_NEW(assembly->arena, assembly->applied_count + 1u, &names));
    for (uint32_t i = 0; i < assembly->applied_count; i++) {
        names[i] = assembly->applied[i].name;
        if (strcmp(names[i], name) != 0) continue;
        *out_applied = &assembly->applied[i];
        return PEN_OK;
    }
    const char *possible;
    pen_text text;
    pen_text_init(&text, assembly->arena);
    pen_text_add_names(&text, name, names, assembly->applied_count, 12);
    PEN_TRY(pen_text_finish(&text, &possible));
    return pen_error(PEN_INVALID_INPUT, "no layer before is called '%.100s'%s%s", name,
                     assembly->applied_count > 0 ? "; possible: " : "", possible);
}

// Applies a layer of before under the name it has, so that its weights are found again. Results are
// called after the entry.
static pen_status assembly_apply(layer_assembly *assembly, const char *name, pen_layer_call *call,
                                 pen_layer_result *out_result) {
    const assembly_applied *applied;
    if (call->layer == pen_layer_at(PEN_LAYER_AT_shared)) {
        PEN_TRY(assembly_find_shared(assembly, pen_layer_shared_name(call->options), &applied));
        call->layer = applied->layer;
        call->options = applied->options;
        call->name = applied->name;
    } else {
        assembly->applied[assembly->applied_count++] =
            (assembly_applied){name, call->layer, call->options};
    }
    return pen_layer_apply(assembly->builder, call, out_result);
}

// Adds a layer to the graph and its results to the names; without a name it gets one as Keras makes
// them.
static pen_status assembly_layer(layer_assembly *assembly, const pen_layer_entry *entry) {
    const pen_layer *layer = pen_layer_at(entry->chosen);
    const pen_layer_common *common = (const pen_layer_common *)(const void *)entry->options;
    pen_layer_tensor *operands = NULL;
    pen_layer_result result;
    pen_layer_call call = {.layer = layer,
                           .name = common->name,
                           .options = common,
                           .source = assembly_source(assembly, entry)};
    if (call.name == NULL) {
        PEN_TRY(assembly_make_name(assembly, layer, &call.name));
    } else if (pen_name_map_find(&assembly->names, call.name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "two inputs or layers are called '%.100s'", call.name);
    }
    PEN_TRY(assembly_operands(assembly, layer, common, &operands, &call.input_count));
    call.inputs = operands;
    const char *name = call.name;
    PEN_TRY(assembly_apply(assembly, name, &call, &result));
    return assembly_results(assembly, name, &result);
}

// Without `outputs`, the last layer is the model's output.
static pen_status assembly_outputs(layer_assembly *assembly, const pen_layer_model *model) {
    const char *const *names = model->outputs.items;
    for (uint32_t i = 0; i < model->outputs.count; i++) {
        pen_layer_tensor tensor;
        pen_status status = assembly_find(assembly, names[i], &tensor);
        for (uint32_t j = 0; j < i && status == PEN_OK; j++) {
            if (strcmp(names[j], names[i]) != 0) continue;
            status = pen_error(PEN_INVALID_INPUT, "outputs: '%.100s' is there twice", names[i]);
        }
        if (status != PEN_OK) return pen_option_blame(assembly->source, &names[i], status);
        PEN_TRY(pen_layer_add_output(assembly->builder, &tensor, names[i]));
    }
    if (model->outputs.count > 0) return PEN_OK;
    const uint32_t last = assembly->last;
    if (last == PEN_NAME_MAP_NONE) {
        return pen_error(PEN_INVALID_INPUT, "the model has neither `inputs` nor `layers`");
    }
    return pen_layer_add_output(assembly->builder, &assembly->tensors[last],
                                assembly->tensor_names[last]);
}

// Every error is blamed on the line of the entry that caused it.
pen_status pen_layer_model_build(const pen_layer_model *model, const pen_option_source *source,
                                 pen_graph *graph, pen_layer_builder **out_builder) {
    layer_assembly assembly = {.source = source,
                               .graph = graph,
                               .arena = pen_graph_arena(graph),
                               .last = PEN_NAME_MAP_NONE};
    const pen_layer_model_input *inputs = model->inputs.items;
    const pen_layer_entry *entries = model->layers.items;
    pen_name_map_init(&assembly.names, assembly.arena);
    PEN_TRY(PEN_NEW(assembly.arena, model->layers.count, &assembly.applied));
    PEN_TRY(pen_layer_builder_new(graph, (uint64_t)model->seed, &assembly.builder));
    if (model->is_dry) pen_layer_builder_set_dry(assembly.builder);
    for (uint32_t i = 0; i < model->inputs.count; i++) {
        const pen_status status = assembly_input(&assembly, &inputs[i]);
        if (status != PEN_OK) return pen_option_blame(source, &inputs[i].key, status);
    }
    for (uint32_t i = 0; i < model->layers.count; i++) {
        const pen_status status = assembly_layer(&assembly, &entries[i]);
        if (status != PEN_OK) return pen_option_blame(source, &entries[i], status);
    }
    *out_builder = assembly.builder;
    return assembly_outputs(&assembly, model);
}
