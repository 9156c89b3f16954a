// What a conversion of one node of TensorFlow reads and adds.
//
// Everything is built three times at once: in the model's graph, and in two trials of it, in which
// every dimension that the model leaves open has a number, another in each. So ranks and shapes are
// known while converting, and integers that steer shapes are computed as we go: where both trials
// agree they do not depend on what is open, and the graph gets a constant.
//
// Images: TensorFlow keeps channels last, our operators want them first. A value of four
// dimensions is held in either form, or both: operators on images read and make the channels-first
// form, operators that do not care keep what they find, and all others get the form they expect,
// by a transpose that is made once.
//
// Lifetime: a draft lives for one node's conversion, what it makes in its arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_CONVERT_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/import/import.h"
#include "graph/import/tensorflow/graphdef_model.h"
#include "graph/node_parts.h"

#define PEN_GRAPHDEF_TRIALS 2
#define PEN_GRAPHDEF_COPIES 3      // the graph, and its trials
#define PEN_GRAPHDEF_INTS_LIMIT 64 // elements of what is computed while importing

// One value in the graph [0] and in the trials [1], [2]. PEN_VALUE_NONE in a trial: it could not
// be made there, and nothing is known of its shape.
typedef struct pen_graphdef_value {
    pen_value_id in[PEN_GRAPHDEF_COPIES];
} pen_graphdef_value;
#define PEN_GRAPHDEF_VALUE_NONE                                                                    \
    ((pen_graphdef_value){{PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE}})

// Integers (or bools) known while importing, of a scalar or a list.
typedef struct pen_graphdef_ints_known {
    bool is_known;
    bool is_scalar;
    uint32_t count;
    int64_t integers[PEN_GRAPHDEF_INTS_LIMIT];
} pen_graphdef_ints_known;

typedef struct pen_graphdef_list pen_graphdef_list;       // graphdef_list.h
typedef struct pen_graphdef_mapping pen_graphdef_mapping; // graphdef_mapping.h

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

typedef struct pen_graphdef_draft {
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
} pen_graphdef_draft;

// Whether both trials know the integers of a result, and the same ones.
bool pen_graphdef_ints_agree(const pen_graphdef_result *result);

// ---- what is read
// INVALID_INPUT: the node has fewer than `count` operands.
PEN_NODISCARD pen_status pen_graphdef_draft_need(const pen_graphdef_draft *draft, uint32_t count);

// Operand `input`, as TensorFlow has it.
PEN_NODISCARD pen_status pen_graphdef_operand(pen_graphdef_draft *draft, uint32_t input,
                                              pen_graphdef_value *out_value);
// What any node gave, as TensorFlow has it.
PEN_NODISCARD pen_status pen_graphdef_result_value(const pen_graphdef_draft *draft,
                                                   pen_graphdef_result *result,
                                                   pen_graphdef_value *out_value);
// Operands 0 to `count` - 1.
PEN_NODISCARD pen_status pen_graphdef_operands(pen_graphdef_draft *draft, uint32_t count,
                                               pen_graphdef_value *out_values);
// Operand `input` with channels first.
PEN_NODISCARD pen_status pen_graphdef_operand_first(pen_graphdef_draft *draft, uint32_t input,
                                                    pen_graphdef_value *out_value);
// In either form.
PEN_NODISCARD pen_status pen_graphdef_operand_form(pen_graphdef_draft *draft, uint32_t input,
                                                   bool is_first, pen_graphdef_value *out_value);
// In the form in which it is there.
PEN_NODISCARD pen_status pen_graphdef_operand_found(pen_graphdef_draft *draft, uint32_t input,
                                                    bool *out_is_first,
                                                    pen_graphdef_value *out_value);
// Whether it is there in the channels-first form only.
bool pen_graphdef_operand_is_first(const pen_graphdef_draft *draft, uint32_t input);
// The element type that the node works on: its attribute T.
pen_element_type pen_graphdef_draft_element(const pen_graphdef_draft *draft);
// The rank of operand `input`, in TensorFlow's form. False: not known.
bool pen_graphdef_operand_rank(const pen_graphdef_draft *draft, uint32_t input, uint32_t *out_rank);
// Its type in a trial; NULL when it is not known.
const pen_tensor_type *pen_graphdef_value_type(const pen_graphdef_draft *draft,
                                               const pen_graphdef_value *value, uint32_t trial);
// Its shape, dimensions that the trials do not agree on being -1.
//   UNSUPPORTED  nothing is known of it
PEN_NODISCARD pen_status pen_graphdef_value_shape(const pen_graphdef_draft *draft,
                                                  const pen_graphdef_value *value,
                                                  pen_shape *out_shape);
// Operand `input` as integers of a trial; NULL when they are not known.
const pen_graphdef_ints_known *pen_graphdef_operand_trial(const pen_graphdef_draft *draft,
                                                          uint32_t input, uint32_t trial);
// Operand `input` as integers that do not depend on what the model leaves open.
//   UNSUPPORTED  they do, or on data
PEN_NODISCARD pen_status pen_graphdef_operand_ints(const pen_graphdef_draft *draft, uint32_t input,
                                                   const pen_graphdef_ints_known **out_ints);
PEN_NODISCARD pen_status pen_graphdef_operand_int(const pen_graphdef_draft *draft, uint32_t input,
                                                  int64_t *out_integer);
// Operand `input` as int64 for an operator that wants such integers: a constant where possible.
PEN_NODISCARD pen_status pen_graphdef_operand_int64s(pen_graphdef_draft *draft, uint32_t input,
                                                     pen_graphdef_value *out_value);

// ---- what is added
// Constants "<node>/<suffix>".
PEN_NODISCARD pen_status pen_graphdef_ints_value(pen_graphdef_draft *draft, const char *suffix,
                                                 uint32_t count, const int64_t *integers,
                                                 pen_graphdef_value *out_value);
PEN_NODISCARD pen_status pen_graphdef_number_value(pen_graphdef_draft *draft, const char *suffix,
                                                   pen_element_type element, double number,
                                                   pen_graphdef_value *out_value);

typedef struct pen_graphdef_inputs {
    const pen_graphdef_value *values; // [count]
    uint32_t count;
} pen_graphdef_inputs;
#define PEN_GRAPHDEF_INPUTS(...)                                                                   \
    ((pen_graphdef_inputs){(const pen_graphdef_value[]){__VA_ARGS__},                              \
                           PEN_LISTED(pen_graphdef_value, __VA_ARGS__)})
// All of an array.
#define PEN_GRAPHDEF_ALL(array) ((pen_graphdef_inputs){(array), sizeof(array) / sizeof *(array)})

typedef struct pen_graphdef_emission {
    const char *op_name;
    const char *suffix; // of a node in between; NULL: it is the node itself
    pen_graphdef_inputs inputs;
    pen_node_attributes attributes;
    uint32_t output_count; // 0 stands for 1
    bool is_first;         // its outputs have channels first
} pen_graphdef_emission;
// Adds a node; writes output_count values.
PEN_NODISCARD pen_status pen_graphdef_emit_node(pen_graphdef_draft *draft,
                                                const pen_graphdef_emission *emission,
                                                pen_graphdef_value *out_values);
// Adds a node of one output.
PEN_NODISCARD pen_status pen_graphdef_emit(pen_graphdef_draft *draft, const char *op_name,
                                           const char *suffix, pen_graphdef_inputs inputs,
                                           pen_node_attributes attributes,
                                           pen_graphdef_value *out_value);
// op(a), op(a, b), without attributes.
PEN_NODISCARD pen_status pen_graphdef_map(pen_graphdef_draft *draft, const char *op_name,
                                          const char *suffix, pen_graphdef_value a,
                                          pen_graphdef_value *out_value);
PEN_NODISCARD pen_status pen_graphdef_pair(pen_graphdef_draft *draft, const char *op_name,
                                           const char *suffix, pen_graphdef_value a,
                                           pen_graphdef_value b, pen_graphdef_value *out_value);
PEN_NODISCARD pen_status pen_graphdef_cast(pen_graphdef_draft *draft, const char *suffix,
                                           pen_graphdef_value a, pen_element_type element,
                                           pen_graphdef_value *out_value);
// The inputs one behind the other along an axis.
PEN_NODISCARD pen_status pen_graphdef_concat(pen_graphdef_draft *draft, const char *suffix,
                                             pen_graphdef_inputs inputs, int64_t axis,
                                             pen_graphdef_value *out_value);
typedef struct pen_graphdef_integers {
    uint32_t count;
    const int64_t *values; // [count]
} pen_graphdef_integers;
// op(a, integers), as reshape, squeeze and unsqueeze have it.
PEN_NODISCARD pen_status pen_graphdef_emit_with_ints(pen_graphdef_draft *draft, const char *op_name,
                                                     const char *suffix, pen_graphdef_value a,
                                                     pen_graphdef_integers integers,
                                                     pen_graphdef_value *out_value);
// op(a, [integer]): along one axis, say.
PEN_NODISCARD pen_status pen_graphdef_emit_with_int(pen_graphdef_draft *draft, const char *op_name,
                                                    const char *suffix, pen_graphdef_value a,
                                                    int64_t integer, pen_graphdef_value *out_value);
PEN_NODISCARD pen_status pen_graphdef_emit_transpose(pen_graphdef_draft *draft, const char *suffix,
                                                     pen_graphdef_value a, uint32_t rank,
                                                     const int64_t *permutation,
                                                     pen_graphdef_value *out_value);

// ---- what results
// These are always PEN_OK, to end a conversion with; nothing happens for outputs that nobody reads.
// Output `output` of the node, as TensorFlow has it, or in the form that `is_first` says.
pen_status pen_graphdef_set(pen_graphdef_draft *draft, uint32_t output, pen_graphdef_value value);
pen_status pen_graphdef_set_form(pen_graphdef_draft *draft, bool is_first,
                                 pen_graphdef_value value);
// Output `output` is operand `input`, which is there, in all its forms.
pen_status pen_graphdef_pass(pen_graphdef_draft *draft, uint32_t output, uint32_t input);

// Adds the node itself, of one output, which is the result.
PEN_NODISCARD pen_status pen_graphdef_give(pen_graphdef_draft *draft, const char *op_name,
                                           pen_graphdef_inputs inputs,
                                           pen_node_attributes attributes);
// The same, in the form that `is_first` says.
PEN_NODISCARD pen_status pen_graphdef_give_form(pen_graphdef_draft *draft, bool is_first,
                                                const char *op_name, pen_graphdef_inputs inputs,
                                                pen_node_attributes attributes);
// op(a) and op(a, b), likewise.
PEN_NODISCARD pen_status pen_graphdef_give_map(pen_graphdef_draft *draft, bool is_first,
                                               const char *op_name, pen_graphdef_value a);
PEN_NODISCARD pen_status pen_graphdef_give_pair(pen_graphdef_draft *draft, bool is_first,
                                                const char *op_name, pen_graphdef_value a,
                                                pen_graphdef_value b);

// A constant of known integers and an element type that has them, in one copy.
PEN_NODISCARD pen_status pen_graphdef_ints_constant(pen_graph *graph, const char *name,
                                                    const pen_graphdef_ints_known *ints,
                                                    pen_element_type element,
                                                    pen_value_id *out_value);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_CONVERT_H
