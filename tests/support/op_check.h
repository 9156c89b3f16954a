// Checks one operator at a time: its shape rule's errors, its values, and its gradient against
// central finite differences in double precision on the reference kernels.
#ifndef PEN_TESTS_SUPPORT_OP_CHECK_H
#define PEN_TESTS_SUPPORT_OP_CHECK_H

#include "graph/graph.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

#define OP_CASE_INPUTS 16
#define OP_CASE_OUTPUTS 8
#define OP_CASE_ATTRIBUTES 16

typedef struct op_case_input {
    pen_tensor_type type;
    double low;       // random contents, uniform in [low, high); integers: rounded down
    double high;      // both 0: [-1, 1)
    const void *data; // fixed contents of `type`; NULL: random
    bool is_constant; // a constant of the graph, and not an input
    bool is_fixed;    // floating, but not to be differentiated
    bool is_absent;   // an optional operand left out
} op_case_input;

typedef struct op_case {
    const char *op;
    uint32_t input_count;
    op_case_input inputs[OP_CASE_INPUTS];
    uint32_t output_count;   // 0 stands for 1
    uint64_t absent_outputs; // bit i: output i is left out
    uint32_t attribute_count;
    pen_attribute_given attributes[OP_CASE_ATTRIBUTES];
    double step;          // of the difference quotient; 0: 1e-6
    double tolerance;     // ‖a − n‖ ≤ tolerance · (‖n‖ + 1); 0: 1e-6
    uint64_t output_mask; // outputs not to check gradients of: bit i; 0: check all floating ones
} op_case;

// A type with dims given in place: op_type(PEN_FLOAT64, 2, 3, 4) is float64[3,4].
pen_tensor_type op_type(pen_element_type element, uint32_t rank, ...); // dims as int

// A one-node graph of the case, its random contents drawn from `seed`. Fails the test on error.
typedef struct op_built {
    pen_arena *arena; // destroyed by op_built_free
    pen_graph *graph;
    pen_node_id node;
    pen_value_id inputs[OP_CASE_INPUTS];
    pen_value_id outputs[OP_CASE_OUTPUTS];
} op_built;
pen_status op_build(const op_case *c, op_built *out_built);
void op_built_free(op_built *built);

// Fills the inputs of `run` for a built case: random contents, or the case's data.
void op_fill(const op_case *c, const op_built *built, uint64_t seed, run_graph *run);

// Building the case fails with `code` and a text that contains `text`.
void op_check_error(const op_case *c, pen_status_code code, const char *text);

// Runs the case (fixed or random contents) and compares output `output` with `expected`,
// element by element within `tolerance` (absolute and relative).
void op_check_values(const op_case *c, uint32_t output, const double *expected, uint32_t count,
                     double tolerance);

// Gradients of every floating, not fixed, not constant input, from every floating output, against
// finite differences. Use float64 inputs.
void op_check_gradient(const op_case *c, uint64_t seed);

#endif // PEN_TESTS_SUPPORT_OP_CHECK_H
