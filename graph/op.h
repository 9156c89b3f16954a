// Operators: one entry of one table each.
//
// An op has a name, an attribute schema, a shape rule, a gradient rule, and counts of flops and
// bytes. Kernels for it are one entry per device (device/). Families share a file in graph/ops/;
// graph/op_table.c lists the families. Adding an op: an entry in its family, a kernel in
// device/reference/, and, where speed matters, one in device/cpu/kernels/.
//
// Names and meaning follow ONNX operator set 17, in snake case (LeakyRelu is leaky_relu), with
// operands and attributes named and ordered as there, unless the family's file says otherwise.
// Operands that steer shapes (axes, pads, target shapes) are int64 inputs as in ONNX; they are
// constants by the time a rule or kernel sees them (`constant_inputs`).
#ifndef PEN_GRAPH_OP_H
#define PEN_GRAPH_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/tensor_type.h"

#define PEN_VARIADIC UINT32_MAX

typedef struct pen_attribute_schema {
    const char *name;
    pen_attribute_kind kind;
    bool required;
    bool has_default; // INT, FLOAT and TEXT: the value below; else left out when not given
    int64_t integer;
    double number;
    const char *text;
} pen_attribute_schema;

typedef struct pen_infer_context pen_infer_context;
typedef struct pen_gradient_context pen_gradient_context;

struct pen_op {
    const char *name;
    const char *summary; // one line
    uint32_t input_min;
    uint32_t input_max; // PEN_VARIADIC: any number from input_min
    uint32_t output_min;
    uint32_t output_max;
    const pen_attribute_schema *attributes; // [attribute_count]
    uint32_t attribute_count;
    uint64_t constant_inputs; // bit i: input i must be a constant; rules and kernels read it early
    uint64_t in_place_inputs; // bit i: output 0 may take the storage of input i, if equal in bytes:
                              // kernels read element k of it before they write element k
    bool is_view;             // output 0 is input 0's bytes with another shape; no kernel runs
    bool stops_gradient;      // outputs are as if they depended on nothing: `gradient` is NULL
    bool is_random;           // depends on seed, step and microbatch: never folded or merged
    uint64_t statistics_inputs; // bit i: input i, a running statistic, goes into nothing but the
                                // output that replaces it

    // Sets the types of the outputs. All inputs' types are known, constant_inputs are constants.
    pen_status (*infer)(pen_infer_context *context);
    // Emits backward nodes, see below. NULL: no gradient flows through (comparisons, shapes).
    pen_status (*gradient)(pen_gradient_context *context);
    // Multiplications and additions, each counted. NULL: 0.
    uint64_t (*flops)(const pen_graph *graph, pen_node_id node);
    // Bytes read and written. NULL: all inputs and outputs once (views: 0).
    uint64_t (*bytes)(const pen_graph *graph, pen_node_id node);
};

typedef struct pen_op_family {
    const char *name;  // "elementwise"
    const pen_op *ops; // [op_count]
    uint32_t op_count;
} pen_op_family;

// NOT_FOUND.
PEN_NODISCARD pen_status pen_op_find(const char *name, const pen_op **out_op);
uint32_t pen_op_family_count(void);
const pen_op_family *pen_op_family_at(uint32_t index);
uint64_t pen_node_flops(const pen_graph *graph, pen_node_id node);
uint64_t pen_node_bytes(const pen_graph *graph, pen_node_id node);

// ---- attributes of a node, by name. A name that is not in the schema is our mistake: asserted.
int64_t pen_node_int(const pen_node *node, const char *name);
double pen_node_float(const pen_node *node, const char *name);
const char *pen_node_text(const pen_node *node, const char *name);
// NULL and a count of 0 when left out.
const int64_t *pen_node_ints(const pen_node *node, const char *name, uint32_t *out_count);
const double *pen_node_floats(const pen_node *node, const char *name, uint32_t *out_count);
bool pen_node_has(const pen_node *node, const char *name);
// The name of a random node's stream of numbers: its attribute `stream` (every random op has it)
// where that is given, else its own. So a copy of the node draws what the node drew.
const char *pen_node_stream(const pen_node *node);

// ---- for shape rules
const pen_graph *pen_infer_graph(const pen_infer_context *context);
const pen_node *pen_infer_node(const pen_infer_context *context);
bool pen_infer_has_input(const pen_infer_context *context, uint32_t input);
// The type of an input that is there.
const pen_tensor_type *pen_infer_input(const pen_infer_context *context, uint32_t input);
// A constant input, as pen_value_read_ints. A left-out input gives a count of 0 and NULL.
PEN_NODISCARD pen_status pen_infer_ints(const pen_infer_context *context, uint32_t input,
                                        uint32_t *out_count, const int64_t **out_integers);
bool pen_infer_has_output(const pen_infer_context *context, uint32_t output);
// Checks the type and sets it. Does nothing for an output that is left out.
PEN_NODISCARD pen_status pen_infer_set(pen_infer_context *context, uint32_t output,
                                       const pen_tensor_type *type);
// An error that begins with the op and the node: "matmul 'fc2': …".
#define pen_infer_error(context, code, ...)                                                        \
    pen_infer_error_at(__FILE__, __LINE__, (context), (code), __VA_ARGS__)
PEN_NODISCARD pen_status pen_infer_error_at(const char *file, int line,
                                            const pen_infer_context *context, pen_status_code code,
                                            const char *format, ...) PEN_PRINTF(5, 6);

// ---- for gradient rules
//
// A rule is called once for a node of which some output has a gradient and some input needs one.
// It emits nodes that compute, from gradients of the outputs, those of the inputs that need them.
// Sums over several readers of one value are made by the caller, not by the rule.
pen_graph *pen_gradient_graph(pen_gradient_context *context);
// Valid until the next node is added: fetch again after emitting.
const pen_node *pen_gradient_node(const pen_gradient_context *context);
pen_value_id pen_gradient_input(const pen_gradient_context *context, uint32_t input);
pen_value_id pen_gradient_output(const pen_gradient_context *context, uint32_t output);
// The gradient that flows into an output: PEN_VALUE_NONE when nothing that counts reads it.
pen_value_id pen_gradient_of_output(const pen_gradient_context *context, uint32_t output);
// Whether input `input` is there and needs a gradient.
bool pen_gradient_needed(const pen_gradient_context *context, uint32_t input);
// Says what the gradient of an input is: same shape and element type as the input.
void pen_gradient_set(pen_gradient_context *context, uint32_t input, pen_value_id gradient);

// A backward node. Its name is "<forward name>/<suffix>"; its role follows from `for_input`: the
// weight half when that input is a parameter, else the input half.
typedef struct pen_gradient_emission {
    const char *op_name;
    const char *suffix; // NULL: op_name
    uint32_t for_input;
    const pen_value_id *inputs;
    uint32_t input_count;
    const pen_attribute_given *attributes; // or NULL
    uint32_t attribute_count;
    uint32_t output_count; // 0 stands for 1
} pen_gradient_emission;
// Adds the node; writes output_count ids.
PEN_NODISCARD pen_status pen_gradient_emit(pen_gradient_context *context,
                                           const pen_gradient_emission *emission,
                                           pen_value_id *out_outputs);
// Undoes broadcasting: `gradient` summed down to the shape of input `for_input` (the same value
// when the shapes are equal).
PEN_NODISCARD pen_status pen_gradient_unbroadcast(pen_gradient_context *context, uint32_t for_input,
                                                  pen_value_id gradient, pen_value_id *out_output);
// Every attribute of the forward node that is present, to pass to a backward op whose schema
// repeats it. Lives in the graph's arena.
PEN_NODISCARD pen_status pen_gradient_attributes(pen_gradient_context *context,
                                                 const pen_attribute_given **out_attributes,
                                                 uint32_t *out_count);

#endif // PEN_GRAPH_OP_H
