// The trained model back to ONNX.
#ifndef PEN_SCHEDULER_MODEL_EXPORT_H
#define PEN_SCHEDULER_MODEL_EXPORT_H

#include "base/status.h"
#include "scheduler/runner.h"

// Writes the model of `model_path` in inference form, with its symbols and with the runner's
// parameters and running statistics, to `path`: beside it, then renamed.
PEN_NODISCARD pen_status pen_model_export(pen_runner *runner, const char *model_path,
                                          const char *path);

#endif // PEN_SCHEDULER_MODEL_EXPORT_H
