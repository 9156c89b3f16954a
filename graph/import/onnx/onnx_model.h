// The contract of the messages of an ONNX file, as they stand there: what onnx_import.c builds a
// graph from. onnx_message.c reads them.
//
// Only structure is read: names, nodes, attributes, types. Tensor contents stay in the file until
// asked for.
//
// Lifetime: everything lives in the arena given and borrows the model's bytes.
// Threads:  immutable once read.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_MODEL_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/limits.h"
#include "base/status.h"
#include "graph/import/onnx/onnx_tensor.h"

// AttributeProto.AttributeType, by number.
typedef enum pen_onnx_attribute_type {
    PEN_ONNX_UNDEFINED = 0,
    PEN_ONNX_FLOAT = 1,
    PEN_ONNX_INT = 2,
    PEN_ONNX_STRING = 3,
    PEN_ONNX_TENSOR = 4,
    PEN_ONNX_GRAPH = 5,
    PEN_ONNX_FLOATS = 6,
    PEN_ONNX_INTS = 7,
    PEN_ONNX_STRINGS = 8,
    PEN_ONNX_OTHER = 9, // TENSORS and all above
} pen_onnx_attribute_type;

typedef struct pen_onnx_attribute {
    const char *name;
    pen_onnx_attribute_type type;
    const char *reference; // in functions: the function's attribute whose value it has, or NULL
    int64_t integer;
    double number;
    const char *text; // STRINGS: the words, separated by spaces
    uint32_t count;
    const int64_t *integers;    // [count]
    const double *numbers;      // [count]
    const char **texts;         // [count], of STRINGS
    pen_protobuf_reader tensor; // of a TENSOR: a TensorProto
    pen_protobuf_reader graph;  // of a GRAPH: a GraphProto
} pen_onnx_attribute;

typedef struct pen_onnx_node {
    const char *name; // "" when it has none
    const char *op_type;
    const char *domain; // "" for ONNX's own
    int64_t opset;      // version of the domain; 0 when the model does not import it
    uint32_t position;  // in the file; nodes of an inlined function have the caller's
    uint32_t input_count, output_count, attribute_count;
    const char **inputs;  // [input_count], "" for one left out
    const char **outputs; // [output_count], likewise
    pen_onnx_attribute *attributes;
    bool trains;      // its metadata says so, see PEN_ONNX_TRAINING_KEY
    bool has_padding; // it looks up rows of a table, of which one is not trained: this
    int64_t padding_row;
} pen_onnx_node;

typedef struct pen_onnx_value {
    const char *name;
    const char *kind; // "tensor", "sequence", "map", "optional", …
    int64_t data_type;
    bool has_shape;
    pen_shape shape;                     // dims without a number are -1
    const char *symbols[PEN_RANK_LIMIT]; // name of such a dimension, or NULL
} pen_onnx_value;

typedef struct pen_onnx_opset {
    const char *domain;
    int64_t version;
} pen_onnx_opset;

typedef struct pen_onnx_function {
    const char *name;
    const char *domain;
    uint32_t input_count, output_count, node_count;
    const char **inputs;
    const char **outputs;
    pen_onnx_node *nodes;
} pen_onnx_function;

// Metadata of a model exported by Penstock: running variances divide by the count less one. Those
// of PyTorch's exports do without saying so.
#define PEN_ONNX_VARIANCE_KEY "penstock.running_variance"
#define PEN_ONNX_VARIANCE_UNBIASED "unbiased"

// Metadata of a node: it is written in the form of inference, but trains. Who takes the model on
// from there has batch normalization and dropout as they were, and an Identity stops gradients.
#define PEN_ONNX_TRAINING_KEY "penstock.training"
#define PEN_ONNX_TRAINING "1"

typedef struct pen_onnx_model {
    const char *producer;
    bool is_unbiased; // running variances
    bool widens;      // weights are float16 or bfloat16, and all is read as float32
    const char *graph_name;
    pen_protobuf_reader graph; // the GraphProto
    int64_t opset;             // of ONNX's own domain
    uint32_t opset_count, function_count;
    uint32_t node_count, tensor_count, input_count, output_count;
    uint32_t sparse_count; // sparse initializers, which nothing here can read
    pen_onnx_opset *opsets;
    pen_onnx_function *functions;
    pen_onnx_node *nodes;
    pen_onnx_tensor *tensors; // initializers
    pen_onnx_value *inputs;
    pen_onnx_value *outputs;
} pen_onnx_model;

// CORRUPT, INVALID_INPUT, OUT_OF_MEMORY; UNSUPPORTED for an opset out of range
PEN_NODISCARD pen_status pen_onnx_model_read(const void *bytes, size_t length, pen_arena *arena,
                                             pen_onnx_model *out_model);

// Reads the body of a branch or loop: a GRAPH attribute of a node of `model`, whose operator sets
// it shares. CORRUPT, INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_onnx_model_read_body(const pen_onnx_model *model,
                                                  const pen_onnx_attribute *attribute,
                                                  pen_arena *arena, pen_onnx_model *out_body);

// NULL when the node has no attribute of that name.
const pen_onnx_attribute *pen_onnx_attribute_find(const pen_onnx_node *node, const char *name);

// Oldest and newest opset that is read.
#define PEN_ONNX_OPSET_FIRST 1
#define PEN_ONNX_OPSET_LAST 28

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_MODEL_H
