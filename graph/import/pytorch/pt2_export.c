#include "graph/import/pytorch/pt2_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/system/file.h"
#include "graph/graph.h"

// A stretch of the file that changes: the contents of an entry, or a checksum of them.
typedef struct export_change {
    uint64_t offset, length;
    uint32_t file; // of which entry
    bool is_checksum;
} export_change;

// A tensor with new contents, and the entry of the archive that it is in.
typedef struct export_tensor {
    const pen_pt2_weight *weight;
    pen_value_id value;
} export_tensor;

// The entry that a run of tensors is in.
typedef struct export_file {
    const pen_pt2_entry *entry;
    const export_tensor *tensors; // [count]
    uint32_t count;
    uint32_t checksum; // of the new contents, once these were made
} export_file;

typedef struct pt2_exporter {
    const pen_model *model;
    const pen_pt2_export_options *options;
    pen_arena *arena;
    export_tensor *tensors;
    uint32_t tensor_count;
    export_file *files; // [file_count], in the order of the archive
    uint32_t file_count;
    export_change *changes; // [change_count], likewise
    uint32_t change_count;
    uint8_t *contents; // room for the largest entry
} pt2_exporter;

static const void *export_contents(const pt2_exporter *e, pen_value_id value) {
    return pen_export_contents_find(&e->options->contents, e->model->graph, value);
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
        if (weight == NULL || export_contents(e, id) == NULL) continue;
        if (!pen_tensor_type_equal(&weight->type, &value->type)) continue;
        e->tensors[e->tensor_count++] = (export_tensor){weight, id};
    }
    qsort(e->tensors, e->tensor_count, sizeof *e->tensors, export_compare_tensors);
    return PEN_OK;
}

static pen_status export_group(pt2_exporter *e) {
    uint64_t longest = 1;
    PEN_TRY(PEN_NEW(e->arena, e->tensor_count, &e->files));
    for (uint32_t i = 0; i < e->tensor_count; i++) {
        const pen_pt2_entry *entry = e->tensors[i].weight->entry;
        if (i == 0 || e->tensors[i - 1].weight->entry != entry) {
            e->files[e->file_count++] = (export_file){.entry = entry, .tensors = &e->tensors[i]};
            if (entry->length > longest) longest = entry->length;
        }
        e->files[e->file_count - 1].count++;
    }
    e->contents = pen_arena_allocate(e->arena, longest, 1, 64);
    return e->contents == NULL ? pen_error_out_of_memory() : PEN_OK;
}

static int export_compare_changes(const void *left, const void *right) {
    const export_change *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static pen_status export_find_changes(pt2_exporter *e) {
    const pen_pt2_archive *archive = &e->model->pytorch->archive;
    PEN_TRY(PEN_NEW(e->arena, (size_t)e->file_count * (1 + PEN_PT2_CHECKSUM_PLACES), &e->changes));
    for (uint32_t f = 0; f < e->file_count; f++) {
        const pen_pt2_entry *entry = e->files[f].entry;
        uint64_t places[PEN_PT2_CHECKSUM_PLACES];
        const uint32_t count = pen_pt2_archive_checksum_places(archive, entry, places);
        e->changes[e->change_count++] = (export_change){entry->offset, entry->length, f, false};
        for (uint32_t i = 0; i < count; i++) {
            e->changes[e->change_count++] = (export_change){places[i], 4, f, true};
        }
    }
    qsort(e->changes, e->change_count, sizeof *e->changes, export_compare_changes);
    return PEN_OK;
}

// ---- writing

// The new contents of an entry, in e->contents.
static void export_make(pt2_exporter *e, export_file *file) {
    const pen_pt2_entry *entry = file->entry;
    memcpy(e->contents, e->model->pytorch->archive.bytes + entry->offset, entry->length);
    for (uint32_t i = 0; i < file->count; i++) {
        pen_pt2_weight_store(file->tensors[i].weight, export_contents(e, file->tensors[i].value),
                             e->contents);
    }
    file->checksum = pen_pt2_checksum(0, e->contents, entry->length);
}

// An archive may have a checksum in front of the contents: these are made twice then, rather than
// kept.
static pen_status export_write_change(pt2_exporter *e, const export_change *change, pen_file *out) {
    export_file *file = &e->files[change->file];
    if (change->offset <= file->entry->offset) export_make(e, file);
    if (!change->is_checksum) return pen_file_write(out, e->contents, change->length);
    uint8_t bytes[4];
    for (uint32_t i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(file->checksum >> 8 * i);
    }
    return pen_file_write(out, bytes, sizeof bytes);
}

static pen_status export_write(pt2_exporter *e, pen_file *out) {
    const pen_pt2_archive *archive = &e->model->pytorch->archive;
    uint64_t at = 0;
    for (uint32_t i = 0; i < e->change_count; i++) {
        const export_change *change = &e->changes[i];
        PEN_TRY(pen_file_write(out, archive->bytes + at, change->offset - at));
        PEN_TRY(export_write_change(e, change, out));
        at = change->offset + change->length;
    }
    return pen_file_write(out, archive->bytes + at, archive->length - at);
}

static pen_status export_to(pt2_exporter *e, const char *path) {
    pen_file *file = NULL;
    pen_status status = pen_file_create_beside(path, &file);
    if (status == PEN_OK) status = export_write(e, file);
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
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
    pen_status status = export_list(&e);
    if (status == PEN_OK) status = export_group(&e);
    if (status == PEN_OK) status = export_find_changes(&e);
    if (status == PEN_OK) status = export_to(&e, path);
    pen_arena_destroy(e.arena);
    return status;
}
