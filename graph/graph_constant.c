#include "base/integer.h"
#include "graph/graph.h"

pen_element_type pen_value_stored(const pen_value *value) {
    return value->stored != PEN_ELEMENT_UNKNOWN ? value->stored : value->type.element;
}

bool pen_value_lies_plain(const pen_value *value) {
    const bool is_range = value->slice == NULL || pen_tensor_slice_is_range(value->slice);
    return value->stored == PEN_ELEMENT_UNKNOWN && is_range;
}

// Of a slice, run by run.
void pen_value_copy_contents(const pen_value *value, uint64_t first, void *out, uint64_t bytes) {
    const pen_element_type element = value->type.element, stored = pen_value_stored(value);
    const size_t width = pen_element_bytes(element);
    const pen_tensor_slice *slice = value->slice;
    uint64_t at = first / width, left = bytes / width;
    char *copy = out;
    while (left > 0) {
        const uint64_t count =
            slice == NULL ? left : pen_min_u64(left, slice->run - at % slice->run);
        const uint64_t place =
            slice == NULL ? at : pen_tensor_slice_place(slice, at) - slice->start;
        pen_element_convert(stored, value->data, (int64_t)place, (int64_t)count, element, copy);
        copy += count * width;
        at += count;
        left -= count;
    }
}

pen_status pen_graph_constant(pen_graph *graph, const char *name, const pen_tensor_type *type,
                              const void *data, pen_value_id *out_value) {
    PEN_TRY(pen_tensor_type_check(type));
    const pen_value spec = {.name = name,
                            .kind = PEN_VALUE_CONSTANT,
                            .type = *type,
                            .data = data,
                            .data_bytes = pen_tensor_type_bytes(type)};
    return pen_graph_add_own_value(graph, &spec, out_value);
}

pen_status pen_graph_constant_ints(pen_graph *graph, const char *name, uint32_t count,
                                   const int64_t *integers, pen_value_id *out_value) {
    int64_t *copy;
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(graph), count, &copy));
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = integers[i];
    }
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 1, (int64_t[]){count});
    return pen_graph_constant(graph, name, &type, copy, out_value);
}

pen_status pen_graph_constant_number(pen_graph *graph, const char *name, pen_element_type element,
                                     double number, pen_value_id *out_value) {
    const bool is_known = pen_element_is_trained(element) || element == PEN_INT32 ||
                          element == PEN_INT64 || element == PEN_BOOL;
    if (!is_known) {
        return pen_error(PEN_UNSUPPORTED, "constant '%s' of type %s", name,
                         pen_element_name(element));
    }
    double *copy; // room for any element
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(graph), 1, &copy));
    pen_element_write(element, copy, 0, number);
    const pen_tensor_type type = pen_tensor_type_make(element, 0, NULL);
    return pen_graph_constant(graph, name, &type, copy, out_value);
}

// Element `index` of a constant: integer and bool types exactly in *out_integer, floating ones in
// *out_number. False for types that constants steering shapes never have.
static bool constant_element(const pen_value *value, int64_t index, int64_t *out_integer,
                             double *out_number) {
    const pen_element_type element = value->type.element;
    if (element == PEN_ELEMENT_UNKNOWN || pen_element_is_half(element)) return false;
    *out_number = pen_element_read(element, value->data, index);
    if (!pen_element_is_float(element)) {
        *out_integer = pen_element_read_int(element, value->data, index);
        *out_number = (double)*out_integer;
    }
    return true;
}

static pen_status constant_check(const pen_graph *graph, pen_value_id value) {
    const pen_value *constant = pen_graph_value(graph, value);
    if (constant->kind == PEN_VALUE_CONSTANT && constant->data != NULL) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "'%s' must be constant, but it depends on data",
                     constant->name);
}

// Constants that steer operators (shapes, axes, indices) as int64, whatever integers the file has
// them in.
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
