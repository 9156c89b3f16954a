// All that `state_dict()` has of a model of PyTorch, as one safetensors file: parameters, buffers
// that a training changes, and those that it does not (positions, masks), each name of tied
// weights, in the types of the model's file. So `load_state_dict` takes it whole.
#ifndef PEN_SCHEDULER_CHECKPOINT_STATE_EXPORT_H
#define PEN_SCHEDULER_CHECKPOINT_STATE_EXPORT_H

#include "base/status.h"
#include "graph/import/import.h"
#include "scheduler/store/safetensors.h"

// Writes `path`, atomically, with the contents that `tensors` has, else with those of the model's
// file; NULL: none. With a `path` of NULL it only looks whether the model can be written.
//   UNSUPPORTED  the model did not come from a .pt2 file
//   CORRUPT, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_state_export(const pen_model *model, const pen_safetensors *tensors,
                                          const char *path);

#endif // PEN_SCHEDULER_CHECKPOINT_STATE_EXPORT_H
