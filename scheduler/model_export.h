// The trained model back to ONNX.
#ifndef PEN_SCHEDULER_MODEL_EXPORT_H
#define PEN_SCHEDULER_MODEL_EXPORT_H

#include "base/status.h"
#include "scheduler/runner.h"

// Writes the model of `model_path` in inference form, with its symbols and with the runner's
// parameters and running statistics, to `path`: beside it, then renamed.
PEN_NODISCARD pen_status pen_model_export(pen_runner *runner, const char *model_path,
                                          const char *path);

// Whether something may be written to `path` when the model is read from `model_path`, and whether
// that something may be ONNX.
//   INVALID_INPUT  it is a file that the model is read from; it does not end in .onnx
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_model_check_output(const char *model_path, const char *path);
PEN_NODISCARD pen_status pen_model_check_export(const char *model_path, const char *path);

#endif // PEN_SCHEDULER_MODEL_EXPORT_H
