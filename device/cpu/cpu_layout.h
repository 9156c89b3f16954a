// How values may lie in the cpu device's memory.
//
// In a blocked layout of block B, channels (dimension 1) are cut into blocks of B that become the
// innermost dimension: [N][ceil(C / B)][spatial…][B]. Where B does not divide C, the lanes behind
// the last channel are zeros: every kernel that takes a blocked layout keeps them so.
#ifndef PEN_DEVICE_CPU_CPU_LAYOUT_H
#define PEN_DEVICE_CPU_CPU_LAYOUT_H

#include <stdbool.h>

#include "graph/graph_types.h"
#include "graph/tensor_type.h"

// Values of pen_layout besides PEN_LAYOUT_PLAIN. All but plain are of ranks 3 to 5.
typedef enum pen_cpu_layout {
    PEN_CPU_LAYOUT_PLAIN = PEN_LAYOUT_PLAIN,
    PEN_CPU_LAYOUT_BLOCKED_8,
    PEN_CPU_LAYOUT_BLOCKED_16,
    PEN_CPU_LAYOUT_CHANNELS_LAST,
    PEN_CPU_LAYOUT_COUNT,
} pen_cpu_layout;

// Lanes of a block; 1 for layouts without blocks.
uint32_t pen_cpu_layout_block(pen_layout layout);

// Elements a tensor occupies in a layout, with the lanes behind the last channel.
uint64_t pen_cpu_layout_element_count(const pen_tensor_type *type, pen_layout layout);

// Whether `shape` is that of `whole` with one position, as what scales each channel of each sample
// is: [8, 96, 1, 1] beside [8, 96, 28, 28]. Such a tensor may lie in blocks beside the whole one.
bool pen_cpu_is_of_channels(const pen_shape *shape, const pen_shape *whole);

// Whether `node`, a reduce_ op, makes one number of all positions of each channel of each sample,
// [8, 96, 1, 1] of [8, 96, 28, 28]: its kernel takes blocked layouts.
bool pen_cpu_reduces_positions(const pen_graph *graph, const pen_node *node);

// Bytes a value occupies in its layout.
uint64_t pen_cpu_value_bytes(const pen_graph *graph, pen_value_id value);

#endif // PEN_DEVICE_CPU_CPU_LAYOUT_H
