// The beginning of a safetensors file (scheduler/store/safetensors.h says what it looks like):
// which tensors it has, and where.
//
// Threads: any.
#ifndef PEN_SCHEDULER_STORE_SAFETENSORS_HEADER_H
#define PEN_SCHEDULER_STORE_SAFETENSORS_HEADER_H

#include "base/arena.h"
#include "graph/tensor_type.h"

typedef struct pen_safetensors_item {
    const char *name;
    pen_tensor_type type;
} pen_safetensors_item;

// All bytes before the first tensor's, a multiple of 8, for tensors in the order of `items`.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_safetensors_header(const pen_safetensors_item *items, uint32_t count,
                                                pen_arena *arena, const char **out_bytes,
                                                uint64_t *out_count);

// The type called "F32"; PEN_ELEMENT_UNKNOWN when there is none of that name.
pen_element_type pen_safetensors_element_find(const char *name);

#endif // PEN_SCHEDULER_STORE_SAFETENSORS_HEADER_H
