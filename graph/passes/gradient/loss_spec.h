// The contract of this folder towards who asks for a loss: its kind and its options.
//
// Threads: constants.
#ifndef PEN_GRAPH_PASSES_GRADIENT_LOSS_SPEC_H
#define PEN_GRAPH_PASSES_GRADIENT_LOSS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pen_loss_kind {
    PEN_LOSS_SOFTMAX_CROSS_ENTROPY,   // output: logits, or a softmax of them; labels: int64, the
                                      // output's shape without the classes
    PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD, // output: log-probabilities; labels: likewise
    PEN_LOSS_MEAN_SQUARED_ERROR,      // labels: as the output
    PEN_LOSS_BINARY_CROSS_ENTROPY,    // output: probabilities; labels: as the output
    PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS,
    PEN_LOSS_L1,            // labels: as the output, likewise those below
    PEN_LOSS_SMOOTH_L1,     //
    PEN_LOSS_HUBER,         //
    PEN_LOSS_KL_DIVERGENCE, // output: log-probabilities; labels: probabilities. The sum, divided by
                            // the output's first dimension
    PEN_LOSS_OUTPUT,        // the model's output is the loss: one element
    PEN_LOSS_KIND_COUNT,
} pen_loss_kind;

// All zero but the kind and the axis is a good choice.
typedef struct pen_loss_spec {
    pen_loss_kind kind;
    // over classes
    int64_t class_axis; // dimension of the output that the classes are; negative: from the end; not
                        // the first
    bool ignores;
    int64_t ignore_index;       // label of targets that do not count
    bool has_probabilities;     // softmax_cross_entropy: labels are as the output, probabilities of
                                // classes; none is ignored
    double label_smoothing;     // softmax_cross_entropy: 0 to 1
    const float *class_weights; // [class_weight_count], copied; NULL: all 1
    uint32_t class_weight_count;
    bool weighs_examples; // scales of examples differ
    // of numbers
    double beta; // of smooth_l1, and delta of huber
} pen_loss_spec;

#endif // PEN_GRAPH_PASSES_GRADIENT_LOSS_SPEC_H
