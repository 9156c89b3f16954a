// ONNX out: writes the forward part of a graph as an ONNX model of operator set 17.
//
// (The folder holds foreign formats both ways, so that the tables stand beside each other.)
//
// What is written is what the graph's outputs depend on: forward nodes under their own names, the
// inputs and initializers they read. Give a graph as it was imported, before symbols are bound and
// shapes folded: then dimensions keep their symbols, and parameters get their trained contents
// from `contents`, by name. A graph whose shapes were inferred can be written too; its sizes are
// then fixed.
//
// Operators of ours that operator set 17 does not have are spelled in several nodes, see
// graph/passes/fuse/spell_layers.h. Floating constants are written as Constant nodes, so that they
// are no weights to those who read them.
//
// The contents are streamed from where they are. When they are more than protobuf's 2 GiB, they go
// to a file of their own, "<file>.data", beside the model.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_EXPORT_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/import/export_contents.h"
#include "graph/import/node_places.h"

typedef struct pen_onnx_export_options {
    pen_export_contents contents;
    // Types of the graph's outputs where inference has not set them: pen_model's. Or NULL.
    const pen_tensor_type *output_types;
    // Batch normalization uses its running statistics, dropout passes on; the metadata of such a
    // node says that it trains, by which the importer makes it what it was. So it is with
    // stop_gradient, an Identity, in both forms.
    bool for_inference;
    // Where a plan runs the nodes: written as metadata of each, under the keys "penstock.device"
    // and "penstock.stage", which viewers show. Or NULL.
    const pen_node_places *places;
    // Most bytes of contents within the model file; 0: what protobuf allows.
    uint64_t inline_bytes_limit;
} pen_onnx_export_options;

// Writes `path`, atomically; NULL: only looks whether the graph can be written. `options` may be
// NULL.
//   UNSUPPORTED    lists the ops that ONNX does not have
//   INVALID_INPUT  the type of an output is not known
//   NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_onnx_export(const pen_graph *graph,
                                         const pen_onnx_export_options *options, const char *path);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_EXPORT_H
