// What of an ONNX model Penstock cannot do: all of it, said once, before anything is built.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_COVERAGE_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_COVERAGE_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/onnx/onnx_model.h"

// PEN_OK when every node, initializer and input can be imported. Functions have been inlined.
//   UNSUPPORTED  one line for each kind of trouble: operator, attribute at fault, count, nodes
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_onnx_coverage_check(const pen_onnx_model *model, pen_arena *arena);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_COVERAGE_H
