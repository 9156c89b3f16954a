#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_map.h"
#include "graph/ops/training/optimizer.h"
#include "scheduler/checkpoint/adapter_file.h"
#include "scheduler/checkpoint/checkpoint_read.h"
#include "scheduler/checkpoint/checkpoint_state.h"
#include "scheduler/store/safetensors.h"

// A tensor that is written, and its parts, which follow each other.
typedef struct export_tensor {
    const char *name;
    const pen_checkpoint_part *parts; // [part_count]
    uint32_t part_count;
} export_tensor;

typedef struct export_state {
    pen_shard_place place;
    const pen_commit_manifest *manifest;
    export_tensor *tensors; // [count], in the order of the shards
    uint32_t count;
    pen_checkpoint_export kind;
    pen_checkpoint_reader reader;
} export_state;

static pen_status export_read(void *context, uint32_t index, uint64_t first, void *out_data,
                              uint64_t bytes) {
    export_state *state = context;
    const export_tensor *tensor = &state->tensors[index];
    const pen_tensor_range range = {first, bytes, 1};
    return pen_checkpoint_reader_read(&state->reader, tensor->parts, tensor->part_count, &range,
                                      out_data);
}

// Whether a tensor is the state of an optimizer: "PARAMETER/velocity" beside PARAMETER, of the type
// that follows from its, as graph/passes/gradient/build_updates.c makes them.
static bool export_is_state(const pen_checkpoint_parts *parts, const pen_name_map *names,
                            const pen_checkpoint_part *part, char *scratch) {
    const char *slash = strrchr(part->name, '/');
    if (slash == NULL) return false;
    const size_t length = (size_t)(slash - part->name);
    memcpy(scratch, part->name, length);
    scratch[length] = 0;
    const uint32_t parameter = pen_name_map_find(names, scratch);
    return parameter != PEN_NAME_MAP_NONE &&
           pen_optimizer_has_state(slash + 1, &parts->parts[parameter].type, &part->type);
}

static int export_compare(const void *left, const void *right) {
    const pen_checkpoint_part *a = ((const export_tensor *)left)->parts;
    const pen_checkpoint_part *b = ((const export_tensor *)right)->parts;
    if (a->shard != b->shard) return a->shard < b->shard ? -1 : 1;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return strcmp(a->name, b->name);
}

static uint32_t export_end(const pen_checkpoint_parts *parts, uint32_t first) {
    uint32_t end = first + 1;
    while (end < parts->count && parts->parts[end].slice.start != 0) {
        end++;
    }
    return end;
}

// The first part of what is written for a tensor: of its average, where there is one.
static uint32_t export_find(const pen_checkpoint_parts *parts, const pen_name_map *names,
                            uint32_t first, char *scratch) {
    const pen_checkpoint_part *part = &parts->parts[first];
    (void)snprintf(scratch, PEN_NAME_BYTES_LIMIT + 1, "%s/" PEN_OPTIMIZER_AVERAGE, part->name);
    const uint32_t average = pen_name_map_find(names, scratch);
    if (average == PEN_NAME_MAP_NONE) return first;
    return pen_tensor_type_equal(&parts->parts[average].type, &part->type) ? average : first;
}

// But for `ALL`, what belongs to the optimizer stays out: tensors whose name is that of another one
// and a state's suffix.
static pen_status export_choose(export_state *state, const pen_checkpoint_parts *parts,
                                pen_checkpoint_export kind, pen_arena *scratch) {
    const bool all = kind.what == PEN_CHECKPOINT_EXPORT_ALL;
    pen_name_map names;
    char *text;
    pen_name_map_init(&names, scratch);
    PEN_TRY(PEN_NEW(scratch, PEN_NAME_BYTES_LIMIT + 1, &text));
    PEN_TRY(PEN_NEW(scratch, parts->count, &state->tensors));
    for (uint32_t p = 0; p < parts->count; p++) {
        if (parts->parts[p].slice.start != 0) continue;
        PEN_TRY(pen_name_map_add(&names, parts->parts[p].name, p));
    }
    for (uint32_t p = 0; p < parts->count; p = export_end(parts, p)) {
        const pen_checkpoint_part *part = &parts->parts[p];
        if (!all && export_is_state(parts, &names, part, text)) continue;
        const uint32_t first = kind.averages && !all ? export_find(parts, &names, p, text) : p;
        state->tensors[state->count++] =
            (export_tensor){.name = part->name,
                            .parts = &parts->parts[first],
                            .part_count = export_end(parts, first) - first};
    }
    if (state->count > 0) {
        qsort(state->tensors, state->count, sizeof *state->tensors, export_compare);
    }
    return PEN_OK;
}

// Adapters are part of their weights, but for who wants all or them alone.
static pen_status export_see(const export_state *state, const pen_safetensors_source *source,
                             pen_arena *scratch, pen_safetensors_source *out_view) {
    *out_view = *source;
    if (state->kind.what == PEN_CHECKPOINT_EXPORT_ALL) return PEN_OK;
    return state->kind.what == PEN_CHECKPOINT_EXPORT_ADAPTERS
               ? pen_adapters_choose(source, scratch, out_view)
               : pen_adapters_merge(source, scratch, out_view);
}

// Tensors pass through one piece of memory, whole or in parts.
static pen_status export_write(export_state *state, const char *path, pen_arena *scratch) {
    const char **names;
    const pen_tensor_type **types;
    PEN_TRY(PEN_NEW(scratch, state->count, &names));
    PEN_TRY(PEN_NEW(scratch, state->count, &types));
    for (uint32_t i = 0; i < state->count; i++) {
        names[i] = state->tensors[i].name;
        types[i] = &state->tensors[i].parts->type;
    }
    const pen_safetensors_source source = {.count = state->count,
                                           .names = names,
                                           .types = types,
                                           .read = export_read,
                                           .context = state};
    pen_status status = pen_checkpoint_reader_init(&state->reader, &state->place, state->manifest,
                                                   PEN_SAFETENSORS_PIECE_BYTES);
    pen_safetensors_source view;
    if (status == PEN_OK) status = export_see(state, &source, scratch, &view);
    if (status == PEN_OK) status = pen_safetensors_save(path, &view);
    pen_checkpoint_reader_deinit(&state->reader);
    return status;
}

static pen_status export_all(pen_checkpoint_store *store, const pen_shard_place *place,
                             const pen_commit_manifest *manifest, pen_checkpoint_export kind,
                             const char *path) {
    pen_checkpoint_parts parts;
    export_state *state;
    PEN_TRY(PEN_NEW(store->scratch, 1, &state));
    state->place = *place;
    state->manifest = manifest;
    state->kind = kind;
    PEN_TRY(pen_checkpoint_parts_read(place, manifest, store->scratch, &parts));
    PEN_TRY(export_choose(state, &parts, kind, store->scratch));
    return export_write(state, path, store->scratch);
}

// From the first folder that has it whole.
pen_status pen_checkpoint_store_export(pen_checkpoint_store *store, uint32_t index,
                                       pen_checkpoint_export kind, const char *path) {
    PEN_ASSERT(index < store->entry_count);
    const pen_checkpoint_entry *entry = &store->entries[index];
    pen_status status = PEN_OK;
    uint64_t step = 0;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        const pen_shard_place place = pen_checkpoint_copy_place(&store->copies[c]);
        if (entry->records[c] == NULL) continue;
        pen_status_ignore(status, "the other copy is tried");
        step = entry->records[c]->manifest.step;
        status = export_all(store, &place, &entry->records[c]->manifest, kind, path);
        pen_arena_reset(store->scratch);
        if (pen_status_get_code(status) != PEN_CORRUPT) break;
    }
    return pen_status_add_context(status, "while exporting the checkpoint of step %" PRIu64, step);
}

// ---- looking

// Looks at all shards, also after one was found damaged, so that one run names everything that is
// wrong.
static pen_status verify_copy(pen_checkpoint_store *store, const pen_checkpoint_copy *copy,
                              const pen_commit_manifest *manifest) {
    const pen_shard_place place = pen_checkpoint_copy_place(copy);
    pen_status all = PEN_OK;
    for (uint32_t s = 0; s < manifest->shard_count; s++) {
        pen_status status = pen_shard_verify(place.disk, place.folder, &manifest->shards[s]);
        if (pen_status_get_code(status) == PEN_NOT_FOUND) {
            pen_status_ignore(status, "said in other words");
            status = pen_error(PEN_CORRUPT, "'%s/%s' is not there", place.folder,
                               manifest->shards[s].file);
        }
        all = pen_status_join(all, status);
    }
    pen_checkpoint_parts parts;
    if (all == PEN_OK) all = pen_checkpoint_parts_read(&place, manifest, store->scratch, &parts);
    pen_arena_reset(store->scratch);
    return all;
}

pen_status pen_checkpoint_store_verify(pen_checkpoint_store *store, uint32_t index) {
    PEN_ASSERT(index < store->entry_count);
    const pen_checkpoint_entry *entry = &store->entries[index];
    pen_status all = PEN_OK;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        if (entry->records[c] == NULL) continue;
        all = pen_status_join(all,
                              verify_copy(store, &store->copies[c], &entry->records[c]->manifest));
    }
    return all;
}

static bool copy_is_complete(const pen_checkpoint_copy *copy, const pen_commit_manifest *manifest) {
    for (uint32_t s = 0; s < manifest->shard_count; s++) {
        pen_shard_reader reader;
        const pen_status status =
            pen_shard_reader_init(&reader, copy->disk, copy->shard_folder, &manifest->shards[s]);
        const bool is_there = status == PEN_OK;
        pen_status_ignore(status, "that it is not whole is all that is asked");
        pen_shard_reader_deinit(&reader);
        if (!is_there) return false;
    }
    return true;
}

uint32_t pen_checkpoint_store_complete_count(pen_checkpoint_store *store, uint32_t index) {
    PEN_ASSERT(index < store->entry_count);
    const pen_checkpoint_entry *entry = &store->entries[index];
    uint32_t count = 0;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        if (entry->records[c] == NULL) continue;
        count += copy_is_complete(&store->copies[c], &entry->records[c]->manifest);
    }
    return count;
}

uint32_t pen_checkpoint_store_damaged_count(const pen_checkpoint_store *store) {
    uint32_t count = 0;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        const pen_commit_log *log = store->copies[c].log;
        if (log != NULL) count += pen_commit_log_damaged_count(log);
    }
    return count;
}
