// ONNX in: see import.h for what comes out.
//
// The parts: onnx_model.c reads the messages, onnx_function.c inlines model-local functions,
// onnx_coverage.c lists what cannot be imported, onnx_import.c builds the graph, with the mapping
// of operators in onnx_ops.c and the conversions of older forms in onnx_convert.c.
#ifndef PEN_GRAPH_IMPORT_ONNX_IMPORT_H
#define PEN_GRAPH_IMPORT_ONNX_IMPORT_H

#include <stddef.h>

#include "base/status.h"
#include "graph/import/import.h"
#include "graph/import/onnx_tensor.h"

// Fills graph, producer, opset, batch_symbol and output_types of `model`, from its arena. `bytes`
// and `files` are borrowed as long as the model lives. Errors as pen_model_open's.
PEN_NODISCARD pen_status pen_onnx_import(const void *bytes, size_t length,
                                         const pen_import_options *options, pen_onnx_files *files,
                                         pen_model *model);

#endif // PEN_GRAPH_IMPORT_ONNX_IMPORT_H
