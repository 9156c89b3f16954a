// The messages of a TensorFlow graph, as they stand in the file: nodes with their attributes, and
// the library of functions. Structure only; what it means is found by graphdef_resolve and
// graphdef_import.
//
// Lifetime: everything lives in the arena, and borrows the file's bytes.
// Threads:  plain data once read.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MODEL_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/protobuf_reader.h"
#include "base/status.h"
#include "graph/tensor_type.h"

typedef enum pen_graphdef_kind {
    PEN_GRAPHDEF_NONE,
    PEN_GRAPHDEF_TEXT,
    PEN_GRAPHDEF_INT,
    PEN_GRAPHDEF_FLOAT,
    PEN_GRAPHDEF_BOOL,
    PEN_GRAPHDEF_TYPE,
    PEN_GRAPHDEF_SHAPE,
    PEN_GRAPHDEF_TENSOR,
    PEN_GRAPHDEF_LIST,
    PEN_GRAPHDEF_FUNCTION,    // `text` is its name
    PEN_GRAPHDEF_PLACEHOLDER, // `text` names an attribute of the function's call
} pen_graphdef_kind;

typedef struct pen_graphdef_attribute {
    const char *name;
    pen_graphdef_kind kind;
    int64_t integer; // of INT, BOOL and TYPE
    float number;
    const char *text;            // TEXT: "" when it is no name (a 0 in it, or too long)
    pen_protobuf_reader message; // of SHAPE, TENSOR and LIST
    const uint8_t *bytes;        // [length], the whole AttrValue, for writing it back
    size_t length;
} pen_graphdef_attribute;

// What a node reads: an output of another, or, in a function, of an argument.
typedef struct pen_graphdef_input {
    const char *node;
    const char *output_name; // within functions: the output's name there; else NULL
    uint32_t output;         // its index, counted from that name on
    bool is_control;         // it must only run before
} pen_graphdef_input;

typedef struct pen_graphdef_node {
    const char *name;
    const char *op;
    const char *device; // "" where none is asked for
    uint32_t position;  // in the file's list
    uint32_t input_count;
    pen_graphdef_input *inputs;
    uint32_t attribute_count;
    pen_graphdef_attribute *attributes;
} pen_graphdef_node;

typedef struct pen_graphdef_function {
    const char *name;
    uint32_t argument_count;
    const char **arguments;
    int64_t *argument_types; // numbers of data types; 0 where an attribute says it
    uint32_t result_count;
    const char **results;       // their names
    pen_graphdef_input *values; // [result_count], what is returned
    uint32_t node_count;
    pen_graphdef_node *nodes;
} pen_graphdef_function;

typedef struct pen_graphdef {
    uint32_t node_count;
    pen_graphdef_node *nodes;
    uint32_t function_count;
    pen_graphdef_function *functions;
    int64_t producer; // version of the graph's format; 0 when it is not said
} pen_graphdef;

// Reads a GraphDef.
//   CORRUPT, INVALID_INPUT (too much of something), OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graphdef_read(const pen_protobuf_reader *message, pen_arena *arena,
                                           pen_graphdef *out_graph);

// "name", "name:1", "name:output:1" or "^name"; the parts are copied into the arena. INVALID_INPUT
PEN_NODISCARD pen_status pen_graphdef_input_parse(const char *text, bool in_function,
                                                  pen_arena *arena, pen_graphdef_input *out_input);

// NULL when the node does not have it.
const pen_graphdef_attribute *pen_graphdef_attribute_find(const pen_graphdef_node *node,
                                                          const char *name);
int64_t pen_graphdef_int(const pen_graphdef_node *node, const char *name, int64_t fallback);
double pen_graphdef_float(const pen_graphdef_node *node, const char *name, double fallback);
const char *pen_graphdef_text(const pen_graphdef_node *node, const char *name,
                              const char *fallback);
// The element type that an attribute names; `fallback` when there is none.
pen_element_type pen_graphdef_type(const pen_graphdef_node *node, const char *name,
                                   pen_element_type fallback);
// A list of integers, in the arena; a count of 0 when there is none.
PEN_NODISCARD pen_status pen_graphdef_ints(const pen_graphdef_node *node, const char *name,
                                           pen_arena *arena, uint32_t *out_count,
                                           int64_t **out_integers);
// Strings of a list, of which those that are no names are "".
PEN_NODISCARD pen_status pen_graphdef_texts(const pen_protobuf_reader *message, uint32_t number,
                                            pen_arena *arena, uint32_t *out_count,
                                            const char ***out_texts);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_MODEL_H
