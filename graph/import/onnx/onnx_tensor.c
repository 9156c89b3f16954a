#include "graph/import/onnx/onnx_tensor.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "graph/import/tensor_elements.h"

// Field numbers of TensorProto.
enum {
    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOAT_DATA = 4,
    TENSOR_INT32_DATA = 5,
    TENSOR_INT64_DATA = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    TENSOR_DOUBLE_DATA = 10,
    TENSOR_UINT64_DATA = 11,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_DATA_LOCATION = 14,
};

// Indexed by the number in ONNX.
static const pen_tensor_element tensor_element_list[] = {
    {PEN_ELEMENT_UNKNOWN, "undefined", 0},
    {PEN_FLOAT32, "float", TENSOR_FLOAT_DATA},
    {PEN_UINT8, "uint8", TENSOR_INT32_DATA},
    {PEN_INT8, "int8", TENSOR_INT32_DATA},
    {PEN_UINT16, "uint16", TENSOR_INT32_DATA},
    {PEN_INT16, "int16", TENSOR_INT32_DATA},
    {PEN_INT32, "int32", TENSOR_INT32_DATA},
    {PEN_INT64, "int64", TENSOR_INT64_DATA},
    {PEN_ELEMENT_UNKNOWN, "string", 0},
    {PEN_BOOL, "bool", TENSOR_INT32_DATA},
    {PEN_FLOAT16, "float16", TENSOR_INT32_DATA},
    {PEN_FLOAT64, "double", TENSOR_DOUBLE_DATA},
    {PEN_UINT32, "uint32", TENSOR_UINT64_DATA},
    {PEN_UINT64, "uint64", TENSOR_UINT64_DATA},
    {PEN_ELEMENT_UNKNOWN, "complex64", 0},
    {PEN_ELEMENT_UNKNOWN, "complex128", 0},
    {PEN_BFLOAT16, "bfloat16", TENSOR_INT32_DATA},
    {PEN_ELEMENT_UNKNOWN, "float8e4m3fn", 0},
    {PEN_ELEMENT_UNKNOWN, "float8e4m3fnuz", 0},
    {PEN_ELEMENT_UNKNOWN, "float8e5m2", 0},
    {PEN_ELEMENT_UNKNOWN, "float8e5m2fnuz", 0},
    {PEN_ELEMENT_UNKNOWN, "uint4", 0},
    {PEN_ELEMENT_UNKNOWN, "int4", 0},
    {PEN_ELEMENT_UNKNOWN, "float4e2m1", 0},
    {PEN_ELEMENT_UNKNOWN, "float8e8m0", 0},
    {PEN_ELEMENT_UNKNOWN, "uint2", 0},
    {PEN_ELEMENT_UNKNOWN, "int2", 0},
    {PEN_ELEMENT_UNKNOWN, "float6e2m3", 0},
    {PEN_ELEMENT_UNKNOWN, "float6e3m2", 0},
};
static const pen_tensor_elements tensor_elements = {
    tensor_element_list, sizeof tensor_element_list / sizeof tensor_element_list[0]};

pen_element_type pen_onnx_element_type(int64_t data_type) {
    return pen_tensor_elements_at(&tensor_elements, data_type)->element;
}

int32_t pen_onnx_data_type(pen_element_type element) {
    return pen_tensor_elements_number(&tensor_elements, element);
}

const char *pen_onnx_data_type_name(int64_t data_type) {
    return pen_tensor_elements_at(&tensor_elements, data_type)->name;
}

static pen_status tensor_read_dims(const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field, pen_shape *shape) {
    pen_protobuf_scalars dims;
    PEN_TRY(pen_protobuf_scalars_open(reader, field, PEN_PROTOBUF_VARINT, &dims));
    while (true) {
        uint64_t bits;
        bool more;
        PEN_TRY(pen_protobuf_scalars_next(&dims, &bits, &more));
        if (!more) return PEN_OK;
        if (shape->rank == PEN_RANK_LIMIT) {
            return pen_error(PEN_UNSUPPORTED, "a tensor has more than %d dimensions",
                             PEN_RANK_LIMIT);
        }
        memcpy(&shape->dims[shape->rank++], &bits, sizeof bits);
    }
}

// Type and name alone: contents are looked for when somebody wants them.
pen_status pen_onnx_tensor_open(const pen_protobuf_reader *message, pen_arena *arena,
                                pen_onnx_tensor *out_tensor) {
    pen_onnx_tensor tensor = {.name = "", .message = *message};
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == TENSOR_DIMS) {
            PEN_TRY(tensor_read_dims(&reader, &field, &tensor.type.shape));
        } else if (field.number == TENSOR_DATA_TYPE) {
            PEN_TRY(pen_protobuf_int(&reader, &field, &tensor.data_type));
        } else if (field.number == TENSOR_NAME) {
            PEN_TRY(pen_protobuf_name(&reader, &field, arena, &tensor.name));
        } else if (field.number == TENSOR_SEGMENT) {
            return pen_error(PEN_UNSUPPORTED, "tensor '%s' is stored in segments", tensor.name);
        }
    }
    tensor.type.element = pen_onnx_element_type(tensor.data_type);
    PEN_TRY(
        pen_status_add_context(pen_tensor_type_check(&tensor.type), "in tensor '%s'", tensor.name));
    *out_tensor = tensor;
    return PEN_OK;
}

// Where a tensor's contents are.
typedef struct tensor_contents {
    bool is_external;
    const char *location;
    uint64_t offset;
    bool has_length;
    uint64_t length;
    const uint8_t *raw; // NULL: in a list
    size_t raw_bytes;
    uint64_t list_count;       // numbers in the list of the element type
    uint32_t list_field_count; // fields they are spread over
} tensor_contents;

static pen_status tensor_parse_number(const char *key, const char *text, uint64_t *out_number) {
    uint64_t number = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (pen_u64_mul(number, 10, &number) &&
            pen_u64_add(number, (uint64_t)(*c - '0'), &number)) {
            continue;
        }
        break;
    }
    if (c == text || *c != '\0') {
        return pen_error(PEN_CORRUPT, "external data: %s is '%s', expected a count of bytes", key,
                         text);
    }
    *out_number = number;
    return PEN_OK;
}

// One key and value of external_data.
static pen_status tensor_read_external(const pen_protobuf_reader *reader,
                                       const pen_protobuf_field *field, pen_arena *arena,
                                       tensor_contents *contents) {
    pen_protobuf_reader entry;
    PEN_TRY(pen_protobuf_open(reader, field, &entry));
    const char *key = "", *value = "";
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&entry, &part));
        if (part.number == 0) break;
        if (part.number == 1) PEN_TRY(pen_protobuf_name(&entry, &part, arena, &key));
        if (part.number == 2) PEN_TRY(pen_protobuf_name(&entry, &part, arena, &value));
    }
    if (strcmp(key, "location") == 0) contents->location = value;
    if (strcmp(key, "offset") == 0) return tensor_parse_number(key, value, &contents->offset);
    if (strcmp(key, "length") == 0) {
        contents->has_length = true;
        return tensor_parse_number(key, value, &contents->length);
    }
    return PEN_OK; // "checksum" and what may come
}

// Contents may be raw bytes, a list of numbers, or in another file: all are noted, the caller
// chooses.
static pen_status tensor_find_contents(const pen_onnx_tensor *tensor,
                                       const pen_tensor_element *element, pen_arena *arena,
                                       tensor_contents *out_contents) {
    tensor_contents contents = {0};
    pen_protobuf_reader reader = tensor->message;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == TENSOR_RAW_DATA) {
            PEN_TRY(pen_protobuf_bytes(&reader, &field, &contents.raw, &contents.raw_bytes));
        } else if (field.number == TENSOR_EXTERNAL_DATA) {
            PEN_TRY(tensor_read_external(&reader, &field, arena, &contents));
        } else if (field.number == TENSOR_DATA_LOCATION) {
            int64_t location;
            PEN_TRY(pen_protobuf_int(&reader, &field, &location));
            contents.is_external = location == 1;
        } else if (field.number == element->field) {
            pen_protobuf_scalars list;
            uint64_t count;
            PEN_TRY(pen_protobuf_scalars_open(&reader, &field, pen_tensor_element_wire(element),
                                              &list));
            PEN_TRY(pen_protobuf_scalars_count(&list, &count));
            contents.list_count += count; // at most one a byte of the file
            contents.list_field_count += 1;
        }
    }
    *out_contents = contents;
    return PEN_OK;
}

// Borrowed from the mapped file, after its bounds are checked without sums that might overflow.
static pen_status tensor_data_external(const pen_onnx_tensor *tensor,
                                       const tensor_contents *contents, pen_external_files *files,
                                       pen_arena *arena, const void **out_data) {
    const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
    if (contents->location == NULL) {
        return pen_error(PEN_CORRUPT, "external data without a location");
    }
    const pen_mapping *mapping = NULL;
    PEN_TRY(pen_external_files_open(files, contents->location, &mapping));
    if (contents->offset > mapping->length || bytes > mapping->length - contents->offset) {
        return pen_error(PEN_CORRUPT,
                         "%" PRIu64 " bytes from byte %" PRIu64 " of '%s' on, which has %zu", bytes,
                         contents->offset, contents->location, mapping->length);
    }
    if (contents->has_length && contents->length != bytes) {
        return pen_error(PEN_CORRUPT, "%" PRIu64 " bytes of external data, expected %" PRIu64,
                         contents->length, bytes);
    }
    return pen_tensor_borrow(&tensor->type, mapping->bytes + contents->offset, arena, out_data);
}

// The packed list, when it lies in one piece.
static pen_status tensor_find_list(const pen_onnx_tensor *tensor, const pen_tensor_element *element,
                                   pen_protobuf_field *out_field) {
    pen_protobuf_reader reader = tensor->message;
    do {
        PEN_TRY(pen_protobuf_next(&reader, out_field));
    } while (out_field->number != 0 && out_field->number != element->field);
    return PEN_OK;
}

// A packed list of fixed width lies in the file as it will in memory, and is borrowed; others are
// unpacked.
static pen_status tensor_data_list(const pen_onnx_tensor *tensor, const pen_tensor_element *element,
                                   const tensor_contents *contents, pen_arena *arena,
                                   const void **out_data) {
    const uint64_t count = (uint64_t)pen_shape_element_count(&tensor->type.shape);
    if (contents->list_count != count) {
        return pen_error(PEN_CORRUPT, "%" PRIu64 " elements, expected %" PRIu64,
                         contents->list_count, count);
    }
    if (contents->list_field_count == 1 &&
        pen_tensor_element_wire(element) != PEN_PROTOBUF_VARINT) {
        pen_protobuf_field field;
        PEN_TRY(tensor_find_list(tensor, element, &field));
        if (field.wire == PEN_PROTOBUF_BYTES) {
            return pen_tensor_borrow(&tensor->type, field.bytes, arena, out_data);
        }
    }
    const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
    uint8_t *data = pen_arena_allocate(arena, bytes > 0 ? bytes : 1, 1, 64);
    if (data == NULL) return pen_error_out_of_memory();
    uint64_t read_count;
    PEN_TRY(pen_tensor_read_list(&tensor->message, element, data, count, &read_count));
    *out_data = data;
    return PEN_OK;
}

// Borrows where it can, so that weights are not copied.
static pen_status tensor_data(const pen_onnx_tensor *tensor, pen_external_files *files,
                              pen_arena *arena, const void **out_data) {
    if (tensor->type.element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "element type %s (%" PRId64 ")",
                         pen_onnx_data_type_name(tensor->data_type), tensor->data_type);
    }
    const pen_tensor_element *element = pen_tensor_elements_at(&tensor_elements, tensor->data_type);
    tensor_contents contents = {0};
    PEN_TRY(tensor_find_contents(tensor, element, arena, &contents));
    if (contents.is_external) {
        return tensor_data_external(tensor, &contents, files, arena, out_data);
    }
    if (contents.raw == NULL) return tensor_data_list(tensor, element, &contents, arena, out_data);
    const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
    if (contents.raw_bytes != bytes) {
        return pen_error(PEN_CORRUPT, "%zu bytes of raw data, expected %" PRIu64,
                         contents.raw_bytes, bytes);
    }
    return pen_tensor_borrow(&tensor->type, contents.raw, arena, out_data);
}

pen_element_type pen_onnx_widened(pen_element_type element, bool widens) {
    return widens && pen_element_is_half(element) ? PEN_FLOAT32 : element;
}

pen_status pen_onnx_tensor_data(const pen_onnx_tensor *tensor, pen_external_files *files,
                                pen_arena *arena, const void **out_data) {
    return pen_status_add_context(tensor_data(tensor, files, arena, out_data), "in tensor '%s'",
                                  tensor->name);
}
