#include "scheduler/checkpoint/parameter_file.h"

#include "base/arena.h"
#include "graph/passes/adapt_weights.h"
#include "scheduler/checkpoint/adapter_file.h"

static pen_status tensor_file_read(void *context, uint32_t index, uint64_t first, void *out_data,
                                   uint64_t bytes) {
    const pen_tensor_store *store = context;
    return store->read(store->context, index, first, out_data, bytes);
}

// How tensors are seen by who writes them; NULL: as they are.
typedef pen_status (*tensor_file_view)(const pen_safetensors_source *source, pen_arena *arena,
                                       pen_safetensors_source *out_view);

static pen_status tensor_file_write(const char *path, pen_tensor_store *store, uint32_t count,
                                    tensor_file_view see, pen_arena *scratch) {
    const char **names;
    const pen_tensor_type **types;
    PEN_TRY(PEN_NEW(scratch, count, &names));
    PEN_TRY(PEN_NEW(scratch, count, &types));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = store->tensors[i].name;
        types[i] = &store->tensors[i].type;
    }
    const pen_safetensors_source source = {
        .count = count, .names = names, .types = types, .read = tensor_file_read, .context = store};
    pen_safetensors_source view = source;
    if (see != NULL) PEN_TRY(see(&source, scratch, &view));
    return pen_safetensors_save(path, &view);
}

static pen_status tensor_file_save(const char *path, const pen_tensor_store *store, uint32_t count,
                                   tensor_file_view see) {
    pen_tensor_store copy = *store;
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = tensor_file_write(path, &copy, count, see, scratch);
    pen_arena_destroy(scratch);
    return status;
}

pen_status pen_tensor_file_save(const char *path, const pen_tensor_store *store, uint32_t count) {
    return tensor_file_save(path, store, count, NULL);
}

static bool tensor_file_has_adapters(const pen_safetensors *file) {
    for (uint32_t i = 0; i < pen_safetensors_count(file); i++) {
        if (pen_adapter_has_name(pen_safetensors_at(file, i)->name)) return true;
    }
    return false;
}

// All tensors that are missing or have another shape are named at once, before any is loaded.
static pen_status tensor_file_check(const pen_safetensors *file, const char *path,
                                    const pen_tensor_store *store, uint32_t count) {
    const bool has_adapters = tensor_file_has_adapters(file);
    pen_status status = PEN_OK;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pen_stored_tensor *tensor = &store->tensors[i];
        const pen_safetensors_entry *entry = pen_safetensors_find(file, tensor->name);
        if (entry == NULL && !has_adapters && pen_adapter_has_name(tensor->name)) continue;
        if (entry == NULL) {
            status = pen_status_join(
                status, pen_error(PEN_INVALID_INPUT, "%s lacks '%s'", path, tensor->name));
            continue;
        }
        found++;
        if (pen_tensor_type_equal(&entry->type, &tensor->type)) continue;
        char texts[2][PEN_SHAPE_TEXT_BYTES];
        status = pen_status_join(
            status, pen_error(PEN_INVALID_INPUT, "%s: '%s' is %s, expected %s", path, tensor->name,
                              pen_tensor_type_format(&entry->type, texts[0]),
                              pen_tensor_type_format(&tensor->type, texts[1])));
    }
    if (status != PEN_OK || found == pen_safetensors_count(file)) return status;
    return pen_error(PEN_INVALID_INPUT, "%s has %u tensors that the model has not", path,
                     pen_safetensors_count(file) - found);
}

// Of a file without adapters, weights have theirs in them: what is left of the adapters adds
// nothing, which that of the two does that begins as zeros.
static pen_status tensor_file_clear(const pen_tensor_store *store, uint32_t index) {
    const uint64_t bytes = store->tensors[index].bytes;
    pen_arena *scratch;
    char *zeros;
    if (!pen_adapter_begins_zero(store->tensors[index].name)) return PEN_OK;
    PEN_TRY(pen_arena_create(&scratch));
    pen_status status = PEN_NEW(scratch, bytes, &zeros);
    if (status == PEN_OK) status = pen_tensor_store_write(store, index, zeros, bytes);
    pen_arena_destroy(scratch);
    return status;
}

static pen_status tensor_file_apply(const pen_safetensors *file, const pen_tensor_store *store,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const pen_stored_tensor *tensor = &store->tensors[i];
        const pen_safetensors_entry *entry = pen_safetensors_find(file, tensor->name);
        PEN_TRY(entry == NULL ? tensor_file_clear(store, i)
                              : pen_tensor_store_write(store, i, entry->data, tensor->bytes));
    }
    return PEN_OK;
}

static pen_status tensor_file_open(const char *path, const pen_tensor_store *store, uint32_t count,
                                   pen_safetensors **out_file) {
    pen_safetensors *file;
    PEN_TRY(pen_safetensors_open(path, &file));
    const pen_status status = tensor_file_check(file, path, store, count);
    if (status != PEN_OK) {
        pen_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

static pen_status tensor_file_load(const char *path, const pen_tensor_store *store,
                                   uint32_t count) {
    pen_safetensors *file;
    PEN_TRY(tensor_file_open(path, store, count, &file));
    const pen_status status = tensor_file_apply(file, store, count);
    pen_safetensors_close(file);
    return status;
}

pen_status pen_parameter_file_save(const char *path, const pen_tensor_store *store) {
    const uint32_t count = pen_tensor_store_model_count(store);
    return pen_status_add_context(tensor_file_save(path, store, count, pen_adapters_merge),
                                  "while saving parameters");
}

pen_status pen_adapter_file_save(const char *path, const pen_tensor_store *store) {
    const uint32_t count = pen_tensor_store_model_count(store);
    return pen_status_add_context(tensor_file_save(path, store, count, pen_adapters_choose),
                                  "while saving adapters");
}

pen_status pen_parameter_file_load(const char *path, const pen_tensor_store *store) {
    const uint32_t count = pen_tensor_store_model_count(store);
    return pen_status_add_context(tensor_file_load(path, store, count), "while loading parameters");
}

pen_status pen_parameter_file_open(const char *path, const pen_tensor_store *store,
                                   pen_safetensors **out_file) {
    const uint32_t count = pen_tensor_store_model_count(store);
    return pen_status_add_context(tensor_file_open(path, store, count, out_file),
                                  "while loading parameters");
}
