#include "scheduler/checkpoint/parameter_file.h"

#include "base/arena.h"

static pen_status tensor_file_read(void *context, uint32_t index, uint64_t first, void *out_data,
                                   uint64_t bytes) {
    const pen_tensor_store *store = context;
    return store->read(store->context, index, first, out_data, bytes);
}

static pen_status tensor_file_save(const char *path, pen_tensor_store *store, uint32_t count,
                                   pen_arena *scratch) {
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
    return pen_safetensors_save(path, &source);
}

pen_status pen_tensor_file_save(const char *path, const pen_tensor_store *store, uint32_t count) {
    pen_tensor_store copy = *store;
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = tensor_file_save(path, &copy, count, scratch);
    pen_arena_destroy(scratch);
    return status;
}

// All tensors that are missing or have another shape are named at once, before any is loaded.
static pen_status tensor_file_check(const pen_safetensors *file, const char *path,
                                    const pen_tensor_store *store, uint32_t count) {
    pen_status status = PEN_OK;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pen_stored_tensor *tensor = &store->tensors[i];
        const pen_safetensors_entry *entry = pen_safetensors_find(file, tensor->name);
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

static pen_status tensor_file_apply(const pen_safetensors *file, const pen_tensor_store *store,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const pen_stored_tensor *tensor = &store->tensors[i];
        const pen_safetensors_entry *entry = pen_safetensors_find(file, tensor->name);
        PEN_TRY(pen_tensor_store_write(store, i, entry->data, tensor->bytes));
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
    return pen_status_add_context(pen_tensor_file_save(path, store, count),
                                  "while saving parameters");
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
