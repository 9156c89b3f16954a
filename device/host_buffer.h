// Buffers in the host's memory, for devices that have no other: the bytes are where the host sees
// them. A buffer is what is behind pen_buffer of such a device.
//
// Threads: as the device's.
#ifndef PEN_DEVICE_HOST_BUFFER_H
#define PEN_DEVICE_HOST_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/device.h"
#include "device/memory_budget.h"

typedef struct pen_host_buffer {
    uint8_t *bytes;
    uint64_t size;
    void *mapping; // of `mapping_size` bytes, in which `bytes` are; NULL: from pen_memory_allocate
    size_t mapping_size;
    bool is_wrapped; // the memory is another's
} pen_host_buffer;

// Gives a buffer its bytes, and its mapping if it has one. OUT_OF_MEMORY
typedef pen_status (*pen_host_buffer_fill)(void *context, pen_host_buffer *buffer);

// By pen_memory_allocate; `context` is not looked at.
PEN_NODISCARD pen_status pen_host_buffer_allocate(void *context, pen_host_buffer *buffer);

// DOES_NOT_FIT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_host_buffer_create(pen_memory_budget *budget, uint64_t bytes,
                                                pen_host_buffer_fill fill, void *context,
                                                pen_buffer **out_buffer);
// Accepts NULL for `buffer`.
void pen_host_buffer_destroy(pen_memory_budget *budget, pen_buffer *buffer);

// NULL for no buffer.
void *pen_host_buffer_address(pen_operand operand);

// Members of a pen_device_kind.
PEN_NODISCARD pen_status pen_host_buffer_wrap(pen_device *device, pen_memory_place place,
                                              uint64_t bytes, pen_buffer **out_buffer);
pen_memory_place pen_host_buffer_place(pen_device *device, pen_operand operand);
PEN_NODISCARD pen_status pen_host_buffer_write(pen_device *device, pen_operand to, const void *host,
                                               uint64_t bytes);
PEN_NODISCARD pen_status pen_host_buffer_read(pen_device *device, pen_operand from, void *host,
                                              uint64_t bytes);
PEN_NODISCARD pen_status pen_host_buffer_synchronize(pen_device *device);

#endif // PEN_DEVICE_HOST_BUFFER_H
