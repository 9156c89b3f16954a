#include <string.h>

#include "graph/graph.h"

pen_status pen_graph_constant_ints(pen_graph *graph, const char *name, uint32_t count,
                                   const int64_t *integers, pen_value_id *out_value) {
    int64_t *copy;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), count, &copy));
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = integers[i];
    }
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 1, (int64_t[]){count});
    return pen_graph_constant(graph, name, &type, copy, out_value);
}

pen_status pen_graph_constant_number(pen_graph *graph, const char *name, pen_element_type element,
                                     double number, pen_value_id *out_value) {
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        uint8_t flag;
    } scalar = {0};
    switch (element) {
    case PEN_FLOAT32:
        scalar.f32 = (float)number;
        break;
    case PEN_FLOAT64:
        scalar.f64 = number;
        break;
    case PEN_INT32:
        scalar.i32 = (int32_t)number;
        break;
    case PEN_INT64:
        scalar.i64 = (int64_t)number;
        break;
    case PEN_BOOL:
        scalar.flag = number != 0;
        break;
    case PEN_ELEMENT_UNKNOWN:
    case PEN_FLOAT16:
    case PEN_BFLOAT16:
    case PEN_INT8:
    case PEN_INT16:
    case PEN_UINT8:
    case PEN_UINT16:
    case PEN_UINT32:
    case PEN_UINT64:
    case PEN_ELEMENT_TYPE_COUNT:
        return pen_error(PEN_UNSUPPORTED, "constant '%s' of type %s", name,
                         pen_element_name(element));
    }
    char *copy;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), sizeof scalar, &copy));
    memcpy(copy, &scalar, sizeof scalar);
    const pen_tensor_type type = pen_tensor_type_make(element, 0, NULL);
    return pen_graph_constant(graph, name, &type, copy, out_value);
}

// Element `index` of a constant: integer and bool types exactly in *out_integer, floating ones in
// *out_number. False for types that constants steering shapes never have.
static bool constant_element(const pen_value *value, int64_t index, int64_t *out_integer,
                             double *out_number) {
    const char *bytes = value->data;
    bytes += (uint64_t)index * pen_element_bytes(value->type.element);
    int64_t integer = 0;
    float single;
    switch (value->type.element) {
    case PEN_FLOAT32:
        memcpy(&single, bytes, sizeof single);
        *out_number = (double)single;
        return true;
    case PEN_FLOAT64:
        memcpy(out_number, bytes, sizeof *out_number);
        return true;
    case PEN_INT8:
        integer = *(const uint8_t *)bytes;
        if (integer > INT8_MAX) integer -= UINT8_MAX + 1;
        break;
    case PEN_BOOL:
    case PEN_UINT8:
        integer = *(const uint8_t *)bytes;
        break;
    case PEN_INT16: {
        int16_t narrow;
        memcpy(&narrow, bytes, sizeof narrow);
        integer = narrow;
        break;
    }
    case PEN_UINT16: {
        uint16_t narrow;
        memcpy(&narrow, bytes, sizeof narrow);
        integer = narrow;
        break;
    }
    case PEN_INT32: {
        int32_t narrow;
        memcpy(&narrow, bytes, sizeof narrow);
        integer = narrow;
        break;
    }
    case PEN_UINT32: {
        uint32_t narrow;
        memcpy(&narrow, bytes, sizeof narrow);
        integer = narrow;
        break;
    }
    case PEN_INT64:
    case PEN_UINT64:
        memcpy(&integer, bytes, sizeof integer);
        break;
    case PEN_FLOAT16:
    case PEN_BFLOAT16:
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        return false;
    }
    *out_integer = integer;
    *out_number = (double)integer;
    return true;
}

static pen_status constant_check(const pen_graph *graph, pen_value_id value) {
    const pen_value *constant = pen_graph_value(graph, value);
    if (constant->kind == PEN_VALUE_CONSTANT && constant->data != NULL) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "'%s' must be constant, but it depends on data",
                     constant->name);
}

pen_status pen_value_read_ints(const pen_graph *graph, pen_value_id value, uint32_t *out_count,
                               const int64_t **out_integers) {
    PEN_TRY(constant_check(graph, value));
    const pen_value *constant = pen_graph_value(graph, value);
    const int64_t count = pen_shape_element_count(&constant->type.shape);
    if (count > UINT32_MAX || pen_element_is_float(constant->type.element)) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "'%s' is %s, expected a list of integers",
                         constant->name, pen_tensor_type_format(&constant->type, text));
    }
    int64_t *integers;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), (size_t)count, &integers));
    for (int64_t i = 0; i < count; i++) {
        double number;
        if (!constant_element(constant, i, &integers[i], &number)) {
            return pen_error(PEN_UNSUPPORTED, "'%s' has elements of type %s", constant->name,
                             pen_element_name(constant->type.element));
        }
    }
    *out_count = (uint32_t)count;
    *out_integers = integers;
    return PEN_OK;
}

pen_status pen_value_read_number(const pen_graph *graph, pen_value_id value, double *out_number) {
    PEN_TRY(constant_check(graph, value));
    const pen_value *constant = pen_graph_value(graph, value);
    int64_t integer;
    if (pen_shape_element_count(&constant->type.shape) != 1 ||
        !constant_element(constant, 0, &integer, out_number)) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "'%s' is %s, expected one number", constant->name,
                         pen_tensor_type_format(&constant->type, text));
    }
    return PEN_OK;
}

pen_status pen_value_read_numbers(const pen_graph *graph, pen_value_id value,
                                  const double **out_numbers) {
    PEN_TRY(constant_check(graph, value));
    const pen_value *constant = pen_graph_value(graph, value);
    const int64_t count = pen_shape_element_count(&constant->type.shape);
    double *numbers;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), (size_t)count, &numbers));
    for (int64_t i = 0; i < count; i++) {
        int64_t integer;
        if (!constant_element(constant, i, &integer, &numbers[i])) {
            return pen_error(PEN_UNSUPPORTED, "'%s' has elements of type %s", constant->name,
                             pen_element_name(constant->type.element));
        }
    }
    *out_numbers = numbers;
    return PEN_OK;
}
