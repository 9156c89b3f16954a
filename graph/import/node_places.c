#include "graph/import/node_places.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

static int place_compare(const void *a, const void *b) {
    return strcmp(((const pen_node_place *)a)->node, ((const pen_node_place *)b)->node);
}

pen_node_places pen_node_places_make(pen_node_place *places, uint32_t count) {
    if (count > 0) qsort(places, count, sizeof *places, place_compare);
    return (pen_node_places){places, count};
}

const pen_node_place *pen_node_places_find(const pen_node_places *places, const char *name) {
    const pen_node_place wanted = {.node = name};
    if (places->count == 0) return NULL;
    return bsearch(&wanted, places->places, places->count, sizeof wanted, place_compare);
}

// That of the first input which a placed node computes.
static const pen_node_place *place_of_inputs(const pen_graph *graph, const pen_node *node,
                                             const pen_node_place *const *found) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_node_id producer = pen_graph_value(graph, node->inputs[i])->producer;
        if (pen_node_is(producer) && found[producer.index] != NULL) return found[producer.index];
    }
    return NULL;
}

// Nodes without a place get that of what they read, then, from the end, of what reads them.
pen_status pen_node_places_resolve(const pen_node_places *places, const pen_graph *graph,
                                   pen_arena *arena, const pen_node_place *const **out_places) {
    const uint32_t count = pen_graph_node_count(graph);
    const pen_node_place **found;
    PEN_TRY(PEN_NEW(arena, count, &found));
    for (uint32_t n = 0; n < count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        found[n] = pen_node_places_find(places, node->name);
        if (found[n] == NULL) found[n] = place_of_inputs(graph, node, found);
    }
    for (uint32_t n = count; n-- > 0;) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count && found[n] != NULL; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id producer = pen_graph_value(graph, node->inputs[i])->producer;
            if (pen_node_is(producer) && found[producer.index] == NULL) {
                found[producer.index] = found[n];
            }
        }
    }
    *out_places = found;
    return PEN_OK;
}
