// The cpu device's layouts as oneDNN is told of them.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_LAYOUT_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_LAYOUT_H

#include "device/cpu/cpu_layout.h"
#include "device/cpu/onednn/onednn.h"
#include "graph/graph_types.h"

// A float32 tensor in a layout. UNSUPPORTED: one that the device does not have of that rank.
PEN_NODISCARD pen_status pen_onednn_layout_tensor(const pen_shape *shape, pen_layout layout,
                                                  pen_onednn_tensor *out_tensor);
// A float32 tensor whose layout oneDNN may choose.
void pen_onednn_layout_any(const pen_shape *shape, pen_onednn_tensor *out_tensor);
// A value as it lies.
PEN_NODISCARD pen_status pen_onednn_layout_of_value(const pen_graph *graph, pen_value_id value,
                                                    pen_onednn_tensor *out_tensor);

// The layout that the primitive wants for an argument (DNNL_ARG_SRC, …) of `shape`; plain when it
// is none of ours.
pen_layout pen_onednn_layout_wanted(const_dnnl_primitive_desc_t primitive, int argument,
                                    const pen_shape *shape);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_LAYOUT_H
