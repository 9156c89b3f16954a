// The contract of the graph: what is computed.
//
// Nodes apply operators to values. Nodes and values are arrays addressed by typed ids, given in
// order of creation. Every value is made before it is read (the verifier holds us to that), so
// walking ids upwards is a topological order.
//
// Inputs are fed for every microbatch, scalars once a step or microbatch by the runtime (learning
// rate, weight of the microbatch), parameters and states outlive a step, constants never change;
// all other values are computed by their producer.
//
// Lifetime: everything lives in the graph's arena. Tensor bytes (`data`) are borrowed from the
//           mapped model file or from the arena of pen_graph_create.
// Threads:  built by one thread; once built it may be read by any.
#ifndef PEN_GRAPH_GRAPH_H
#define PEN_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/attribute.h"
#include "graph/graph_types.h"
#include "graph/tensor_slice.h"
#include "graph/tensor_type.h"

struct pen_node {
    const pen_op *op;
    const char *name; // the model's own, or derived from it: "conv1/backward_weight"; unique
    pen_role role;
    bool accumulates; // adds into its outputs instead of setting them, but in the first microbatch
    pen_source source;
    pen_node_id gradient_of;               // backward nodes: the forward node; else PEN_NODE_NONE
    const pen_attribute_value *attributes; // [op->attribute_count]
    uint32_t input_count;
    uint32_t output_count;
    const pen_value_id *inputs;  // [input_count]; PEN_VALUE_NONE where an optional is left out
    const pen_value_id *outputs; // [output_count]; likewise
};

struct pen_value {
    const char *name; // unique
    pen_value_kind kind;
    pen_tensor_type type;
    pen_layout layout;
    pen_sharding sharding;
    bool trainable;           // parameters: false when frozen
    pen_node_id producer;     // computed values; else PEN_NODE_NONE
    uint32_t producer_output; // which of its outputs
    pen_value_id replaces;    // computed: the parameter or state whose storage it takes over
    pen_source source;
    const void *data;    // constants; first contents of parameters and states (NULL: zeros); at
                         // any alignment, as in the model file: copy before use
    uint64_t data_bytes; // the bytes of `type` in the plain layout
    // Of what `data` has, where that is not what `type` says: parameters and states that lie in a
    // file as float16, and are float32. Else PEN_ELEMENT_UNKNOWN. Constants lie as they are.
    pen_element_type stored;
    // Of parameters and states that are a slice of a tensor of the model, which: `data` is then its
    // first element in the contents of that tensor. NULL: a tensor by itself.
    const pen_tensor_slice *slice;
};

// What a new node is to be. Borrowed for the call; what it points to is copied.
struct pen_node_spec {
    const pen_op *op;
    const char *name; // made unique by a suffix if need be
    pen_role role;
    pen_source source;
    pen_node_id gradient_of; // PEN_NODE_NONE, not zero, where there is none
    const pen_value_id *inputs;
    uint32_t input_count;
    uint32_t output_count;           // at least the op's output_min
    const char *const *output_names; // [output_count], or NULL: "<node>:0", …; an entry that is
                                     // NULL or "" leaves an optional output out
    const pen_attribute_given *attributes;
    uint32_t attribute_count;
};

// An empty graph that lives in `arena`. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_graph_create(pen_arena *arena, const char *name,
                                          pen_graph **out_graph);
// An empty graph that takes the place of `old`: it lives in an arena of its own, beneath that of
// the first graph, and shares its tensor bytes. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_graph_create_after(const pen_graph *old, pen_graph **out_graph);
// Ends a graph that took another's place, with all in its arena; does nothing to a first one.
void pen_graph_release(const pen_graph *graph);
// Makes room for as many nodes and values in all, for who knows how many there will be: what grows
// leaves its smaller self in the arena. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_graph_reserve(pen_graph *graph, uint32_t node_count,
                                           uint32_t value_count);
pen_arena *pen_graph_arena(const pen_graph *graph);
// For tensor bytes: the arena of the first graph, which outlives those that take its place.
pen_arena *pen_graph_tensor_arena(const pen_graph *graph);
const char *pen_graph_name(const pen_graph *graph);

uint32_t pen_graph_node_count(const pen_graph *graph);
uint32_t pen_graph_value_count(const pen_graph *graph);
// The pointers stay valid until the next node or value is added.
const pen_node *pen_graph_node(const pen_graph *graph, pen_node_id node);
const pen_value *pen_graph_value(const pen_graph *graph, pen_value_id value);
const char *pen_node_name(const pen_graph *graph, pen_node_id node);
const char *pen_value_name(const pen_graph *graph, pen_value_id value);
const pen_tensor_type *pen_value_type(const pen_graph *graph, pen_value_id value);
// NOT_FOUND names the nearest names there are.
PEN_NODISCARD pen_status pen_graph_find_value(const pen_graph *graph, const char *name,
                                              pen_value_id *out_value);
PEN_NODISCARD pen_status pen_graph_find_node(const pen_graph *graph, const char *name,
                                             pen_node_id *out_node);

// Adds a value of any kind but computed. `spec` is copied, its data borrowed; producer fields are
// ignored. INVALID_INPUT when the name is taken, or the type too large (pen_tensor_type_check).
PEN_NODISCARD pen_status pen_graph_add_value(pen_graph *graph, const pen_value *spec,
                                             pen_value_id *out_value);
// The same; the name is made unique by a suffix if need be.
PEN_NODISCARD pen_status pen_graph_add_own_value(pen_graph *graph, const pen_value *spec,
                                                 pen_value_id *out_value);

// A spec for an op, forward, without operands or attributes.
pen_node_spec pen_node_spec_of(const pen_op *op, const char *node_name);
// The same by the op's name, for importers. One that is not in the table is our mistake: asserted.
pen_node_spec pen_node_spec_make(const char *op_name, const char *node_name);

// Adds a node and its computed outputs. Checks operand counts and attributes against the op's
// schema, fills in defaults, and, when the types of all inputs are known, infers the outputs'.
// Nodes made while types are unknown are typed by pen_infer_shapes.
//   INVALID_INPUT  wrong count, unknown or missing attribute, shapes that do not go together
PEN_NODISCARD pen_status pen_graph_add_node(pen_graph *graph, const pen_node_spec *spec,
                                            pen_node_id *out_node);
// The same for a node of one output, which is returned.
PEN_NODISCARD pen_status pen_graph_add_simple(pen_graph *graph, const pen_node_spec *spec,
                                              pen_value_id *out_output);

// Constants. Names are made unique by a suffix if need be.
// `count` int64 of shape [count]; copied.
PEN_NODISCARD pen_status pen_graph_constant_ints(pen_graph *graph, const char *name, uint32_t count,
                                                 const int64_t *integers, pen_value_id *out_value);
// A scalar of float32, float64, int64, int32 or bool.
PEN_NODISCARD pen_status pen_graph_constant_number(pen_graph *graph, const char *name,
                                                   pen_element_type element, double number,
                                                   pen_value_id *out_value);
// Any type; `data` is borrowed.
PEN_NODISCARD pen_status pen_graph_constant(pen_graph *graph, const char *name,
                                            const pen_tensor_type *type, const void *data,
                                            pen_value_id *out_value);

// Reads a constant of any integer type (or bool) as int64, into the graph's arena.
//   UNSUPPORTED  the value is not a constant: what depends on it would depend on data
PEN_NODISCARD pen_status pen_value_read_ints(const pen_graph *graph, pen_value_id value,
                                             uint32_t *out_count, const int64_t **out_integers);
// Reads a constant of any type but the 16-bit floating ones as doubles, one for each element, into
// the graph's arena. UNSUPPORTED as above.
PEN_NODISCARD pen_status pen_value_read_numbers(const pen_graph *graph, pen_value_id value,
                                                const double **out_numbers);
// Reads a constant of one element of any type as double. UNSUPPORTED as above.
PEN_NODISCARD pen_status pen_value_read_number(const pen_graph *graph, pen_value_id value,
                                               double *out_number);

// Whether its contents lie as `type` says: neither as another type, nor between those of others.
bool pen_value_lies_plain(const pen_value *value);
// The element type that its contents lie in.
pen_element_type pen_value_stored(const pen_value *value);
// Copies contents, as `type` has them: `bytes` from byte `first` on, both of whole elements. Of
// what lies otherwise nothing is converted before somebody asks. The value has `data`.
void pen_value_copy_contents(const pen_value *value, uint64_t first, void *out, uint64_t bytes);

// Changes to what exists, for importers and passes.
void pen_graph_set_type(pen_graph *graph, pen_value_id value, const pen_tensor_type *type);
void pen_graph_set_constant(pen_graph *graph, pen_value_id value, const void *data);
// Gives a parameter or state other first contents, borrowed: as many elements as its type has, of
// the type `stored`.
void pen_graph_set_contents(pen_graph *graph, pen_value_id value, pen_element_type stored,
                            const void *data);
void pen_graph_set_trainable(pen_graph *graph, pen_value_id value, bool trainable);
void pen_graph_set_layout(pen_graph *graph, pen_value_id value, pen_layout layout);
void pen_graph_set_replaces(pen_graph *graph, pen_value_id value, pen_value_id persistent);
void pen_graph_set_accumulates(pen_graph *graph, pen_node_id node, bool accumulates);
void pen_graph_set_role(pen_graph *graph, pen_node_id node, pen_role role);
void pen_graph_set_input(pen_graph *graph, pen_node_id node, uint32_t input, pen_value_id value);
// Gives a value another name, made unique by a suffix if need be. The old one stays taken.
PEN_NODISCARD pen_status pen_graph_rename_value(pen_graph *graph, pen_value_id value,
                                                const char *name);
// Says in the node itself, as attribute `to`, the element type that its output 0 has, and leaves
// out the operand that said it (pen_op.type_input). Does nothing where there is no such operand.
void pen_graph_settle_type(pen_graph *graph, pen_node_id node);
// Sets an integer attribute of the node's schema.
void pen_graph_set_int(pen_graph *graph, pen_node_id node, const char *name, int64_t integer);
// Leaves an optional output out from now on; nothing may read it.
void pen_graph_drop_output(pen_graph *graph, pen_node_id node, uint32_t output);
// Infers the outputs' types of one node from its inputs', as pen_graph_add_node does.
PEN_NODISCARD pen_status pen_graph_infer_node(pen_graph *graph, pen_node_id node);

// The model's inputs (in order of creation) and outputs, in the model's order.
uint32_t pen_graph_input_count(const pen_graph *graph);
pen_value_id pen_graph_input(const pen_graph *graph, uint32_t index);
uint32_t pen_graph_output_count(const pen_graph *graph);
pen_value_id pen_graph_output(const pen_graph *graph, uint32_t index);
PEN_NODISCARD pen_status pen_graph_add_output(pen_graph *graph, pen_value_id value);

// Symbols stand for dimensions of inputs. Adding one that exists returns the existing dimension.
// *out_dimension is what goes into a shape.
PEN_NODISCARD pen_status pen_graph_add_symbol(pen_graph *graph, const char *name,
                                              int64_t *out_dimension);
uint32_t pen_graph_symbol_count(const pen_graph *graph);
// The name of a symbolic dimension; NULL for one that is a number.
const char *pen_graph_symbol_name(const pen_graph *graph, int64_t dimension);

const char *pen_role_name(pen_role role);
const char *pen_value_kind_name(pen_value_kind kind);
const char *pen_attribute_kind_name(pen_attribute_kind kind);

#endif // PEN_GRAPH_GRAPH_H
