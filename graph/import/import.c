#include "graph/import/import.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/import/external_files.h"
#include "graph/import/model_format.h"

struct pen_model_files {
    pen_mapping model;
    pen_external_files external;
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
    pen_external_files_forget(&model->files->external);
}

bool pen_model_reads(const pen_model *model, const char *path) {
    return pen_mapping_is_of(&model->files->model, path) ||
           pen_external_files_have(&model->files->external, path);
}

const char *pen_model_find_mask(const pen_model *model, const char *output) {
    const uint32_t count = model->output_masks == NULL ? 0 : pen_graph_output_count(model->graph);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = pen_value_name(model->graph, pen_graph_output(model->graph, i));
        if (output == NULL || strcmp(name, output) == 0) return model->output_masks[i];
    }
    return NULL;
}

void pen_model_destroy(pen_model *model) {
    if (model == NULL) return;
    pen_external_files_deinit(&model->files->external);
    pen_mapping_close(&model->files->model);
    pen_arena_destroy(model->arena); // the model itself is in it
}

// ---- which format

// In the order in which they are tried.
static const pen_model_format *const model_formats[] = {
    &pen_model_format_onnx,     &pen_model_format_keras,       &pen_model_format_layers,
    &pen_model_format_graphdef, &pen_model_format_saved_model, &pen_model_format_pt2,
};
#define MODEL_FORMAT_COUNT (sizeof model_formats / sizeof model_formats[0])

static const char *model_suffix(const char *path) {
    const char *dot = strrchr(pen_path_name(path), '.');
    return dot == NULL ? "" : dot;
}

// Whether `suffix` is one of the words of `suffixes`.
static bool model_has_suffix(const char *suffixes, const char *suffix) {
    const size_t length = strlen(suffix);
    for (const char *word = suffixes; length > 0 && *word != '\0';) {
        const size_t word_length = strcspn(word, " ");
        if (word_length == length && strncasecmp(word, suffix, length) == 0) return true;
        word += word_length + strspn(word + word_length, " ");
    }
    return false;
}

static bool model_looks_like(const pen_model_format *format, const pen_model_input *input) {
    return format->recognize != NULL && format->recognize(input);
}

// Files that people take for models, and what to do with them.
typedef struct model_other {
    const char *suffix;
    const char *looks;
    const char *advice; // begins with ": ", or is ""
    bool is_pickle;
} model_other;

// A state dict has weights and no model: the program that has the model's class exports it.
pen_status pen_model_advise_export(pen_status status, const char *path, bool is_script) {
    status = pen_status_add_context(
        status, "in Python, with `model` of its class, and `x`, two examples that it reads:");
    if (is_script) {
        status = pen_status_add_context(
            status, "  model.load_state_dict(torch.jit.load('%.100s').state_dict())", path);
    } else {
        status = pen_status_add_context(
            status,
            "  model.load_state_dict(torch.load('%.60s'))  # of a whole model: model = "
            "torch.load('%.60s', weights_only=False)",
            path, path);
    }
    status = pen_status_add_context(status, "  exported = torch.export.export(model.train(), (x,), "
                                            "dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))");
    return pen_status_add_context(status, "  torch.export.save(exported, 'net.pt2')");
}

#define MODEL_WEIGHTS_ADVICE                                                                       \
    ": a job takes it beside a model, as model: {file: MODEL, weights: FILE}"

static const model_other *model_find_other(const char *path) {
    static const model_other others[] = {
        {".pbtxt", "a TensorFlow graph in text", "", false},
        {".pth", "what torch.save writes",
         ": a pickle, which is a program and is never read. torch.export.save writes a model",
         true},
        {".tflite", "a TFLite model", "", false},
        {".safetensors", "a file of weights", MODEL_WEIGHTS_ADVICE, false},
        {".npz", "a file of weights", MODEL_WEIGHTS_ADVICE, false},
    };
    const char *suffix = model_suffix(path);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcasecmp(suffix, others[i].suffix) == 0) return &others[i];
    }
    return NULL;
}

// By the end of the name; by the contents where that leaves none or several. NULL: none, or the
// name is that of something else, which may be an archive as Keras' files are.
static const pen_model_format *model_find_format(const pen_model_input *input) {
    const pen_model_format *named = NULL;
    const pen_model_format *seen = NULL;
    uint32_t named_count = 0;
    const bool is_folder = input->bytes == NULL;
    const char *suffix = model_suffix(input->path);
    for (size_t i = MODEL_FORMAT_COUNT; i-- > 0;) {
        const pen_model_format *format = model_formats[i];
        if (is_folder && !format->is_folder) continue;
        if (!model_has_suffix(format->suffixes, suffix)) continue;
        named = format;
        named_count++;
    }
    if (named_count == 1) return named;
    if (named_count == 0 && model_find_other(input->path) != NULL) return NULL;
    for (size_t i = 0; i < MODEL_FORMAT_COUNT && seen == NULL; i++) {
        const pen_model_format *format = model_formats[i];
        if (is_folder && !format->is_folder) continue;
        if (named_count > 0 && !model_has_suffix(format->suffixes, suffix)) continue;
        if (model_looks_like(format, input)) seen = format;
    }
    return seen != NULL ? seen : named;
}

// Formats that are known by name and cannot be read are named, so that nobody takes the file for
// damaged.
static pen_status model_refuse(const char *path, bool is_folder, pen_arena *arena) {
    const model_other *other = model_find_other(path);
    const char *suffix = model_suffix(path);
    pen_text text;
    pen_text_init(&text, arena);
    for (size_t i = 0; i < MODEL_FORMAT_COUNT; i++) {
        const pen_model_format *format = model_formats[i];
        pen_text_print(&text, "%s%s", i > 0 ? ", " : "", format->summary);
        if (format->suffixes[0] != '\0') pen_text_print(&text, " (%s)", format->suffixes);
    }
    const char *possible;
    PEN_TRY(pen_text_finish(&text, &possible));
    if (other != NULL) {
        const pen_status status =
            pen_error(PEN_UNSUPPORTED, "'%s' looks like %s by its name%s; possible: %s", path,
                      other->looks, other->advice, possible);
        return other->is_pickle ? pen_model_advise_export(status, path, false) : status;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the kind of model is told neither by the end of its name, which is "
                     "'%s', nor by what is in %s; possible: %s",
                     path, suffix, is_folder ? "the folder" : "it", possible);
}

// ---- opening

static bool model_is_folder(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static bool model_is_known_suffix(const char *path) {
    bool is_known = false;
    for (size_t i = 0; i < MODEL_FORMAT_COUNT; i++) {
        is_known = is_known || model_has_suffix(model_formats[i]->suffixes, model_suffix(path));
    }
    return is_known;
}

bool pen_model_is_named(const char *path) {
    const bool is_yaml = model_has_suffix(pen_model_format_layers.suffixes, model_suffix(path));
    return model_is_known_suffix(path) && !is_yaml;
}

static pen_status model_open_files(pen_model *model, pen_model_input *out_input) {
    const char *folder = model->path;
    const bool is_folder = model_is_folder(model->path);
    if (!is_folder) {
        PEN_TRY(pen_path_beside(model->arena, model->path, ".", &folder));
        const pen_status status = pen_mapping_open(model->path, &model->files->model);
        // a file of a kind that is not possible is refused by its kind, there or not
        if (status != PEN_OK && !model_is_known_suffix(model->path)) {
            pen_status_ignore(status, "the name is said to be no model's");
            return model_refuse(model->path, false, model->arena);
        }
        PEN_TRY(status);
        out_input->bytes = model->files->model.bytes;
        out_input->length = model->files->model.length;
    }
    pen_external_files_init(&model->files->external, folder, model->arena);
    return PEN_OK;
}

// The models that an option is for.
static const char *model_option_home(const char *option) {
    if (strcmp(option, "signature") == 0) return "a SavedModel of TensorFlow only";
    if (strcmp(option, "input_shapes") == 0) return "a Keras model only";
    if (strcmp(option, "train_what_is_left") == 0) return "an ONNX model only";
    const bool is_onnx = strcmp(option, "unfreeze") == 0 || strcmp(option, "train_batch_norm") == 0;
    return is_onnx ? "an ONNX model or a graph of TensorFlow only" : "a graph of TensorFlow only";
}

// Options that this kind of model has no use for are mistakes.
static pen_status model_check_options(const pen_model_format *format,
                                      const pen_import_options *options) {
    const char *option = NULL;
    const bool is_saved = format->is_tensorflow && format->is_folder;
    if (options->signature != NULL && !is_saved) option = "signature";
    if (!format->is_tensorflow) {
        if (options->use_device_strings) option = "use_device_strings";
        if (options->output_count > 0) option = "outputs";
    }
    const bool is_onnx = strcmp(format->name, "onnx") == 0;
    if (options->train_what_is_left && !is_onnx) option = "train_what_is_left";
    if (!format->is_tensorflow && !is_onnx) {
        if (options->train_batch_norm) option = "train_batch_norm";
        if (options->unfreeze != NULL) option = "unfreeze";
    }
    const bool is_keras = strcmp(format->name, "keras") == 0;
    if (options->input_shape_count > 0 && !is_keras) option = "input_shapes";
    if (option == NULL) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "model.%s: found with %s, expected with %s", option,
                     format->summary, model_option_home(option));
}

static pen_status model_import(const pen_model_format *format, const pen_model_input *input,
                               pen_model *model) {
    model->format = format->name;
    model->producer = "";
    PEN_TRY(model_check_options(format, input->options));
    const pen_status status =
        pen_status_at_position(format->import(input, model), input->path, 0, 0);
    if (pen_status_get_code(status) != PEN_CORRUPT || input->files->folder == NULL) return status;
    return pen_status_add_context(status, "the file may be damaged, or not copied whole");
}

static const pen_import_options model_plain_options;

// Layers that were read; what is beside them by name, is beside the path.
static pen_status model_open_layers(const pen_import_options *options, pen_model *model) {
    const char *folder;
    const pen_model_input input = {
        .path = model->path, .files = &model->files->external, .options = options};
    PEN_TRY(pen_path_beside(model->arena, model->path, ".", &folder));
    pen_external_files_init(&model->files->external, folder, model->arena);
    return model_import(&pen_model_format_layers, &input, model);
}

static pen_status model_open(const pen_import_options *options, pen_model *model) {
    if (options != NULL && options->layers != NULL) return model_open_layers(options, model);
    pen_model_input input = {.path = model->path,
                             .files = &model->files->external,
                             .options = options != NULL ? options : &model_plain_options};
    PEN_TRY(model_open_files(model, &input));
    const pen_model_format *format = model_find_format(&input);
    if (format == NULL) return model_refuse(model->path, input.bytes == NULL, model->arena);
    if (format->passes_weights) pen_mapping_read_ahead(&model->files->model, false);
    const pen_status status = model_import(format, &input, model);
    if (format->passes_weights) pen_mapping_read_ahead(&model->files->model, true);
    return status;
}

pen_status pen_model_open(const char *path, const pen_import_options *options,
                          pen_model **out_model) {
    pen_model *model = NULL;
    PEN_TRY(model_create(path, &model));
    const pen_status status = model_open(options, model);
    if (status != PEN_OK) {
        pen_model_destroy(model);
        return status;
    }
    *out_model = model;
    return PEN_OK;
}

// Bytes have no folder, so contents in other files are refused; bytes of unknown kind are read as
// ONNX, whose errors then say why not.
pen_status pen_model_open_bytes(const void *bytes, size_t length, const char *name,
                                const pen_import_options *options, pen_model **out_model) {
    pen_model *model = NULL;
    PEN_TRY(model_create(name, &model));
    pen_external_files_init(&model->files->external, NULL, model->arena);
    const pen_model_input input = {.path = model->path,
                                   .bytes = bytes,
                                   .length = length,
                                   .files = &model->files->external,
                                   .options = options != NULL ? options : &model_plain_options};
    const pen_model_format *format = model_find_format(&input);
    const pen_status status =
        model_import(format != NULL ? format : &pen_model_format_onnx, &input, model);
    if (status != PEN_OK) {
        pen_model_destroy(model);
        return status;
    }
    *out_model = model;
    return PEN_OK;
}
