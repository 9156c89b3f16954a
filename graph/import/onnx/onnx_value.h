// An input or output of an ONNX graph, as a ValueInfoProto is written.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_VALUE_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_VALUE_H

#include "base/format/protobuf_writer.h"
#include "graph/graph.h"

typedef struct pen_onnx_value_text {
    const pen_graph *graph; // for the names of its symbols
    const char *name;
    const pen_tensor_type *type;
} pen_onnx_value_text;

// For pen_protobuf_write_message; `context` is a pen_onnx_value_text.
void pen_onnx_value_write(pen_protobuf_writer *writer, const void *context);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_VALUE_H
