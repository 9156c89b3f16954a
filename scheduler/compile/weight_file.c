#include "scheduler/compile/weight_file.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/name_map.h"
#include "base/system/file.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/import/npz_file.h"
#include "graph/import/pytorch/pt2_export.h"
#include "graph/import/tensor_elements.h"
#include "graph/keras_layers/layer.h"
#include "scheduler/store/safetensors.h"

#define WEIGHT_PROBLEMS_SHOWN 20

struct pen_weight_file {
    pen_safetensors *safetensors; // or NULL
    pen_mapping archive;          // of NPZ whose arrays are borrowed; else all zero
    uint32_t halves_count;
};

typedef struct weight_entry {
    const char *name; // as in the file
    const pen_tensor_type *type;
    const void *data; // NULL: not read yet, which weight_read does
    bool is_used;
} weight_entry;

typedef struct weight_loader {
    const pen_weight_options *options;
    pen_model *model;
    pen_arena *arena;    // the model's
    pen_mapping archive; // of NPZ, and what is in it
    pen_npz npz;
    weight_entry *entries;
    uint32_t count;
    pen_name_map names; // as in the model, to entries
    pen_text problems;
    uint32_t problem_count;
    uint32_t used_count;
} weight_loader;

// ---- what the file has

static pen_status weight_list_npz(weight_loader *loader) {
    const char *path = loader->options->path;
    PEN_TRY(pen_mapping_open(path, &loader->archive));
    PEN_TRY(pen_npz_open(path, loader->archive.bytes, loader->archive.length, loader->arena,
                         &loader->npz));
    loader->count = loader->npz.count;
    PEN_TRY(PEN_NEW(loader->arena, loader->count, &loader->entries));
    for (uint32_t i = 0; i < loader->count; i++) {
        const pen_npz_array *array = &loader->npz.arrays[i];
        loader->entries[i] = (weight_entry){.name = array->name, .type = &array->type};
    }
    return PEN_OK;
}

// Contents are read, and so unpacked, once they are known to be of the model's shape: so the model,
// and not the archive, says how much memory that takes.
static pen_status weight_read(const weight_loader *loader, weight_entry *entry) {
    if (entry->data != NULL) return PEN_OK;
    const uint32_t index = (uint32_t)(entry - loader->entries);
    return pen_npz_read(&loader->npz, index, loader->arena, &entry->data);
}

static pen_status weight_list_safetensors(weight_loader *loader, pen_weight_file *file) {
    PEN_TRY(pen_safetensors_open(loader->options->path, &file->safetensors));
    loader->count = pen_safetensors_count(file->safetensors);
    PEN_TRY(PEN_NEW(loader->arena, loader->count, &loader->entries));
    for (uint32_t i = 0; i < loader->count; i++) {
        const pen_safetensors_entry *entry = pen_safetensors_at(file->safetensors, i);
        loader->entries[i] =
            (weight_entry){.name = entry->name, .type = &entry->type, .data = entry->data};
    }
    return PEN_OK;
}

// By the end of the name; what people give in place of such a file is said to be that.
static pen_status weight_list(weight_loader *loader, pen_weight_file *file) {
    const char *path = loader->options->path;
    const char *dot = strrchr(pen_path_name(path), '.');
    if (dot != NULL && strcasecmp(dot, ".safetensors") == 0) {
        return weight_list_safetensors(loader, file);
    }
    if (dot != NULL && strcasecmp(dot, ".npz") == 0) return weight_list_npz(loader);
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s' is a folder, expected a file of weights; of a folder of checkpoints "
                         "`penstock checkpoint export %s -o weights.safetensors` writes one",
                         path, path);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the kind of a file of weights is told by the end of its name; "
                     ".safetensors and .npz are possible; of a state dict of PyTorch's, "
                     "numpy.savez('weights.npz', **{name: tensor.numpy() for name, tensor in "
                     "torch.load('%s', 'cpu').items()}) writes one, or "
                     "safetensors.torch.save_file",
                     path, path);
}

// ---- names

static pen_status weight_rename(const weight_loader *loader, const char *name,
                                const char **out_name) {
    const pen_weight_rename *best = NULL;
    for (uint32_t i = 0; i < loader->options->rename_count; i++) {
        const pen_weight_rename *rename = &loader->options->renames[i];
        if (strncmp(name, rename->from, strlen(rename->from)) != 0) continue;
        if (best == NULL || strlen(rename->from) > strlen(best->from)) best = rename;
    }
    *out_name = name;
    if (best != NULL) {
        PEN_TRY(
            pen_arena_format(loader->arena, out_name, "%s%s", best->to, name + strlen(best->from)));
    }
    // TensorFlow's names of variables
    const size_t length = strlen(*out_name);
    const bool is_numbered = length > 2 && strcmp(*out_name + length - 2, ":0") == 0;
    if (loader->model->layers == NULL || !is_numbered) return PEN_OK;
    return pen_arena_copy_text(loader->arena, *out_name, length - 2, out_name);
}

static pen_status weight_index(weight_loader *loader) {
    pen_name_map_init(&loader->names, loader->arena);
    for (uint32_t i = 0; i < loader->count; i++) {
        const char *name;
        PEN_TRY(weight_rename(loader, loader->entries[i].name, &name));
        const uint32_t other = pen_name_map_find(&loader->names, name);
        if (other != PEN_NAME_MAP_NONE) {
            return pen_error(
                PEN_INVALID_INPUT, "%s: '%.200s' and '%.200s' are both '%.200s' in the model",
                loader->options->path, loader->entries[other].name, loader->entries[i].name, name);
        }
        PEN_TRY(pen_name_map_add(&loader->names, name, i));
    }
    return PEN_OK;
}

static weight_entry *weight_find(const weight_loader *loader, const char *name) {
    const uint32_t index = pen_name_map_find(&loader->names, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &loader->entries[index];
}

// ---- contents

static bool weight_complain(weight_loader *loader) {
    loader->problem_count += 1;
    if (loader->problem_count > WEIGHT_PROBLEMS_SHOWN) return false;
    pen_text_add(&loader->problems, loader->problem_count > 1 ? "; " : "");
    return true;
}

// Halves and doubles are the model's float32 when they are needed; everything else must agree. What
// does not is collected, so that one error has all of it.
static pen_status weight_set(weight_loader *loader, pen_value_id id, weight_entry *entry) {
    const pen_value *value = pen_graph_value(loader->model->graph, id);
    const pen_tensor_type *type = &value->type;
    const bool is_read_so =
        type->element == PEN_FLOAT32 && pen_element_is_float(entry->type->element);
    entry->is_used = true;
    loader->used_count += 1;
    if (!pen_shape_equal(&type->shape, &entry->type->shape) ||
        (type->element != entry->type->element && !is_read_so)) {
        char texts[2][PEN_SHAPE_TEXT_BYTES];
        if (!weight_complain(loader)) return PEN_OK;
        pen_text_print(&loader->problems, "'%.200s' is %s, the model's '%.200s' is %s", entry->name,
                       pen_tensor_type_format(entry->type, texts[0]), value->name,
                       pen_tensor_type_format(type, texts[1]));
        return PEN_OK;
    }
    PEN_TRY(weight_read(loader, entry));
    pen_graph_set_contents(loader->model->graph, id, entry->type->element, entry->data);
    return PEN_OK;
}

static pen_status weight_match_values(weight_loader *loader) {
    const pen_graph *graph = loader->model->graph;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        weight_entry *entry = weight_find(loader, value->name);
        if (entry != NULL) {
            PEN_TRY(weight_set(loader, (pen_value_id){v}, entry));
        } else if (!loader->options->is_partial && weight_complain(loader)) {
            pen_text_print(&loader->problems, "it lacks '%.200s'", value->name);
        }
    }
    return PEN_OK;
}

// ---- Keras' layout

static pen_status weight_find_keras(weight_loader *loader, const pen_layer_weight *weight,
                                    weight_entry **out_entry) {
    const char *name;
    PEN_TRY(pen_arena_format(loader->arena, &name, "%s/%s", weight->layer, weight->name));
    *out_entry = weight_find(loader, name);
    return PEN_OK;
}

static pen_status weight_fill(weight_loader *loader, const pen_layer_weight *weight,
                              weight_entry *entry) {
    const pen_tensor_type *type = entry->type;
    entry->is_used = true;
    loader->used_count += 1;
    if (!pen_element_is_float(type->element) || !pen_shape_equal(&type->shape, &weight->shape)) {
        char texts[2][PEN_SHAPE_TEXT_BYTES];
        if (!weight_complain(loader)) return PEN_OK;
        pen_text_print(&loader->problems, "'%.200s' is %s, '%s' of layer '%.200s' is float32%s",
                       entry->name, pen_tensor_type_format(type, texts[0]), weight->name,
                       weight->layer, pen_shape_format(&weight->shape, texts[1]));
        return PEN_OK;
    }
    PEN_TRY(weight_read(loader, entry));
    const void *data = entry->data;
    PEN_TRY(pen_tensor_convert(type, PEN_FLOAT32, loader->arena, &data));
    pen_layer_weight_fill(loader->model->layers, weight, data);
    return PEN_OK;
}

static pen_status weight_match_keras(weight_loader *loader) {
    const pen_layer_builder *layers = loader->model->layers;
    for (uint32_t i = 0; i < pen_layer_weight_count(layers); i++) {
        const pen_layer_weight *weight = pen_layer_weight_at(layers, i);
        weight_entry *entry;
        PEN_TRY(weight_find_keras(loader, weight, &entry));
        if (entry != NULL) {
            PEN_TRY(weight_fill(loader, weight, entry));
        } else if (!loader->options->is_partial && weight_complain(loader)) {
            pen_text_print(&loader->problems, "it lacks '%.200s/%s'", weight->layer, weight->name);
        }
    }
    return PEN_OK;
}

// Whether a weight of Keras' is the same numbers in the same order here.
static bool weight_is_plain(const pen_layer_weight *weight, const pen_shape *stored) {
    int64_t stride = 1;
    if (!pen_shape_equal(&weight->shape, stored) || weight->offset != 0 ||
        weight->block_count > 1) {
        return false;
    }
    for (uint32_t d = stored->rank; d-- > 0; stride *= stored->dims[d]) {
        if (stored->dims[d] > 1 && weight->strides[d] != stride) return false;
    }
    return true;
}

// What the shapes in the file say of its layout: the first entry that fits one of them alone, and
// the first that fits both.
typedef struct weight_evidence {
    const weight_entry *keras, *own, *both;
} weight_evidence;

static pen_status weight_look(weight_loader *loader, const pen_layer_weight *weight,
                              weight_evidence *evidence) {
    const pen_value *value = pen_graph_value(loader->model->graph, weight->value);
    const pen_shape *stored = &value->type.shape;
    weight_entry *keras;
    if (weight_is_plain(weight, stored)) return PEN_OK;
    PEN_TRY(weight_find_keras(loader, weight, &keras));
    const weight_entry *own = weight_find(loader, value->name);
    if (keras != NULL && !pen_shape_equal(&keras->type->shape, &weight->shape)) keras = NULL;
    if (own != NULL && !pen_shape_equal(&own->type->shape, stored)) own = NULL;
    if (keras != NULL && own != NULL) {
        if (evidence->both == NULL) evidence->both = keras;
    } else if (keras != NULL && evidence->keras == NULL) {
        evidence->keras = keras;
    } else if (own != NULL && evidence->own == NULL) {
        evidence->own = own;
    }
    return PEN_OK;
}

// A file's layout is told by the shapes in it. Where they fit both layouts nothing is guessed: the
// job must say it, for a wrong guess would train on transposed kernels.
static pen_status weight_choose_layout(weight_loader *loader, bool *out_is_keras) {
    const pen_layer_builder *layers = loader->model->layers;
    const char *path = loader->options->path;
    weight_evidence evidence = {0};
    char shape[PEN_SHAPE_TEXT_BYTES];
    *out_is_keras = loader->options->layout == PEN_WEIGHTS_KERAS;
    if (*out_is_keras && layers == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: only models of layers and Keras' have weights in Keras' layout",
                         path);
    }
    if (loader->options->layout != PEN_WEIGHTS_BY_SHAPE || layers == NULL) return PEN_OK;
    for (uint32_t i = 0; i < pen_layer_weight_count(layers); i++)
        PEN_TRY(weight_look(loader, pen_layer_weight_at(layers, i), &evidence));
    *out_is_keras = evidence.keras != NULL;
    if (evidence.keras != NULL && evidence.own != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: '%.200s' has the shape that it has in Keras, '%.200s' that of "
                         "Penstock: one file has one layout",
                         path, evidence.keras->name, evidence.own->name);
    }
    if (evidence.keras != NULL || evidence.own != NULL || evidence.both == NULL) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "%s: '%.200s', %s, may be in Keras' layout or in Penstock's, and no other "
                     "tensor tells which: weights_layout does, keras or penstock",
                     path, evidence.both->name,
                     pen_shape_format(&evidence.both->type->shape, shape));
}

// ---- what state_dict() of PyTorch has besides

static bool weight_is_equal(const pen_tensor_type *a_type, const void *a,
                            const pen_tensor_type *b_type, const void *b) {
    const int64_t count = pen_shape_element_count(&a_type->shape);
    for (int64_t i = 0; i < count; i++) {
        if (pen_element_read(a_type->element, a, i) != pen_element_read(b_type->element, b, i)) {
            return false;
        }
    }
    return true;
}

// What it is compared with: the first of tied weights in this file, or what the model's own file
// has. NULL: the model does not know the name.
static pen_status weight_find_other(const weight_loader *loader, const weight_entry *entry,
                                    const pen_tensor_type **out_type, const void **out_data) {
    const pen_pt2_origin *origin = loader->model->pytorch;
    const char *name;
    *out_data = NULL;
    if (origin == NULL) return PEN_OK;
    PEN_TRY(weight_rename(loader, entry->name, &name));
    const pen_pt2_weight *weight = pen_pt2_weights_find(&origin->weights, name);
    if (weight == NULL || weight->is_constant) return PEN_OK;
    pen_pt2_weight *first = &origin->weights.entries[weight->same_as];
    weight_entry *other = weight_find(loader, first->name);
    if (other != NULL && other != entry) {
        PEN_TRY(weight_read(loader, other));
        *out_type = other->type;
        *out_data = other->data;
        return PEN_OK;
    }
    *out_type = &first->stored;
    return pen_pt2_weights_data(&origin->archive, first, loader->model->arena, out_data);
}

// A tensor that is neither a parameter nor a state: of all that state_dict() has, other names of
// tied weights, and buffers that are constants of the graph, which must say nothing new.
static pen_status weight_check_rest(weight_loader *loader, weight_entry *entry) {
    const pen_tensor_type *type = NULL;
    const void *data;
    PEN_TRY(weight_find_other(loader, entry, &type, &data));
    if (data != NULL && pen_shape_equal(&entry->type->shape, &type->shape)) {
        PEN_TRY(weight_read(loader, entry));
        if (weight_is_equal(entry->type, entry->data, type, data)) return PEN_OK;
    }
    if (!weight_complain(loader)) return PEN_OK;
    pen_text_print(&loader->problems,
                   data == NULL ? "the model has no '%.200s'"
                                : "'%.200s' is tied or constant in the model, with other numbers",
                   entry->name);
    return PEN_OK;
}

static pen_status weight_match(weight_loader *loader) {
    bool is_keras;
    PEN_TRY(weight_choose_layout(loader, &is_keras));
    PEN_TRY(is_keras ? weight_match_keras(loader) : weight_match_values(loader));
    for (uint32_t i = 0; i < loader->count && !loader->options->is_partial; i++) {
        if (loader->entries[i].is_used) continue;
        PEN_TRY(weight_check_rest(loader, &loader->entries[i]));
    }
    return PEN_OK;
}

static pen_status weight_finish(weight_loader *loader) {
    const char *problems;
    if (loader->problem_count > WEIGHT_PROBLEMS_SHOWN) {
        pen_text_print(&loader->problems, "; and %u more",
                       loader->problem_count - WEIGHT_PROBLEMS_SHOWN);
    }
    if (loader->problem_count == 0 && loader->used_count > 0) return PEN_OK;
    if (loader->problem_count == 0) {
        pen_text_add(&loader->problems, "no name in it is one of the model's");
        if (loader->count > 0) {
            pen_text_print(&loader->problems, "; the first is '%.200s'", loader->entries[0].name);
        }
    }
    PEN_TRY(pen_text_finish(&loader->problems, &problems));
    return pen_error(PEN_INVALID_INPUT, "%s has not the weights of the model: %s",
                     loader->options->path, problems);
}

static pen_status weight_load_listed(weight_loader *loader) {
    PEN_TRY(weight_index(loader));
    PEN_TRY(weight_match(loader));
    return weight_finish(loader);
}

static pen_status weight_load(weight_loader *loader, pen_weight_file *file) {
    pen_text_init(&loader->problems, loader->arena);
    pen_status status = weight_list(loader, file);
    if (status == PEN_OK) status = weight_load_listed(loader);
    if (loader->npz.stored != NULL) { // else what is used of it was unpacked
        file->archive = loader->archive;
        loader->archive = (pen_mapping){0};
    }
    pen_npz_close(&loader->npz);
    pen_mapping_close(&loader->archive);
    return status;
}

// What was taken in another type is counted once all of it fits.
pen_status pen_weight_file_apply(const pen_weight_options *options, pen_model *model,
                                 pen_weight_file **out_file) {
    weight_loader loader = {.options = options, .model = model, .arena = model->arena};
    pen_weight_file *file = pen_memory_allocate(1, sizeof *file);
    if (file == NULL) return pen_error_out_of_memory();
    const pen_status status = weight_load(&loader, file);
    if (status != PEN_OK) {
        pen_weight_file_close(file);
        return status;
    }
    model->is_reloaded = true;
    for (uint32_t i = 0; i < loader.count; i++) {
        const weight_entry *entry = &loader.entries[i];
        file->halves_count += entry->is_used && pen_element_is_half(entry->type->element);
    }
    *out_file = file;
    return PEN_OK;
}

uint32_t pen_weight_file_halves_count(const pen_weight_file *file) {
    return file->halves_count;
}

void pen_weight_file_close(pen_weight_file *file) {
    if (file == NULL) return;
    pen_safetensors_close(file->safetensors);
    pen_mapping_close(&file->archive);
    pen_memory_free(file);
}
