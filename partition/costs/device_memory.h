// What a device holds at its worst moment, by what it is for.
#ifndef PEN_PARTITION_COSTS_DEVICE_MEMORY_H
#define PEN_PARTITION_COSTS_DEVICE_MEMORY_H

#include <stdint.h>

#include "base/arena.h"
#include "base/format/json_writer.h"
#include "base/status.h"

typedef struct pen_device_memory {
    uint64_t parameters;
    uint64_t gradients; // accumulated over microbatches
    uint64_t optimizer_state;
    uint64_t activations;     // kept for backward, of all microbatches in flight
    uint64_t receive_buffers; // tensors from other devices, of all microbatches in flight
    uint64_t workspace;       // kernels' and values that live within one task
    uint64_t saved;           // tensors copied aside, of which a checkpoint is written
    uint64_t total;           // sum of the above
} pen_device_memory;

// One of the members above: `key` as in files ("optimizer_state"), `name` as in sentences
// ("optimizer state").
typedef struct pen_device_memory_kind {
    const char *key;
    const char *name;
    size_t offset;
} pen_device_memory_kind;

#define PEN_DEVICE_MEMORY_KINDS 7 // all but the total

extern const pen_device_memory_kind pen_device_memory_kinds[PEN_DEVICE_MEMORY_KINDS];

// The bytes of kind `kind`, below PEN_DEVICE_MEMORY_KINDS.
uint64_t pen_device_memory_at(const pen_device_memory *memory, uint32_t kind);

// All kinds together, which may be more than 64 bits hold.
double pen_device_memory_sum(const pen_device_memory *memory);

// "parameters 1.2 MiB, activations 3 KiB", or "nothing": kinds that take something. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_device_memory_format(const pen_device_memory *memory, pen_arena *arena,
                                                  const char **out_text);

// Writes all kinds and the total as one object.
void pen_device_memory_write_json(const pen_device_memory *memory, pen_json_writer *json);

#endif // PEN_PARTITION_COSTS_DEVICE_MEMORY_H
