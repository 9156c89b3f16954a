#include "graph/import/onnx/onnx_constant.h"

#include "graph/graph.h"
#include "graph/import/onnx/onnx_tensor.h"

#define CONSTANT_BYTES_LIMIT (16u << 20)
#define CONSTANT_TENSOR 4 // AttributeProto.type

bool pen_onnx_constant_is_node(const pen_value *value) {
    return value->kind == PEN_VALUE_CONSTANT && value->data != NULL &&
           pen_element_is_float(value->type.element) &&
           pen_tensor_type_bytes(&value->type) <= CONSTANT_BYTES_LIMIT;
}

static void constant_write_tensor(pen_protobuf_writer *writer, const void *context) {
    const pen_value *value = context;
    for (uint32_t d = 0; d < value->type.shape.rank; d++) {
        pen_protobuf_write_int(writer, 1, value->type.shape.dims[d]);
    }
    pen_protobuf_write_int(writer, 2, pen_onnx_data_type(value->type.element));
    pen_protobuf_write_bytes(writer, 9, value->data, pen_tensor_type_bytes(&value->type));
}

static void constant_write_attribute(pen_protobuf_writer *writer, const void *context) {
    pen_protobuf_write_text(writer, 1, "value");
    pen_protobuf_write_message(writer, 5, constant_write_tensor, context);
    pen_protobuf_write_int(writer, 20, CONSTANT_TENSOR);
}

void pen_onnx_constant_write(pen_protobuf_writer *writer, const void *context) {
    const pen_value *value = context;
    pen_protobuf_write_text(writer, 2, value->name);
    pen_protobuf_write_text(writer, 3, value->name);
    pen_protobuf_write_text(writer, 4, "Constant");
    pen_protobuf_write_message(writer, 5, constant_write_attribute, context);
}
