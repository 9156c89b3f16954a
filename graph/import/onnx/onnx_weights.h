// What is a trained parameter in an ONNX file, what a constant, and why; and what of the model the
// file has lost.
//
//   The file marks parameters (PyTorch's new exporter): those are trained, and so is what the
//   exporter's optimizer has only laid out otherwise (a transposed weight). All else is constant.
//   It does not: a floating initializer that is used as a weight is trained, unless it is a single
//   number, or is named as an exporter names its constants. Of PyTorch's older exporter, single
//   numbers under names of the program are trained, too; of Penstock's, all are.
//   What `unfreeze` names is trained in any case.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_WEIGHTS_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/pattern.h"
#include "base/status.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_origin.h"
#include "graph/tensor_type.h"

// Which nodes read an initializer as a weight.
enum {
    PEN_ONNX_READ_AS_MATRIX = 1u << 0,    // second operand of a product
    PEN_ONNX_READ_AS_RECURRENT = 1u << 1, // weights of a recurrent layer
    PEN_ONNX_READ_AS_SLOPE = 1u << 2,     // of PRelu
    PEN_ONNX_READ_OTHERWISE = 1u << 3,
};

typedef struct pen_onnx_weights {
    pen_arena *arena;
    const char *producer;
    pen_onnx_origins origins;
    bool keeps_constants; // the graph has Constant nodes, which PyTorch's optimizer leaves none of
    const pen_import_options *options;
    pen_pattern *unfreeze; // or NULL
    uint32_t unfrozen_count;
    pen_model_weight *list; // [count], in the order of the file
    uint32_t count, capacity;
    pen_model_lost *lost; // [lost_count]
    uint32_t lost_count, lost_capacity;
} pen_onnx_weights;

// The kind of reading by operand `input` of a node.
uint32_t pen_onnx_weights_reading(const char *op_type, uint32_t input);

// Decides about a floating initializer that is read as a weight, and notes why.
PEN_NODISCARD pen_status pen_onnx_weights_decide(pen_onnx_weights *weights, const char *name,
                                                 const pen_tensor_type *type, uint32_t readings,
                                                 bool *out_is_trained);

// The same for a Constant node's value: constant, unless `unfreeze` names it.
PEN_NODISCARD pen_status pen_onnx_weights_decide_node(pen_onnx_weights *weights, const char *name,
                                                      const pen_tensor_type *type,
                                                      bool *out_is_trained);

// Whether a run of the exported model changed the buffer of that name.
bool pen_onnx_weights_is_updated(const pen_onnx_weights *weights, const char *name);

// Lists what the model had and the file has not. Every initializer has been decided about.
//   INVALID_INPUT  `unfreeze` names nothing
PEN_NODISCARD pen_status pen_onnx_weights_finish(pen_onnx_weights *weights);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_WEIGHTS_H
