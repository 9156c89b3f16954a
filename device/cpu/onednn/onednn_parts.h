// One node's work as several oneDNN operations, each on one thread.
//
// A primitive divides its work, and so its sums, by the number of threads. Parts follow from the
// shape alone: each has images of its own, or channels of its own, and where all parts add to one
// result, each makes its own and these are added in the order of the parts. So the bits are those
// of one thread on any team.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_PARTS_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_PARTS_H

#include "device/cpu/onednn/onednn_operation.h"

#define PEN_ONEDNN_PART_LIMIT 8
#define PEN_ONEDNN_PART_INPUTS 3

// How the work of a node is divided, by its shape alone.
typedef struct pen_onednn_split {
    bool by_channels; // of the output; else by images
    int64_t extent;   // images or channels in all
    int64_t step;     // of every part but the last
    uint32_t count;
} pen_onednn_split;

// At most `most` parts, each of a multiple of `least`.
pen_onednn_split pen_onednn_split_into(int64_t extent, int64_t most, int64_t least,
                                       bool by_channels);

typedef struct pen_onednn_part {
    pen_onednn_operation *operation;
    uint64_t inputs[PEN_ONEDNN_PART_INPUTS]; // where the part begins in them, in bytes
    uint64_t output;                         // and in the output
    uint64_t slice_bytes;                    // of one image of the sliced input
} pen_onednn_part;

typedef struct pen_onednn_parts {
    uint32_t count;
    uint32_t input_count;
    pen_onednn_part parts[PEN_ONEDNN_PART_LIMIT];
    uint64_t part_workspace; // bytes of each part, with what follows
    uint64_t own_offset;     // of its slice or its result in that
    // A part reads a slice of every image of this input, which is copied first; -1: of none.
    int sliced_input;
    int64_t image_count;
    uint64_t image_bytes;
    int64_t sum_count; // elements of the result that all parts add to; 0: each has its own
} pen_onednn_parts;

// Members of pen_cpu_kernel for entries whose state are parts.
PEN_NODISCARD pen_status pen_onednn_parts_run(const pen_cpu_call *call);
void pen_onednn_parts_release(void *parts);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_PARTS_H
