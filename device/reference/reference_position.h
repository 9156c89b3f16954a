// Positions in tensors, for kernels that move elements.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_POSITION_H
#define PEN_DEVICE_REFERENCE_REFERENCE_POSITION_H

#include <stdint.h>
#include <string.h>

#include "device/reference/reference_kernel.h"
#include "graph/op.h"
#include "graph/tensor_type.h"

// The coordinates of element `index`, and back.
static inline void reference_position_of(const pen_shape *shape, int64_t index,
                                         int64_t out_at[PEN_RANK_LIMIT]) {
    for (uint32_t d = shape->rank; d-- > 0;) {
        out_at[d] = index % shape->dims[d];
        index /= shape->dims[d];
    }
}
static inline int64_t reference_index_of(const pen_shape *shape, const int64_t *at) {
    int64_t index = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        index = index * shape->dims[d] + at[d];
    }
    return index;
}

// Sets one element to that of another tensor of the same element type.
static inline void reference_copy_element(const pen_tensor *to, int64_t to_index,
                                          const pen_tensor *from, int64_t from_index) {
    const size_t bytes = pen_element_bytes(to->type.element);
    memmove((char *)to->data + (size_t)to_index * bytes,
            (const char *)from->data + (size_t)from_index * bytes, bytes);
}

// Adds to one element of a floating tensor.
static inline void reference_add_element(const pen_tensor *to, int64_t index, double number) {
    pen_tensor_set(to, index, pen_tensor_get(to, index) + number);
}

static inline void reference_fill_zero(const pen_tensor *tensor) {
    const size_t bytes = (size_t)pen_tensor_type_bytes(&tensor->type);
    if (bytes > 0) memset(tensor->data, 0, bytes);
}

// The attribute `axis` as a dimension of `shape`; it has been checked.
static inline uint32_t reference_axis(const pen_reference_call *call, const pen_shape *shape) {
    const int64_t axis = pen_node_int(call->node, "axis");
    return (uint32_t)(axis < 0 ? axis + shape->rank : axis);
}

// Rounds sums to the tensor's type.
static inline void reference_store_sums(const pen_tensor *to, const double *sums) {
    for (int64_t k = 0; k < pen_tensor_count(to); k++) {
        pen_tensor_set(to, k, sums[k]);
    }
}

#endif // PEN_DEVICE_REFERENCE_REFERENCE_POSITION_H
