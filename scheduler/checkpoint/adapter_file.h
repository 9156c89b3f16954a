// Low-rank adapters among tensors that are written (graph/passes/adapt_weights.h): added to the
// weights that they are of, so that whoever reads the file needs to know nothing of them; or they
// alone, without the weights.
//
// Lifetime: a view lives in its arena, and as long as what it is a view of.
// Threads:  one.
#ifndef PEN_SCHEDULER_CHECKPOINT_ADAPTER_FILE_H
#define PEN_SCHEDULER_CHECKPOINT_ADAPTER_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/safetensors.h"

// A view in which weights have their adapters in them, W + scale * (B A), each element summed up in
// double and rounded once; the adapters are not in it. Adapters are read at once.
//   CORRUPT  adapters of other shapes than their weight. OUT_OF_MEMORY, and as reading
PEN_NODISCARD pen_status pen_adapters_merge(const pen_safetensors_source *source, pen_arena *arena,
                                            pen_safetensors_source *out_view);

// A view of the adapters alone, called as PEFT does: "base_model.model.fc1.lora_A.weight".
//   NOT_FOUND  there are none. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_adapters_choose(const pen_safetensors_source *source, pen_arena *arena,
                                             pen_safetensors_source *out_view);

#endif // PEN_SCHEDULER_CHECKPOINT_ADAPTER_FILE_H
