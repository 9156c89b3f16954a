// Shapes and tensor types.
//
// A shape's dimensions are counts of elements, outermost first; tensors are dense and row-major in
// the plain layout. A dimension that is not yet known by number is symbolic: it stands for an
// entry of the graph's symbol table (the batch size, as a rule) and is stored as -(1 + index).
// Shapes behind the inputs are inferred after symbols are bound, so operators only ever see
// numbers.
#ifndef PEN_GRAPH_TENSOR_TYPE_H
#define PEN_GRAPH_TENSOR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/status.h"
#include "graph/element.h"

typedef struct pen_shape {
    uint32_t rank; // 0: a scalar
    int64_t dims[PEN_RANK_LIMIT];
} pen_shape;

typedef struct pen_tensor_type {
    pen_element_type element; // PEN_ELEMENT_UNKNOWN until inferred
    pen_shape shape;
} pen_tensor_type;

pen_tensor_type pen_tensor_type_make(pen_element_type element, uint32_t rank, const int64_t *dims);
bool pen_shape_equal(const pen_shape *a, const pen_shape *b);
bool pen_tensor_type_equal(const pen_tensor_type *a, const pen_tensor_type *b);

// Product of the dimensions from `first` up to, not including, `last` (1 when empty). The shape
// has been checked: every dimension known and the product within PEN_TENSOR_BYTES_LIMIT.
int64_t pen_shape_count(const pen_shape *shape, uint32_t first, uint32_t last);
int64_t pen_shape_element_count(const pen_shape *shape);
// Elements times their size, in the plain layout. The type has been checked.
uint64_t pen_tensor_type_bytes(const pen_tensor_type *type);

// INVALID_INPUT: a dimension is negative (or symbolic), the rank is above PEN_RANK_LIMIT, or the
// bytes are above PEN_TENSOR_BYTES_LIMIT.
PEN_NODISCARD pen_status pen_tensor_type_check(const pen_tensor_type *type);

// `axis` in [-rank, rank) to [0, rank). INVALID_INPUT otherwise.
PEN_NODISCARD pen_status pen_shape_axis(uint32_t rank, int64_t axis, uint32_t *out_axis);

// The common shape of `a` and `b` under NumPy's broadcasting. INVALID_INPUT names both.
PEN_NODISCARD pen_status pen_shape_broadcast(const pen_shape *a, const pen_shape *b,
                                             pen_shape *out_shape);

// "[32,512]"; returns `out_text`. PEN_SHAPE_TEXT_BYTES are always enough.
#define PEN_SHAPE_TEXT_BYTES 192
const char *pen_shape_format(const pen_shape *shape, char out_text[PEN_SHAPE_TEXT_BYTES]);
// "float32[32,512]"
const char *pen_tensor_type_format(const pen_tensor_type *type,
                                   char out_text[PEN_SHAPE_TEXT_BYTES]);

#endif // PEN_GRAPH_TENSOR_TYPE_H
