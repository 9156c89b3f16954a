#include "graph/import/onnx/onnx_value.h"

#include "graph/import/import.h"
#include "graph/import/onnx/onnx_tensor.h"

typedef struct value_axis {
    const pen_onnx_value_text *value;
    uint32_t axis;
} value_axis;

static void value_write_dimension(pen_protobuf_writer *writer, const void *context) {
    const value_axis *axis = context;
    const int64_t dim = axis->value->type->shape.dims[axis->axis];
    const char *symbol =
        dim == PEN_DIMENSION_UNKNOWN ? NULL : pen_graph_symbol_name(axis->value->graph, dim);
    if (symbol != NULL) {
        pen_protobuf_write_text(writer, 2, symbol);
    } else if (dim >= 0) {
        pen_protobuf_write_int(writer, 1, dim);
    }
}

static void value_write_shape(pen_protobuf_writer *writer, const void *context) {
    value_axis axis = {context, 0};
    for (; axis.axis < axis.value->type->shape.rank; axis.axis++) {
        pen_protobuf_write_message(writer, 1, value_write_dimension, &axis);
    }
}

static void value_write_tensor_type(pen_protobuf_writer *writer, const void *context) {
    const pen_onnx_value_text *value = context;
    pen_protobuf_write_int(writer, 1, pen_onnx_data_type(value->type->element));
    pen_protobuf_write_message(writer, 2, value_write_shape, context);
}

static void value_write_type(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_message(writer, 1, value_write_tensor_type, context);
}

void pen_onnx_value_write(pen_protobuf_writer *writer, const void *context) {
    const pen_onnx_value_text *value = context;
    pen_protobuf_write_text(writer, 1, value->name);
    pen_protobuf_write_message(writer, 2, value_write_type, context);
}
