// What is said of a graph without looking into it: ids of nodes and values, roles, kinds, layouts.
//
// Headers that pass graphs and ids along include this and no more, so that a change of the graph
// itself (graph/graph.h) is no change for whoever includes them.
#ifndef PEN_GRAPH_GRAPH_TYPES_H
#define PEN_GRAPH_GRAPH_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pen_node_id {
    uint32_t index;
} pen_node_id;
typedef struct pen_value_id {
    uint32_t index;
} pen_value_id;

#define PEN_ID_NONE UINT32_MAX
#define PEN_NODE_NONE ((pen_node_id){PEN_ID_NONE})
#define PEN_VALUE_NONE ((pen_value_id){PEN_ID_NONE}) // also: an optional operand left out
static inline bool pen_node_is(pen_node_id node) {
    return node.index != PEN_ID_NONE;
}
static inline bool pen_value_is(pen_value_id value) {
    return value.index != PEN_ID_NONE;
}
static inline bool pen_value_same(pen_value_id a, pen_value_id b) {
    return a.index == b.index;
}

typedef struct pen_op pen_op; // graph/op.h
typedef struct pen_graph pen_graph;
typedef struct pen_node pen_node;   // graph/graph.h
typedef struct pen_value pen_value; // graph/graph.h
typedef struct pen_node_spec pen_node_spec;

// What a node is for. Forward and backward nodes run per microbatch (the two backward halves may
// be scheduled apart), updates run once a step.
typedef enum pen_role {
    PEN_ROLE_FORWARD,
    PEN_ROLE_BACKWARD_INPUT,  // on the way to gradients of activations
    PEN_ROLE_BACKWARD_WEIGHT, // gradients of parameters, needed only by updates
    PEN_ROLE_UPDATE,
    PEN_ROLE_TRANSFER,
} pen_role;

static inline bool pen_role_is_backward(pen_role role) {
    return role == PEN_ROLE_BACKWARD_INPUT || role == PEN_ROLE_BACKWARD_WEIGHT;
}

typedef enum pen_value_kind {
    PEN_VALUE_COMPUTED,
    PEN_VALUE_INPUT,     // fed for every microbatch
    PEN_VALUE_SCALAR,    // fed by the runtime
    PEN_VALUE_PARAMETER, // trained, or frozen
    PEN_VALUE_STATE,     // running statistics, optimizer state: persistent, not differentiated
    PEN_VALUE_CONSTANT,
} pen_value_kind;

// How a value's elements lie in memory. Others than plain belong to a device, which gives them
// meaning; a graph pass chooses them.
typedef uint16_t pen_layout;
#define PEN_LAYOUT_PLAIN ((pen_layout)0)

// How a value is spread over a device group. Only WHOLE is used until replicas come.
typedef enum pen_sharding {
    PEN_SHARDING_WHOLE,
    PEN_SHARDING_SPLIT,       // along an axis
    PEN_SHARDING_PARTIAL_SUM, // the elementwise sum over the group is the value
} pen_sharding;

// Where in the user's model something came from.
typedef struct pen_source {
    const char *file; // NULL: made by Penstock
    uint32_t line;    // of a text file, counting from 1; 0 in binary formats
    uint32_t column;
    uint32_t position; // of the node in a binary model, counting from 0
} pen_source;

#endif // PEN_GRAPH_GRAPH_TYPES_H
