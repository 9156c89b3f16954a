// Keras' model files: .h5 of Keras 2, and .keras archives of Keras 2 and 3.

#include <string.h>

#include "base/format/json_reader.h"
#include "base/format/unpack.h"
#include "base/limits.h"
#include "graph/import/import.h"
#include "graph/import/keras/hdf5_file.h"
#include "graph/import/keras/keras_build.h"
#include "graph/import/keras/keras_compiled.h"
#include "graph/import/keras/keras_config.h"
#include "graph/import/keras/keras_export.h"
#include "graph/import/keras/keras_options.h"
#include "graph/import/keras/keras_weights.h"
#include "graph/import/model_format.h"
#include "graph/import/stored_zip.h"
#include "graph/import/zip_file.h"

#define KERAS_SEED 0 // of contents that are replaced by the file's

// A model and where its weights are.
typedef struct keras_import {
    const char *path;
    uint64_t length; // of the file
    const pen_import_options *options;
    pen_model *model;
    pen_keras_origin *origin;
    json_t *root;   // owned
    pen_hdf5 *file; // owned
    const char *weights_root;
    bool is_by_place;
} keras_import;

static pen_status keras_fill_outputs(keras_import *import, const pen_keras_model *keras,
                                     const pen_layer_tensor *outputs) {
    pen_model *model = import->model;
    pen_tensor_type *types;
    const pen_value_id first = pen_graph_input(model->graph, 0);
    const int64_t batch = pen_value_type(model->graph, first)->shape.dims[0];
    PEN_TRY(PEN_NEW(model->arena, keras->output_count, &types));
    for (uint32_t i = 0; i < keras->output_count; i++) {
        types[i] = (pen_tensor_type){outputs[i].element, outputs[i].shape};
        if (types[i].shape.rank > 0) types[i].shape.dims[0] = batch;
    }
    model->output_types = types;
    model->batch_symbol = pen_graph_symbol_name(model->graph, batch);
    return PEN_OK;
}

// The way of a Keras file: what it says, its options, the graph of layers, then the weights into
// their places.
static pen_status keras_make_graph(keras_import *import) {
    pen_model *model = import->model;
    pen_keras_model *keras;
    pen_layer_builder *builder;
    const pen_layer_tensor *outputs;
    PEN_TRY(pen_keras_config_read(import->root, model->arena, &keras));
    PEN_TRY(pen_keras_options_read(keras, import->path, model->arena));
    PEN_TRY(pen_graph_create(model->arena, keras->name, &model->graph));
    PEN_TRY(pen_layer_builder_new(model->graph, KERAS_SEED, &builder));
    model->layers = builder;
    pen_layer_builder_expect_contents(builder, pen_unpack_limit(import->length));
    const pen_keras_site site = {.file = model->path,
                                 .input_shapes = import->options->input_shapes,
                                 .input_shape_count = import->options->input_shape_count};
    PEN_TRY(pen_keras_build(keras, &site, builder, model->arena, &outputs));
    PEN_TRY(pen_layer_builder_finish(builder, &model->penalty, &model->output_masks));
    const pen_keras_weights weights = {.file = import->file,
                                       .root = import->weights_root,
                                       .is_by_place = import->is_by_place,
                                       .graph = model->graph,
                                       .builder = builder,
                                       .arena = model->arena};
    PEN_TRY(pen_keras_weights_load(&weights, keras, import->origin));
    model->keras = import->origin;
    return keras_fill_outputs(import, keras, outputs);
}

// The JSON stands in the file as one text, whose lines say nothing to a user.
static pen_status keras_load_json(keras_import *import, const char *part, const void *bytes,
                                  size_t length) {
    const pen_status status = pen_json_load(part, bytes, length, PEN_INVALID_INPUT, &import->root);
    if (pen_status_get_code(status) != PEN_INVALID_INPUT) return status;
    const pen_status said = pen_error(PEN_INVALID_INPUT, "the model's configuration (%s) is %s",
                                      part, pen_status_message(status));
    pen_status_ignore(status, "said again without the line");
    return said;
}

// What the model was compiled with is a hint: what is wrong with it is nobody's error.
static pen_status keras_note_compiled(keras_import *import, const char *text) {
    json_t *compiled = NULL;
    const pen_status status =
        pen_json_load("training_config", text, strlen(text), PEN_INVALID_INPUT, &compiled);
    if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    pen_status_ignore(status, "a hint that cannot be read");
    const pen_status read =
        pen_keras_compiled_read(compiled, import->model->arena, &import->model->compiled);
    json_decref(compiled);
    return read;
}

// ---- .h5

// A whole model has its configuration as an attribute of the file, and its weights in a group of
// that name. A file of weights alone is told from a damaged one.
static pen_status keras_open_h5(keras_import *import, const pen_model_input *input) {
    uint32_t count;
    const char *const *texts;
    PEN_TRY(pen_hdf5_open("the file", input->bytes, input->length, &import->file));
    PEN_TRY(pen_hdf5_read_texts(import->file, "/", "model_config", &count, &texts));
    if (count != 1) {
        PEN_TRY(pen_hdf5_read_texts(import->file, "/", "layer_names", &count, &texts));
        return pen_error(PEN_INVALID_INPUT,
                         "the HDF5 file has no model, which would be in its "
                         "attribute \"model_config\"%s",
                         texts != NULL ? ": it has weights alone (save, not save_weights, keeps "
                                         "both)"
                                       : "");
    }
    PEN_TRY(keras_load_json(import, "model_config", texts[0], strlen(texts[0])));
    PEN_TRY(pen_hdf5_read_texts(import->file, "/", "training_config", &count, &texts));
    if (count == 1) PEN_TRY(keras_note_compiled(import, texts[0]));
    import->weights_root = "/model_weights";
    import->origin->has_optimizer =
        pen_hdf5_find(import->file, "/optimizer_weights") == PEN_HDF5_GROUP;
    if (pen_hdf5_find(import->file, "/model_weights") == PEN_HDF5_GROUP) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the HDF5 file has no group \"/model_weights\"");
}

// ---- .keras

// A member that may be packed. What it would be is weighed before it is unpacked.
static pen_status keras_unpack(const keras_import *import, const pen_zip *zip, const char *member,
                               uint64_t limit, const uint8_t **out_bytes, size_t *out_length) {
    static const char remedy[] = "unpack it, and zip it again without compression (zip -0)";
    pen_zip_size size;
    const char *name;
    PEN_TRY(pen_zip_measure(zip, member, &size));
    if (!size.is_stored) {
        PEN_TRY(pen_arena_format(import->model->arena, &name, "%s, '%s'", import->path, member));
        PEN_TRY(pen_unpack_check(name, size.packed, size.bytes, remedy));
        PEN_TRY(pen_unpack_check_memory(name, size.bytes, remedy));
    }
    return pen_zip_read(zip, member, limit, import->model->arena, out_bytes, out_length);
}

// Keras stores files as they are, so the weights can be read from where they lie in the archive,
// however large they are. An archive that was packed otherwise is unpacked into memory.
static pen_status keras_find_weights(const keras_import *import, const pen_zip *zip,
                                     const uint8_t **out_bytes, size_t *out_length) {
    const pen_keras_origin *origin = import->origin;
    const pen_stored_zip_entry *entry = NULL;
    pen_stored_zip stored;
    pen_status status =
        pen_stored_zip_read(origin->bytes, origin->length, import->model->arena, &stored);
    if (status == PEN_OK) status = pen_stored_zip_open(&stored, PEN_KERAS_WEIGHTS_MEMBER, &entry);
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_OUT_OF_MEMORY || code == PEN_CANCELLED) return status;
    if (status != PEN_OK) {
        pen_status_ignore(status, "it is packed, or what is wrong is found again, and said");
        return keras_unpack(import, zip, PEN_KERAS_WEIGHTS_MEMBER, UINT64_MAX, out_bytes,
                            out_length);
    }
    *out_bytes = origin->bytes + entry->offset;
    *out_length = entry->length;
    return PEN_OK;
}

static pen_status keras_read_archive(keras_import *import, const pen_zip *zip) {
    pen_arena *arena = import->model->arena;
    const uint8_t *bytes;
    size_t length;
    PEN_TRY(keras_unpack(import, zip, "config.json", PEN_KERAS_CONFIG_LIMIT, &bytes, &length));
    PEN_TRY(keras_load_json(import, "config.json", bytes, length));
    PEN_TRY(pen_keras_compiled_read(json_object_get(import->root, "compile_config"), arena,
                                    &import->model->compiled));
    PEN_TRY(keras_find_weights(import, zip, &bytes, &length));
    import->weights_root = "/";
    import->is_by_place = true;
    PEN_TRY(pen_hdf5_open(PEN_KERAS_WEIGHTS_MEMBER, bytes, length, &import->file));
    // the first two are the count of steps and the learning rate
    import->origin->has_optimizer =
        pen_hdf5_find(import->file, "/optimizer/vars/2") == PEN_HDF5_DATASET;
    return PEN_OK;
}

static pen_status keras_open_archive(keras_import *import, const pen_model_input *input) {
    pen_zip *zip;
    PEN_TRY(pen_zip_open(import->path, input->bytes, input->length, &zip));
    const pen_status status = keras_read_archive(import, zip);
    pen_zip_close(zip);
    return status;
}

// ---- the format

static bool keras_is_archive(const pen_model_input *input) {
    return input->length >= 4 && memcmp(input->bytes, "PK\3\4", 4) == 0;
}

static bool keras_is_hdf5(const pen_model_input *input) {
    return input->length >= 8 && memcmp(input->bytes, "\x89HDF\r\n\x1a\n", 8) == 0;
}

static bool keras_recognize(const pen_model_input *input) {
    return input->bytes != NULL && (keras_is_hdf5(input) || keras_is_archive(input));
}

static pen_status keras_run(const pen_model_input *input, pen_model *model) {
    keras_import import = {
        .path = model->path, .options = input->options, .length = input->length, .model = model};
    PEN_TRY(PEN_NEW(model->arena, 1, &import.origin));
    *import.origin = (pen_keras_origin){
        .bytes = input->bytes, .length = input->length, .is_archive = keras_is_archive(input)};
    pen_status status = import.origin->is_archive ? keras_open_archive(&import, input)
                                                  : keras_open_h5(&import, input);
    if (status == PEN_OK) status = keras_make_graph(&import);
    model->producer = "keras";
    pen_hdf5_close(import.file);
    json_decref(import.root);
    return status;
}

const pen_model_format pen_model_format_keras = {
    .name = "keras",
    .summary = "a Keras model",
    .suffixes = ".h5 .hdf5 .keras",
    .recognize = keras_recognize,
    .import = keras_run,
};
