#include "partition/plan/plan_memory_error.h"

#include "base/sets/order.h"
#include "base/text.h"
#include "graph/graph.h"

#define MEMORY_ERROR_NODES_NAMED 3

// The nodes of a device that take most, with what goes with them.
static pen_status memory_error_name_nodes(const pen_planner *planner,
                                          const pen_plan_solution *solution, pen_arena *arena,
                                          pen_text *text) {
    const uint32_t node_count = planner->owners->node_count;
    const uint32_t device = solution->worst_device;
    const pen_planner_wish wish = {.objective = planner->request->placement->objective,
                                   .counts_devices = true,
                                   .bytes_limit = planner->bytes_limit,
                                   .microbatches = planner->one_microbatch};
    pen_problem_given given;
    pen_ranked *nodes; // by bytes
    PEN_TRY(PEN_NEW(arena, node_count, &nodes));
    PEN_TRY(pen_planner_lower(planner, &wish, arena, &given));
    for (uint32_t n = 0; n < node_count; n++) {
        nodes[n].id = n;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (solution->device_of_node[n] != device) continue;
        const pen_problem_node *node = &given.nodes[n];
        const uint32_t stage = solution->split.stage_of_node[n];
        nodes[planner->owners->listed[n]].key +=
            node->bytes + node->bytes_in_flight * solution->prediction.in_flight[stage];
    }
    pen_ranked_sort_down(nodes, node_count);
    for (uint32_t i = 0; i < node_count && i < MEMORY_ERROR_NODES_NAMED && nodes[i].key > 0.0;
         i++) {
        char bytes[PEN_QUANTITY_TEXT_BYTES];
        pen_text_print(text, "%s'%s' (%s)", i > 0 ? ", " : "",
                       pen_node_name(planner->owners->graph, (pen_node_id){nodes[i].id}),
                       pen_bytes_format((uint64_t)nodes[i].key, bytes));
    }
    return PEN_OK;
}

pen_status pen_plan_error_memory(const pen_planner *planner, const pen_plan_solution *solution,
                                 pen_arena *arena) {
    const pen_cluster_device *device = &planner->request->cluster->devices[solution->worst_device];
    const pen_device_memory *memory = &solution->device_memory[solution->worst_device];
    const char *kinds, *whole;
    char total[PEN_QUANTITY_TEXT_BYTES], limit[PEN_QUANTITY_TEXT_BYTES];
    char missing[PEN_QUANTITY_TEXT_BYTES];
    pen_text names;
    pen_text_init(&names, arena);
    PEN_TRY(pen_device_memory_format(memory, arena, &kinds));
    PEN_TRY(memory_error_name_nodes(planner, solution, arena, &names));
    PEN_TRY(pen_text_finish(&names, &whole));
    return pen_error(PEN_DOES_NOT_FIT,
                     "device '%s' would need %s of memory and may use %s, %s less: %s; most of it "
                     "for %s",
                     device->name, pen_bytes_format(memory->total, total),
                     pen_bytes_format(device->bytes_limit, limit),
                     pen_bytes_format(memory->total - device->bytes_limit, missing), kinds, whole);
}
