#include "scheduler/model_export.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/name_map.h"
#include "graph/import/import.h"
#include "graph/import/onnx_export.h"

// Copies of the runner's tensors, by name.
typedef struct export_contents {
    pen_name_map names;
    void **data; // [tensor count]
} export_contents;

static pen_status export_read_tensors(pen_runner *runner, pen_arena *arena,
                                      export_contents *contents) {
    const uint32_t count = pen_runner_tensor_count(runner);
    pen_name_map_init(&contents->names, arena);
    PEN_TRY(PEN_NEW(arena, count, &contents->data));
    for (uint32_t i = 0; i < count; i++) {
        const pen_value *tensor = pen_runner_tensor(runner, i);
        char *copy;
        PEN_TRY(PEN_NEW(arena, tensor->data_bytes, &copy));
        PEN_TRY(pen_runner_read(runner, i, copy, tensor->data_bytes));
        contents->data[i] = copy;
        PEN_TRY(pen_name_map_add(&contents->names, tensor->name, i));
    }
    return PEN_OK;
}

static const void *export_find(void *context, const pen_graph *graph, pen_value_id value) {
    const export_contents *contents = context;
    const uint32_t index = pen_name_map_find(&contents->names, pen_value_name(graph, value));
    return index == PEN_NAME_MAP_NONE ? NULL : contents->data[index];
}

static pen_status export_write(pen_runner *runner, const pen_model *model, const char *path) {
    export_contents contents;
    PEN_TRY(export_read_tensors(runner, model->arena, &contents));
    const pen_onnx_export_options options = {.contents = export_find,
                                             .contents_context = &contents,
                                             .output_types = model->output_types,
                                             .for_inference = true};
    return pen_onnx_export(model->graph, &options, path);
}

pen_status pen_model_export(pen_runner *runner, const char *model_path, const char *path) {
    pen_model *model;
    PEN_TRY(pen_model_open(model_path, NULL, &model));
    const pen_status status = export_write(runner, model, path);
    pen_model_destroy(model);
    return pen_status_add_context(status, "while exporting %s", path);
}

pen_status pen_model_check_output(const char *model_path, const char *path) {
    pen_model *model = NULL;
    if (access(path, F_OK) != 0) return PEN_OK;
    const pen_status status = pen_model_open(model_path, NULL, &model);
    if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    if (status != PEN_OK) {
        pen_status_ignore(status, "said when the model is compiled");
        return PEN_OK;
    }
    const bool is_read = pen_model_reads(model, path);
    pen_model_destroy(model);
    if (!is_read) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "found \"%.200s\", which the model is read from, expected another file", path);
}

pen_status pen_model_check_export(const char *model_path, const char *path) {
    const char *dot = strrchr(pen_path_name(path), '.');
    if (dot == NULL || strcasecmp(dot, ".onnx") != 0) {
        return pen_error(PEN_INVALID_INPUT, "found \"%.200s\", expected FILE.onnx", path);
    }
    return pen_model_check_output(model_path, path);
}
