// The trained model out: as ONNX, or back into the file of PyTorch or Keras or the graph of
// TensorFlow that it came from; of a model of PyTorch, its state_dict() alone. The end of the name
// says which: .onnx, .pt2, .keras, .h5, .pb or .safetensors.
#ifndef PEN_SCHEDULER_CHECKPOINT_MODEL_EXPORT_H
#define PEN_SCHEDULER_CHECKPOINT_MODEL_EXPORT_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/import/export_contents.h"
#include "graph/import/import.h"
#include "partition/plan/plan.h"
#include "scheduler/store/tensor_store.h"

#define PEN_MODEL_EXPORT_NAMES                                                                     \
    "FILE.onnx, FILE.pt2, FILE.safetensors, FILE.keras, FILE.h5, or FILE.pb"
// Whether the end of a name is one of these.
bool pen_model_export_is_named(const char *path);

// What is exported.
typedef struct pen_model_export_source {
    const char *model_path;
    const pen_import_options *import; // how it is imported; or NULL
    const pen_plan *plan;             // whose places are written beside the nodes; or NULL
    pen_export_types types;
    // Writes the model's tensors as they are to be exported, as pen_parameter_file_save does.
    PEN_NODISCARD pen_status (*save)(void *context, const char *path);
    void *context;
} pen_model_export_source;

// Writes a model in inference form, with its symbols and with the source's tensors, to `path`:
// beside it, then renamed. The tensors pass through a file beside it, "<path>.tensors", so that
// they need not be in memory at once.
//   INVALID_INPUT  as pen_model_check_export; else as `save`
PEN_NODISCARD pen_status pen_model_export(const pen_model_export_source *source, const char *path);

// How a model that is open is exported. NULL for all of it: as it is.
typedef struct pen_model_export_options {
    const char *parameters; // the file that has them; NULL: the model's own
    const pen_plan *plan;   // or NULL
    pen_export_types types;
} pen_model_export_options;

// The same for such a model. Needs no device. `out_count`, of tensors, may not be NULL.
//   INVALID_INPUT  as pen_parameter_file_load
//   UNSUPPORTED    float32 is asked for of a file that says itself what its weights are
PEN_NODISCARD pen_status pen_model_export_file(const pen_model *model,
                                               const pen_model_export_options *options,
                                               const char *path, uint32_t *out_count);

// Whether something may be written to `path` when the model is read from `model_path`, and whether
// that something may be the model, as it is imported, with weights of those types.
//   INVALID_INPUT  it is a file that the model is read from; its name has another end
//   UNSUPPORTED    the model cannot be written so
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_model_check_output(const char *model_path, const char *path);
PEN_NODISCARD pen_status pen_model_check_export(const char *model_path,
                                                const pen_import_options *import,
                                                pen_export_types types, const char *path);

#endif // PEN_SCHEDULER_CHECKPOINT_MODEL_EXPORT_H
