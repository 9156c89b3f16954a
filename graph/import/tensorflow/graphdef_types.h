// Data types of TensorFlow: their numbers, names and lists in a TensorProto.
//
// Threads: pure functions.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_TYPES_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_TYPES_H

#include <stdint.h>

#include "graph/import/tensor_elements.h"

#define PEN_GRAPHDEF_RESOURCE 20

// The element type with that number in TensorFlow, references as what they refer to;
// PEN_ELEMENT_UNKNOWN when Penstock has none.
pen_element_type pen_graphdef_element_type(int64_t data_type);
// The number of an element type; 0 for PEN_ELEMENT_UNKNOWN.
int64_t pen_graphdef_data_type(pen_element_type element);
// What TensorFlow calls the type: "float", "string", "of unknown number".
const char *pen_graphdef_data_type_name(int64_t data_type);

// The same as an entry of the table: the list of a TensorProto that has its numbers.
const pen_tensor_element *pen_graphdef_tensor_element(int64_t data_type);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_TYPES_H
