#include "graph/import/keras/keras_build.h"

#include <string.h>

#include "base/limits.h"

typedef struct build_state {
    pen_layer_builder *builder;
    pen_arena *arena;
    const char *file;
    const pen_keras_site *site;
    uint32_t applied; // layers, of all models
} build_state;

// A model being built. Calls are numbered through all layers.
typedef struct build_model {
    build_state *state;
    pen_keras_model *model;
    const char *prefix;             // of names: "" or "trunk/"
    const pen_layer_tensor *inputs; // of the model; NULL: the graph's are to be made
    uint32_t *first_calls;          // [layer_count]
    uint32_t *layers;               // [call_count], of each call
    uint8_t *marks;                 // [call_count]
    uint32_t *stack;                // [call_count]
    uint32_t call_count;
    pen_layer_result *results; // [call_count]
    uint8_t *readers;          // [layer_count]
} build_model;

enum { BUILD_NEW, BUILD_WAITING, BUILD_DONE };                 // marks
enum { BUILD_READ_BY_EMBEDDING = 1, BUILD_READ_BY_OTHER = 2 }; // readers

static pen_status build_run(build_state *state, pen_keras_model *model, const char *prefix,
                            const pen_layer_tensor *inputs, const pen_layer_tensor **out_outputs);

// ---- inputs

// Which layers embeddings read, and which others do.
static pen_status build_note_readers(build_model *build) {
    const pen_keras_model *model = build->model;
    PEN_TRY(PEN_NEW(build->state->arena, model->layer_count, &build->readers));
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const pen_keras_layer *layer = &model->layers[l];
        const bool is_embedding = strcmp(layer->class_name, "Embedding") == 0 || layer->is_mask;
        for (uint32_t c = 0; c < layer->call_count; c++) {
            for (uint32_t i = 0; i < layer->calls[c].input_count; i++) {
                build->readers[layer->calls[c].inputs[i].layer] |=
                    is_embedding ? BUILD_READ_BY_EMBEDDING : BUILD_READ_BY_OTHER;
            }
        }
    }
    return PEN_OK;
}

static pen_status build_input_element(const build_model *build, uint32_t index,
                                      pen_element_type *out_element) {
    const pen_keras_layer *layer = &build->model->layers[index];
    const char *name = json_string_value(json_object_get(layer->config, "dtype"));
    pen_element_type element = PEN_FLOAT32;
    if (name != NULL) {
        PEN_TRY(pen_status_add_context(pen_element_find(name, &element), "in input '%.200s'",
                                       layer->name));
    }
    *out_element = element;
    // what nothing but embeddings read are indices, whatever Keras calls their type
    if (pen_element_is_integer(element) || build->readers[index] == BUILD_READ_BY_EMBEDDING) {
        *out_element = PEN_INT64;
    }
    return PEN_OK;
}

// What the user says of an input's sizes; NULL: nothing.
static const pen_import_input_shape *build_find_shape(const build_state *state, const char *name) {
    for (uint32_t i = 0; i < state->site->input_shape_count; i++) {
        if (strcmp(state->site->input_shapes[i].name, name) == 0) {
            return &state->site->input_shapes[i];
        }
    }
    return NULL;
}

// A size that the file does not say is asked for; one that it says stays.
static pen_status build_input_size(const pen_keras_layer *layer, size_t index,
                                   const pen_import_input_shape *given, int64_t *out_size) {
    const json_t *size = json_array_get(layer->shape, index);
    const bool is_known = json_is_integer(size) && json_integer_value(size) > 0;
    const int64_t said = given == NULL ? 0 : ((const int64_t *)given->sizes.items)[index - 1];
    *out_size = is_known ? json_integer_value(size) : said;
    if (is_known && said > 0 && said != *out_size) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.200s': dimension %zu is %lld in the file, and %lld in the job's "
                         "input_shapes",
                         layer->name, index, (long long)*out_size, (long long)said);
    }
    if (*out_size > 0) return PEN_OK;
    return pen_error(
        PEN_INVALID_INPUT,
        "input '%.200s': the file does not say dimension %zu; say it in a job: 'model: "
        "{input_shapes: {%.200s: [%s]}}', without the batch",
        layer->name, index, layer->name, json_array_size(layer->shape) == 2 ? "80" : "80, …");
}

// Sizes that the file leaves open come from the job's input_shapes.
static pen_status build_input_shape(const build_state *state, const pen_keras_layer *layer,
                                    pen_shape *out_shape) {
    const pen_import_input_shape *given = build_find_shape(state, layer->name);
    *out_shape = (pen_shape){0};
    const size_t rank = json_array_size(layer->shape);
    if (layer->shape == NULL || rank == 0 || rank > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.200s' has no shape, or one of more than %d dimensions",
                         layer->name, PEN_RANK_LIMIT);
    }
    if (given != NULL && given->sizes.count != rank - 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.200s' has %zu dimensions without the batch, and %u in the job's "
                         "input_shapes",
                         layer->name, rank - 1, given->sizes.count);
    }
    out_shape->rank = (uint32_t)rank - 1;
    for (size_t i = 1; i < rank; i++) {
        PEN_TRY(build_input_size(layer, i, given, &out_shape->dims[i - 1]));
    }
    return PEN_OK;
}

// A model inside a model takes its inputs from the call, the outermost one adds them to the graph.
static pen_status build_add_input(build_model *build, uint32_t input) {
    const pen_keras_model *model = build->model;
    const uint32_t index = model->inputs[input].layer;
    const pen_keras_layer *layer = &model->layers[index];
    const uint32_t call = build->first_calls[index];
    pen_layer_tensor *tensor = &build->results[call].tensors[0];
    if (build->marks[call] == BUILD_DONE) {
        return pen_error(PEN_INVALID_INPUT, "model '%.200s' has the input '%.200s' twice",
                         model->name, layer->name);
    }
    build->marks[call] = BUILD_DONE;
    build->results[call].count = 1;
    if (build->inputs != NULL) {
        *tensor = build->inputs[input];
        return PEN_OK;
    }
    pen_element_type element;
    pen_shape shape;
    const pen_source source = {.file = build->state->file, .position = index};
    PEN_TRY(build_input_element(build, index, &element));
    PEN_TRY(build_input_shape(build->state, layer, &shape));
    return pen_layer_add_input(build->state->builder, layer->name, element, &shape, source, tensor);
}

// ---- layers

static const pen_layer_tensor *build_find(const build_model *build,
                                          const pen_keras_reference *reference) {
    const uint32_t call = build->first_calls[reference->layer] + reference->call;
    const pen_layer_result *result = &build->results[call];
    return reference->tensor < result->count ? &result->tensors[reference->tensor] : NULL;
}

static pen_status build_gather(const build_model *build, const char *where,
                               const pen_keras_reference *references, uint32_t count,
                               pen_layer_tensor **out_tensors) {
    pen_layer_tensor *tensors;
    PEN_TRY(PEN_NEW(build->state->arena, count, &tensors));
    for (uint32_t i = 0; i < count; i++) {
        const pen_layer_tensor *tensor = build_find(build, &references[i]);
        if (tensor == NULL) {
            return pen_error(PEN_INVALID_INPUT, "'%.200s' reads result %u of '%.200s'%s", where,
                             references[i].tensor, build->model->layers[references[i].layer].name,
                             ", which has fewer");
        }
        tensors[i] = *tensor;
    }
    *out_tensors = tensors;
    return PEN_OK;
}

// A model as a layer is built where it is called; its weights are shared between calls by name.
static pen_status build_apply_model(build_model *build, pen_keras_layer *layer,
                                    const pen_layer_tensor *inputs, uint32_t input_count,
                                    pen_layer_result *result) {
    pen_keras_model *inner = layer->model;
    const char *prefix;
    const pen_layer_tensor *outputs;
    if (input_count != inner->input_count || inner->output_count > PEN_LAYER_OUTPUT_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "model '%.200s', as a layer, has %u inputs and %u outputs, and is given "
                         "%u; expected as many inputs, and at most %u outputs",
                         layer->name, inner->input_count, inner->output_count, input_count,
                         PEN_LAYER_OUTPUT_LIMIT);
    }
    PEN_TRY(pen_arena_format(build->state->arena, &prefix, "%s%s/", build->prefix, layer->name));
    if (strlen(prefix) > PEN_NAME_BYTES_LIMIT / 2) {
        return pen_error(PEN_INVALID_INPUT, "the name of model '%.200s' is too long", layer->name);
    }
    PEN_TRY(build_run(build->state, inner, prefix, inputs, &outputs));
    memcpy(result->tensors, outputs, inner->output_count * sizeof *outputs);
    result->count = inner->output_count;
    return PEN_OK;
}

static pen_status build_apply_layer(build_model *build, pen_keras_layer *layer,
                                    const pen_layer_tensor *inputs, uint32_t input_count,
                                    pen_layer_result *result) {
    pen_layer_builder *builder = build->state->builder;
    const uint32_t first = pen_layer_weight_count(builder);
    pen_layer_call call = {.layer = layer->builds,
                           .options = layer->options,
                           .inputs = inputs,
                           .input_count = input_count,
                           .source = {.file = build->state->file,
                                      .position = (uint32_t)(layer - build->model->layers)}};
    PEN_TRY(pen_arena_format(build->state->arena, &call.name, "%s%s", build->prefix, layer->name));
    PEN_TRY(pen_layer_apply(builder, &call, result));
    if (layer->is_built) return PEN_OK;
    layer->is_built = true;
    layer->weight_first = first;
    layer->weight_count = pen_layer_weight_count(builder) - first;
    return PEN_OK;
}

static pen_status build_apply(build_model *build, uint32_t call_index) {
    pen_keras_layer *layer = &build->model->layers[build->layers[call_index]];
    const uint32_t call_of_layer = call_index - build->first_calls[build->layers[call_index]];
    const pen_keras_call *call = &layer->calls[call_of_layer];
    pen_layer_tensor *inputs = NULL;
    if (layer->is_input) {
        return pen_error(PEN_INVALID_INPUT, "'%.200s' is read, but is no input of model '%.200s'",
                         layer->name, build->model->name);
    }
    PEN_TRY(build_gather(build, layer->name, call->inputs, call->input_count, &inputs));
    pen_layer_result *result = &build->results[call_index];
    if (layer->model != NULL) {
        return build_apply_model(build, layer, inputs, call->input_count, result);
    }
    return build_apply_layer(build, layer, inputs, call->input_count, result);
}

// ---- order

// Puts what `call` reads and is not there yet above it on the stack. Returns whether all is there.
static pen_status build_push_needs(build_model *build, uint32_t call_index, uint32_t *depth,
                                   bool *out_ready) {
    const uint32_t layer_index = build->layers[call_index];
    const pen_keras_layer *layer = &build->model->layers[layer_index];
    const pen_keras_call *call = &layer->calls[call_index - build->first_calls[layer_index]];
    *out_ready = true;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const uint32_t needed = build->first_calls[call->inputs[i].layer] + call->inputs[i].call;
        if (build->marks[needed] == BUILD_DONE) continue;
        *out_ready = false;
        if (build->marks[needed] == BUILD_WAITING) {
            return pen_error(PEN_INVALID_INPUT, "'%.200s' reads what depends on it", layer->name);
        }
        build->marks[needed] = BUILD_WAITING;
        build->stack[(*depth)++] = needed;
        return PEN_OK; // one after the other, so that what waits is a path
    }
    return PEN_OK;
}

// Applies a call, and what it needs before.
static pen_status build_reach(build_model *build, uint32_t call) {
    uint32_t depth = 0;
    if (build->marks[call] == BUILD_DONE) return PEN_OK;
    build->marks[call] = BUILD_WAITING;
    build->stack[depth++] = call;
    while (depth > 0) {
        const uint32_t top = build->stack[depth - 1];
        bool is_ready;
        PEN_TRY(build_push_needs(build, top, &depth, &is_ready));
        if (!is_ready) continue;
        PEN_TRY(build_apply(build, top));
        build->marks[top] = BUILD_DONE;
        depth--;
    }
    return PEN_OK;
}

// ---- models

// Calls of all layers are numbered through, so that results and marks are plain arrays. The limit
// covers models in models, too.
static pen_status build_number_calls(build_model *build) {
    const pen_keras_model *model = build->model;
    pen_arena *arena = build->state->arena;
    PEN_TRY(PEN_NEW(arena, model->layer_count, &build->first_calls));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        build->first_calls[i] = build->call_count;
        build->call_count += model->layers[i].call_count;
        if (build->call_count > PEN_INLINED_NODES_LIMIT - build->state->applied) {
            return pen_error(PEN_UNSUPPORTED, "more than %u layers are applied",
                             PEN_INLINED_NODES_LIMIT);
        }
    }
    build->state->applied += build->call_count;
    PEN_TRY(PEN_NEW(arena, build->call_count, &build->layers));
    PEN_TRY(PEN_NEW(arena, build->call_count, &build->marks));
    PEN_TRY(PEN_NEW(arena, build->call_count, &build->stack));
    PEN_TRY(PEN_NEW(arena, build->call_count, &build->results));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        for (uint32_t c = 0; c < model->layers[i].call_count; c++)
            build->layers[build->first_calls[i] + c] = i;
    }
    return PEN_OK;
}

// Only what outputs depend on is built.
static pen_status build_run(build_state *state, pen_keras_model *model, const char *prefix,
                            const pen_layer_tensor *inputs, const pen_layer_tensor **out_outputs) {
    build_model build = {.state = state, .model = model, .prefix = prefix, .inputs = inputs};
    pen_layer_tensor *outputs;
    PEN_TRY(build_number_calls(&build));
    PEN_TRY(build_note_readers(&build));
    for (uint32_t i = 0; i < model->input_count; i++)
        PEN_TRY(build_add_input(&build, i));
    for (uint32_t i = 0; i < model->output_count; i++) {
        const pen_keras_reference *output = &model->outputs[i];
        PEN_TRY(build_reach(&build, build.first_calls[output->layer] + output->call));
    }
    PEN_TRY(build_gather(&build, model->name, model->outputs, model->output_count, &outputs));
    *out_outputs = outputs;
    return PEN_OK;
}

// Every shape that the user gives must be of an input.
static pen_status build_check_shapes(const pen_keras_model *model, const pen_keras_site *site) {
    for (uint32_t i = 0; i < site->input_shape_count; i++) {
        bool found = false;
        for (uint32_t n = 0; n < model->input_count; n++) {
            const char *name = model->layers[model->inputs[n].layer].name;
            found = found || strcmp(name, site->input_shapes[i].name) == 0;
        }
        if (found || model->input_count == 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "input_shapes has '%.200s', which is no input of the model; one is "
                         "'%.200s'",
                         site->input_shapes[i].name, model->layers[model->inputs[0].layer].name);
    }
    return PEN_OK;
}

pen_status pen_keras_build(pen_keras_model *model, const pen_keras_site *site,
                           pen_layer_builder *builder, pen_arena *arena,
                           const pen_layer_tensor **out_outputs) {
    build_state state = {.builder = builder, .arena = arena, .file = site->file, .site = site};
    PEN_TRY(build_check_shapes(model, site));
    PEN_TRY(build_run(&state, model, "", NULL, out_outputs));
    for (uint32_t i = 0; i < model->output_count; i++) {
        PEN_TRY(pen_layer_add_output(builder, &(*out_outputs)[i],
                                     model->layers[model->outputs[i].layer].name));
    }
    return PEN_OK;
}
