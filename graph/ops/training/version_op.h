// Operands of the ops of asynchronous lanes, for their shape rules, kernels and whoever makes them.
// The formulas are at the top of version_op.c.
#ifndef PEN_GRAPH_OPS_TRAINING_VERSION_OP_H
#define PEN_GRAPH_OPS_TRAINING_VERSION_OP_H

// lane_parameter
enum { PEN_LANE_NEWEST, PEN_LANE_KEPT, PEN_LANE_ARRIVALS };

// version_gradient
enum {
    PEN_VERSION_ORDER,
    PEN_VERSION_PARAMETER, // as it is now
    PEN_VERSION_START,     // as it was before the step
    PEN_VERSION_KEPT,      // as each lane has it
    PEN_VERSION_SQUARE,    // mean of squared gradients, or left out
    PEN_VERSION_STACKS,    // from here on: one for each use of the parameter
};
// what it gives
enum {
    PEN_VERSION_GRADIENT,
    PEN_VERSION_SCALE,
    PEN_VERSION_STEP,
    PEN_VERSION_NEW_SQUARE, // where it takes one
};

// lane_keep
enum { PEN_KEEP_ORDER, PEN_KEEP_VERSIONS };

#define PEN_VERSION_SQUARE_DECAY 0.95
#define PEN_VERSION_EPSILON 1e-7

#endif // PEN_GRAPH_OPS_TRAINING_VERSION_OP_H
