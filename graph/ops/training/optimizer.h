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
//   Adagrad  s ← s + g²
//            p ← p − lr/(1 + (t−1)·lr_decay)·g / (√s + ε)
//            (Duchi, Hazan and Singer, JMLR 12, 2011)
//   Adadelta v ← ρv + (1−ρ)g²
//            u ← √(d + ε)/√(v + ε)·g
//            d ← ρd + (1−ρ)u²
//            p ← p − lr·u
//            (Zeiler, arXiv:1212.5701)
//   Adamax   m as Adam's, n ← max(β₂n, |g| + ε)
//            p ← p − lr/(1−β₁ᵗ)·m/n
//            (Kingma and Ba, section 7)
//   NAdam    m and v as Adam's; the step goes along m as it will be next (Dozat, 2016)
//   RAdam    m and v as Adam's; the variance of the step is rectified, and the first steps go along
//            m alone (Liu and others, ICLR 2020)
//   Lion     p ← p·(1 − lr·decay) − lr·sign(β₁m + (1−β₁)g)
//            m ← β₂m + (1−β₂)g
//            (Chen and others, arXiv:2302.06675)
//   LAMB     m and v as Adam's, u ← (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε) + decay·p
//            p ← p − lr·‖p‖/‖u‖·u, norms of the whole parameter; without them where one is 0
//            (You and others, ICLR 2020)
//   Adafactor  R and C: means of g² over the columns and rows of the last two dimensions, decayed
//   by
//            1 − t^beta2_decay; v ← R·C / mean of R; a vector has v itself
//            p ← p·(1 − lr·decay) − min(lr, 1/√t)·max(ε₂, rms(p))·u / max(1, rms(u)/d), u = g/√v
//            (Shazeer and Stern, ICML 2018)
//   Where `clip_value` is given, elements of g are brought into [−clip_value, clip_value] first.
//   With an average e, p is updated first: e ← decay·e + (1−decay)·p, and e ← p in the first steps.
//   A parameter of a group may have a weight decay and a factor of lr of its own.
#ifndef PEN_GRAPH_OPS_TRAINING_OPTIMIZER_H
#define PEN_GRAPH_OPS_TRAINING_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph_types.h"
#include "graph/tensor_type.h"

typedef enum pen_optimizer_kind {
    PEN_OPTIMIZER_SGD,
    PEN_OPTIMIZER_ADAM,  // weight decay added to the gradient
    PEN_OPTIMIZER_ADAMW, // weight decay apart from it
    PEN_OPTIMIZER_RMSPROP,
    PEN_OPTIMIZER_ADAGRAD,
    PEN_OPTIMIZER_ADADELTA,
    PEN_OPTIMIZER_ADAMAX,
    PEN_OPTIMIZER_NADAM,
    PEN_OPTIMIZER_RADAM,
    PEN_OPTIMIZER_LION,
    PEN_OPTIMIZER_LAMB,
    PEN_OPTIMIZER_ADAFACTOR,
    PEN_OPTIMIZER_COUNT,
} pen_optimizer_kind;

// Parameters whose updates differ from those of others.
typedef struct pen_optimizer_group {
    const char *match; // POSIX extended regular expression of names
    bool freeze;       // they are not updated
    bool has_weight_decay;
    double weight_decay; // in place of the optimizer's
    double lr_scale;     // times the learning rate; 1: as the others
} pen_optimizer_group;

// A state, of any optimizer: the moving average of the parameter.
#define PEN_OPTIMIZER_AVERAGE "average"
typedef struct pen_optimizer_average {
    double decay;  // 0: none is kept
    uint64_t from; // steps before it begins; until then it is the parameter itself
} pen_optimizer_average;

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
    double rho;
    double lr_decay;
    double momentum_decay;
    double beta2_decay;
    double epsilon2;
    double clip_threshold;
    bool decoupled;    // weight decay apart from the gradient, where that is a choice
    double lr;         // before the schedule of learning rates changes it
    double clip_norm;  // 0: no clipping
    double clip_value; // likewise; an attribute of every update
    const pen_optimizer_group *groups; // [group_count]; a parameter is of the first that matches it
    uint32_t group_count;
    pen_optimizer_average average;
} pen_optimizer;

#define PEN_OPTIMIZER_STATES 3
#define PEN_OPTIMIZER_NUMBERS 6

// A number or a flag of `pen_optimizer`, given to the op as this attribute.
typedef struct pen_optimizer_number {
    const char *attribute; // NULL: no more
    bool is_flag;
    size_t offset;
} pen_optimizer_number;

// What a state is, beside its parameter.
typedef enum pen_optimizer_shape {
    PEN_OPTIMIZER_LIKE_IT, // of its type
    PEN_OPTIMIZER_ROWS,    // of parameters of two dimensions or more: 1 in place of the last
    PEN_OPTIMIZER_COLUMNS, // likewise, in place of the one before
    PEN_OPTIMIZER_VECTOR,  // of other parameters: of their type
} pen_optimizer_shape;

// A tensor kept for each parameter, "PARAMETER/suffix". It starts as zeros.
typedef struct pen_optimizer_state {
    const char *suffix;        // NULL: no more
    pen_optimizer_number with; // kept only where this is not 0; without an attribute: always
    pen_optimizer_shape shape;
} pen_optimizer_state;

typedef struct pen_optimizer_entry {
    const char *op_name;                                 // whose `update` says what goes where
    pen_optimizer_state states[PEN_OPTIMIZER_STATES];    // in the order of the op's
    pen_optimizer_number numbers[PEN_OPTIMIZER_NUMBERS]; // in any order
    const char *set;                                     // an attribute that is 1; NULL: none
    bool needs_whole; // a step of an element depends on all of its parameter: it has no slices
} pen_optimizer_entry;

const pen_optimizer_entry *pen_optimizer_entry_of(pen_optimizer_kind kind);
// Searches all operators: keep what it gives.
const pen_op *pen_optimizer_op(pen_optimizer_kind kind);
double pen_optimizer_read(const pen_optimizer *optimizer, const pen_optimizer_number *number);
bool pen_optimizer_keeps(const pen_optimizer *optimizer, const pen_optimizer_state *state);

// The type of a state of that shape; false: a parameter of this type has none.
bool pen_optimizer_state_type(pen_optimizer_shape shape, const pen_tensor_type *parameter,
                              pen_tensor_type *out_type);

// Whether some optimizer keeps a state of this type under this suffix, of such a parameter.
bool pen_optimizer_has_state(const char *suffix, const pen_tensor_type *parameter,
                             const pen_tensor_type *state);

#endif // PEN_GRAPH_OPS_TRAINING_OPTIMIZER_H
