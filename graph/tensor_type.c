#include "graph/tensor_type.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"

typedef struct tensor_type_element {
    const char *name;
    size_t bytes;
} tensor_type_element;

static const tensor_type_element tensor_type_elements[PEN_ELEMENT_TYPE_COUNT] = {
    [PEN_ELEMENT_UNKNOWN] = {"unknown", 0},
    [PEN_FLOAT32] = {"float32", 4},
    [PEN_FLOAT64] = {"float64", 8},
    [PEN_FLOAT16] = {"float16", 2},
    [PEN_BFLOAT16] = {"bfloat16", 2},
    [PEN_INT8] = {"int8", 1},
    [PEN_INT16] = {"int16", 2},
    [PEN_INT32] = {"int32", 4},
    [PEN_INT64] = {"int64", 8},
    [PEN_UINT8] = {"uint8", 1},
    [PEN_UINT16] = {"uint16", 2},
    [PEN_UINT32] = {"uint32", 4},
    [PEN_UINT64] = {"uint64", 8},
    [PEN_BOOL] = {"bool", 1},
};

size_t pen_element_bytes(pen_element_type element) {
    return tensor_type_elements[element].bytes;
}

const char *pen_element_name(pen_element_type element) {
    return tensor_type_elements[element].name;
}

pen_status pen_element_find(const char *name, pen_element_type *out_element) {
    for (int i = PEN_FLOAT32; i < PEN_ELEMENT_TYPE_COUNT; i++) {
        if (strcmp(tensor_type_elements[i].name, name) == 0) {
            *out_element = (pen_element_type)i;
            return PEN_OK;
        }
    }
    return pen_error(PEN_NOT_FOUND,
                     "no element type is called '%s'; there are float32, float64, float16, "
                     "bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool",
                     name);
}

bool pen_element_is_float(pen_element_type element) {
    return element >= PEN_FLOAT32 && element <= PEN_BFLOAT16;
}

bool pen_element_is_integer(pen_element_type element) {
    return element >= PEN_INT8 && element <= PEN_UINT64;
}

bool pen_element_is_signed(pen_element_type element) {
    return element >= PEN_FLOAT32 && element <= PEN_INT64;
}

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
