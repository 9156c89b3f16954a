#include "partition/plan/plan_places.h"

pen_status pen_plan_places(const pen_plan *plan, pen_arena *arena, pen_node_places *out_places) {
    pen_node_place *places;
    PEN_TRY(PEN_NEW(arena, plan->node_count, &places));
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const pen_plan_node *node = &plan->nodes[i];
        const uint32_t device = plan->stages.stages[node->stage].device;
        places[i] = (pen_node_place){node->name, plan->devices[device].name, node->stage};
    }
    *out_places = pen_node_places_make(places, plan->node_count);
    return PEN_OK;
}
