#include "graph/import/tensor_elements.h"

#include <inttypes.h>
#include <string.h>

// Copying a misaligned tensor is cheap up to here; larger ones stay where they are in the file.
#define TENSOR_COPY_BYTES_LIMIT ((size_t)64 << 10)

const pen_tensor_element *pen_tensor_elements_at(const pen_tensor_elements *elements,
                                                 int64_t number) {
    static const pen_tensor_element unknown = {.name = "of unknown number"};
    return number >= 0 && number < elements->count ? &elements->elements[number] : &unknown;
}

int32_t pen_tensor_elements_number(const pen_tensor_elements *elements, pen_element_type element) {
    for (int32_t i = 1; (uint32_t)i < elements->count; i++) {
        if (element != PEN_ELEMENT_UNKNOWN && elements->elements[i].element == element) return i;
    }
    return 0;
}

pen_protobuf_wire pen_tensor_element_wire(const pen_tensor_element *element) {
    if (element->element == PEN_FLOAT32) return PEN_PROTOBUF_FIXED32;
    return element->element == PEN_FLOAT64 ? PEN_PROTOBUF_FIXED64 : PEN_PROTOBUF_VARINT;
}

static pen_status tensor_check_bools(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] <= 1) continue;
        return pen_error(PEN_CORRUPT, "element %zu is %d, expected a bool, 0 or 1", i,
                         (int)bytes[i]);
    }
    return PEN_OK;
}

pen_status pen_tensor_borrow(const pen_tensor_type *type, const uint8_t *bytes, pen_arena *arena,
                             const void **out_data) {
    const size_t length = pen_tensor_type_bytes(type);
    if (type->element == PEN_BOOL) PEN_TRY(tensor_check_bools(bytes, length));
    const bool is_aligned = (uintptr_t)bytes % pen_element_bytes(type->element) == 0;
    if (is_aligned || length > TENSOR_COPY_BYTES_LIMIT) {
        *out_data = bytes;
        return PEN_OK;
    }
    uint8_t *copy = pen_arena_allocate(arena, length > 0 ? length : 1, 1, 64);
    if (copy == NULL) return pen_error_out_of_memory();
    memcpy(copy, bytes, length);
    *out_data = copy;
    return PEN_OK;
}

pen_status pen_tensor_convert(const pen_tensor_type *type, pen_element_type element,
                              pen_arena *arena, const void **io_data) {
    const int64_t count = pen_shape_element_count(&type->shape);
    uint8_t *copy;
    if (type->element == element) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, (size_t)count * pen_element_bytes(element), &copy));
    pen_element_convert(type->element, *io_data, 0, count, element, copy);
    *io_data = copy;
    return PEN_OK;
}

// Counts without a buffer, fills with one; a list may come in several fields.
pen_status pen_tensor_read_list(const pen_protobuf_reader *message,
                                const pen_tensor_element *element, uint8_t *out_bytes,
                                uint64_t room, uint64_t *out_count) {
    const size_t size = pen_element_bytes(element->element);
    const pen_protobuf_wire wire = pen_tensor_element_wire(element);
    pen_protobuf_reader reader = *message;
    *out_count = 0;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_scalars list;
        uint64_t bits;
        bool more = true;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number != element->field) continue;
        PEN_TRY(pen_protobuf_scalars_open(&reader, &field, wire, &list));
        while (true) {
            PEN_TRY(pen_protobuf_scalars_next(&list, &bits, &more));
            if (!more) break;
            if (element->element == PEN_BOOL && bits > 1) {
                return pen_error(PEN_CORRUPT, "an element is %" PRIu64 ", expected a bool, 0 or 1",
                                 bits);
            }
            if (out_bytes != NULL && *out_count < room) {
                memcpy(out_bytes + *out_count * size, &bits, size);
            }
            *out_count += 1;
        }
    }
}
