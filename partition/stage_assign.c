#include "partition/stage_assign.h"

#include "base/name_map.h"
#include "partition/node_homes.h"

pen_status pen_stage_assign(const pen_graph *graph, const pen_plan *plan, pen_arena *arena,
                            const uint32_t **out_stage_of_node) {
    const pen_node_homes *homes;
    pen_name_map map;
    uint32_t *stage_of_node;
    PEN_TRY(pen_node_homes_build(graph, arena, &homes));
    PEN_TRY(PEN_NEW(arena, homes->node_count, &stage_of_node));
    pen_name_map_init(&map, arena);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        PEN_TRY(pen_name_map_add(&map, plan->nodes[i].name, i));
    }
    for (uint32_t n = 0; n < homes->node_count; n++) {
        if (!homes->is_listed[n]) continue;
        const char *name = pen_node_name(graph, (pen_node_id){n});
        const uint32_t at = pen_name_map_find(&map, name);
        if (at == PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "node '%s' of the model is in no stage of the plan",
                             name);
        }
        stage_of_node[n] = plan->nodes[at].stage;
    }
    for (uint32_t n = 0; n < homes->node_count; n++) {
        stage_of_node[n] = stage_of_node[homes->listed[n]];
    }
    *out_stage_of_node = stage_of_node;
    return PEN_OK;
}
