// Constants as nodes of an ONNX model. An initializer of a floating type is a weight to those who
// read the model, this program too; a Constant is not.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_CONSTANT_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_CONSTANT_H

#include <stdbool.h>

#include "base/format/protobuf_writer.h"
#include "graph/graph_types.h"

// Whether a value is written as a Constant: a floating constant, and not a huge one, which would
// not fit into the model's file beside others.
bool pen_onnx_constant_is_node(const pen_value *value);

// Writes the fields of a NodeProto for such a value, `context`, a const pen_value *.
void pen_onnx_constant_write(pen_protobuf_writer *writer, const void *context);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_CONSTANT_H
