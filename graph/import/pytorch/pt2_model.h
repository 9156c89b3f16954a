// The contract of what the JSON of a `.pt2` file says a model is: `models/model.json`, as plain
// structs. pt2_program.c reads it, with pt2_graph.c.
//
// PyTorch calls it an exported program: a graph of calls of operators, and a signature that says
// which of the graph's inputs are parameters, buffers, constants, and what a caller gives. Its form
// has a version, of which 8 is read.
//
// Nothing in it is trusted: names may be missing or doubled, kinds may be any. What is here has the
// form below, and no more is promised: that an argument names a tensor does not mean that there is
// one of that name.
//
// Lifetime: all lives in the arena that it was read into.
// Threads:  immutable once read.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_MODEL_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"
#include "graph/tensor_type.h"

// What an argument, or an item of a list, is.
typedef enum pen_pt2_kind {
    PEN_PT2_NONE,
    PEN_PT2_TENSOR,  // `text` is its name
    PEN_PT2_INTEGER, // `integer`
    PEN_PT2_NUMBER,  // `number`
    PEN_PT2_TRUTH,   // `integer`, 0 or 1
    PEN_PT2_TEXT,    // `text`
    PEN_PT2_SYMBOL,  // `text` is its name: an integer, number or truth computed by another node
    PEN_PT2_ELEMENT, // `integer` is PyTorch's number of an element type
    PEN_PT2_GRAPH,   // `graph`
    PEN_PT2_OTHER,   // a device, layout, memory format, or what Penstock has no use for
} pen_pt2_kind;

typedef struct pen_pt2_graph_part pen_pt2_graph_part;

typedef struct pen_pt2_item {
    pen_pt2_kind kind;
    const char *text;
    int64_t integer;
    double number; // of an integer, too
    const pen_pt2_graph_part *graph;
} pen_pt2_item;

typedef struct pen_pt2_argument {
    const char *name; // by the operator's schema; "" when it has none there
    bool is_list;
    uint32_t count;            // 1 of what is no list
    const pen_pt2_item *items; // [count]
} pen_pt2_argument;

// One call of an operator.
typedef struct pen_pt2_node {
    const char *target;     // without "torch.ops.": "aten.add.Tensor"
    const char *name;       // within its graph: "add_3"
    const char *module;     // whose code it is from: "transformer.h.0.attn"; "" the model itself
    const char *class_name; // of that module: "torch.nn.modules.linear.Linear"; ""
    const char *file;       // the user's own Python; NULL: not known
    uint32_t line;          // in it
    const char *code;       // that line, as far as it is known; ""
    uint32_t position;      // in the file, counting from 0
    uint32_t argument_count;
    const pen_pt2_argument *arguments; // [argument_count]
    uint32_t result_count;
    const pen_pt2_argument *results; // [result_count]
} pen_pt2_node;

// What the file says of a tensor.
typedef struct pen_pt2_tensor_meta {
    pen_element_type element; // unknown: one that Penstock has not
    int32_t element_number;   // PyTorch's
    bool requires_grad;
    bool is_strided;                     // it has elements in memory by strides
    bool is_contiguous;                  // they lie row by row, as far as is known
    pen_shape shape;                     // sizes that are left open are PEN_DIMENSION_UNKNOWN
    const char *symbols[PEN_RANK_LIMIT]; // those by their formula; else NULL
    int64_t strides[PEN_RANK_LIMIT];     // in elements; PEN_DIMENSION_UNKNOWN likewise
    int64_t storage_offset;              // in elements
} pen_pt2_tensor_meta;

// What the file says of a symbol.
typedef struct pen_pt2_symbol_meta {
    const char *formula; // "Mul(Integer(2), Symbol('s0', …))"; NULL: it is `number`
    double number;
    pen_element_type element; // int64, float64 or bool
} pen_pt2_symbol_meta;

struct pen_pt2_graph_part {
    uint32_t input_count;
    const pen_pt2_item *inputs; // [input_count]
    uint32_t output_count;
    const pen_pt2_item *outputs; // [output_count]
    uint32_t node_count;
    const pen_pt2_node *nodes; // [node_count]
    pen_name_map tensor_index;
    const pen_pt2_tensor_meta *tensors; // [tensor_index.count]
    pen_name_map symbol_index;
    const pen_pt2_symbol_meta *symbols; // [symbol_index.count]
};

// What an input of the graph is.
typedef enum pen_pt2_role {
    PEN_PT2_PARAMETER,
    PEN_PT2_BUFFER,
    PEN_PT2_CONSTANT,   // a tensor that the code made
    PEN_PT2_USER_INPUT, // given for each call
    PEN_PT2_FIXED,      // a Python number or text, as it was when the model was exported
} pen_pt2_role;

typedef struct pen_pt2_port {
    pen_pt2_role role;
    const char *name; // in state_dict(), of parameters and buffers; of the argument of forward()
} pen_pt2_port;

// A range of a symbol.
typedef struct pen_pt2_range {
    const char *symbol;  // "s77"
    int64_t least, most; // INT64_MAX: any
} pen_pt2_range;

typedef struct pen_pt2_model {
    const char *torch_version; // "2.15.0"
    bool is_decomposed;        // it was made with run_decompositions
    pen_pt2_graph_part graph;
    const pen_pt2_port *ports; // [graph.input_count]
    // [graph.output_count]: paths in what forward() returns, "logits", "hidden.0"; "" of a single
    // tensor. NULL: of an output that is the new value of a buffer.
    const char **output_names;
    const char **output_buffers; // [graph.output_count]: names of those buffers; else NULL
    uint32_t range_count;
    const pen_pt2_range *ranges; // [range_count]
} pen_pt2_model;

// Reads `length` bytes of JSON.
//   UNSUPPORTED    another version of the form, with the PyTorch that wrote it; or another program
//   CORRUPT        it is no JSON, or has not that form
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pt2_model_read(const void *bytes, size_t length, pen_arena *arena,
                                            pen_pt2_model *out_model);

// NULL when the graph has no such tensor, or symbol.
const pen_pt2_tensor_meta *pen_pt2_graph_tensor(const pen_pt2_graph_part *graph, const char *name);
const pen_pt2_symbol_meta *pen_pt2_graph_symbol(const pen_pt2_graph_part *graph, const char *name);

// NULL when the node has no such argument.
const pen_pt2_argument *pen_pt2_node_argument(const pen_pt2_node *node, const char *name);

// PyTorch's number of an element type as ours: half types are float32 when `widens`. Unknown where
// Penstock has none.
pen_element_type pen_pt2_element_of(int64_t number, bool widens);
// Its name: "complex64"; "of an unknown type".
const char *pen_pt2_element_name(int64_t number);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_MODEL_H
