// The contract of the import: from a flat list of TensorFlow's nodes to a graph
// (graphdef_importer.c).
//
// Constants become constants, those that `unfreeze` matches trainable parameters, variables
// parameters too (the running statistics of batch normalization: states). Parameters have the
// names of their nodes.
//
// Lifetime: everything lives in the model's arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_IMPORT_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/import/import.h"
#include "graph/import/tensorflow/graphdef_flatten.h"
#include "graph/import/tensorflow/graphdef_resolve.h"

// An input or output of the model.
typedef struct pen_graphdef_port {
    const char *name; // the model's; NULL: the node's
    pen_graphdef_input at;
} pen_graphdef_port;

// What is known of a variable.
typedef struct pen_graphdef_contents {
    const char *name; // the variable's
    pen_tensor_type type;
    const void *data; // NULL: the model has no contents for it
    bool is_frozen;   // the model says that it is not trained
} pen_graphdef_contents;

typedef struct pen_graphdef_request {
    pen_graphdef_flat *flat;
    const pen_graphdef_port *inputs; // [input_count]; 0: every placeholder that is needed
    uint32_t input_count;
    const pen_graphdef_port *outputs; // [output_count]
    uint32_t output_count;
    // Finds a variable. NULL: the model has no contents of variables.
    pen_status (*find_variable)(void *context, const pen_graphdef_node *node,
                                pen_graphdef_contents *out_contents);
    void *variable_context;
    const pen_import_options *options;
} pen_graphdef_request;

// What a model keeps of the graph it came from, to write it back.
typedef struct pen_graphdef_origin {
    const pen_graphdef_flat *flat;
    pen_graphdef_order order;
    const pen_graphdef_port *inputs; // as in the request
    uint32_t input_count;
    const pen_graphdef_port *outputs;
    uint32_t output_count;
    int64_t producer;
    const char **value_names; // [flat's count], of parameters, states and inputs: their names in
                              // the graph; NULL for other nodes
    int64_t *data_types;      // [flat's count], of variables; 0 for other nodes
} pen_graphdef_origin;

// Fills in graph, origin, batch_symbol and output_types of `model`.
//   UNSUPPORTED    lists the operators that Penstock does not have
//   INVALID_INPUT, CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graphdef_import(const pen_graphdef_request *request, pen_model *model);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_IMPORT_H
