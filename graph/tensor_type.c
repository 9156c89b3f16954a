#include "graph/tensor_type.h"

#include <stdio.h>

#include "base/integer.h"

pen_tensor_type pen_tensor_type_make(pen_element_type element, uint32_t rank, const int64_t *dims) {
    PEN_ASSERT(rank <= PEN_RANK_LIMIT);
    pen_tensor_type type = {.element = element, .shape = {.rank = rank}};
    for (uint32_t i = 0; i < rank; i++) {
        type.shape.dims[i] = dims[i];
    }
    return type;
}

bool pen_shape_equal(const pen_shape *a, const pen_shape *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) return false;
    }
    return true;
}

bool pen_tensor_type_equal(const pen_tensor_type *a, const pen_tensor_type *b) {
    return a->element == b->element && pen_shape_equal(&a->shape, &b->shape);
}

int64_t pen_shape_count(const pen_shape *shape, uint32_t first, uint32_t last) {
    int64_t count = 1;
    for (uint32_t i = first; i < last; i++) {
        count *= shape->dims[i];
    }
    return count;
}

int64_t pen_shape_element_count(const pen_shape *shape) {
    return pen_shape_count(shape, 0, shape->rank);
}

uint64_t pen_tensor_type_bytes(const pen_tensor_type *type) {
    return (uint64_t)pen_shape_element_count(&type->shape) * pen_element_bytes(type->element);
}

// Every shape from outside comes through here: later code multiplies dimensions without checking
// again.
pen_status pen_tensor_type_check(const pen_tensor_type *type) {
    if (type->shape.rank > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "rank %u is above the limit of %d", type->shape.rank,
                         PEN_RANK_LIMIT);
    }
    // Zero dimensions must not hide an overflow in the others, whose products are used alone.
    uint64_t bytes = pen_element_bytes(type->element);
    for (uint32_t i = 0; i < type->shape.rank; i++) {
        const int64_t dim = type->shape.dims[i];
        char text[PEN_SHAPE_TEXT_BYTES];
        if (dim < 0) {
            return pen_error(PEN_INVALID_INPUT, "dimension %u of %s is negative or unknown", i,
                             pen_shape_format(&type->shape, text));
        }
        if (dim > 0 &&
            (!pen_u64_mul(bytes, (uint64_t)dim, &bytes) || bytes > PEN_TENSOR_BYTES_LIMIT)) {
            return pen_error(
                PEN_INVALID_INPUT, "a tensor of shape %s is above the limit of %llu bytes",
                pen_shape_format(&type->shape, text), (unsigned long long)PEN_TENSOR_BYTES_LIMIT);
        }
    }
    return PEN_OK;
}

pen_status pen_shape_axis(uint32_t rank, int64_t axis, uint32_t *out_axis) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
        return pen_error(PEN_INVALID_INPUT, "axis %lld is outside of a tensor with %u dimensions",
                         (long long)axis, rank);
    }
    *out_axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    return PEN_OK;
}

pen_status pen_shape_broadcast(const pen_shape *a, const pen_shape *b, pen_shape *out_shape) {
    pen_shape shape = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t i = 0; i < shape.rank; i++) { // counted from the last dimension
        const int64_t da = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
        const int64_t db = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        if (da != db && da != 1 && db != 1) {
            char text_a[PEN_SHAPE_TEXT_BYTES], text_b[PEN_SHAPE_TEXT_BYTES];
            return pen_error(PEN_INVALID_INPUT, "shapes %s and %s do not broadcast",
                             pen_shape_format(a, text_a), pen_shape_format(b, text_b));
        }
        shape.dims[shape.rank - 1 - i] = da == 1 ? db : da;
    }
    *out_shape = shape;
    return PEN_OK;
}

const char *pen_shape_format(const pen_shape *shape, char out_text[PEN_SHAPE_TEXT_BYTES]) {
    size_t used = 1;
    out_text[0] = '[';
    for (uint32_t i = 0; i < shape->rank && i < PEN_RANK_LIMIT; i++) {
        const char *comma = i > 0 ? "," : "";
        if (shape->dims[i] < 0) {
            used += (size_t)snprintf(out_text + used, PEN_SHAPE_TEXT_BYTES - used, "%s?", comma);
        } else {
            used += (size_t)snprintf(out_text + used, PEN_SHAPE_TEXT_BYTES - used, "%s%lld", comma,
                                     (long long)shape->dims[i]);
        }
    }
    snprintf(out_text + used, PEN_SHAPE_TEXT_BYTES - used, "]");
    return out_text;
}

const char *pen_tensor_type_format(const pen_tensor_type *type,
                                   char out_text[PEN_SHAPE_TEXT_BYTES]) {
    char shape[PEN_SHAPE_TEXT_BYTES];
    pen_shape_format(&type->shape, shape);
    snprintf(out_text, PEN_SHAPE_TEXT_BYTES, "%s%.176s", pen_element_name(type->element), shape);
    return out_text;
}
