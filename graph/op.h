// The contract of operators, one entry of one table each; op_access.c has what is asked of a node.
//
// An op has a name, an attribute schema, a shape rule, a gradient rule, and counts of flops and
// bytes. What others must know of it stands here too, as facts: nobody else compares names of ops.
// Kernels for it are one entry per device (device/). Families share a file in graph/ops/;
// graph/op_table.c lists the families. Adding an op: an entry in its family, a kernel in
// device/reference/kernels/, and, where speed matters, one in device/cpu/kernels/.
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
#include "graph/attribute.h"
#include "graph/axis_link.h"
#include "graph/graph_types.h"
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

// What a kernel of the op spends its time in, and which library does it.
typedef enum pen_op_work {
    PEN_WORK_OTHER,
    PEN_WORK_PRODUCT,     // matrix products, of which input 1 is an operand
    PEN_WORK_RECURRENT,   // layers over sequences: many such products, likewise
    PEN_WORK_CONVOLUTION, // with code of its own for each kind
    PEN_WORK_POOLING,     // from the library of convolutions, without such code
} pen_op_work;

// Inputs of an update; 0 where it has none. Input 0 is the parameter, which output 0 takes the
// place of. States stand from input `state` up to `rate`, and state i comes out as output 1 + i.
typedef struct pen_op_update {
    uint32_t gradient;
    uint32_t state;
    uint32_t rate;  // the learning rate
    uint32_t step;  // the number of the step, from 1
    uint32_t scale; // that gradients are multiplied by, below 0: nothing is applied; may be left
                    // out
    uint32_t rows;  // of the parameter, of which the gradient has one each; may be left out
} pen_op_update;

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
    uint32_t type_input;      // this input is read for its element type alone, which the text
                              // attribute `to` says as well; 0: there is none
    bool is_view;             // output 0 is input 0's bytes with another shape; no kernel runs
    bool stops_gradient;      // outputs are as if they depended on nothing: `gradient` is NULL
    bool spans_lanes; // where it adds up over microbatches, over all of a step's; else a lane's
    bool adds_itself; // where it does, its kernels read what the output holds: nobody adds for them
    bool is_random;   // depends on seed, step and microbatch: never folded or merged
    uint64_t statistics_inputs; // bit i: input i, a running statistic, goes into nothing but the
                                // output that replaces it, where the int attribute
    const char *statistics_if;  // of this name is not 0

    // ---- facts that passes, estimates, guards and devices ask
    pen_op_work work;
    bool is_update; // changes a parameter by its gradient, which must be finite: as `update` says
    pen_op_update update;
    bool is_product;     // output 0 is sums of products of an element of input 0 and one of input 1
    const char *factor;  // the attribute that such sums are multiplied by; NULL: none
    bool reads_no_data;  // outputs follow from the types of the inputs
    bool is_elementwise; // an element of output 0 is made of those of the inputs at its place, as
                         // they broadcast
    bool keeps_zeros;    // zeros at a place of all tensors give a zero at this place of the output
    bool rectifies;      // about half of the output is zeros
    bool wants_positive; // a root, logarithm or probability: negative operands give no numbers
    const char
        *picks_along; // elements of input 1 are indices into the dimension of input 0 that the
                      // int attribute of this name says, -n to n - 1, else it fails; or NULL
    // bit i: input (output) i lies in memory as the other masked ones do, in whatever layout a
    // device gives the first of them; all else lies plain
    uint64_t alike_inputs;
    uint64_t alike_outputs;
    // How positions of outputs read inputs, where `is_elementwise` and `is_view` do not say it.
    // NULL: they do, or nothing is known.
    pen_axis_rule axis_rule;

    // Sets the types of the outputs. All inputs' types are known, constant_inputs are constants.
    pen_status (*infer)(pen_infer_context *context);
    // Emits backward nodes: graph/ops/shared/gradient_rule.h. NULL: no gradient flows through
    // (comparisons, shapes).
    pen_status (*gradient)(pen_gradient_context *context);
    // Multiplications and additions, each counted. NULL: the numbers below.
    uint64_t (*flops)(const pen_graph *graph, pen_node_id node);
    uint32_t output_flops; // for each element of output 0
    uint32_t input_flops;  // for each element of input 0
    // Bytes read and written. NULL: all inputs and outputs once (views: 0).
    uint64_t (*bytes)(const pen_graph *graph, pen_node_id node);
};

// Attributes of a family's schema: one that may be left out, one that must be given, and one that
// has a default.
#define PEN_MAY(called, of)                                                                        \
    { .name = (called), .kind = PEN_ATTRIBUTE_##of }
#define PEN_MUST(called, of)                                                                       \
    { .name = (called), .kind = PEN_ATTRIBUTE_##of, .required = true }
#define PEN_INT_OR(called, value)                                                                  \
    { .name = (called), .kind = PEN_ATTRIBUTE_INT, .has_default = true, .integer = (value) }
#define PEN_FLOAT_OR(called, value)                                                                \
    { .name = (called), .kind = PEN_ATTRIBUTE_FLOAT, .has_default = true, .number = (value) }
#define PEN_TEXT_OR(called, value)                                                                 \
    { .name = (called), .kind = PEN_ATTRIBUTE_TEXT, .has_default = true, .text = (value) }

// For the rows of families: name, summary, then
//   PEN_TAKES(1, 2), PEN_GIVES(1, 1), PEN_ATTRIBUTES(pad_attributes), .infer = …
#define PEN_TAKES(least, most) .input_min = (least), .input_max = (most)
#define PEN_GIVES(least, most) .output_min = (least), .output_max = (most)
#define PEN_ATTRIBUTES(array)                                                                      \
    .attributes = (array), .attribute_count = sizeof(array) / sizeof *(array)
// Without the last one, which is the backward op's.
#define PEN_ATTRIBUTES_BUT_LAST(array)                                                             \
    .attributes = (array), .attribute_count = sizeof(array) / sizeof *(array)-1

typedef struct pen_op_family {
    const char *name;  // "elementwise"
    const pen_op *ops; // [op_count]
    uint32_t op_count;
} pen_op_family;
// pen_NAME_family of NAME_ops.
#define PEN_OP_FAMILY(family)                                                                      \
    const pen_op_family pen_##family##_family = {#family, family##_ops,                            \
                                                 sizeof family##_ops / sizeof *family##_ops}

// NOT_FOUND.
PEN_NODISCARD pen_status pen_op_find(const char *name, const pen_op **out_op);
uint32_t pen_op_family_count(void);
const pen_op_family *pen_op_family_at(uint32_t index);
uint64_t pen_node_flops(const pen_graph *graph, pen_node_id node);
uint64_t pen_node_bytes(const pen_graph *graph, pen_node_id node);

// ---- attributes of a node, by name. A name that is not in the schema is our mistake: asserted.
int64_t pen_node_int(const pen_node *node, const char *name);
// Whether input i is a running statistic that goes into nothing but the output that replaces it.
bool pen_node_is_statistic(const pen_node *node, uint32_t i);
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

#endif // PEN_GRAPH_OP_H
