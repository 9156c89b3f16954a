// The sizes and functions of lstm, gru and rnn nodes and of their backward nodes.
//
// Read by the shape rules, the cost formulas and every device's kernel, so that all agree.
#ifndef PEN_GRAPH_OPS_PRODUCT_RECURRENT_GEOMETRY_H
#define PEN_GRAPH_OPS_PRODUCT_RECURRENT_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

typedef enum pen_recurrent_kind {
    PEN_RECURRENT_RNN,
    PEN_RECURRENT_GRU,
    PEN_RECURRENT_LSTM,
} pen_recurrent_kind;

// Operands and outputs of the forward ops, as in ONNX; what is saved for the gradient comes after.
enum {
    PEN_RECURRENT_X,         // [S, N, I]; layout 1: [N, S, I]
    PEN_RECURRENT_W,         // [D, G * H, I]
    PEN_RECURRENT_R,         // [D, G * H, H]
    PEN_RECURRENT_B,         // [D, 2 * G * H]: of the input's half, then of the state's
    PEN_RECURRENT_LENGTHS,   // int32 [N]
    PEN_RECURRENT_INITIAL_H, // [D, N, H]; layout 1: [N, D, H]
    PEN_RECURRENT_INITIAL_C, // lstm: likewise
    PEN_RECURRENT_PEEPHOLES, // lstm: [D, 3 * H]
    PEN_RECURRENT_INPUT_COUNT,
};
enum {
    PEN_RECURRENT_Y,      // [S, D, N, H]; layout 1: [N, S, D, H]
    PEN_RECURRENT_LAST_H, // as initial_h
    PEN_RECURRENT_LAST_C, // lstm: likewise
    PEN_RECURRENT_OUTPUT_COUNT,
};
// gates: [D, S, N, saved * H], after their activations. lstm: i, o, f, c; gru: z, r, h, and with
//        linear_before_reset the state's half of h.
// cells: lstm: [D, S, N, H]
// They are outputs 3 and 4 of lstm, and output 2 of gru.

// Operands and outputs of the backward ops.
enum {
    PEN_RECURRENT_BACKWARD_Y = 3, // 0 to 2: x, w, r
    PEN_RECURRENT_BACKWARD_GATES,
    PEN_RECURRENT_BACKWARD_CELLS,
    PEN_RECURRENT_BACKWARD_DY, // this and those after it may be left out
    PEN_RECURRENT_BACKWARD_DH,
    PEN_RECURRENT_BACKWARD_DC,
    PEN_RECURRENT_BACKWARD_LENGTHS,
    PEN_RECURRENT_BACKWARD_INITIAL_H,
    PEN_RECURRENT_BACKWARD_INITIAL_C,
    PEN_RECURRENT_BACKWARD_PEEPHOLES,
    PEN_RECURRENT_BACKWARD_INPUT_COUNT,
};
enum {
    PEN_RECURRENT_DW,
    PEN_RECURRENT_DR,
    PEN_RECURRENT_DX,
    PEN_RECURRENT_DB,
    PEN_RECURRENT_DINITIAL_H,
    PEN_RECURRENT_DINITIAL_C,
    PEN_RECURRENT_DPEEPHOLES,
    PEN_RECURRENT_BACKWARD_OUTPUT_COUNT,
};

typedef enum pen_recurrent_function {
    PEN_RECURRENT_SIGMOID,
    PEN_RECURRENT_TANH,
    PEN_RECURRENT_RELU,
    PEN_RECURRENT_AFFINE,
    PEN_RECURRENT_LEAKY_RELU,
    PEN_RECURRENT_THRESHOLDED_RELU,
    PEN_RECURRENT_SCALED_TANH,
    PEN_RECURRENT_HARD_SIGMOID,
    PEN_RECURRENT_ELU,
    PEN_RECURRENT_SOFTSIGN,
    PEN_RECURRENT_SOFTPLUS,
} pen_recurrent_function;

typedef struct pen_recurrent_activation {
    pen_recurrent_function function;
    double alpha, beta;
} pen_recurrent_activation;

typedef struct pen_recurrent_geometry {
    pen_recurrent_kind kind;
    int64_t steps, batch, inputs, hidden;
    int64_t directions; // 1 or 2
    int64_t gates;      // G: 1, 3 or 4
    int64_t saved;      // blocks of `hidden` in the gates that are saved; 0: none are
    bool is_reverse[2]; // each direction
    bool is_batch_first;
    bool linear_before_reset;
    bool input_forget;
    double clip; // INFINITY: none
    // Of each direction: f, then g, then h of ONNX.
    pen_recurrent_activation activations[2][3];
    pen_tensor_type y, state, gate_type, cell_type; // of the outputs
} pen_recurrent_geometry;

// The geometry of a forward or backward node whose inputs x, w and r are typed.
//   INVALID_INPUT  shapes that do not go together, an attribute out of its range
PEN_NODISCARD pen_status pen_recurrent_geometry_of(const pen_graph *graph, const pen_node *node,
                                                   pen_recurrent_geometry *out_geometry);

// The functions, and their derivatives by what they gave.
double pen_recurrent_apply(const pen_recurrent_activation *activation, double x);
double pen_recurrent_slope(const pen_recurrent_activation *activation, double y);

// ONNX' name of an activation ("HardSigmoid") that begins at `word` and ends before a space or the
// end of the text; our spelling ("hard_sigmoid") is read, too. NULL when there is none.
const char *pen_recurrent_activation_name(const char *word);

// Rows of `inputs` or `hidden` elements: of step t and example n in x; of direction d in y; of the
// states; and of the saved gates and cells.
static inline int64_t pen_recurrent_row_x(const pen_recurrent_geometry *g, int64_t t, int64_t n) {
    return g->is_batch_first ? n * g->steps + t : t * g->batch + n;
}
static inline int64_t pen_recurrent_row_y(const pen_recurrent_geometry *g, int64_t d, int64_t t,
                                          int64_t n) {
    return g->is_batch_first ? (n * g->steps + t) * g->directions + d
                             : (t * g->directions + d) * g->batch + n;
}
static inline int64_t pen_recurrent_row_state(const pen_recurrent_geometry *g, int64_t d,
                                              int64_t n) {
    return g->is_batch_first ? n * g->directions + d : d * g->batch + n;
}
static inline int64_t pen_recurrent_row_saved(const pen_recurrent_geometry *g, int64_t d, int64_t t,
                                              int64_t n) {
    return (d * g->steps + t) * g->batch + n;
}

#endif // PEN_GRAPH_OPS_PRODUCT_RECURRENT_GEOMETRY_H
