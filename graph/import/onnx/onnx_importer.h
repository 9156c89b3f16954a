// The contract of the parts of the ONNX importer among themselves: onnx_import.c, which makes nodes
// of nodes, and onnx_control.c and onnx_sequence.c, which do away with branches, loops and
// sequences while the graph is built, so that none is left in it.
//
// Names stand for values within a scope: the model's graph, or the body of a branch or loop, whose
// names may read those of the scopes around it. What a body makes is called
// "<node>/<name in the body>" in the graph.
//
// Lifetime: an importer lives for one import, a scope within it for one pass over its body.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_ONNX_ONNX_IMPORTER_H
#define PEN_GRAPH_IMPORT_ONNX_ONNX_IMPORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/name_map.h"
#include "base/status.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_mapping.h"
#include "graph/import/onnx/onnx_model.h"
#include "graph/import/onnx/onnx_weights.h"

// What a name in the model stands for. Names are found before values are made, because what an
// initializer becomes depends on who reads it.
typedef struct pen_onnx_name {
    const char *name;
    uint32_t stands_for;           // place + 1 in `names` of the initializer it is; 0: itself
    const pen_onnx_tensor *tensor; // an initializer, or an alias of one; else NULL
    const pen_onnx_value *input;   // an input of the model; else NULL
    const pen_import_fixed_input *fixed;
    bool read_as_weight, read_as_constant, read_as_state;
    uint32_t readings; // as a weight: PEN_ONNX_READ_…, of all that read it
    bool replaced;     // some node has taken over this state's storage
    bool made;
    pen_value_id value;    // for most readers
    pen_value_id constant; // for readers that need a constant, when it is another value
    bool is_sequence;      // it stands for `items`, not for a value
    bool is_empty;         // an optional without anything in it
    uint32_t item_count;
    const pen_value_id *items; // [item_count]
} pen_onnx_name;

// What bodies have added to the model so far, each round of a loop counted.
typedef struct pen_onnx_unrolled {
    uint32_t node_count;
    uint64_t bytes;
    uint64_t bytes_before; // of the arena, less those of bodies done, when the outermost one began
} pen_onnx_unrolled;

typedef struct pen_onnx_importer {
    pen_arena *arena;
    pen_graph *graph;
    const char *path;
    const pen_onnx_model *model; // of a body: its nodes, initializers, inputs and outputs
    const pen_import_options *options;
    pen_external_files *files;
    struct pen_onnx_importer *parent; // the scope around; NULL for the model's graph
    const char *prefix;               // of names made in a body
    pen_onnx_unrolled *unrolled;
    pen_onnx_weights *weights;
    pen_name_map index;   // of names
    pen_onnx_name *names; // [name_capacity]
    uint32_t name_count, name_capacity;
} pen_onnx_importer;

// NULL when this scope does not have the name.
pen_onnx_name *pen_onnx_importer_find_here(const pen_onnx_importer *import, const char *name);

// NULL when no scope from this one outwards has the name.
pen_onnx_name *pen_onnx_importer_find(const pen_onnx_importer *import, const char *name);

// What input `input` of a node stands for. INVALID_INPUT when it is left out, or nothing makes it.
PEN_NODISCARD pen_status pen_onnx_importer_read(const pen_onnx_importer *import,
                                                const pen_onnx_node *node, uint32_t input,
                                                const pen_onnx_name **out_name);

// Adds a name; what it stands for is filled in by the caller. INVALID_INPUT when it is there.
PEN_NODISCARD pen_status pen_onnx_importer_add(pen_onnx_importer *import, const char *name,
                                               pen_onnx_name **out_name);

// The name in the graph of something called `name` in this scope.
PEN_NODISCARD pen_status pen_onnx_importer_prefixed(const pen_onnx_importer *import,
                                                    const char *name, const char **out_name);

// Adds a name to the scope that stands for what `meaning` does. Does nothing for "".
PEN_NODISCARD pen_status pen_onnx_importer_bind(pen_onnx_importer *import, const char *name,
                                                const pen_onnx_name *meaning);

// The same for a value.
PEN_NODISCARD pen_status pen_onnx_importer_bind_value(pen_onnx_importer *import, const char *name,
                                                      pen_value_id value);

// The name that the values of a node begin with: its own, with the scope's prefix.
PEN_NODISCARD pen_status pen_onnx_importer_name(const pen_onnx_importer *import,
                                                const pen_onnx_node *node, const char **out_name);

// Adds a node of one output, "<node's name>/<suffix>".
PEN_NODISCARD pen_status pen_onnx_importer_emit(pen_onnx_importer *import,
                                                const pen_onnx_node *node,
                                                const pen_onnx_extra *extra,
                                                pen_value_id *out_value);

// Makes the value of an input: one of the graph, or a constant (import.h: fixed_inputs). Who reads
// it has been noted. INVALID_INPUT
PEN_NODISCARD pen_status pen_onnx_importer_make_input(pen_onnx_importer *import,
                                                      pen_onnx_name *entry);

// Makes the values of an initializer that is read: a weight, a constant, or both. INVALID_INPUT,
// CORRUPT, UNSUPPORTED
PEN_NODISCARD pen_status pen_onnx_importer_make_tensor(pen_onnx_importer *import,
                                                       pen_onnx_name *entry);

// Opens the scope of a body's initializers, inside of `outer`. INVALID_INPUT, UNSUPPORTED
PEN_NODISCARD pen_status pen_onnx_importer_open_body(pen_onnx_importer *outer,
                                                     const pen_onnx_model *body, const char *prefix,
                                                     pen_onnx_importer *out_frame);

// Makes the nodes of the body of `frame` once, its inputs standing for `arguments`
// [argument_count], one for each. Writes what its outputs stand for, [body's output_count].
PEN_NODISCARD pen_status pen_onnx_importer_run_body(pen_onnx_importer *frame, const char *prefix,
                                                    uint32_t argument_count,
                                                    const pen_onnx_name *arguments,
                                                    pen_onnx_name *out_results);

// Makes a constant of a value, if it can be computed now, from constants.
//   UNSUPPORTED  it depends on data (or on sizes that are not known yet), or the import has no way
//                to compute (pen_import_options.evaluate)
PEN_NODISCARD pen_status pen_onnx_importer_fold(pen_onnx_importer *import, pen_value_id value);

// ---- onnx_control.c, onnx_sequence.c

// Whether the operator is one of theirs.
bool pen_onnx_is_control(const pen_onnx_node *node);
bool pen_onnx_is_sequence_op(const pen_onnx_node *node);
// Inputs that are read as constants: bit i.
uint32_t pen_onnx_control_constants(const pen_onnx_node *node);
PEN_NODISCARD pen_status pen_onnx_control_import(pen_onnx_importer *import,
                                                 const pen_onnx_node *node);
PEN_NODISCARD pen_status pen_onnx_sequence_import(pen_onnx_importer *import,
                                                  const pen_onnx_node *node);

#endif // PEN_GRAPH_IMPORT_ONNX_ONNX_IMPORTER_H
