// Random numbers of TensorFlow, and dropout, which TensorFlow makes of them.
//
//   x * scale * cast(random >= rate)     where(random >= rate, x * scale, 0)
//
// with scale 1 / (1 - rate) and as many random numbers as x has elements.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_RANDOM_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_RANDOM_H

#include <stdbool.h>

#include "graph/import/tensorflow/graphdef_convert.h"

// Makes one dropout of a Mul or Select that is the last node of one. *out_is_one: it was; then its
// result is there.
PEN_NODISCARD pen_status pen_graphdef_dropout_convert(pen_graphdef_draft *draft, uint32_t mask,
                                                      uint32_t scaled, bool *out_is_one);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_RANDOM_H
