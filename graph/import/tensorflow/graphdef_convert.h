// What graphdef_import.c and graphdef_convert.c share: values of TensorFlow on their way.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_CONVERT_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/import/import.h"
#include "graph/import/tensorflow/graphdef_flatten.h"
#include "graph/import/tensorflow/graphdef_mapping.h"

typedef struct pen_graphdef_list pen_graphdef_list; // graphdef_list.h

// An output of a node of TensorFlow. Forms that are not there yet are PEN_VALUE_NONE in the graph.
typedef struct pen_graphdef_result {
    bool is_made;
    const char *name;         // of the plain form, made from the other: the output's own
    pen_graphdef_value plain; // as TensorFlow has it
    pen_graphdef_value first; // of four dimensions, channels first
    const pen_graphdef_ints_known *ints[PEN_GRAPHDEF_TRIALS]; // NULL: not known
    pen_graphdef_list *list; // of a list of tensors, or a TensorArray; else NULL
} pen_graphdef_result;

// Nodes of the graph, and the devices that theirs of TensorFlow ask for.
typedef struct pen_graphdef_pins {
    pen_model_pin *pins; // [capacity]
    uint32_t count, capacity;
} pen_graphdef_pins;

struct pen_graphdef_draft {
    pen_arena *arena;
    pen_graphdef_pins *pins; // NULL: nobody asks
    const pen_import_options *options;
    pen_graph *graphs[PEN_GRAPHDEF_COPIES];
    const char *path;
    const pen_graphdef_node *node;
    const pen_graphdef_mapping *mapping;
    uint32_t operand_count;
    pen_graphdef_result **operands; // [operand_count]
    uint32_t result_count;
    pen_graphdef_result **results; // [result_count]; outputs that nobody reads are not there
};

// Whether both trials know the integers of a result, and the same ones.
bool pen_graphdef_ints_agree(const pen_graphdef_result *result);

// A constant of known integers and an element type that has them, in one copy.
PEN_NODISCARD pen_status pen_graphdef_ints_constant(pen_graph *graph, const char *name,
                                                    const pen_graphdef_ints_known *ints,
                                                    pen_element_type element,
                                                    pen_value_id *out_value);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_CONVERT_H
