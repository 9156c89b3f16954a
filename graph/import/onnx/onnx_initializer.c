#include "graph/import/onnx/onnx_initializer.h"

#include <inttypes.h>
#include <stdio.h>

#include "graph/import/onnx/onnx_tensor.h"

#define ATTRIBUTE_INT 2 // AttributeProto.type

void pen_onnx_pair_write(pen_protobuf_writer *writer, const void *context) {
    const pen_onnx_pair *pair = context;
    pen_protobuf_write_text(writer, 1, pair->key);
    pen_protobuf_write_text(writer, 2, pair->text);
}

static void initializer_fill(const void *context, uint64_t first, void *bytes, uint64_t count) {
    const pen_onnx_initializer *initializer = context;
    pen_export_tensor_copy(&initializer->tensor, first, bytes, count);
}

static void initializer_write_place(pen_protobuf_writer *writer,
                                    const pen_onnx_initializer *initializer, uint64_t bytes) {
    char offset[24], length[24];
    snprintf(offset, sizeof offset, "%" PRIu64, initializer->offset);
    snprintf(length, sizeof length, "%" PRIu64, bytes);
    const pen_onnx_pair pairs[] = {
        {"location", initializer->data_name}, {"offset", offset}, {"length", length}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        pen_protobuf_write_message(writer, 13, pen_onnx_pair_write, &pairs[i]);
    pen_protobuf_write_int(writer, 14, 1);
}

// Contents go from where they are to the file, those that change their type piece by piece.
void pen_onnx_initializer_write(pen_protobuf_writer *writer, const void *context) {
    const pen_onnx_initializer *initializer = context;
    const pen_export_tensor *tensor = &initializer->tensor;
    const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
    for (uint32_t d = 0; d < tensor->type.shape.rank; d++) {
        pen_protobuf_write_int(writer, 1, tensor->type.shape.dims[d]);
    }
    pen_protobuf_write_int(writer, 2, pen_onnx_data_type(tensor->type.element));
    pen_protobuf_write_text(writer, 8, initializer->name);
    if (initializer->data_name != NULL) {
        initializer_write_place(writer, initializer, bytes);
    } else if (tensor->from == tensor->type.element) {
        pen_protobuf_write_bytes(writer, 9, tensor->data, bytes);
    } else {
        pen_protobuf_write_made(writer, 9, bytes, initializer_fill, initializer);
    }
}

static void widening_write_to(pen_protobuf_writer *writer, const void *context) {
    const pen_onnx_widening *widening = context;
    pen_protobuf_write_text(writer, 1, "to");
    pen_protobuf_write_int(writer, 3, pen_onnx_data_type(widening->element));
    pen_protobuf_write_int(writer, 20, ATTRIBUTE_INT);
}

void pen_onnx_widening_write(pen_protobuf_writer *writer, const void *context) {
    const pen_onnx_widening *widening = context;
    pen_protobuf_write_text(writer, 1, widening->initializer);
    pen_protobuf_write_text(writer, 2, widening->output);
    pen_protobuf_write_text(writer, 3, widening->output);
    pen_protobuf_write_text(writer, 4, "Cast");
    pen_protobuf_write_message(writer, 5, widening_write_to, widening);
}
