#include "scheduler/parameter_file.h"

#include <string.h>

#include "scheduler/training/safetensors.h"

static pen_status parameter_file_fill(void *context, uint32_t index, void *out_data) {
    pen_runner *runner = context;
    return pen_runner_read(runner, index, out_data, pen_runner_tensor(runner, index)->data_bytes);
}

static pen_status parameter_file_save(const char *path, pen_runner *runner, pen_arena *scratch) {
    const uint32_t count = pen_runner_tensor_count(runner);
    const char **names;
    const pen_tensor_type **types;
    PEN_TRY(PEN_NEW(scratch, count, &names));
    PEN_TRY(PEN_NEW(scratch, count, &types));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = pen_runner_tensor(runner, i)->name;
        types[i] = &pen_runner_tensor(runner, i)->type;
    }
    const pen_safetensors_source source = {.count = count,
                                           .names = names,
                                           .types = types,
                                           .fill = parameter_file_fill,
                                           .context = runner};
    return pen_safetensors_save(path, &source);
}

pen_status pen_parameter_file_save(const char *path, pen_runner *runner) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = parameter_file_save(path, runner, scratch);
    pen_arena_destroy(scratch);
    return pen_status_add_context(status, "while saving parameters");
}

static pen_status parameter_file_check(const pen_safetensors *file, const char *path,
                                       const pen_runner *runner) {
    pen_status status = PEN_OK;
    uint32_t found = 0;
    for (uint32_t i = 0; i < pen_runner_tensor_count(runner); i++) {
        const pen_value *tensor = pen_runner_tensor(runner, i);
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

static pen_status parameter_file_apply(const pen_safetensors *file, pen_runner *runner) {
    for (uint32_t i = 0; i < pen_runner_tensor_count(runner); i++) {
        const pen_value *tensor = pen_runner_tensor(runner, i);
        const pen_safetensors_entry *entry = pen_safetensors_find(file, tensor->name);
        PEN_TRY(pen_runner_write(runner, i, entry->data, tensor->data_bytes));
    }
    return PEN_OK;
}

pen_status pen_parameter_file_load(const char *path, pen_runner *runner) {
    pen_safetensors *file;
    PEN_TRY(pen_safetensors_open(path, &file));
    pen_status status = parameter_file_check(file, path, runner);
    if (status == PEN_OK) status = parameter_file_apply(file, runner);
    pen_safetensors_close(file);
    return pen_status_add_context(status, "while loading parameters");
}
