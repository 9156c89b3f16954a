// The model's parameters and running statistics in a safetensors file, under the model's names.
#ifndef PEN_SCHEDULER_CHECKPOINT_PARAMETER_FILE_H
#define PEN_SCHEDULER_CHECKPOINT_PARAMETER_FILE_H

#include "base/status.h"
#include "scheduler/store/safetensors.h"
#include "scheduler/store/tensor_store.h"

// Writes every tensor of the model as it is now. Adapters are written as part of the weights that
// they are of (scheduler/checkpoint/adapter_file.h).
PEN_NODISCARD pen_status pen_parameter_file_save(const char *path, const pen_tensor_store *store);

// Writes the adapters alone. NOT_FOUND: there are none.
PEN_NODISCARD pen_status pen_adapter_file_save(const char *path, const pen_tensor_store *store);

// Sets every tensor of the model. All must be there with equal types, and nothing else may be; but
// where no adapters are there, those of the model add nothing from now on.
//   INVALID_INPUT  lists what is missing, what is too much, and what has another shape
PEN_NODISCARD pen_status pen_parameter_file_load(const char *path, const pen_tensor_store *store);

// Opens a file that sets every tensor of the model, and checks as above. Of the store names and
// types are looked at. The caller closes it.
PEN_NODISCARD pen_status pen_parameter_file_open(const char *path, const pen_tensor_store *store,
                                                 pen_safetensors **out_file);

// Writes the first `count` tensors of the store, whatever they are.
PEN_NODISCARD pen_status pen_tensor_file_save(const char *path, const pen_tensor_store *store,
                                              uint32_t count);

#endif // PEN_SCHEDULER_CHECKPOINT_PARAMETER_FILE_H
