#include "partition/problem/stage_graph.h"

#include <stdalign.h>
#include <string.h>

// NULL stays NULL.
static pen_status stage_graph_copy_array(const void *array, size_t count, size_t size,
                                         pen_arena *arena, void *out_copy) {
    void *copy = NULL;
    if (array != NULL) {
        copy = pen_arena_allocate(arena, count, size, alignof(max_align_t));
        if (copy == NULL) return pen_error_out_of_memory();
        memcpy(copy, array, count * size);
    }
    memcpy(out_copy, &copy, sizeof copy);
    return PEN_OK;
}

const char *const pen_exchange_names[] = {
    [PEN_EXCHANGE_AFTER_BACKWARD] = "after_backward",
    [PEN_EXCHANGE_OVERLAPPED] = "overlapped",
    NULL,
};

#define STAGE_GRAPH_COPY(count, member)                                                            \
    PEN_TRY(stage_graph_copy_array(graph->member, graph->count, sizeof *graph->member, arena,      \
                                   &copy.member))

pen_status pen_stage_graph_copy(const pen_stage_graph *graph, pen_arena *arena,
                                pen_stage_graph *out_copy) {
    pen_stage_graph copy = *graph;
    STAGE_GRAPH_COPY(stage_count, stages);
    STAGE_GRAPH_COPY(edge_count, edges);
    STAGE_GRAPH_COPY(device_count, bytes_limit);
    STAGE_GRAPH_COPY(step_edge_count, step_edges);
    STAGE_GRAPH_COPY(device_count, seats);
    *out_copy = copy;
    return PEN_OK;
}
