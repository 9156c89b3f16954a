// Optimizers: the list of those that a training chooses from, one entry each in optimizer.c.
//
//   SGD      g ← scale·g + decay·p
//            v ← momentum·v + g
//            p ← p − lr·(nesterov ? g + momentum·v : v)
//   Adam     m ← β₁m + (1−β₁)g
//            v ← β₂v + (1−β₂)g²
//            p ← p − lr·(m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε)
//            (Kingma and Ba, "Adam", ICLR 2015; AdamW: Loshchilov and Hutter, ICLR 2019)
//   RMSprop  v ← αv + (1−α)g²
//            p ← p − lr·g / (√v + ε)
//            As PyTorch's: with `centered` the square of the mean of gradients is taken off v
//            before the root, with `momentum` the quotients are summed.
//            (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; Graves, 2013)
#ifndef PEN_GRAPH_OPS_TRAINING_OPTIMIZER_H
#define PEN_GRAPH_OPS_TRAINING_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "graph/graph_types.h"

typedef enum pen_optimizer_kind {
    PEN_OPTIMIZER_SGD,
    PEN_OPTIMIZER_ADAM,  // weight decay added to the gradient
    PEN_OPTIMIZER_ADAMW, // weight decay apart from it
    PEN_OPTIMIZER_RMSPROP,
    PEN_OPTIMIZER_COUNT,
} pen_optimizer_kind;

// What a job says of its optimizer. Each reads what its entry names.
typedef struct pen_optimizer {
    pen_optimizer_kind kind;
    double momentum;
    bool nesterov;
    double weight_decay;
    double beta1;
    double beta2;
    double epsilon;
    double alpha;
    bool centered;
    double lr;        // before the schedule of learning rates changes it
    double clip_norm; // 0: no clipping
} pen_optimizer;

#define PEN_OPTIMIZER_STATES 3
#define PEN_OPTIMIZER_NUMBERS 5

// A number or a flag of `pen_optimizer`, given to the op as this attribute.
typedef struct pen_optimizer_number {
    const char *attribute; // NULL: no more
    bool is_flag;
    size_t offset;
} pen_optimizer_number;

// A tensor kept for each parameter, "PARAMETER/suffix", of its type. It starts as zeros.
typedef struct pen_optimizer_state {
    const char *suffix;        // NULL: no more
    pen_optimizer_number with; // kept only where this is not 0; without an attribute: always
} pen_optimizer_state;

typedef struct pen_optimizer_entry {
    const char *op_name;                                 // whose `update` says what goes where
    pen_optimizer_state states[PEN_OPTIMIZER_STATES];    // in the order of the op's
    pen_optimizer_number numbers[PEN_OPTIMIZER_NUMBERS]; // in any order
    const char *set;                                     // an attribute that is 1; NULL: none
} pen_optimizer_entry;

const pen_optimizer_entry *pen_optimizer_entry_of(pen_optimizer_kind kind);
// Searches all operators: keep what it gives.
const pen_op *pen_optimizer_op(pen_optimizer_kind kind);
double pen_optimizer_read(const pen_optimizer *optimizer, const pen_optimizer_number *number);
bool pen_optimizer_keeps(const pen_optimizer *optimizer, const pen_optimizer_state *state);

// Whether some optimizer keeps a state under this suffix.
bool pen_optimizer_has_state(const char *suffix);

#endif // PEN_GRAPH_OPS_TRAINING_OPTIMIZER_H
