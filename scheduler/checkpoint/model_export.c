#include "scheduler/checkpoint/model_export.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/analysis/training_types.h"
#include "graph/import/import.h"
#include "graph/import/keras/keras_export.h"
#include "graph/import/onnx/onnx_export.h"
#include "graph/import/pytorch/pt2_export.h"
#include "graph/import/tensorflow/graphdef_export.h"
#include "partition/plan/plan_places.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/checkpoint/state_export.h"
#include "scheduler/store/safetensors.h"

// Without a file, NULL, the model's own contents stay.
static const void *export_find(void *context, const pen_graph *graph, pen_value_id value) {
    const pen_safetensors *tensors = context;
    if (tensors == NULL) return NULL;
    const pen_safetensors_entry *entry =
        pen_safetensors_find(tensors, pen_value_name(graph, value));
    return entry == NULL ? NULL : entry->data;
}

// The device of a node, from a plan's places.
static const char *export_device(void *context, const char *node_name) {
    const pen_node_place *place = pen_node_places_find(context, node_name);
    return place != NULL ? place->device : NULL;
}

// What is written of.
typedef struct export_call {
    const pen_model *model;
    pen_safetensors *tensors; // NULL: the model's own
    pen_node_places *places;  // of nodes on devices; NULL: none
    bool keeps_halves;        // weights that were read from 16 bits are written so
} export_call;

static pen_export_contents export_contents(const export_call *call) {
    return (pen_export_contents){export_find, call->tensors, call->keeps_halves};
}

static pen_status export_as_onnx(const export_call *call, const char *path) {
    const pen_onnx_export_options options = {.contents = export_contents(call),
                                             .output_types = call->model->output_types,
                                             .for_inference = true,
                                             .places = call->places};
    return pen_onnx_export(call->model->graph, &options, path);
}

static pen_status export_as_pt2(const export_call *call, const char *path) {
    const pen_pt2_export_options options = {.contents = export_contents(call)};
    return pen_pt2_export(call->model, &options, path);
}

static pen_status export_as_state(const export_call *call, const char *path) {
    const pen_export_contents contents = export_contents(call);
    return pen_state_export(call->model, &contents, path);
}

static pen_status export_as_graphdef(const export_call *call, const char *path) {
    const pen_graphdef_export_options options = {.contents = export_contents(call),
                                                 .device =
                                                     call->places != NULL ? export_device : NULL,
                                                 .device_context = call->places};
    return pen_graphdef_export(call->model, &options, path);
}

static pen_status export_as_keras(const export_call *call, bool as_archive, const char *path) {
    const pen_keras_export_options options = {.as_archive = as_archive,
                                              .contents = export_contents(call)};
    PEN_TRY(pen_keras_export(call->model, &options, path));
    if (path == NULL || !call->model->keras->has_optimizer) return PEN_OK;
    pen_log(PEN_LOG_NOTE, "%s: the optimizer's state in it is as it was, older than the weights",
            path);
    return PEN_OK;
}

static pen_status export_as_archive(const export_call *call, const char *path) {
    return export_as_keras(call, true, path);
}

static pen_status export_as_h5(const export_call *call, const char *path) {
    return export_as_keras(call, false, path);
}

// When weights that were read from 16 bits are written so.
typedef enum export_halves {
    EXPORT_HALVES_NEVER,
    EXPORT_HALVES_IF_ASKED,
    EXPORT_HALVES_USUALLY,
    EXPORT_HALVES_ALWAYS, // the rest of the file says what they are
} export_halves;

// A format that models are written in, by the end of the file's name.
typedef struct export_format {
    const char *end;
    pen_status (*write)(const export_call *call, const char *path); // path NULL: only looks
    bool runs_devices; // who reads it runs nodes where they are said to be, and no others
    export_halves halves;
} export_format;

static const export_format export_formats[] = {
    {.end = ".onnx", .write = export_as_onnx, .halves = EXPORT_HALVES_IF_ASKED},
    {.end = ".pt2", .write = export_as_pt2, .halves = EXPORT_HALVES_ALWAYS},
    {.end = ".safetensors", .write = export_as_state, .halves = EXPORT_HALVES_USUALLY},
    {.end = ".keras", .write = export_as_archive},
    {.end = ".h5", .write = export_as_h5},
    {.end = ".hdf5", .write = export_as_h5},
    {.end = ".pb", .write = export_as_graphdef, .runs_devices = true},
};

// NULL: the end of the name is another.
static const export_format *export_find_format(const char *path) {
    const char *dot = strrchr(pen_path_name(path), '.');
    for (size_t i = 0; dot != NULL && i < sizeof export_formats / sizeof *export_formats; i++) {
        if (strcasecmp(dot, export_formats[i].end) == 0) return &export_formats[i];
    }
    return NULL;
}

bool pen_model_export_is_named(const char *path) {
    return export_find_format(path) != NULL;
}

static pen_status export_check_end(const char *path) {
    if (pen_model_export_is_named(path)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "found \"%.200s\", expected " PEN_MODEL_EXPORT_NAMES, path);
}

// ---- element types

// Parameters and states that lie in the model's file, or that of its weights, in 16 bits.
static uint32_t export_count_halves(const pen_model *model) {
    uint32_t count = 0;
    if (model->pytorch != NULL) return model->pytorch->weights.widened_count;
    for (uint32_t v = 0; v < pen_graph_value_count(model->graph); v++) {
        const pen_value *value = pen_graph_value(model->graph, (pen_value_id){v});
        count += pen_element_is_half(value->stored);
    }
    return count;
}

static pen_status export_check_types(const pen_model *model, pen_export_types types,
                                     const char *path) {
    const export_halves halves = export_find_format(path)->halves;
    const bool lacks_float32 = types == PEN_EXPORT_TYPES_FLOAT32 && halves == EXPORT_HALVES_ALWAYS;
    const bool lacks_own = types == PEN_EXPORT_TYPES_OWN && halves == EXPORT_HALVES_NEVER;
    const uint32_t count = lacks_float32 || lacks_own ? export_count_halves(model) : 0;
    if (count == 0) return PEN_OK;
    if (lacks_own) {
        return pen_error(PEN_UNSUPPORTED,
                         "%u tensors were read from float16 or bfloat16, and are float32 in such a "
                         "file; FILE.safetensors and FILE.onnx have them as they were read",
                         count);
    }
    return pen_error(PEN_UNSUPPORTED,
                     "the program in a .pt2 file says that %u of its tensors are float16 or "
                     "bfloat16, so they cannot be float32; FILE.safetensors and FILE.onnx have "
                     "them so",
                     count);
}

static bool export_keeps_halves(pen_export_types types, const char *path) {
    const export_halves halves = export_find_format(path)->halves;
    if (types == PEN_EXPORT_TYPES_AUTO) return halves >= EXPORT_HALVES_USUALLY;
    return types == PEN_EXPORT_TYPES_OWN && halves != EXPORT_HALVES_NEVER;
}

// What has become of weights of 16 bits is said in one line.
static void export_tell_types(const export_call *call, const char *path) {
    const uint32_t count = export_count_halves(call->model);
    if (count == 0) return;
    if (call->keeps_halves) {
        pen_log(PEN_LOG_NOTE,
                "%s: %u tensor%s written as float16 or bfloat16, rounded to nearest even: as %s "
                "read",
                path, count, count == 1 ? " is" : "s are", count == 1 ? "it was" : "they were");
    } else {
        pen_log(
            PEN_LOG_NOTE, "%s: %u tensor%s read as float16 or bfloat16 and written as float32%s",
            path, count, count == 1 ? " was" : "s were",
            export_find_format(path)->halves == EXPORT_HALVES_NEVER ? ""
                                                                    : "; types: own keeps them");
    }
}

// ---- writing

static pen_status export_write_in(const export_call *given, const pen_plan *plan, const char *path,
                                  pen_arena *scratch) {
    export_call call = *given;
    pen_node_places places = {0};
    if (plan != NULL) {
        PEN_TRY(pen_plan_places(plan, scratch, &places));
        call.places = &places;
    }
    PEN_TRY(export_find_format(path)->write(&call, path));
    export_tell_types(&call, path);
    return PEN_OK;
}

static pen_status export_write(pen_safetensors *tensors, const pen_model *model,
                               const pen_model_export_options *options, const char *path) {
    pen_arena *scratch;
    PEN_TRY(export_check_end(path));
    PEN_TRY(export_check_types(model, options->types, path));
    const export_call call = {.model = model,
                              .tensors = tensors,
                              .keeps_halves = export_keeps_halves(options->types, path)};
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = export_write_in(&call, options->plan, path, scratch);
    pen_arena_destroy(scratch);
    return status;
}

// A file that is written must not be one that the model is read from.
static pen_status export_check_path(const pen_model *model, const char *path) {
    if (access(path, F_OK) != 0 || !pen_model_reads(model, path)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "found \"%.200s\", which the model is read from, expected another file", path);
}

// `tensors_path` is for the time of the export.
static pen_status export_through(const char *tensors_path, const pen_model_export_source *source,
                                 const pen_model *model, const pen_model_export_options *options,
                                 const char *path) {
    PEN_TRY(source->save(source->context, tensors_path));
    pen_safetensors *tensors;
    pen_status status = pen_safetensors_open(tensors_path, &tensors);
    if (status == PEN_OK) {
        status = export_write(tensors, model, options, path);
        pen_safetensors_close(tensors);
    }
    unlink(tensors_path);
    return status;
}

static pen_status export_all(const pen_model_export_source *source, const char *path,
                             pen_arena *scratch) {
    const char *tensors_path;
    pen_model *model;
    PEN_TRY(export_check_end(path));
    PEN_TRY(pen_arena_format(scratch, &tensors_path, "%s.tensors", path));
    PEN_TRY(pen_model_open(source->model_path, source->import, &model));
    // devices of the model's own can be there; others are not for who runs them by their names
    const bool has_devices = source->import != NULL && source->import->use_device_strings;
    const bool shows_devices = has_devices || !export_find_format(path)->runs_devices;
    const pen_model_export_options options = {.plan = shows_devices ? source->plan : NULL,
                                              .types = source->types};
    pen_status status = export_check_path(model, path);
    if (status == PEN_OK) status = export_through(tensors_path, source, model, &options, path);
    pen_model_destroy(model);
    return status;
}

pen_status pen_model_export(const pen_model_export_source *source, const char *path) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = export_all(source, path, scratch);
    pen_arena_destroy(scratch);
    return pen_status_add_context(status, "while exporting %s", path);
}

// The tensors of a model as a store lists them: names and types.
static pen_status export_list(const pen_graph *graph, pen_arena *scratch,
                              pen_tensor_store *out_store) {
    pen_stored_tensor *tensors;
    *out_store = (pen_tensor_store){0};
    PEN_TRY(PEN_NEW(scratch, pen_graph_value_count(graph), &tensors));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        if (value->data == NULL) continue;
        tensors[out_store->count++] =
            (pen_stored_tensor){.name = value->name,
                                .type = value->type,
                                .bytes = pen_tensor_type_bytes(&value->type),
                                .is_model = true};
    }
    out_store->tensors = tensors;
    return PEN_OK;
}

static pen_status export_from_file(const pen_model *model, const pen_model_export_options *options,
                                   const char *path, uint32_t *out_count, pen_arena *scratch) {
    const char *parameters = options->parameters;
    pen_tensor_store store;
    pen_safetensors *tensors = NULL;
    PEN_TRY(pen_check_parameter_types(model->graph));
    PEN_TRY(pen_check_input_types(model->graph));
    PEN_TRY(export_list(model->graph, scratch, &store));
    if (parameters != NULL) PEN_TRY(pen_parameter_file_open(parameters, &store, &tensors));
    const pen_status status = export_write(tensors, model, options, path);
    pen_safetensors_close(tensors);
    *out_count = store.count;
    return status;
}

pen_status pen_model_export_file(const pen_model *model, const pen_model_export_options *options,
                                 const char *path, uint32_t *out_count) {
    static const pen_model_export_options plain;
    pen_arena *scratch;
    if (options == NULL) options = &plain;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = export_from_file(model, options, path, out_count, scratch);
    pen_arena_destroy(scratch);
    return pen_status_add_context(status, "while exporting %s", path);
}

// Opens the model to ask about it. One that cannot be opened, NULL, is told of when it is compiled.
static pen_status export_look(const char *model_path, const pen_import_options *import,
                              pen_model **out_model) {
    *out_model = NULL;
    const pen_status status = pen_model_open(model_path, import, out_model);
    if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    pen_status_ignore(status, "said when the model is compiled");
    return PEN_OK;
}

pen_status pen_model_check_output(const char *model_path, const char *path) {
    const pen_import_options import = {.evaluate = pen_reference_evaluate};
    pen_model *model;
    if (access(path, F_OK) != 0) return PEN_OK;
    PEN_TRY(export_look(model_path, &import, &model));
    const pen_status status = model == NULL ? PEN_OK : export_check_path(model, path);
    pen_model_destroy(model);
    return status;
}

pen_status pen_model_check_export(const char *model_path, const pen_import_options *import,
                                  pen_export_types types, const char *path) {
    pen_model *model;
    PEN_TRY(export_check_end(path));
    PEN_TRY(export_look(model_path, import, &model));
    if (model == NULL) return PEN_OK;
    pen_status status = export_check_path(model, path);
    const export_call call = {.model = model};
    if (status == PEN_OK) status = export_check_types(model, types, path);
    if (status == PEN_OK) status = export_find_format(path)->write(&call, NULL);
    pen_model_destroy(model);
    return status;
}
