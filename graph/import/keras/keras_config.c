#include "graph/import/keras/keras_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

// A layer by its name, for finding.
typedef struct config_name {
    const char *name;
    uint32_t layer;
} config_name;

typedef struct config_reader {
    pen_arena *arena;
    pen_keras_model *model;
    config_name *names;  // [layer_count], in order of names
    const json_t *items; // the list of layers
    uint32_t item_first; // the layer that the first of them is
} config_reader;

static pen_status config_read_model(const json_t *root, pen_arena *arena, uint32_t depth,
                                    pen_keras_model **out_model);

static const char *config_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static bool config_is_model(const char *class_name) {
    return strcmp(class_name, "Sequential") == 0 || strcmp(class_name, "Functional") == 0 ||
           strcmp(class_name, "Model") == 0;
}

// ---- layers

static const json_t *config_shape(const json_t *config) {
    const json_t *shape = json_object_get(config, "batch_input_shape");
    if (!json_is_array(shape)) shape = json_object_get(config, "batch_shape");
    return json_is_array(shape) ? shape : NULL;
}

// Versions of Keras keep the name and `trainable` in either of two places.
static pen_status config_read_layer(config_reader *reader, const json_t *item, uint32_t depth,
                                    pen_keras_layer *layer) {
    const json_t *config = json_object_get(item, "config");
    const char *class_name = config_text(item, "class_name");
    if (class_name == NULL || !json_is_object(config)) {
        return pen_error(PEN_INVALID_INPUT,
                         "model '%.200s': a layer lacks \"class_name\" or \"config\"",
                         reader->model->name);
    }
    const char *name = config_text(config, "name");
    if (name == NULL) name = config_text(item, "name");
    if (name == NULL || name[0] == '\0' || strlen(name) > PEN_NAME_BYTES_LIMIT / 2) {
        return pen_error(PEN_INVALID_INPUT,
                         "model '%.200s': a layer of class %.200s has no name, or a very long one",
                         reader->model->name, class_name);
    }
    const json_t *trainable = json_object_get(config, "trainable");
    if (trainable == NULL) trainable = json_object_get(item, "trainable");
    *layer = (pen_keras_layer){.name = name,
                               .class_name = class_name,
                               .config = config,
                               .is_input = strcmp(class_name, "InputLayer") == 0,
                               .is_trainable = !json_is_false(trainable)};
    if (layer->is_input) layer->shape = config_shape(config);
    if (!config_is_model(class_name)) return PEN_OK;
    return config_read_model(item, reader->arena, depth + 1, &layer->model);
}

static int config_compare_names(const void *a, const void *b) {
    return strcmp(((const config_name *)a)->name, ((const config_name *)b)->name);
}

static pen_status config_index_names(config_reader *reader) {
    const pen_keras_model *model = reader->model;
    PEN_TRY(PEN_NEW(reader->arena, model->layer_count, &reader->names));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        reader->names[i] = (config_name){model->layers[i].name, i};
    }
    qsort(reader->names, model->layer_count, sizeof *reader->names, config_compare_names);
    for (uint32_t i = 1; i < model->layer_count; i++) {
        if (strcmp(reader->names[i].name, reader->names[i - 1].name) != 0) continue;
        return pen_error(PEN_INVALID_INPUT, "model '%.200s': two layers are called '%.200s'",
                         model->name, reader->names[i].name);
    }
    return PEN_OK;
}

// An input that a sequential model of old does not list: its first layer says the shape.
static void config_add_input(const pen_keras_model *model, const json_t *config,
                             const json_t *first) {
    const json_t *shape = config_shape(json_object_get(first, "config"));
    if (shape == NULL) shape = json_object_get(config, "build_input_shape");
    model->layers[0] = (pen_keras_layer){.name = "input",
                                         .class_name = "InputLayer",
                                         .config = json_object_get(first, "config"),
                                         .shape = json_is_array(shape) ? shape : NULL,
                                         .is_input = true,
                                         .is_trainable = true};
}

static bool config_begins_with_input(const json_t *items) {
    const char *class_name = config_text(json_array_get(items, 0), "class_name");
    return class_name != NULL && strcmp(class_name, "InputLayer") == 0;
}

static pen_status config_read_layers(config_reader *reader, const json_t *config, uint32_t depth) {
    pen_keras_model *model = reader->model;
    reader->items = json_is_array(config) ? config : json_object_get(config, "layers");
    const size_t count = json_array_size(reader->items);
    if (count == 0 || count > PEN_KERAS_LAYERS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "model '%.200s' has %zu layers, expected 1 to %u",
                         model->name, count, PEN_KERAS_LAYERS_LIMIT);
    }
    reader->item_first = model->is_sequential && !config_begins_with_input(reader->items) ? 1 : 0;
    model->layer_count = (uint32_t)count + reader->item_first;
    PEN_TRY(PEN_NEW(reader->arena, model->layer_count, &model->layers));
    if (reader->item_first == 1) config_add_input(model, config, json_array_get(reader->items, 0));
    for (uint32_t i = reader->item_first; i < model->layer_count; i++) {
        PEN_TRY(config_read_layer(reader, json_array_get(reader->items, i - reader->item_first),
                                  depth, &model->layers[i]));
    }
    return config_index_names(reader);
}

// ---- who reads whom

// References as they are collected. Two walks: the first counts.
typedef struct config_list {
    const config_reader *reader;
    const char *where; // the layer that refers, or the model
    uint32_t count;
    pen_keras_reference *references; // NULL: only counted
    pen_status status;
} config_list;

static void config_fail(config_list *list, pen_status error) {
    if (list->status == PEN_OK) {
        list->status = error;
    } else {
        pen_status_ignore(error, "the first is told");
    }
}

// Called twice for each list: once to count, once to fill.
static void config_take(config_list *list, const json_t *name, const json_t *call,
                        const json_t *tensor) {
    const config_name wanted = {json_string_value(name), 0};
    const config_name *found =
        bsearch(&wanted, list->reader->names, list->reader->model->layer_count, sizeof wanted,
                config_compare_names);
    json_int_t call_index = json_integer_value(call);
    const json_int_t tensor_index = json_integer_value(tensor);
    if (found == NULL) {
        config_fail(list, pen_error(PEN_INVALID_INPUT, "'%.200s' reads '%.200s', which is no layer",
                                    list->where, wanted.name));
        return;
    }
    if (call_index < 0 || call_index > UINT16_MAX || tensor_index < 0 ||
        tensor_index > UINT16_MAX) {
        config_fail(list, pen_error(PEN_INVALID_INPUT,
                                    "'%.200s' reads a result of '%.200s' that it cannot have",
                                    list->where, wanted.name));
        return;
    }
    // of a model, Keras counts how it was made as call 0, which the file does not list
    if (list->reader->model->layers[found->layer].model != NULL && call_index > 0) call_index--;
    if (list->references != NULL) {
        list->references[list->count] =
            (pen_keras_reference){found->layer, (uint32_t)call_index, (uint32_t)tensor_index};
    }
    list->count += 1;
}

// ["dense", 0, 0], with arguments behind.
static bool config_is_reference(const json_t *value) {
    return json_is_array(value) && json_is_string(json_array_get(value, 0)) &&
           json_is_integer(json_array_get(value, 1)) && json_is_integer(json_array_get(value, 2));
}

// {"class_name": "__keras_tensor__", "config": {"keras_history": ["dense", 0, 0]}}
static const json_t *config_history(const json_t *value) {
    const char *class_name = config_text(value, "class_name");
    if (class_name == NULL || strcmp(class_name, "__keras_tensor__") != 0) return NULL;
    return json_object_get(json_object_get(value, "config"), "keras_history");
}

// Every reference within `value`, in order. (JSON that was read is not nested deeply.)
static void config_collect(config_list *list, const json_t *value) {
    const json_t *history = config_history(value);
    const char *key;
    json_t *member;
    if (history != NULL) value = history;
    if (config_is_reference(value)) {
        config_take(list, json_array_get(value, 0), json_array_get(value, 1),
                    json_array_get(value, 2));
        return;
    }
    for (size_t i = 0; i < json_array_size(value); i++)
        config_collect(list, json_array_get(value, i));
    if (!json_is_object(value)) return;
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        config_collect(list, member);
    }
}

// Tensors among the arguments: of attention in the order in which it takes them, others as written.
static void config_collect_arguments(config_list *list, const json_t *arguments) {
    static const char *const first[] = {"query", "value", "key", "initial_state"};
    const char *key;
    json_t *member;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        config_collect(list, json_object_get(arguments, first[i]));
    json_object_foreach((json_t *)(uintptr_t)arguments, key, member) {
        bool is_done = false;
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
            is_done = is_done || strcmp(key, first[i]) == 0;
        // masks follow from the layers that make them
        if (!is_done && strcmp(key, "mask") != 0) config_collect(list, member);
    }
}

// The arguments of a call in the form of Keras 2: behind the first reference.
static const json_t *config_find_arguments(const json_t *node) {
    while (json_is_array(node) && !config_is_reference(node))
        node = json_array_get(node, 0);
    const json_t *arguments = json_array_get(node, 3);
    return json_is_object(arguments) ? arguments : NULL;
}

static const json_t *config_node_arguments(const json_t *node) {
    return json_is_object(node) ? json_object_get(node, "kwargs") : config_find_arguments(node);
}

static void config_collect_node(config_list *list, const json_t *node) {
    config_collect(list, json_is_object(node) ? json_object_get(node, "args") : node);
    config_collect_arguments(list, config_node_arguments(node));
}

typedef void (*config_collector)(config_list *list, const json_t *value);

static pen_status config_gather(const config_reader *reader, const char *where,
                                config_collector collect, const json_t *value, uint32_t *out_count,
                                pen_keras_reference **out_references) {
    config_list list = {.reader = reader, .where = where};
    collect(&list, value);
    if (list.status != PEN_OK) return list.status;
    PEN_TRY(PEN_NEW(reader->arena, list.count, &list.references));
    list.count = 0;
    collect(&list, value);
    *out_count = list.count;
    *out_references = list.references;
    return list.status;
}

static pen_status config_read_mask(const config_reader *reader, const pen_keras_layer *layer,
                                   pen_keras_call *call) {
    uint32_t count;
    pen_keras_reference *masks;
    PEN_TRY(config_gather(reader, layer->name, config_collect,
                          json_object_get(call->arguments, "mask"), &count, &masks));
    call->is_masked = count == 1;
    if (call->is_masked) call->mask = masks[0];
    return PEN_OK;
}

// NotEqual of one tensor and 0.
static bool config_is_mask(const json_t *item, const pen_keras_layer *layer) {
    const json_t *node = json_array_get(json_object_get(item, "inbound_nodes"), 0);
    const json_t *other = json_array_get(json_object_get(node, "args"), 1);
    return strcmp(layer->class_name, "NotEqual") == 0 && layer->call_count == 1 &&
           layer->calls->input_count == 1 && json_is_number(other) && json_number_value(other) == 0;
}

// Who reads whom, in the form of Keras 2 or 3; a call has its tensors, other arguments and mask.
static pen_status config_read_calls(const config_reader *reader, const json_t *item,
                                    pen_keras_layer *layer) {
    const json_t *nodes = json_object_get(item, "inbound_nodes");
    const size_t count = json_array_size(nodes);
    if (count > UINT16_MAX) {
        return pen_error(PEN_INVALID_INPUT, "'%.200s' is applied too often", layer->name);
    }
    layer->call_count = layer->is_input ? 1 : (uint32_t)count;
    PEN_TRY(PEN_NEW(reader->arena, layer->call_count, &layer->calls));
    for (uint32_t i = 0; i < layer->call_count && !layer->is_input; i++) {
        const json_t *node = json_array_get(nodes, i);
        pen_keras_call *call = &layer->calls[i];
        PEN_TRY(config_gather(reader, layer->name, config_collect_node, node, &call->input_count,
                              &call->inputs));
        call->arguments = config_node_arguments(node);
        PEN_TRY(config_read_mask(reader, layer, call));
    }
    layer->is_mask = config_is_mask(item, layer);
    return PEN_OK;
}

// Each layer reads the one before.
static pen_status config_chain(const config_reader *reader) {
    pen_keras_model *model = reader->model;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        pen_keras_layer *layer = &model->layers[i];
        if (layer->is_input && i > 0) {
            return pen_error(PEN_INVALID_INPUT, "model '%.200s': input '%.200s' is not the first",
                             model->name, layer->name);
        }
        layer->call_count = 1;
        PEN_TRY(PEN_NEW(reader->arena, 1, &layer->calls));
        if (i == 0) continue;
        layer->calls->input_count = 1;
        PEN_TRY(PEN_NEW(reader->arena, 1, &layer->calls->inputs));
        layer->calls->inputs[0] = (pen_keras_reference){.layer = i - 1};
    }
    model->input_count = model->output_count = 1;
    PEN_TRY(PEN_NEW(reader->arena, 1, &model->inputs));
    PEN_TRY(PEN_NEW(reader->arena, 1, &model->outputs));
    model->outputs[0].layer = model->layer_count - 1;
    return PEN_OK;
}

static pen_status config_check_reference(const pen_keras_model *model,
                                         const pen_keras_reference *reference, const char *where) {
    const pen_keras_layer *layer = &model->layers[reference->layer];
    if (reference->call < layer->call_count) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "'%.200s' reads call %u of '%.200s', which is applied %u times", where,
                     reference->call, layer->name, layer->call_count);
}

// What is read as any other tensor is more than a mask.
static void config_find_masks(pen_keras_model *model) {
    for (uint32_t i = 0; i < model->output_count; i++) {
        model->layers[model->outputs[i].layer].is_mask = false;
    }
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const pen_keras_layer *layer = &model->layers[l];
        for (uint32_t c = 0; c < layer->call_count; c++) {
            for (uint32_t i = 0; i < layer->calls[c].input_count; i++) {
                model->layers[layer->calls[c].inputs[i].layer].is_mask = false;
            }
        }
    }
}

// Checked after all layers are read, since a reference may point to a later one.
static pen_status config_check(const pen_keras_model *model) {
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const pen_keras_layer *layer = &model->layers[l];
        for (uint32_t c = 0; c < layer->call_count; c++) {
            for (uint32_t i = 0; i < layer->calls[c].input_count; i++) {
                PEN_TRY(config_check_reference(model, &layer->calls[c].inputs[i], layer->name));
            }
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++)
        PEN_TRY(config_check_reference(model, &model->outputs[i], model->name));
    for (uint32_t i = 0; i < model->input_count; i++) {
        PEN_TRY(config_check_reference(model, &model->inputs[i], model->name));
        const pen_keras_layer *layer = &model->layers[model->inputs[i].layer];
        if (layer->is_input) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "model '%.200s': its input '%.200s' is a layer of class %.200s, expected "
                         "InputLayer",
                         model->name, layer->name, layer->class_name);
    }
    if (model->input_count > 0 && model->output_count > 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "model '%.200s' has no inputs or no outputs", model->name);
}

static pen_status config_connect(const config_reader *reader, const json_t *config) {
    pen_keras_model *model = reader->model;
    if (model->is_sequential) return config_chain(reader);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        PEN_TRY(config_read_calls(reader, json_array_get(reader->items, i), &model->layers[i]));
    }
    PEN_TRY(config_gather(reader, model->name, config_collect,
                          json_object_get(config, "input_layers"), &model->input_count,
                          &model->inputs));
    PEN_TRY(config_gather(reader, model->name, config_collect,
                          json_object_get(config, "output_layers"), &model->output_count,
                          &model->outputs));
    config_find_masks(model);
    return config_check(model);
}

// ---- models

// Calls itself for models inside of models, to a limited depth.
static pen_status config_read_model(const json_t *root, pen_arena *arena, uint32_t depth,
                                    pen_keras_model **out_model) {
    const char *class_name = config_text(root, "class_name");
    const json_t *config = json_object_get(root, "config");
    pen_keras_model *model;
    if (class_name == NULL || config == NULL) {
        return pen_error(PEN_INVALID_INPUT, "the model's configuration lacks \"class_name\" or "
                                            "\"config\"");
    }
    if (!config_is_model(class_name)) {
        return pen_error(PEN_UNSUPPORTED,
                         "the model is of class %.200s, which only the program that made it knows; "
                         "possible are Sequential and Functional",
                         class_name);
    }
    if (depth >= PEN_NESTING_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "models are nested more than %d deep",
                         PEN_NESTING_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, 1, &model));
    config_reader reader = {.arena = arena, .model = model};
    const char *name = config_text(config, "name");
    model->name = name != NULL ? name : "model";
    model->is_sequential = strcmp(class_name, "Sequential") == 0;
    PEN_TRY(config_read_layers(&reader, config, depth));
    PEN_TRY(config_connect(&reader, config));
    *out_model = model;
    return PEN_OK;
}

pen_status pen_keras_config_read(const json_t *root, pen_arena *arena,
                                 pen_keras_model **out_model) {
    return config_read_model(root, arena, 0, out_model);
}
