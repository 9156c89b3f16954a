// The cpu device's layouts as oneDNN's memory descriptors.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_LAYOUT_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_LAYOUT_H

#include "device/cpu/cpu_layout.h"
#include "device/cpu/onednn/onednn.h"
#include "graph/graph_types.h"

// A float32 tensor in a layout. UNSUPPORTED: one that the device does not have of that rank.
PEN_NODISCARD pen_status pen_onednn_layout_md(const pen_shape *shape, pen_layout layout,
                                              dnnl_memory_desc_t *out_md);
// A float32 tensor whose layout oneDNN may choose.
PEN_NODISCARD pen_status pen_onednn_layout_md_any(const pen_shape *shape,
                                                  dnnl_memory_desc_t *out_md);
// A value as it lies.
PEN_NODISCARD pen_status pen_onednn_layout_md_of_value(const pen_graph *graph, pen_value_id value,
                                                       dnnl_memory_desc_t *out_md);

// The layout that a descriptor of `shape` is; plain when it is none of ours.
pen_layout pen_onednn_layout_find(const pen_shape *shape, const dnnl_memory_desc_t *md);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_LAYOUT_H
