// Types of an ONNX graph's values, as ValueInfoProto has them.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_VALUE_READER_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_VALUE_READER_H

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/status.h"
#include "graph/import/onnx/onnx_model.h"

// CORRUPT, OUT_OF_MEMORY; UNSUPPORTED for too many dimensions
PEN_NODISCARD pen_status pen_onnx_value_read(const pen_protobuf_reader *message, pen_arena *arena,
                                             pen_onnx_value *out_value);

// What the file says of the type of a value within the graph; "untyped" where it says nothing. The
// file may be wrong. As above.
PEN_NODISCARD pen_status pen_onnx_value_find(const pen_onnx_model *model, const char *name,
                                             pen_arena *arena, pen_onnx_value *out_value);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_VALUE_READER_H
