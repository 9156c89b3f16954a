#include "graph/import/keras/keras_export.h"

#include <stdlib.h>

#include "graph/graph.h"
#include "graph/import/file_patch.h"
#include "graph/import/keras/hdf5_stream.h"
#include "graph/import/tensor_elements.h"
#include "graph/keras_layers/layer.h"

typedef struct keras_exporter {
    const pen_model *model;
    const pen_keras_export_options *options;
    pen_arena *arena;
    pen_stored_zip zip;                // of an archive
    const pen_stored_zip_entry *entry; // that the HDF5 file is; NULL: it is the model's file
    const void **contents;             // of the model's weights, float32; NULL: as in the file
    pen_keras_dataset *datasets;       // [count], in the order of the file
    pen_file_patch *patches;           // [count]
    uint32_t count;
} keras_exporter;

// Finds the contents of a weight: what was trained, or loaded over the file.
static pen_status export_find(keras_exporter *e, uint32_t weight) {
    const pen_export_contents *found = &e->options->contents;
    const pen_graph *graph = e->model->graph;
    const pen_value_id id = pen_layer_weight_at(e->model->layers, weight)->value;
    if (!e->model->is_reloaded && pen_export_contents_find(found, graph, id) == NULL) return PEN_OK;
    const pen_export_tensor tensor = pen_export_contents_tensor(found, graph, id);
    const pen_tensor_type from = {tensor.from, tensor.type.shape};
    e->contents[weight] = tensor.data;
    return pen_tensor_convert(&from, PEN_FLOAT32, e->arena, &e->contents[weight]);
}

static pen_status export_open(keras_exporter *e) {
    const pen_keras_origin *origin = e->model->keras;
    if (origin == NULL || origin->is_archive != e->options->as_archive) {
        return pen_error(PEN_UNSUPPORTED,
                         "%s is no %s file of Keras; only what came as one is written as one",
                         e->model->path, e->options->as_archive ? ".keras" : ".h5");
    }
    if (!origin->is_archive) return PEN_OK;
    PEN_TRY(pen_stored_zip_read(origin->bytes, origin->length, e->arena, &e->zip));
    e->entry = pen_stored_zip_find(&e->zip, PEN_KERAS_WEIGHTS_MEMBER);
    if (e->entry != NULL) return PEN_OK;
    return pen_error(PEN_CORRUPT, "the archive has no file '" PEN_KERAS_WEIGHTS_MEMBER "'");
}

static int export_compare(const void *left, const void *right) {
    const pen_keras_dataset *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

// The datasets that can be written over, all of them; those without new contents are left out.
static pen_status export_list(keras_exporter *e) {
    const pen_keras_origin *origin = e->model->keras;
    PEN_TRY(PEN_NEW(e->arena, origin->dataset_count, &e->datasets));
    PEN_TRY(PEN_NEW(e->arena, pen_layer_weight_count(e->model->layers), &e->contents));
    for (uint32_t i = 0; i < origin->dataset_count; i++) {
        const pen_keras_dataset *dataset = &origin->datasets[i];
        if (dataset->offset == PEN_HDF5_STREAM_ON_REQUEST) {
            return pen_error(PEN_UNSUPPORTED,
                             "'%.200s' is not stored in one piece, as float32, where it could be "
                             "written over: save the model anew with Keras",
                             dataset->path);
        }
        PEN_TRY(export_find(e, dataset->weight));
        if (e->contents[dataset->weight] != NULL) e->datasets[e->count++] = *dataset;
    }
    qsort(e->datasets, e->count, sizeof *e->datasets, export_compare);
    return PEN_OK;
}

// A file may say that its datasets share bytes.
static pen_status export_place(keras_exporter *e) {
    const uint64_t first = e->entry != NULL ? e->entry->offset : 0;
    const uint64_t limit = e->entry != NULL ? e->entry->length : e->model->keras->length;
    uint64_t end = 0;
    PEN_TRY(PEN_NEW(e->arena, e->count, &e->patches));
    for (uint32_t i = 0; i < e->count; i++) {
        const pen_keras_dataset *dataset = &e->datasets[i];
        const pen_layer_weight *weight = pen_layer_weight_at(e->model->layers, dataset->weight);
        const pen_tensor_type type = {PEN_FLOAT32, weight->shape};
        const uint64_t length = pen_tensor_type_bytes(&type);
        if (dataset->offset < end) {
            return pen_error(PEN_CORRUPT, "'%.200s' lies over '%.200s'", dataset->path,
                             e->datasets[i - 1].path);
        }
        end = dataset->offset + length;
        if (end > limit) return pen_error(PEN_CORRUPT, "'%.200s' is not in it", dataset->path);
        e->patches[i] = (pen_file_patch){first + dataset->offset, length, e->entry};
    }
    return PEN_OK;
}

static void export_fill(void *context, uint32_t index, uint8_t *contents) {
    const keras_exporter *e = context;
    const uint32_t weight = e->datasets[index].weight;
    pen_layer_weight_read(pen_layer_weight_at(e->model->layers, weight), e->contents[weight],
                          contents);
}

static pen_status export_all(keras_exporter *e, const char *path) {
    const pen_keras_origin *origin = e->model->keras;
    PEN_TRY(export_open(e));
    PEN_TRY(export_list(e));
    PEN_TRY(export_place(e));
    if (path == NULL) return PEN_OK;
    const pen_file_patches patches = {.bytes = origin->bytes,
                                      .length = origin->length,
                                      .zip = e->entry != NULL ? &e->zip : NULL,
                                      .items = e->patches,
                                      .count = e->count,
                                      .fill = export_fill,
                                      .context = e};
    return pen_file_patch_save(&patches, path);
}

pen_status pen_keras_export(const pen_model *model, const pen_keras_export_options *options,
                            const char *path) {
    keras_exporter e = {.model = model, .options = options};
    PEN_TRY(pen_arena_create(&e.arena));
    const pen_status status = export_all(&e, path);
    pen_arena_destroy(e.arena);
    return status;
}
