#include "graph/import/import.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "graph/import/onnx_import.h"
#include "graph/import/onnx_tensor.h"

struct pen_model_files {
    pen_mapping model;
    pen_onnx_files external;
};

static pen_status model_create(const char *path, pen_model **out_model) {
    pen_arena *arena = NULL;
    PEN_TRY(pen_arena_create(&arena));
    pen_model *model = NULL;
    pen_status status = PEN_NEW(arena, 1, &model);
    if (status == PEN_OK) {
        model->arena = arena;
        status = PEN_NEW(arena, 1, &model->files);
    }
    if (status == PEN_OK) status = pen_arena_copy_text(arena, path, strlen(path), &model->path);
    if (status != PEN_OK) {
        pen_arena_destroy(arena);
        return status;
    }
    *out_model = model;
    return PEN_OK;
}

void pen_model_forget(const pen_model *model) {
    pen_mapping_forget(&model->files->model);
    pen_onnx_files_forget(&model->files->external);
}

bool pen_model_reads(const pen_model *model, const char *path) {
    return pen_mapping_is_of(&model->files->model, path) ||
           pen_onnx_files_have(&model->files->external, path);
}

void pen_model_destroy(pen_model *model) {
    if (model == NULL) return;
    pen_onnx_files_deinit(&model->files->external);
    pen_mapping_close(&model->files->model);
    pen_arena_destroy(model->arena); // the model itself is in it
}

static const char *model_suffix(const char *path) {
    const char *dot = strrchr(pen_path_name(path), '.');
    return dot == NULL ? "" : dot;
}

static pen_status model_check_kind(const char *path) {
    static const char *const others[][2] = {
        {".pb", "a TensorFlow graph"}, {".pbtxt", "a TensorFlow graph"},
        {".yaml", "a model in YAML"},  {".yml", "a model in YAML"},
        {".pt", "a PyTorch archive"},  {".pth", "a PyTorch archive"},
        {".h5", "a Keras model"},      {".keras", "a Keras model"},
        {".tflite", "a TFLite model"}, {".safetensors", "a file of weights"},
    };
    const char *suffix = model_suffix(path);
    if (strcasecmp(suffix, ".onnx") == 0) return PEN_OK;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcasecmp(suffix, others[i][0]) != 0) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "'%s' looks like %s by its name; models in ONNX (.onnx) are possible",
                         path, others[i][1]);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the kind of model is told by the end of its name, which is '%s'; "
                     ".onnx is possible",
                     path, suffix);
}

static pen_status model_open_files(pen_model *model) {
    const char *folder;
    PEN_TRY(model_check_kind(model->path));
    PEN_TRY(pen_path_beside(model->arena, model->path, ".", &folder));
    pen_onnx_files_init(&model->files->external, folder, model->arena);
    return pen_mapping_open(model->path, &model->files->model);
}

static pen_status model_import(pen_model *model, const void *bytes, size_t length,
                               const pen_import_options *options) {
    static const pen_import_options plain;
    return pen_onnx_import(bytes, length, options != NULL ? options : &plain,
                           &model->files->external, model);
}

pen_status pen_model_open(const char *path, const pen_import_options *options,
                          pen_model **out_model) {
    pen_model *model = NULL;
    PEN_TRY(model_create(path, &model));
    pen_status status = model_open_files(model); // says the path itself
    if (status == PEN_OK) {
        const pen_mapping *mapping = &model->files->model;
        status = model_import(model, mapping->bytes, mapping->length, options);
        status = pen_status_at_position(status, path, 0, 0);
        if (pen_status_get_code(status) == PEN_CORRUPT) {
            status = pen_status_add_context(status, "the file may be damaged, or not copied whole");
        }
    }
    if (status != PEN_OK) {
        pen_model_destroy(model);
        return status;
    }
    *out_model = model;
    return PEN_OK;
}

pen_status pen_model_open_bytes(const void *bytes, size_t length, const char *name,
                                const pen_import_options *options, pen_model **out_model) {
    pen_model *model = NULL;
    PEN_TRY(model_create(name, &model));
    pen_onnx_files_init(&model->files->external, NULL, model->arena);
    pen_status status = model_import(model, bytes, length, options);
    if (status != PEN_OK) {
        status = pen_status_at_position(status, name, 0, 0);
        pen_model_destroy(model);
        return status;
    }
    *out_model = model;
    return PEN_OK;
}
