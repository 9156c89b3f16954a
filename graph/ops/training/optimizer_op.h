// What kernels of updates share.
//
// The order in which squared_norm adds. Every device keeps it, so that clipping by the global norm
// gives the same numbers on any number of threads:
//   each block of PEN_NORM_BLOCK_ELEMENTS elements is summed by itself, squares and sums in double;
//   the sums of the blocks are added in pairs (0+1, 2+3, …; a last one without partner is kept),
//   and the sums of pairs again, until one is left. It is rounded once.
// LAMB adds its norms in the same order.
#ifndef PEN_GRAPH_OPS_TRAINING_OPTIMIZER_OP_H
#define PEN_GRAPH_OPS_TRAINING_OPTIMIZER_OP_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/tensor_type.h"

#define PEN_NORM_BLOCK_ELEMENTS 4096

// Which operand of a norm holds the rows that its gradient is of; it may be left out.
enum { PEN_NORM_ROWS = 1 };

// Adds `sums` in pairs as above, destroying them. 0 when there are none.
static inline double pen_norm_add_pairs(double *sums, size_t count) {
    if (count == 0) return 0;
    while (count > 1) {
        for (size_t i = 0; i < count / 2; i++) {
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        }
        if (count % 2 == 1) sums[count / 2] = sums[count - 1];
        count = (count + 1) / 2;
    }
    return sums[0];
}

// What NAdam's momentum is of a step, and the product of those up to it.
typedef struct pen_nadam_momentum {
    double now, next, product;
} pen_nadam_momentum;

// A momentum is beta1 * (1 - 0.96^(step * decay) / 2). As PyTorch, which keeps the product as a
// state; it is soon so small that 1 less it is 1.
static inline pen_nadam_momentum pen_nadam_momentum_of(double beta1, double decay, double step) {
    const double factor = pow(0.96, decay);
    double power = 1, product = 1;
    for (double t = 1; t <= step && product > 1e-18; t++) {
        power *= factor;
        product *= beta1 * (1 - 0.5 * power);
    }
    return (pen_nadam_momentum){beta1 * (1 - 0.5 * pow(factor, step)),
                                beta1 * (1 - 0.5 * pow(factor, step + 1)), product};
}

// What RAdam multiplies a step by; 0: the variance is not known well enough to divide by it.
static inline double pen_radam_rectifier(double beta2, double step) {
    const double power = pow(beta2, step), most = 2 / (1 - beta2) - 1;
    const double length = most - 2 * step * power / (1 - power);
    if (!(length > 5)) return 0;
    return sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
}

// Adafactor's states, as operands.
enum { PEN_ADAFACTOR_ROWS = 2, PEN_ADAFACTOR_COLUMNS, PEN_ADAFACTOR_VARIANCE };

// How many elements of which a mean is a part of the row means, …: of a parameter of two dimensions
// or more, `batches` matrices.
typedef struct pen_adafactor_shape {
    int64_t batches, rows, columns;
} pen_adafactor_shape;

static inline pen_adafactor_shape pen_adafactor_shape_of(const pen_shape *shape) {
    const uint32_t rank = shape->rank;
    if (rank < 2) return (pen_adafactor_shape){1, 1, pen_shape_element_count(shape)};
    return (pen_adafactor_shape){pen_shape_count(shape, 0, rank - 2), shape->dims[rank - 2],
                                 shape->dims[rank - 1]};
}

// What Adafactor multiplies its steps by, of the sums of squares of a parameter and of its step.
static inline double pen_adafactor_size(double rate, double step, double epsilon2, double threshold,
                                        const double sums[2], double count) {
    const double most = fmin(rate, 1 / sqrt(step)), size = sqrt(sums[0] / count);
    const double excess = sqrt(sums[1] / count) / threshold;
    // not fmax: what is no number must stay visible
    return most * (size > epsilon2 ? size : epsilon2) / (excess <= 1 ? 1 : excess);
}

// Which operand of an average is what.
enum { PEN_AVERAGE_PARAMETER, PEN_AVERAGE_OLD, PEN_AVERAGE_STEP, PEN_AVERAGE_SCALE };

// The share of the parameter in its new average; 1: it is the parameter. As torch.optim.swa_utils,
// whose first average is a copy.
static inline double pen_average_weight(double decay, double from, double step) {
    return step <= from + 1 ? 1 : 1 - decay;
}

// What LAMB multiplies its steps by, of the squared norms of a parameter and of its step.
static inline double pen_lamb_ratio(double parameter, double step) {
    return parameter == 0 || step == 0 ? 1 : sqrt(parameter) / sqrt(step);
}

#endif // PEN_GRAPH_OPS_TRAINING_OPTIMIZER_OP_H
