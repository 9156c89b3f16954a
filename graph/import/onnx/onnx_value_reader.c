#include "graph/import/onnx/onnx_value_reader.h"

#include <string.h>

// A dimension is a number, a name, or neither; -1 stands for the last two.
static pen_status value_read_dim(const pen_protobuf_reader *message, pen_arena *arena,
                                 pen_onnx_value *value) {
    if (value->shape.rank == PEN_RANK_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "'%s' has more than %d dimensions", value->name,
                         PEN_RANK_LIMIT);
    }
    const uint32_t axis = value->shape.rank++;
    value->shape.dims[axis] = -1;
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) {
            PEN_TRY(pen_protobuf_int(&reader, &field, &value->shape.dims[axis]));
            if (value->shape.dims[axis] < 0) value->shape.dims[axis] = -1; // some write it so
        } else if (field.number == 2) {
            PEN_TRY(pen_protobuf_name(&reader, &field, arena, &value->symbols[axis]));
        }
    }
}

static pen_status value_read_shape(const pen_protobuf_reader *message, pen_arena *arena,
                                   pen_onnx_value *value) {
    pen_protobuf_reader reader = *message;
    value->has_shape = true;
    while (true) {
        pen_protobuf_reader dim;
        bool more;
        PEN_TRY(pen_protobuf_next_message(&reader, 1, &dim, &more));
        if (!more) return PEN_OK;
        PEN_TRY(value_read_dim(&dim, arena, value));
    }
}

static pen_status value_read_tensor(const pen_protobuf_reader *message, pen_arena *arena,
                                    pen_onnx_value *value) {
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader shape;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) PEN_TRY(pen_protobuf_int(&reader, &field, &value->data_type));
        if (field.number != 2) continue;
        PEN_TRY(pen_protobuf_open(&reader, &field, &shape));
        PEN_TRY(value_read_shape(&shape, arena, value));
    }
}

static pen_status value_read_type(const pen_protobuf_reader *message, pen_arena *arena,
                                  pen_onnx_value *value) {
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader inner;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) {
            value->kind = "tensor";
            PEN_TRY(pen_protobuf_open(&reader, &field, &inner));
            PEN_TRY(value_read_tensor(&inner, arena, value));
        }
        if (field.number == 4) value->kind = "sequence";
        if (field.number == 5) value->kind = "map";
        if (field.number == 8) value->kind = "sparse tensor";
        if (field.number == 9) value->kind = "optional";
    }
}

pen_status pen_onnx_value_read(const pen_protobuf_reader *message, pen_arena *arena,
                               pen_onnx_value *out_value) {
    pen_onnx_value value = {.name = "", .kind = "untyped"};
    pen_protobuf_reader reader = *message;
    while (true) {
        pen_protobuf_field field;
        pen_protobuf_reader type;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 1) PEN_TRY(pen_protobuf_name(&reader, &field, arena, &value.name));
        if (field.number != 2) continue;
        PEN_TRY(pen_protobuf_open(&reader, &field, &type));
        PEN_TRY(value_read_type(&type, arena, &value));
    }
    *out_value = value;
    return PEN_OK;
}

// A walk over the graph for each name that is asked for: few are.
pen_status pen_onnx_value_find(const pen_onnx_model *model, const char *name, pen_arena *arena,
                               pen_onnx_value *out_value) {
    enum { GRAPH_VALUE = 13 };
    pen_protobuf_reader reader = model->graph;
    *out_value = (pen_onnx_value){.name = name, .kind = "untyped"};
    while (true) {
        pen_protobuf_reader inner;
        pen_onnx_value value;
        bool more;
        PEN_TRY(pen_protobuf_next_message(&reader, GRAPH_VALUE, &inner, &more));
        if (!more) return PEN_OK;
        PEN_TRY(pen_onnx_value_read(&inner, arena, &value));
        if (strcmp(value.name, name) != 0) continue;
        *out_value = value;
        return PEN_OK;
    }
}
