#include "graph/import/pytorch/pt2_export.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/import/file_patch.h"

// A tensor with new contents, and the entry of the archive that it is in.
typedef struct export_tensor {
    const pen_pt2_weight *weight;
    pen_value_id value;
    pen_export_tensor contents;
} export_tensor;

// The tensors that are in one entry.
typedef struct export_file {
    const export_tensor *tensors; // [count]
    uint32_t count;
} export_file;

typedef struct pt2_exporter {
    const pen_model *model;
    const pen_pt2_export_options *options;
    pen_arena *arena;
    export_tensor *tensors;
    uint32_t tensor_count;
    export_file *files;      // [file_count], in the order of the archive
    pen_file_patch *patches; // [file_count], whole entries
    uint32_t file_count;
} pt2_exporter;

// Whether a tensor has contents other than those of the file: trained, or loaded over it.
static bool export_is_new(const pt2_exporter *e, pen_value_id id, const pen_pt2_weight *weight) {
    const pen_graph *graph = e->model->graph;
    if (pen_export_contents_find(&e->options->contents, graph, id) != NULL) return true;
    const void *data = pen_graph_value(graph, id)->data;
    return e->model->is_reloaded && data != NULL && data != weight->data;
}

// ---- what changes

static int export_compare_tensors(const void *left, const void *right) {
    const export_tensor *a = left, *b = right;
    if (a->weight->entry != b->weight->entry) {
        return a->weight->entry->offset < b->weight->entry->offset ? -1 : 1;
    }
    return a->value.index < b->value.index ? -1 : a->value.index > b->value.index;
}

// The parameters and states that have contents other than in the file.
static pen_status export_list(pt2_exporter *e) {
    const pen_graph *graph = e->model->graph;
    const pen_pt2_weights *weights = &e->model->pytorch->weights;
    PEN_TRY(PEN_NEW(e->arena, pen_graph_value_count(graph), &e->tensors));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value_id id = {v};
        const pen_value *value = pen_graph_value(graph, id);
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        const pen_pt2_weight *weight = pen_pt2_weights_find(weights, value->name);
        if (weight == NULL || !export_is_new(e, id, weight)) continue;
        if (!pen_tensor_type_equal(&weight->type, &value->type)) continue;
        e->tensors[e->tensor_count++] = (export_tensor){
            weight, id, pen_export_contents_tensor(&e->options->contents, graph, id)};
    }
    qsort(e->tensors, e->tensor_count, sizeof *e->tensors, export_compare_tensors);
    return PEN_OK;
}

static pen_status export_group(pt2_exporter *e) {
    PEN_TRY(PEN_NEW(e->arena, e->tensor_count, &e->files));
    PEN_TRY(PEN_NEW(e->arena, e->tensor_count, &e->patches));
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        const pen_stored_zip_entry *entry = e->tensors[i].weight->entry;
        if (i == 0 || e->tensors[i - 1].weight->entry != entry) {
            e->patches[e->file_count] = (pen_file_patch){entry->offset, entry->length, entry};
            e->files[e->file_count++] = (export_file){.tensors = &e->tensors[i]};
        }
        e->files[e->file_count - 1].count++;
    }
    return PEN_OK;
}

// ---- writing

static void export_fill(void *context, uint32_t index, uint8_t *contents) {
    const pt2_exporter *e = context;
    const export_file *file = &e->files[index];
    for (uint32_t i = 0; i < file->count; i++) {
        const export_tensor *tensor = &file->tensors[i];
        pen_pt2_weight_store(tensor->weight, tensor->contents.from, tensor->contents.data,
                             contents);
    }
}

static pen_status export_all(pt2_exporter *e, const char *path) {
    const pen_stored_zip *archive = &e->model->pytorch->archive;
    PEN_TRY(export_list(e));
    PEN_TRY(export_group(e));
    const pen_file_patches patches = {.bytes = archive->bytes,
                                      .length = archive->length,
                                      .zip = archive,
                                      .items = e->patches,
                                      .count = e->file_count,
                                      .fill = export_fill,
                                      .context = e};
    return pen_file_patch_save(&patches, path);
}

pen_status pen_pt2_export(const pen_model *model, const pen_pt2_export_options *options,
                          const char *path) {
    if (model->pytorch == NULL) {
        return pen_error(PEN_UNSUPPORTED,
                         "%s is no .pt2 file; only what came as one is written as one",
                         model->path);
    }
    static const pen_pt2_export_options plain;
    if (path == NULL) return PEN_OK;
    pt2_exporter e = {.model = model, .options = options != NULL ? options : &plain};
    PEN_TRY(pen_arena_create(&e.arena));
    const pen_status status = export_all(&e, path);
    pen_arena_destroy(e.arena);
    return status;
}
