// Two operands that broadcast against each other, in a common form.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_BROADCAST_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_BROADCAST_H

#include "graph/import/tensorflow/graphdef_convert.h"

// Operands `a` and `b`. When one is an image with channels first, and the other can be made to
// suit it (a scalar, a number a channel, another image), both have channels first.
PEN_NODISCARD pen_status pen_graphdef_broadcast(pen_graphdef_draft *draft, uint32_t a, uint32_t b,
                                                bool *out_is_first,
                                                pen_graphdef_value out_operands[2]);

// A vector of a number a channel, as it broadcasts against an image with channels first.
PEN_NODISCARD pen_status pen_graphdef_channel_vector(pen_graphdef_draft *draft, const char *suffix,
                                                     pen_graphdef_value vector,
                                                     pen_graphdef_value *out_value);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_BROADCAST_H
