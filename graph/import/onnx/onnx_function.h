// Model-local functions, put in the place of the nodes that call them.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_FUNCTION_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_FUNCTION_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/onnx/onnx_model.h"

// Replaces nodes until none calls a function. Values inside get the calling node's name as prefix.
//   INVALID_INPUT  functions call one another without end, or grow without measure
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_onnx_functions_inline(pen_onnx_model *model, pen_arena *arena);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_FUNCTION_H
