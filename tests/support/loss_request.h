// A loss in its plainest form: of a kind, over the last dimension.
#ifndef PEN_TESTS_SUPPORT_LOSS_REQUEST_H
#define PEN_TESTS_SUPPORT_LOSS_REQUEST_H

#include "graph/passes/gradient/attach_loss.h"

#define PLAIN_LOSS(of_kind)                                                                        \
    { .kind = (of_kind), .class_axis = -1, .beta = 1 }

// For pen_compile_request: .losses = LOSS_REQUEST(kind), .loss_count = 1
#define LOSS_REQUEST(of_kind) (&(const pen_compile_loss){.spec = PLAIN_LOSS(of_kind), .weight = 1})

// What pen_attach_loss makes of an output and, unless it is PEN_VALUE_NONE, its mask.
static inline pen_status attach_plain_loss(pen_graph *graph, pen_loss_kind kind,
                                           pen_value_id output, pen_value_id mask,
                                           pen_attached_loss *out_loss) {
    const pen_loss_spec spec = PLAIN_LOSS(kind);
    const pen_loss_place place = {
        .output = output, .mask = mask, .labels = "labels", .scale = "scale", .example_count = 1};
    return pen_attach_loss(graph, &spec, &place, out_loss);
}

#endif // PEN_TESTS_SUPPORT_LOSS_REQUEST_H
