// Which nodes a device leaves to the host, within itself: those of operators that it has no kernel
// for.
#ifndef PEN_DEVICE_ON_HOST_H
#define PEN_DEVICE_ON_HOST_H

#include "device/device.h"

typedef struct pen_on_host {
    uint32_t count;
    uint32_t of;      // all nodes
    const char *list; // operators, each once: "tanh, tanh_backward"
} pen_on_host;

// Of the nodes of `order`. The text is in `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_on_host_find(pen_device *device, const pen_graph *graph,
                                          const pen_node_id *order, uint32_t order_count,
                                          pen_arena *arena, pen_on_host *out_found);

#endif // PEN_DEVICE_ON_HOST_H
