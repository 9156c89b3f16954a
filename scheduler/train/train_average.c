#include "scheduler/train/train_average.h"

#include <stdio.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/name_map.h"
#include "graph/ops/training/optimizer.h"
#include "scheduler/checkpoint/parameter_file.h"

#define AVERAGE_END "/" PEN_OPTIMIZER_AVERAGE

typedef struct average_view {
    const pen_tensor_store *store;
    uint32_t *place_of; // [count], the tensor that is read for each
} average_view;

static pen_status average_read(void *context, uint32_t index, uint64_t first, void *host,
                               uint64_t bytes) {
    const average_view *view = context;
    return view->store->read(view->store->context, view->place_of[index], first, host, bytes);
}

// Which tensor is read for which: for a parameter its average, "PARAMETER/average" of its type,
// where it has one; else itself.
static pen_status average_list(const pen_tensor_store *store, pen_arena *arena,
                               uint32_t **out_place_of) {
    char name[PEN_NAME_BYTES_LIMIT + sizeof AVERAGE_END];
    uint32_t *place_of;
    pen_name_map names;
    pen_name_map_init(&names, arena);
    PEN_TRY(PEN_NEW(arena, store->count, &place_of));
    for (uint32_t t = 0; t < store->count; t++) {
        PEN_TRY(pen_name_map_add(&names, store->tensors[t].name, t));
    }
    for (uint32_t t = 0; t < store->count; t++) {
        const pen_stored_tensor *tensor = &store->tensors[t];
        place_of[t] = t;
        if (!tensor->is_model) continue;
        snprintf(name, sizeof name, "%s" AVERAGE_END, tensor->name);
        const uint32_t average = pen_name_map_find(&names, name);
        if (average == PEN_NAME_MAP_NONE || store->tensors[average].is_model) continue;
        if (!pen_tensor_type_equal(&store->tensors[average].type, &tensor->type)) continue;
        place_of[t] = average;
    }
    *out_place_of = place_of;
    return PEN_OK;
}

bool pen_train_uses_average(const pen_job *job) {
    return job->train.has_average && job->train.average.use;
}

pen_status pen_train_average_view(bool uses, const pen_tensor_store *store, pen_arena *arena,
                                  pen_tensor_store *out_view) {
    average_view *view;
    *out_view = *store;
    if (!uses) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &view));
    view->store = store;
    PEN_TRY(average_list(store, arena, &view->place_of));
    out_view->context = view;
    out_view->read = average_read;
    out_view->write = NULL;
    return PEN_OK;
}

pen_status pen_train_average_save(bool uses, const pen_tensor_store *store, pen_train_save_fn save,
                                  const char *path) {
    pen_arena *arena;
    pen_tensor_store view;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_train_average_view(uses, store, arena, &view);
    if (status == PEN_OK) status = save(path, &view);
    pen_arena_destroy(arena);
    return status;
}

pen_status pen_train_average_hash(bool uses, const pen_tensor_store *store, uint64_t *out_hash) {
    pen_arena *arena;
    pen_tensor_store view;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_train_average_view(uses, store, arena, &view);
    if (status == PEN_OK) status = pen_tensor_store_hash(&view, out_hash);
    pen_arena_destroy(arena);
    return status;
}

// ---- evaluations

static pen_status average_swap_tensors(const pen_tensor_store *store, uint32_t a, uint32_t b,
                                       char *pieces, uint64_t piece_bytes) {
    const uint64_t all = store->tensors[a].bytes;
    for (uint64_t first = 0; first < all; first += piece_bytes) {
        const uint64_t bytes = pen_min_u64(piece_bytes, all - first);
        PEN_TRY(store->read(store->context, a, first, pieces, bytes));
        PEN_TRY(store->read(store->context, b, first, pieces + piece_bytes, bytes));
        PEN_TRY(store->write(store->context, a, first, pieces + piece_bytes, bytes));
        PEN_TRY(store->write(store->context, b, first, pieces, bytes));
    }
    return PEN_OK;
}

static pen_status average_swap(const pen_tensor_store *store, const uint32_t *place_of) {
    const uint64_t piece_bytes = pen_tensor_store_piece_bytes(store);
    char *pieces = pen_memory_allocate(2, piece_bytes);
    if (pieces == NULL) return pen_error_out_of_memory();
    pen_status status = PEN_OK;
    for (uint32_t t = 0; t < store->count && status == PEN_OK; t++) {
        if (place_of[t] == t) continue;
        status = average_swap_tensors(store, t, place_of[t], pieces, piece_bytes);
    }
    pen_memory_free(pieces);
    return status;
}

// They change places again also where the evaluation was stopped, or its loss is no number.
static pen_status average_evaluate(pen_engine *engine, pen_dataset *dataset, uint64_t batch,
                                   pen_arena *arena, pen_evaluation *out_evaluation) {
    const pen_tensor_store *store = engine->kind->tensors(engine);
    uint32_t *place_of;
    PEN_TRY(average_list(store, arena, &place_of));
    PEN_TRY(average_swap(store, place_of));
    const pen_status status = engine->kind->evaluate(engine, dataset, batch, out_evaluation);
    if (status != PEN_OK && engine->kind->is_failed != NULL && engine->kind->is_failed(engine)) {
        return status;
    }
    return pen_status_join(status, average_swap(store, place_of));
}

pen_status pen_train_average_evaluate(bool uses, pen_engine *engine, pen_dataset *dataset,
                                      uint64_t batch, pen_evaluation *out_evaluation) {
    pen_arena *arena;
    if (!uses) {
        return engine->kind->evaluate(engine, dataset, batch, out_evaluation);
    }
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = average_evaluate(engine, dataset, batch, arena, out_evaluation);
    pen_arena_destroy(arena);
    return status;
}
