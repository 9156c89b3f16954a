#include "graph/passes/gradient/split_backward.h"

#include "graph/graph.h"
#include "graph/op.h"

// What is known of a node's readers, which come after it and so have their roles already.
typedef struct split_readers {
    bool any;
    bool input_half; // some reader makes it part of the input half
} split_readers;

// Whether `reader`, with its final role, puts `producer` into the input half.
static bool split_pulls(const pen_node *producer, const pen_node *reader) {
    switch (reader->role) {
    case PEN_ROLE_BACKWARD_INPUT:
    case PEN_ROLE_TRANSFER:
        return true;
    case PEN_ROLE_BACKWARD_WEIGHT:
        return pen_node_is(reader->gradient_of) &&
               reader->gradient_of.index != producer->gradient_of.index;
    case PEN_ROLE_FORWARD:
    case PEN_ROLE_UPDATE:
        break;
    }
    return false;
}

static pen_status split_look_at_inputs(const pen_graph *graph, const pen_node *reader,
                                       split_readers *readers) {
    for (uint32_t i = 0; i < reader->input_count; i++) {
        if (!pen_value_is(reader->inputs[i])) continue;
        const pen_node_id id = pen_graph_value(graph, reader->inputs[i])->producer;
        if (!pen_node_is(id)) continue;
        const pen_node *producer = pen_graph_node(graph, id);
        if (!pen_role_is_backward(producer->role)) continue;
        if (reader->role == PEN_ROLE_FORWARD) {
            return pen_error(PEN_INTERNAL, "forward node '%s' reads the gradient '%s'",
                             reader->name, pen_value_name(graph, reader->inputs[i]));
        }
        readers[id.index].any = true;
        readers[id.index].input_half |= split_pulls(producer, reader);
    }
    return PEN_OK;
}

pen_status pen_split_backward(pen_graph *graph) {
    split_readers *readers;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_node_count(graph), &readers));
    for (uint32_t n = pen_graph_node_count(graph); n-- > 0;) {
        const pen_node_id id = {n};
        if (pen_role_is_backward(pen_graph_node(graph, id)->role) && readers[n].any) {
            pen_graph_set_role(graph, id,
                               readers[n].input_half ? PEN_ROLE_BACKWARD_INPUT
                                                     : PEN_ROLE_BACKWARD_WEIGHT);
        }
        PEN_TRY(split_look_at_inputs(graph, pen_graph_node(graph, id), readers));
    }
    return PEN_OK;
}
