#include "graph/import/keras/keras_weights.h"

#include <ctype.h>
#include <string.h>

#include "base/limits.h"
#include "base/name_map.h"
#include "base/reserve.h"
#include "base/text.h"
#include "graph/graph.h"

#define WEIGHTS_PROBLEMS_SHOWN 20
#define WEIGHTS_DEPTH_LIMIT 6 // of groups within the group of one layer

// Indices of weights of the builder.
typedef struct weights_list {
    uint32_t *items;
    uint32_t count;
} weights_list;

typedef struct weights_loader {
    const pen_keras_weights *weights;
    pen_keras_dataset *datasets; // [dataset_count], that weights were read from
    uint32_t dataset_count;
    uint32_t dataset_capacity;
    pen_text problems;
    uint32_t problem_count;
    // of the layer being loaded
    const char *layer;
    weights_list expected; // in Keras' order
    const char **paths;    // [path_count], of datasets
    uint32_t path_count;
    uint32_t path_capacity;
} weights_loader;

static bool weights_begin_problem(weights_loader *loader) {
    loader->problem_count += 1;
    if (loader->problem_count > WEIGHTS_PROBLEMS_SHOWN) return false;
    pen_text_add(&loader->problems, loader->problem_count > 1 ? "; " : "");
    return true;
}

// ---- what a layer is to have

static uint32_t weights_count_of(const pen_keras_model *model) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const pen_keras_layer *layer = &model->layers[i];
        count += layer->model != NULL ? weights_count_of(layer->model) : layer->weight_count;
    }
    return count;
}

static uint32_t weights_count_of_layer(const pen_keras_layer *layer) {
    return layer->model != NULL ? weights_count_of(layer->model) : layer->weight_count;
}

enum { WEIGHTS_TRAINED = 1, WEIGHTS_KEPT = 2, WEIGHTS_ALL = 3 };

static bool weights_is_state(const pen_keras_weights *weights, uint32_t index) {
    const pen_layer_weight *weight = pen_layer_weight_at(weights->builder, index);
    return pen_graph_value(weights->graph, weight->value)->kind == PEN_VALUE_STATE;
}

// Keras lists what a layer trains, then what it does not; a frozen one trains nothing, and lists
// the weights of each layer within it together.
static void weights_collect(const pen_keras_weights *weights, const pen_keras_layer *layer,
                            int wanted, weights_list *list) {
    if (wanted == WEIGHTS_ALL && layer->is_trainable) {
        weights_collect(weights, layer, WEIGHTS_TRAINED, list);
        weights_collect(weights, layer, WEIGHTS_KEPT, list);
        return;
    }
    if (!layer->is_trainable && wanted == WEIGHTS_TRAINED) return;
    const int within = layer->is_trainable ? wanted : WEIGHTS_ALL;
    for (uint32_t i = 0; layer->model != NULL && i < layer->model->layer_count; i++)
        weights_collect(weights, &layer->model->layers[i], within, list);
    for (uint32_t i = 0; layer->model == NULL && i < layer->weight_count; i++) {
        const bool is_state = weights_is_state(weights, layer->weight_first + i);
        const int kind = is_state ? WEIGHTS_KEPT : WEIGHTS_TRAINED;
        if ((kind & within) != 0) list->items[list->count++] = layer->weight_first + i;
    }
}

static pen_status weights_expect(weights_loader *loader, const pen_keras_layer *layer) {
    const uint32_t count = weights_count_of_layer(layer);
    loader->layer = layer->name;
    loader->path_count = 0;
    loader->expected.count = 0;
    PEN_TRY(PEN_NEW(loader->weights->arena, count, &loader->expected.items));
    weights_collect(loader->weights, layer, WEIGHTS_ALL, &loader->expected);
    return PEN_OK;
}

// ---- filling

static void weights_complain_of_type(weights_loader *loader, const char *path,
                                     const pen_tensor_type *found, const pen_shape *expected) {
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    if (!weights_begin_problem(loader)) return;
    pen_text_print(&loader->problems, "'%.300s' is %s, layer '%.200s' has float32%s", path,
                   pen_tensor_type_format(found, texts[0]), loader->layer,
                   pen_shape_format(expected, texts[1]));
}

static pen_status weights_note(weights_loader *loader, const char *path, uint32_t index) {
    const uint64_t offset = pen_hdf5_find_offset(loader->weights->file, path);
    PEN_TRY(PEN_RESERVE(loader->weights->arena, &loader->datasets, loader->dataset_count,
                        &loader->dataset_capacity, 64));
    loader->datasets[loader->dataset_count++] = (pen_keras_dataset){index, path, offset};
    return PEN_OK;
}

static pen_status weights_fill(weights_loader *loader, const char *path, uint32_t index) {
    const pen_keras_weights *weights = loader->weights;
    const pen_layer_weight *weight = pen_layer_weight_at(weights->builder, index);
    pen_tensor_type type;
    const void *data;
    PEN_TRY(pen_hdf5_find_type(weights->file, path, &type));
    if (type.element == PEN_FLOAT32 && pen_shape_equal(&type.shape, &weight->shape)) {
        PEN_TRY(pen_hdf5_read_dataset(weights->file, path, weights->arena, &type, &data));
        pen_layer_weight_fill(weights->builder, weight, data);
        return weights_note(loader, path, index);
    }
    weights_complain_of_type(loader, path, &type, &weight->shape);
    return PEN_OK;
}

static pen_status weights_fill_layer(weights_loader *loader, const pen_keras_layer *layer) {
    // how many examples the means are of
    const bool has_count = strcmp(layer->class_name, "Normalization") == 0;
    if (has_count && loader->path_count == loader->expected.count + 1) loader->path_count -= 1;
    if (loader->path_count == loader->expected.count) {
        for (uint32_t i = 0; i < loader->path_count; i++)
            PEN_TRY(weights_fill(loader, loader->paths[i], loader->expected.items[i]));
        return PEN_OK;
    }
    if (weights_begin_problem(loader)) {
        pen_text_print(&loader->problems, "layer '%.200s' has %u weights, the file %u",
                       loader->layer, loader->expected.count, loader->path_count);
    }
    return PEN_OK;
}

static pen_status weights_add_path(weights_loader *loader, const char *path) {
    if (loader->path_count == loader->path_capacity) {
        const char **grown;
        const uint32_t capacity = loader->path_capacity * 2 + 16;
        PEN_TRY(PEN_NEW(loader->weights->arena, capacity, &grown));
        if (loader->path_count > 0) {
            memcpy(grown, loader->paths, loader->path_count * sizeof *grown);
        }
        loader->paths = grown;
        loader->path_capacity = capacity;
    }
    loader->paths[loader->path_count++] = path;
    return PEN_OK;
}

// ---- the first way: lists of names

static pen_status weights_add_names(weights_loader *loader, const char *group,
                                    const char *attribute, bool *out_found) {
    const pen_keras_weights *weights = loader->weights;
    uint32_t count;
    const char *const *names;
    const char *path;
    PEN_TRY(pen_hdf5_read_texts(weights->file, group, attribute, &count, &names));
    *out_found = names != NULL;
    if (names == NULL) return PEN_OK;
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_arena_format(weights->arena, &path, "%s/%s", group, names[i]));
        PEN_TRY(weights_add_path(loader, path));
    }
    return PEN_OK;
}

// Long lists are in pieces: weight_names0, weight_names1, …
static pen_status weights_list_names(weights_loader *loader, const char *group) {
    bool is_found = false;
    PEN_TRY(weights_add_names(loader, group, "weight_names", &is_found));
    for (uint32_t piece = 0; piece == 0 || is_found; piece++) {
        const char *attribute;
        PEN_TRY(pen_arena_format(loader->weights->arena, &attribute, "weight_names%u", piece));
        PEN_TRY(weights_add_names(loader, group, attribute, &is_found));
    }
    return PEN_OK;
}

static pen_status weights_load_named(weights_loader *loader, const pen_keras_layer *layer) {
    const pen_keras_weights *weights = loader->weights;
    const char *group;
    PEN_TRY(weights_expect(loader, layer));
    PEN_TRY(pen_arena_format(weights->arena, &group, "%s%s%s", weights->root,
                             strcmp(weights->root, "/") == 0 ? "" : "/", layer->name));
    if (pen_hdf5_find(weights->file, group) == PEN_HDF5_GROUP)
        PEN_TRY(weights_list_names(loader, group));
    return weights_fill_layer(loader, layer);
}

// ---- the second way: by place

static pen_status weights_list_numbers(weights_loader *loader, const char *group) {
    const pen_keras_weights *weights = loader->weights;
    for (uint32_t i = 0; i < PEN_HDF5_CHILDREN_LIMIT; i++) {
        const char *path;
        PEN_TRY(pen_arena_format(weights->arena, &path, "%s/vars/%u", group, i));
        if (pen_hdf5_find(weights->file, path) != PEN_HDF5_DATASET) return PEN_OK;
        PEN_TRY(weights_add_path(loader, path));
    }
    return PEN_OK;
}

// Those of a layer, then of the parts that some layers have, in the order in which we list them.
static pen_status weights_list_parts(weights_loader *loader, const char *group, uint32_t depth) {
    static const char *const parts[] = {
        "cell",         "layer",       "forward_layer", "backward_layer",
        "_query_dense", "query_dense", "_key_dense",    "key_dense",
        "_value_dense", "value_dense", "_output_dense", "output_dense",
    };
    const pen_keras_weights *weights = loader->weights;
    if (pen_hdf5_find(weights->file, group) != PEN_HDF5_GROUP) return PEN_OK;
    PEN_TRY(weights_list_numbers(loader, group));
    for (size_t i = 0; i < sizeof parts / sizeof *parts && depth < WEIGHTS_DEPTH_LIMIT; i++) {
        const char *part;
        PEN_TRY(pen_arena_format(weights->arena, &part, "%s/%s", group, parts[i]));
        if (pen_hdf5_find(weights->file, part) == PEN_HDF5_GROUP)
            PEN_TRY(weights_list_parts(loader, part, depth + 1));
    }
    return PEN_OK;
}

// "SeparableConv2D" as Keras writes it in names: "separable_conv2d".
static pen_status weights_snake_case(const char *class_name, pen_arena *arena,
                                     const char **out_name) {
    pen_text text;
    pen_text_init(&text, arena);
    for (const char *c = class_name; *c != '\0'; c++) {
        const bool is_upper = isupper((unsigned char)*c) != 0;
        const bool after_lower = c > class_name && islower((unsigned char)c[-1]) != 0;
        const bool before_lower = islower((unsigned char)c[1]) != 0 || isdigit((unsigned char)c[1]);
        if (is_upper && c > class_name && (after_lower || before_lower)) pen_text_add(&text, "_");
        const char lower = (char)tolower((unsigned char)*c);
        pen_text_append(&text, &lower, 1);
    }
    return pen_text_finish(&text, out_name);
}

// The class in Keras' own code, which files of weights go by.
static const char *weights_own_class(const char *class_name) {
    const bool is_other = strcmp(class_name, "GroupQueryAttention") == 0;
    return is_other ? "GroupedQueryAttention" : class_name;
}

// How many layers of each class were met in a container.
typedef struct weights_counts {
    pen_name_map names;
    uint32_t *counts; // by the index in the map
} weights_counts;

static pen_status weights_next_name(weights_counts *counts, const char *class_name, uint32_t times,
                                    pen_arena *arena, const char **out_name) {
    const char *snake;
    PEN_TRY(weights_snake_case(weights_own_class(class_name), arena, &snake));
    uint32_t index = pen_name_map_find(&counts->names, snake);
    if (index == PEN_NAME_MAP_NONE) {
        index = counts->names.count;
        PEN_TRY(pen_name_map_add(&counts->names, snake, index));
    }
    *out_name = snake;
    const uint32_t before = counts->counts[index];
    counts->counts[index] += times;
    return before == 0 ? PEN_OK : pen_arena_format(arena, out_name, "%s_%u", snake, before);
}

static pen_status weights_load_model(weights_loader *loader, const pen_keras_model *model,
                                     const char *group);

static pen_status weights_load_placed(weights_loader *loader, const pen_keras_layer *layer,
                                      const char *group) {
    if (layer->model != NULL) return weights_load_model(loader, layer->model, group);
    PEN_TRY(weights_expect(loader, layer));
    PEN_TRY(weights_list_parts(loader, group, 0));
    return weights_fill_layer(loader, layer);
}

// Keras 2 walks a dictionary in which layers with weights stand twice, and numbers both.
static pen_status weights_load_model(weights_loader *loader, const pen_keras_model *model,
                                     const char *group) {
    static const char *const containers[] = {"_layer_checkpoint_dependencies", "layers"};
    const pen_keras_weights *weights = loader->weights;
    weights_counts counts;
    const char *container = NULL;
    bool is_twice = false;
    for (size_t i = 0; i < 2 && container == NULL; i++) {
        const char *path;
        PEN_TRY(pen_arena_format(weights->arena, &path, "%s/%s",
                                 strcmp(group, "/") == 0 ? "" : group, containers[i]));
        if (pen_hdf5_find(weights->file, path) == PEN_HDF5_GROUP) container = path;
        is_twice = i == 0;
    }
    if (container == NULL) container = group;
    pen_name_map_init(&counts.names, weights->arena);
    PEN_TRY(PEN_NEW(weights->arena, model->layer_count, &counts.counts));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const pen_keras_layer *layer = &model->layers[i];
        const bool has_weights = weights_count_of_layer(layer) > 0;
        const char *name, *path;
        PEN_TRY(weights_next_name(&counts, layer->class_name, is_twice && has_weights ? 2 : 1,
                                  weights->arena, &name));
        PEN_TRY(pen_arena_format(weights->arena, &path, "%s/%s", container, name));
        PEN_TRY(weights_load_placed(loader, layer, path));
    }
    return PEN_OK;
}

// ---- all

static pen_status weights_load_all(weights_loader *loader, const pen_keras_model *model) {
    if (loader->weights->is_by_place) {
        return weights_load_model(loader, model, loader->weights->root);
    }
    for (uint32_t i = 0; i < model->layer_count; i++)
        PEN_TRY(weights_load_named(loader, &model->layers[i]));
    return PEN_OK;
}

pen_status pen_keras_weights_load(const pen_keras_weights *weights, const pen_keras_model *model,
                                  pen_keras_origin *origin) {
    weights_loader loader = {.weights = weights};
    const char *problems;
    pen_text_init(&loader.problems, weights->arena);
    PEN_TRY(weights_load_all(&loader, model));
    origin->datasets = loader.datasets;
    origin->dataset_count = loader.dataset_count;
    if (loader.problem_count == 0) return PEN_OK;
    if (loader.problem_count > WEIGHTS_PROBLEMS_SHOWN) {
        pen_text_print(&loader.problems, "; and %u more",
                       loader.problem_count - WEIGHTS_PROBLEMS_SHOWN);
    }
    PEN_TRY(pen_text_finish(&loader.problems, &problems));
    return pen_error(PEN_INVALID_INPUT, "the file's weights are not those of its layers: %s",
                     problems);
}
