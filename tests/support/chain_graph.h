// Graphs of relu nodes by a list of names, for tests of pictures.
#ifndef PEN_TESTS_SUPPORT_CHAIN_GRAPH_H
#define PEN_TESTS_SUPPORT_CHAIN_GRAPH_H

#include <stdio.h>

#include "graph/graph.h"
#include "tests/support/check.h"
#include "tests/support/random_graph.h"

// Each node reads the one before; the first an input, "x". The last one is the output.
static inline pen_graph *chain_graph(pen_arena *arena, const char *title, uint32_t count,
                                     const char *(*name)(uint32_t index, char *room)) {
    const int64_t dims[] = {4, 3};
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, 2, dims);
    char room[256];
    pen_graph *graph;
    CHECK_OK(pen_graph_create(arena, title, &graph));
    pen_value_id value = graph_value_of(graph, "x", PEN_VALUE_INPUT, &type);
    for (uint32_t i = 0; i < count; i++) {
        value = graph_apply(graph, "relu", name(i, room), value, PEN_VALUE_NONE, PEN_VALUE_NONE);
    }
    CHECK_OK(pen_graph_add_output(graph, value));
    return graph;
}

// "n0", "n1", …
static inline const char *chain_flat_name(uint32_t index, char *room) {
    snprintf(room, 256, "n%u", index);
    return room;
}

// "/block.0/relu.0" and so on, ten to a block.
static inline const char *chain_path_name(uint32_t index, char *room) {
    snprintf(room, 256, "/block.%u/relu.%u", index / 10, index % 10);
    return room;
}

#endif // PEN_TESTS_SUPPORT_CHAIN_GRAPH_H
