// The contract of model formats: how a kind of file is told, and how it becomes a graph.
//
// The formats stand in one list, in import.c; adding one is a file and a line there. A model's
// kind is told by the end of its name, and by its first bytes where the name fits several kinds,
// or none.
//
// Lifetime: formats are static; an input is borrowed for the call, its bytes and its options'
//           contents live until the model is destroyed.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_MODEL_FORMAT_H
#define PEN_GRAPH_IMPORT_MODEL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/import/external_files.h"

typedef struct pen_import_options pen_import_options; // graph/import/import.h
typedef struct pen_model pen_model;

// What a model is read from.
typedef struct pen_model_input {
    const char *path;     // as given; it names the model in errors
    const uint8_t *bytes; // [length], the file, mapped; NULL for a folder
    size_t length;
    pen_external_files *files; // for more files of the model's folder, or of the folder it is
    const pen_import_options *options; // never NULL
} pen_model_input;

typedef struct pen_model_format {
    const char *name;     // "onnx"
    const char *summary;  // "an ONNX model"
    const char *suffixes; // ends of names, separated by spaces: ".onnx"; "" for none
    bool is_folder;       // it is a folder, told by `recognize` alone
    bool is_tensorflow;   // takes the options of TensorFlow's graphs; others refuse them
    bool passes_weights;  // `import` reads little of a file that is large

    // Whether it looks like one, by a look at the first bytes, or at what the folder has. Cheap,
    // and wrong at times: what it takes for its own, `import` may still refuse. NULL: told by the
    // name alone.
    bool (*recognize)(const pen_model_input *input);

    // Fills in `model`, of which path, arena and files are set. The graph goes into model->arena.
    // The path is added to errors by the caller.
    pen_status (*import)(const pen_model_input *input, pen_model *model);
} pen_model_format;

// Adds to the error of a file of PyTorch's that is a pickle what to do in Python to have a model.
// `is_script`: it is TorchScript.
PEN_NODISCARD pen_status pen_model_advise_export(pen_status status, const char *path,
                                                 bool is_script);

extern const pen_model_format pen_model_format_onnx;        // onnx_import.c
extern const pen_model_format pen_model_format_layers;      // layers_format.c
extern const pen_model_format pen_model_format_graphdef;    // tensorflow/graphdef_format.c
extern const pen_model_format pen_model_format_saved_model; // tensorflow/saved_model.c
extern const pen_model_format pen_model_format_keras;       // keras/keras_import.c
extern const pen_model_format pen_model_format_pt2;         // pytorch/pt2_import.c

#endif // PEN_GRAPH_IMPORT_MODEL_FORMAT_H
