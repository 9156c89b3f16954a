// An initializer as it is written: its contents stand in the model, or, of large models, in a file
// beside it. One whose type is not that of the graph is read through a Cast.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_INITIALIZER_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_INITIALIZER_H

#include <stdint.h>

#include "base/format/protobuf_writer.h"
#include "graph/import/export_contents.h"

typedef struct pen_onnx_initializer {
    const char *name;
    pen_export_tensor tensor;
    const char *data_name; // of the file of contents; NULL: they are in the model
    uint64_t offset;       // there
} pen_onnx_initializer;

// The body of its TensorProto. `context` is a pen_onnx_initializer.
void pen_onnx_initializer_write(pen_protobuf_writer *writer, const void *context);

// Makes `element` of an initializer of another type.
typedef struct pen_onnx_widening {
    const char *initializer;
    const char *output; // what nodes read; the node is called so, too
    pen_element_type element;
} pen_onnx_widening;

// The body of its NodeProto, a Cast. `context` is a pen_onnx_widening.
void pen_onnx_widening_write(pen_protobuf_writer *writer, const void *context);

// A StringStringEntryProto. `context` is a pen_onnx_pair.
typedef struct pen_onnx_pair {
    const char *key;
    const char *text;
} pen_onnx_pair;
void pen_onnx_pair_write(pen_protobuf_writer *writer, const void *context);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_INITIALIZER_H
