// The contract of this folder: what devices are handed and hand out. What they do: device.h.
//
// Lifetime, threads: as in device.h.
#ifndef PEN_DEVICE_DEVICE_TYPES_H
#define PEN_DEVICE_DEVICE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pen_device pen_device;           // begins with `const pen_device_kind *kind`
typedef struct pen_buffer pen_buffer;           // device memory, at least 64-byte aligned
typedef struct pen_kernel pen_kernel;           // one node made ready to run
typedef struct pen_launch pen_launch;           // a kernel bound to operands
typedef struct pen_launch_list pen_launch_list; // launches that run as one

// Where an operand lies. `buffer` NULL: an optional operand left out, or a constant that the
// kernel read when it was prepared.
typedef struct pen_operand {
    pen_buffer *buffer;
    uint64_t offset; // bytes, a multiple of 64
} pen_operand;

typedef struct pen_binding {
    const pen_operand *inputs;  // [node's input_count]
    const pen_operand *outputs; // [node's output_count]
    pen_operand workspace;      // of pen_kernel_workspace bytes
} pen_binding;

// What differs from one run of a launch to the next.
typedef struct pen_run_context {
    uint64_t seed; // random ops: see device/reference/reference_kernel.h
    uint64_t step;
    uint64_t microbatch;
    bool first_microbatch; // of its lane: accumulating nodes set their outputs instead of adding
    bool later_lane;       // there were others before it in the step (graph/lanes.h)
    bool ends_lane;        // this is the last microbatch of its lane that the step has
    uint32_t lane;         // of the microbatch
    uint32_t lane_count;   // that the step has microbatches of
    uint32_t microbatch_count; // that the step has
    uint64_t order;            // of an update: in which lanes came (graph/arrivals.h), where that
                               // is free
} pen_run_context;

// A device whose memory the host does not see has three queues: of work, and of copies in and out
// that go on beside it. All but copies that say so goes to the first.
typedef enum pen_queue { PEN_QUEUE_WORK, PEN_QUEUE_IN, PEN_QUEUE_OUT } pen_queue;

// A look at a value between the launches of a list: whether all of it is finite. One that finds
// that it is not stops all updates of parameters that come after it, in this list and in others,
// until `found` tells it.
typedef struct pen_look {
    pen_operand of;
    uint64_t count; // elements
    bool is_wide;   // float64, else float32
    bool is_late;   // set by list_create: the list has updates before it
} pen_look;

// From one mark to another.
typedef struct pen_span {
    double start_seconds; // on pen_clock_seconds, within microseconds
    double seconds;       // as finely as the device tells it
} pen_span;

// One of a list.
typedef struct pen_list_item {
    const pen_launch *launch; // NULL: a look
    pen_look *look;
} pen_list_item;

// Memory for what a list keeps on the device.
typedef struct pen_list_memory {
    pen_operand at; // no buffer: there are no bytes
    uint64_t bytes;
} pen_list_memory;

#endif // PEN_DEVICE_DEVICE_TYPES_H
