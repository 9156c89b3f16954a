// Puts a loss, and for classifiers a count of right answers, behind a model's output.
//
// Every loss is what PyTorch's of the same options is over the whole step, whatever the
// microbatches: the mean over all targets, or, where some are ignored, or classes or examples have
// weights, the sum divided by the step's sum of the targets' weights. That divisor is not known
// here. It is fed: `scale` is, for each example of the step, examples of the step * its weight /
// sum of the weights of its targets.
#ifndef PEN_GRAPH_PASSES_GRADIENT_ATTACH_LOSS_H
#define PEN_GRAPH_PASSES_GRADIENT_ATTACH_LOSS_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/passes/gradient/loss_spec.h"

bool pen_loss_is_over_classes(pen_loss_kind kind);
// Whether labels are class indices.
bool pen_loss_takes_indices(const pen_loss_spec *spec);
// Whether the divisor is fed.
bool pen_loss_is_scaled(const pen_loss_spec *spec);

#define PEN_LOSS_TOPS_LIMIT 4 // of one loss

// Where a loss goes, and names of the inputs that it makes.
typedef struct pen_loss_place {
    pen_value_id output; // typed, floating
    pen_value_id mask;   // bool, of the output's first dimensions: the targets that count; or NONE
    const char *labels;  // made unique, as the next
    const char *scale;
    uint64_t example_count; // of the microbatch
    // Of class indices: for each of these, targets whose label is among so many of the best classes
    // are counted, too.
    uint32_t tops[PEN_LOSS_TOPS_LIMIT]; // [top_count]
    uint32_t top_count;
} pen_loss_place;

typedef struct pen_attached_loss {
    pen_value_id loss;     // one element
    pen_value_id labels;   // a new input; PEN_VALUE_NONE for PEN_LOSS_OUTPUT
    pen_value_id scale;    // a new input, float32 [example_count]; NONE: the mean is taken
    pen_value_id accuracy; // int64 scalar, right answers in the microbatch; NONE if not classes
    // With a mask, float32 scalar: the share of the microbatch's targets that count. NONE: all do,
    // or as many as the data say.
    pen_value_id counted;
    uint32_t class_count; // that labels are indices of; 0: they are none
    // What `tops` of the place ask for, each a float32 scalar: targets an example.
    pen_value_id among[PEN_LOSS_TOPS_LIMIT];
} pen_attached_loss;

// With a mask, the loss is the mean over the targets of the microbatch that count, and right
// answers are those of targets that do.
//   INVALID_INPUT  the output's shape does not suit the loss, the mask or the weights
//   UNSUPPORTED    a mask where the classes are not the last dimension
PEN_NODISCARD pen_status pen_attach_loss(pen_graph *graph, const pen_loss_spec *spec,
                                         const pen_loss_place *place, pen_attached_loss *out_loss);

// The distance (PEN_LOSS_L1) or its square (PEN_LOSS_MEAN_SQUARED_ERROR) of a loss' output to its
// labels, which are of one type: no loss, only to be told. It is the mean over all numbers, of
// which those that a mask leaves out have none.
PEN_NODISCARD pen_status pen_attach_error(pen_graph *graph, pen_loss_kind kind,
                                          const pen_loss_place *place, pen_value_id labels,
                                          pen_value_id *out_error);
// share * value, in the value's type: of a mean over targets that count, its part in all.
PEN_NODISCARD pen_status pen_attach_share(pen_graph *graph, pen_value_id value, pen_value_id share,
                                          pen_value_id *out_part);

// *io_sum + weight * loss; *io_sum may be PEN_VALUE_NONE.
PEN_NODISCARD pen_status pen_attach_weighted(pen_graph *graph, pen_value_id loss, double weight,
                                             pen_value_id *io_sum);

// Adds what regularizers say, a float32 number, to a loss.
PEN_NODISCARD pen_status pen_attach_penalty(pen_graph *graph, pen_value_id penalty,
                                            pen_value_id *io_loss);

// "softmax_cross_entropy", …: as jobs write them, ended by NULL.
extern const char *const pen_loss_kind_names[];

#endif // PEN_GRAPH_PASSES_GRADIENT_ATTACH_LOSS_H
