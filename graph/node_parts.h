// Operands and attributes of a node to be made, written where the node is asked for:
//
//   add(…, "concat", PEN_INPUTS(a, b), PEN_WITH(pen_attribute_int("axis", 1)), &joined)
//
// Lifetime: what the macros make lives until the end of the block around them.
// Threads:  plain data.
#ifndef PEN_GRAPH_NODE_PARTS_H
#define PEN_GRAPH_NODE_PARTS_H

#include <stdint.h>

#include "graph/attribute.h"
#include "graph/graph_types.h"

typedef struct pen_node_inputs {
    const pen_value_id *values; // [count]
    uint32_t count;
} pen_node_inputs;

typedef struct pen_node_attributes {
    const pen_attribute_given *given; // [count]
    uint32_t count;
} pen_node_attributes;

// How many of `type` are listed.
#define PEN_LISTED(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

#define PEN_INPUTS(...)                                                                            \
    ((pen_node_inputs){(const pen_value_id[]){__VA_ARGS__}, PEN_LISTED(pen_value_id, __VA_ARGS__)})
// All of an array.
#define PEN_INPUTS_ALL(array) ((pen_node_inputs){(array), sizeof(array) / sizeof *(array)})
#define PEN_WITH(...)                                                                              \
    ((pen_node_attributes){(const pen_attribute_given[]){__VA_ARGS__},                             \
                           PEN_LISTED(pen_attribute_given, __VA_ARGS__)})
#define PEN_NO_ATTRIBUTES ((pen_node_attributes){0})

// Sets both of the spec of a node to be added.
void pen_node_spec_fill(pen_node_spec *spec, pen_node_inputs inputs,
                        pen_node_attributes attributes);

#endif // PEN_GRAPH_NODE_PARTS_H
