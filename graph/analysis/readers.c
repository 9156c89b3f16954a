#include "graph/analysis/readers.h"

#include "graph/graph.h"

static pen_status readers_find_visible(const pen_graph *graph, uint32_t kept_count,
                                       const pen_value_id *kept, pen_arena *arena,
                                       const bool **out_visible) {
    bool *visible;
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &visible));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        visible[v] = pen_value_is(pen_graph_value(graph, (pen_value_id){v})->replaces);
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        visible[pen_graph_output(graph, i).index] = true;
    }
    for (uint32_t i = 0; i < kept_count; i++) {
        if (pen_value_is(kept[i])) visible[kept[i].index] = true;
    }
    *out_visible = visible;
    return PEN_OK;
}

// Counts, then sums, then fills: readers of value v are nodes[first[v]] to nodes[first[v + 1] - 1],
// in the order of nodes.
pen_status pen_readers_build(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                             pen_arena *arena, pen_readers *out_readers) {
    const uint32_t value_count = pen_graph_value_count(graph);
    const uint32_t node_count = pen_graph_node_count(graph);
    uint32_t *first, *next;
    pen_node_id *nodes;
    PEN_TRY(PEN_NEW(arena, (size_t)value_count + 1, &first));
    PEN_TRY(PEN_NEW(arena, (size_t)value_count + 1, &next));
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) first[node->inputs[i].index + 1]++;
        }
    }
    for (uint32_t v = 0; v < value_count; v++) {
        first[v + 1] += first[v];
        next[v] = first[v];
    }
    PEN_TRY(PEN_NEW(arena, first[value_count], &nodes));
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) {
                nodes[next[node->inputs[i].index]++] = (pen_node_id){n};
            }
        }
    }
    *out_readers = (pen_readers){.first = first, .nodes = nodes};
    return readers_find_visible(graph, kept_count, kept, arena, &out_readers->is_visible);
}

pen_node_id pen_readers_only(const pen_readers *readers, pen_value_id value) {
    if (pen_readers_count(readers, value) != 1 || readers->is_visible[value.index]) {
        return PEN_NODE_NONE;
    }
    return readers->nodes[readers->first[value.index]];
}
