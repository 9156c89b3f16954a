// What kernels of updates share.
//
// The order in which squared_norm adds. Every device keeps it, so that clipping by the global norm
// gives the same numbers on any number of threads:
//   each block of PEN_NORM_BLOCK_ELEMENTS elements is summed by itself, squares and sums in double;
//   the sums of the blocks are added in pairs (0+1, 2+3, …; a last one without partner is kept),
//   and the sums of pairs again, until one is left. It is rounded once.
#ifndef PEN_GRAPH_OPS_TRAINING_OPTIMIZER_OP_H
#define PEN_GRAPH_OPS_TRAINING_OPTIMIZER_OP_H

#include <stddef.h>

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

#endif // PEN_GRAPH_OPS_TRAINING_OPTIMIZER_OP_H
