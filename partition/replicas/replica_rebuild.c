#include "partition/replicas/replica_rebuild.h"

#include <string.h>

#include "base/name_map.h"
#include "graph/graph.h"
#include "partition/plan/plan_build.h"
#include "partition/plan/replica_check.h"
#include "partition/replicas/replica_owners.h"
#include "partition/replicas/replica_plan.h"
#include "partition/replicas/replica_view.h"

// The part of a plan that is a replica's, as a plan for its view.
static pen_status rebuild_part(const pen_replica_view *view, const pen_plan *given,
                               const pen_plan_replica *replica, pen_arena *arena,
                               pen_plan **out_part) {
    pen_plan *part;
    pen_plan_stage *figures;
    pen_plan_device *devices;
    pen_plan_node *nodes;
    pen_stage *stages;
    double *limits;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, 1, &part));
    PEN_TRY(PEN_NEW(arena, replica->device_count, &devices));
    PEN_TRY(PEN_NEW(arena, replica->device_count, &limits));
    PEN_TRY(PEN_NEW(arena, replica->stage_count, &stages));
    PEN_TRY(PEN_NEW(arena, replica->stage_count, &figures));
    PEN_TRY(PEN_NEW(arena, given->node_count, &nodes));
    *part = *given;
    part->replica_count = part->owner_count = 0;
    part->cluster_hash = view->cluster.tables.hash;
    part->microbatch_count = view->planned.microbatch_count;
    part->device_count = replica->device_count;
    for (uint32_t i = 0; i < replica->device_count; i++) {
        devices[i] = given->devices[replica->devices[i]];
        limits[i] = given->stages.bytes_limit[replica->devices[i]];
    }
    for (uint32_t i = 0; i < replica->stage_count; i++) {
        stages[i] = given->stages.stages[replica->first_stage + i];
        uint32_t at = 0;
        while (replica->devices[at] != stages[i].device)
            at++;
        stages[i].device = at;
        stages[i].first_microbatch = stages[i].microbatch_count = 0;
        figures[i] = given->stage_figures[replica->first_stage + i];
    }
    for (uint32_t n = 0; n < given->node_count; n++) {
        if (given->nodes[n].stage - replica->first_stage >= replica->stage_count) continue;
        nodes[count] = given->nodes[n];
        nodes[count].stage -= replica->first_stage;
        nodes[count].update_stage = nodes[count].stage;
        count++;
    }
    part->devices = devices;
    part->stage_figures = figures;
    part->transfer_count = 0;
    part->stages = (pen_stage_graph){.stage_count = replica->stage_count,
                                     .device_count = replica->device_count,
                                     .microbatch_count = part->microbatch_count,
                                     .stages = stages,
                                     .bytes_limit = limits};
    part->nodes = nodes;
    part->node_count = count;
    *out_part = part;
    return PEN_OK;
}

// Who updates each listed node, as the plan says: which replica, or which of its owners.
static pen_status rebuild_owners(const pen_replica_planner *planner, const pen_plan *given,
                                 pen_arena *arena, const uint32_t **out_owner) {
    const pen_forward_owners *owners = planner->owners;
    const uint32_t owner_stage = pen_plan_owner_stage(given);
    uint32_t *owner, *stages;
    pen_name_map map;
    PEN_TRY(PEN_NEW(arena, owners->node_count, &owner));
    PEN_TRY(PEN_NEW(arena, owners->node_count, &stages));
    pen_name_map_init(&map, arena);
    for (uint32_t n = 0; n < given->node_count; n++) {
        if (pen_name_map_find(&map, given->nodes[n].name) != PEN_NAME_MAP_NONE) continue;
        PEN_TRY(pen_name_map_add(&map, given->nodes[n].name, n));
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        const char *name = pen_node_name(owners->graph, (pen_node_id){n});
        const uint32_t at =
            owners->is_listed[n] ? pen_name_map_find(&map, name) : PEN_NAME_MAP_NONE;
        if (at == PEN_NAME_MAP_NONE) continue;
        const uint32_t stage = stages[n] = given->nodes[at].update_stage;
        owner[n] =
            stage >= owner_stage ? stage - owner_stage : pen_plan_replica_of_stage(given, stage);
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        owner[n] = owner[owners->listed[n]];
    }
    *out_owner = owner;
    return pen_replica_owners_check(planner->request->planned, owners, owner, stages, arena);
}

// Every replica is worked out anew as the plan that it is; owners are those of the plan.
static pen_status rebuild_run(const pen_plan_request *request, const pen_plan *given,
                              pen_arena *scratch, pen_arena *arena, pen_plan **out_plan) {
    pen_replica_planner *planner;
    const pen_plan **plans;
    const uint32_t *owner;
    PEN_TRY(pen_replica_planner_new(request, scratch, &planner));
    PEN_TRY(PEN_NEW(scratch, given->replica_count, &plans));
    for (uint32_t r = 0; r < given->replica_count; r++) {
        const pen_plan_replica *replica = &given->replicas[r];
        const pen_replica_view *view;
        pen_plan *part;
        PEN_TRY(pen_replica_view_new(request, replica, given->replica_count, NULL, scratch, &view));
        PEN_TRY(rebuild_part(view, given, replica, scratch, &part));
        const pen_status status = pen_pipeline_rebuild(&view->request, part, scratch, &part);
        PEN_TRY(pen_status_add_context(status, "in replica %u, lanes %u to %u", r,
                                       replica->first_lane,
                                       replica->first_lane + replica->lane_count - 1));
        plans[r] = part;
    }
    PEN_TRY(rebuild_owners(planner, given, scratch, &owner));
    const pen_replica_parts parts = {.replica_count = given->replica_count,
                                     .replicas = given->replicas,
                                     .plans = plans,
                                     .owner_count = given->owner_count,
                                     .owners = given->owners,
                                     .owner = owner};
    return pen_replica_plan_join(planner, &parts, arena, out_plan);
}

pen_status pen_replica_plan_rebuild(const pen_plan_request *request, const pen_plan *given,
                                    pen_arena *arena, pen_plan **out_plan) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = rebuild_run(request, given, scratch, arena, out_plan);
    pen_arena_destroy(scratch);
    return status;
}

pen_status pen_replica_plan_part(const pen_plan_request *request, const pen_plan *given,
                                 uint32_t replica, pen_arena *arena,
                                 const pen_plan_request **out_request, pen_plan **out_part) {
    const pen_replica_view *view;
    PEN_TRY(pen_replica_view_new(request, &given->replicas[replica], given->replica_count, NULL,
                                 arena, &view));
    *out_request = &view->request;
    return rebuild_part(view, given, &given->replicas[replica], arena, out_part);
}

// The nodes of a plan come replica by replica, those of a part in the same order.
pen_status pen_replica_plan_add_reasons(const pen_plan_request *request, pen_plan *plan,
                                        pen_arena *arena) {
    pen_plan_node *nodes;
    PEN_TRY(PEN_NEW(arena, plan->node_count, &nodes));
    memcpy(nodes, plan->nodes, plan->node_count * sizeof *nodes);
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_request *own;
        pen_plan *part;
        uint32_t count = 0;
        PEN_TRY(pen_replica_plan_part(request, plan, r, arena, &own, &part));
        PEN_TRY(pen_pipeline_add_reasons(own, part, arena));
        for (uint32_t n = 0; n < plan->node_count; n++) {
            if (nodes[n].stage - plan->replicas[r].first_stage >= plan->replicas[r].stage_count) {
                continue;
            }
            nodes[n].reason = part->nodes[count++].reason;
        }
    }
    plan->nodes = nodes;
    return PEN_OK;
}
