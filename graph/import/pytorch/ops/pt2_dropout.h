// Dropout as training does it, for conversions of layers that have one inside.
//
// Threads: as the draft.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_DROPOUT_H
#define PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_DROPOUT_H

#include "graph/import/pytorch/pt2_convert.h"

// "<node>/<suffix>": elements of x are 0 with probability `ratio` (0 to 1), the others are divided
// by 1 - ratio. Evaluation leaves it out.
PEN_NODISCARD pen_status pen_pt2_dropout(pen_pt2_draft *draft, const char *suffix, pen_value_id x,
                                         double ratio, pen_value_id *out_value);

// Whether `x` is p + rand(...), with p between 0 and 1: rounded down, it is 1 with the probability
// p, else 0. Then that is result 0, as of a bernoulli: evaluation has its mean.
PEN_NODISCARD pen_status pen_pt2_dropout_of_floor(pen_pt2_draft *draft, pen_value_id x,
                                                  bool *out_is_chance);

#endif // PEN_GRAPH_IMPORT_PYTORCH_OPS_PT2_DROPOUT_H
