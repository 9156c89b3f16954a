#include "scheduler/report/report_plan.h"

#include "graph/analysis/forward_owner.h"
#include "graph/dump/layered_layout.h"
#include "graph/graph.h"
#include "scheduler/plan/plan_schedule.h"

#define REPORT_MODULES_ABOVE 600 // boxes
#define REPORT_MODULE_LIMIT 120

static pen_status report_groups(const pen_plan *plan, pen_arena *arena,
                                pen_drawing_options *options) {
    pen_drawing_group *groups;
    options->group_count = plan->device_count + plan->stages.stage_count;
    PEN_TRY(PEN_NEW(arena, options->group_count, &groups));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        groups[d] = (pen_drawing_group){plan->devices[d].name, PEN_DRAWING_NONE, d};
    }
    for (uint32_t s = 0; s < plan->stages.stage_count; s++) {
        const uint32_t device = plan->stages.stages[s].device;
        groups[plan->device_count + s] =
            (pen_drawing_group){plan->stage_figures[s].name, device, device};
    }
    options->groups = groups;
    return PEN_OK;
}

// Nodes of the model and of the plan are matched by name. Reorders stand in no plan and go where
// their nodes are.
static pen_status report_find_nodes(const pen_graph *graph, const pen_plan *plan, pen_arena *arena,
                                    uint32_t *plan_node_of_node,
                                    const uint32_t **out_group_of_node) {
    uint32_t *group_of_node;
    PEN_TRY(PEN_NEW(arena, pen_graph_node_count(graph), &group_of_node));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        plan_node_of_node[n] = PEN_DRAWING_NONE;
        group_of_node[n] = PEN_DRAWING_NONE;
    }
    for (uint32_t i = 0; i < plan->node_count; i++) {
        pen_node_id node;
        PEN_TRY(pen_status_add_context(pen_graph_find_node(graph, plan->nodes[i].name, &node),
                                       "while looking for the plan's nodes in the model"));
        plan_node_of_node[node.index] = i;
        group_of_node[node.index] = plan->device_count + plan->nodes[i].stage;
    }
    // changes of layout, which no plan lists, are where the nodes are that they go with
    const pen_forward_owners *owners;
    PEN_TRY(pen_forward_owners_build(graph, arena, &owners));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (pen_graph_node(graph, (pen_node_id){n})->role != PEN_ROLE_FORWARD) continue;
        if (owners->is_listed[n]) continue;
        group_of_node[n] = group_of_node[owners->listed[n]];
    }
    *out_group_of_node = group_of_node;
    return PEN_OK;
}

pen_status pen_report_plan(const pen_graph *graph, const pen_plan *plan, pen_arena *arena,
                           pen_report *out_report, pen_drawing_options *out_groups) {
    const pen_schedule *schedule;
    uint32_t *plan_node_of_node;
    *out_report = (pen_report){.graph = graph, .plan = plan};
    *out_groups = (pen_drawing_options){0};
    PEN_TRY(PEN_NEW(arena, pen_graph_node_count(graph), &plan_node_of_node));
    PEN_TRY(report_groups(plan, arena, out_groups));
    PEN_TRY(report_find_nodes(graph, plan, arena, plan_node_of_node, &out_groups->group_of_node));
    out_report->plan_node_of_node = plan_node_of_node;
    PEN_TRY(pen_plan_schedule(plan, arena, &schedule));
    return pen_schedule_simulate(&plan->stages, schedule, arena, &out_report->timeline);
}

pen_status pen_report_add_modules(pen_report *report, const pen_drawing_options *groups,
                                  pen_arena *arena) {
    pen_drawing_options options = *groups;
    pen_drawing *modules;
    if (report->drawing->box_count <= REPORT_MODULES_ABOVE) return PEN_OK;
    options.box_limit = REPORT_MODULE_LIMIT;
    PEN_TRY(pen_drawing_new(report->graph, &options, arena, &modules));
    PEN_TRY(pen_layered_layout(modules, arena));
    report->modules = modules;
    return PEN_OK;
}
