// Puts a loss, and for classifiers a count of right answers, behind a model's output.
#ifndef PEN_GRAPH_PASSES_GRADIENT_ATTACH_LOSS_H
#define PEN_GRAPH_PASSES_GRADIENT_ATTACH_LOSS_H

#include "base/status.h"
#include "graph/graph_types.h"

typedef enum pen_loss_kind {
    PEN_LOSS_SOFTMAX_CROSS_ENTROPY,   // output: logits (…, classes), or a softmax
                                      // of them; labels: int64 (…)
    PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD, // output: log-probabilities (…, classes); labels: int64 (…)
    PEN_LOSS_MEAN_SQUARED_ERROR,      // labels: as the output
    PEN_LOSS_BINARY_CROSS_ENTROPY,    // output: probabilities; labels: as the output
    PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS,
    PEN_LOSS_OUTPUT, // the model's output is the loss: one element
    PEN_LOSS_KIND_COUNT,
} pen_loss_kind;

typedef struct pen_attached_loss {
    pen_value_id loss;     // one element, the mean over all targets of the microbatch
    pen_value_id labels;   // a new input "labels"; PEN_VALUE_NONE for PEN_LOSS_OUTPUT
    pen_value_id accuracy; // int64 scalar, right answers in the microbatch; NONE if not classes
} pen_attached_loss;

// `output` is a typed floating value of `graph`. Where there is a `mask` (bool, of the output's
// first dimensions; PEN_VALUE_NONE: none), only the targets count where it holds: the loss is the
// mean over them, and `accuracy` as many right ones as there would be if all counted.
//   INVALID_INPUT  the output's shape does not suit the loss, or the mask
PEN_NODISCARD pen_status pen_attach_loss(pen_graph *graph, pen_loss_kind kind, pen_value_id output,
                                         pen_value_id mask, pen_attached_loss *out_loss);

// Adds what regularizers say, a float32 number, to a loss.
PEN_NODISCARD pen_status pen_attach_penalty(pen_graph *graph, pen_value_id penalty,
                                            pen_value_id *io_loss);

// "softmax_cross_entropy", …: as jobs write them, ended by NULL.
extern const char *const pen_loss_kind_names[];

#endif // PEN_GRAPH_PASSES_GRADIENT_ATTACH_LOSS_H
