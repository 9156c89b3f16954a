// Losses whose examples have weights of their own: what is told of each element, and their sum with
// a factor for each example.
//
//   loss = factor Σ scale[i] Σ loss[i, e]   of the examples i of a microbatch and their elements e
//
// The operators of losses of numbers give one mean, so here such a loss is made of arithmetic that
// there is, whose gradients are its own:
//
//   mean_squared_error                 d d                  d = x - t
//   l1                                 |d|
//   smooth_l1, huber                   c (d - c / 2)        c = d held between -beta and beta
//                                      (smooth_l1: divided by beta; a beta of 0: |d|)
//   binary_cross_entropy_with_logits   log(1 + exp(x)) - t x
//   binary_cross_entropy               likewise, of what a sigmoid read
//   kl_divergence                      t (log t - x), 0 for a target of 0
//
// Threads: one writer of the graph.
#ifndef PEN_GRAPH_PASSES_GRADIENT_WEIGHTED_LOSS_H
#define PEN_GRAPH_PASSES_GRADIENT_WEIGHTED_LOSS_H

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/passes/gradient/loss_spec.h"

// A loss of numbers for each element, of the output's shape.
//   UNSUPPORTED  binary_cross_entropy of probabilities that no sigmoid made
PEN_NODISCARD pen_status pen_weighted_loss_elements(pen_graph *graph, const pen_loss_spec *spec,
                                                    pen_value_id output, pen_value_id labels,
                                                    pen_value_id *out_losses);

// The sum above: `losses` has the elements of one example behind one another, `scale` is float32
// [examples].
//   INVALID_INPUT  there are not equally many elements for each example
PEN_NODISCARD pen_status pen_weighted_loss_sum(pen_graph *graph, pen_value_id losses,
                                               pen_value_id scale, double factor,
                                               pen_value_id *out_loss);

#endif // PEN_GRAPH_PASSES_GRADIENT_WEIGHTED_LOSS_H
