// The weights of a model as one safetensors file. Of a model of PyTorch all that `state_dict()`
// has: parameters, buffers that a training changes, and those that it does not (positions, masks),
// each name of tied weights; so `load_state_dict` takes it whole. Of others, parameters and running
// statistics under the graph's names.
#ifndef PEN_SCHEDULER_CHECKPOINT_STATE_EXPORT_H
#define PEN_SCHEDULER_CHECKPOINT_STATE_EXPORT_H

#include "base/status.h"
#include "graph/import/export_contents.h"
#include "graph/import/import.h"

// Writes `path`, atomically, with the contents that are found, else with those of the model's file.
// With a `path` of NULL it writes nothing.
//   CORRUPT, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_state_export(const pen_model *model,
                                          const pen_export_contents *contents, const char *path);

#endif // PEN_SCHEDULER_CHECKPOINT_STATE_EXPORT_H
