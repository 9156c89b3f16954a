#include "graph/import/tensorflow/graphdef_tensor.h"

#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "graph/import/tensor_elements.h"
#include "graph/import/tensorflow/graphdef_model.h"

// Field numbers of TensorProto.
enum {
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    TENSOR_STRINGS = 8,
};

// ---- shapes

static pen_status tensor_read_dimension(const pen_protobuf_reader *reader,
                                        const pen_protobuf_field *field, int64_t *out_dimension) {
    pen_protobuf_reader message;
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    *out_dimension = 0;
    while (true) {
        pen_protobuf_field part;
        PEN_TRY(pen_protobuf_next(&message, &part));
        if (part.number == 0) break;
        if (part.number == 1) PEN_TRY(pen_protobuf_int(&message, &part, out_dimension));
    }
    if (*out_dimension < 0) *out_dimension = -1;
    return PEN_OK;
}

// TensorFlow tells shapes of unknown rank from scalars by a flag.
pen_status pen_graphdef_shape_read(const pen_protobuf_reader *message, pen_shape *out_shape,
                                   bool *out_is_known) {
    pen_protobuf_reader reader = *message;
    *out_shape = (pen_shape){0};
    *out_is_known = true;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 3) {
            int64_t unknown;
            PEN_TRY(pen_protobuf_int(&reader, &field, &unknown));
            *out_is_known = unknown == 0;
        }
        if (field.number != 2) continue;
        if (out_shape->rank == PEN_RANK_LIMIT) {
            return pen_error(PEN_UNSUPPORTED, "a tensor has more than %d dimensions",
                             PEN_RANK_LIMIT);
        }
        PEN_TRY(tensor_read_dimension(&reader, &field, &out_shape->dims[out_shape->rank]));
        out_shape->rank++;
    }
}

// Type and shape of a TensorProto; contents are read by who needs them.
pen_status pen_graphdef_tensor_type(const pen_protobuf_reader *message, pen_tensor_type *out_type,
                                    int64_t *out_data_type) {
    pen_protobuf_reader reader = *message;
    bool is_known = true;
    *out_type = (pen_tensor_type){0};
    *out_data_type = 0;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader shape;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == TENSOR_DTYPE) {
            PEN_TRY(pen_protobuf_int(&reader, &field, out_data_type));
        } else if (field.number == TENSOR_SHAPE) {
            PEN_TRY(pen_protobuf_open(&reader, &field, &shape));
            PEN_TRY(pen_graphdef_shape_read(&shape, &out_type->shape, &is_known));
        }
    }
    if (!is_known) return pen_error(PEN_CORRUPT, "a constant without a shape");
    out_type->element = pen_graphdef_element_type(*out_data_type);
    if (out_type->element == PEN_ELEMENT_UNKNOWN) return PEN_OK;
    return pen_tensor_type_check(out_type);
}

// ---- contents

static pen_status tensor_find_content(const pen_protobuf_reader *message, const uint8_t **out_bytes,
                                      size_t *out_length) {
    pen_protobuf_reader reader = *message;
    *out_bytes = NULL;
    *out_length = 0;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number != TENSOR_CONTENT) continue;
        PEN_TRY(pen_protobuf_bytes(&reader, &field, out_bytes, out_length));
    }
}

// Repeats the last of `count` elements (0 when there is none) up to `total`.
static void tensor_repeat(uint8_t *bytes, size_t size, uint64_t count, uint64_t total) {
    if (count == 0) {
        memset(bytes, 0, total * size);
        return;
    }
    for (uint64_t i = count; i < total; i++) {
        memcpy(bytes + i * size, bytes + (count - 1) * size, size);
    }
}

// From lists of numbers: TensorFlow leaves out repetitions at the end, so that a file of few
// bytes can mean a large tensor. All that is filled so is bounded.
static pen_status tensor_fill(const pen_protobuf_reader *message, const pen_tensor_type *type,
                              pen_arena *arena, uint64_t *splat_bytes, const void **out_data) {
    const pen_tensor_element *element =
        pen_graphdef_tensor_element(pen_graphdef_data_type(type->element));
    const uint64_t total = (uint64_t)pen_shape_element_count(&type->shape);
    const uint64_t bytes = pen_tensor_type_bytes(type);
    uint64_t count;
    PEN_TRY(pen_tensor_read_list(message, element, NULL, 0, &count));
    if (count > total) {
        return pen_error(PEN_CORRUPT, "%" PRIu64 " elements, expected %" PRIu64, count, total);
    }
    if (count < total) {
        if (bytes > PEN_SPLAT_BYTES_LIMIT || *splat_bytes > PEN_SPLAT_BYTES_LIMIT - bytes) {
            return pen_error(PEN_INVALID_INPUT,
                             "constants that repeat a number are more than %u bytes",
                             PEN_SPLAT_BYTES_LIMIT);
        }
        *splat_bytes += bytes;
    }
    uint8_t *data = pen_arena_allocate(arena, bytes > 0 ? bytes : 1, 1, 64);
    if (data == NULL) return pen_error_out_of_memory();
    PEN_TRY(pen_tensor_read_list(message, element, data, total, &count));
    if (count < total) tensor_repeat(data, pen_element_bytes(type->element), count, total);
    *out_data = data;
    return PEN_OK;
}

pen_status pen_graphdef_tensor_data(const pen_protobuf_reader *message, const pen_tensor_type *type,
                                    pen_arena *arena, uint64_t *splat_bytes,
                                    const void **out_data) {
    const uint8_t *content;
    size_t length;
    const uint64_t bytes = pen_tensor_type_bytes(type);
    PEN_TRY(tensor_find_content(message, &content, &length));
    if (content == NULL || length == 0) {
        return tensor_fill(message, type, arena, splat_bytes, out_data);
    }
    if (length != bytes) {
        return pen_error(PEN_CORRUPT, "%zu bytes of contents, expected %" PRIu64, length, bytes);
    }
    return pen_tensor_borrow(type, content, arena, out_data);
}

pen_status pen_graphdef_tensor_texts(const pen_protobuf_reader *message, pen_arena *arena,
                                     uint32_t *out_count, const char ***out_texts) {
    return pen_graphdef_texts(message, TENSOR_STRINGS, arena, out_count, out_texts);
}
