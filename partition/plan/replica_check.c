#include "partition/plan/replica_check.h"

#include "base/name_map.h"

uint32_t pen_plan_replica_of_stage(const pen_plan *plan, uint32_t stage) {
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        if (stage - plan->replicas[r].first_stage < plan->replicas[r].stage_count) return r;
    }
    return plan->replica_count > 0 ? PEN_ID_NONE : 0;
}

uint32_t pen_plan_owner_stage(const pen_plan *plan) {
    const uint32_t count = plan->stages.stage_count;
    return plan->owner_count < count ? count - plan->owner_count : 0;
}

static bool check_is_owner(const pen_plan *plan, uint32_t device) {
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        if (plan->owners[i] == device) return true;
    }
    return false;
}

uint32_t pen_plan_replica_of_device(const pen_plan *plan, uint32_t device) {
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        for (uint32_t i = 0; i < plan->replicas[r].device_count; i++) {
            if (plan->replicas[r].devices[i] == device) return r;
        }
    }
    return PEN_ID_NONE;
}

pen_status pen_plan_label_device(const pen_plan *plan, uint32_t device, pen_arena *arena,
                                 const char **out_label) {
    const uint32_t replica = pen_plan_replica_of_device(plan, device);
    *out_label = plan->devices[device].name;
    if (check_is_owner(plan, device)) {
        return pen_arena_format(arena, out_label, "%s (owner)", plan->devices[device].name);
    }
    if (replica == PEN_ID_NONE) return PEN_OK;
    return pen_arena_format(arena, out_label, "%s (replica %u)", plan->devices[device].name,
                            replica);
}

// Lanes go from replica to replica without a gap.
static pen_status check_lanes(const pen_plan *plan) {
    uint32_t next = 0;
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        if (replica->lane_count == 0 || replica->device_count == 0) {
            return pen_error(PEN_INVALID_INPUT, "replica %u has no %s", r,
                             replica->lane_count == 0 ? "lane" : "device");
        }
        if (replica->first_lane != next) {
            return pen_error(PEN_INVALID_INPUT,
                             "replica %u has lanes %u to %u: expected them to begin with %u, where "
                             "those before it end",
                             r, replica->first_lane, replica->first_lane + replica->lane_count - 1,
                             next);
        }
        next += replica->lane_count;
    }
    if (next == plan->lane_count && next <= plan->microbatch_count) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the replicas have %u lanes together, but a step has %u, of %u microbatches",
                     next, plan->lane_count, plan->microbatch_count);
}

// `replica_of_device` [device_count]: replica + 1.
static pen_status check_devices(const pen_plan *plan, uint32_t *replica_of_device) {
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        for (uint32_t i = 0; i < replica->device_count; i++) {
            const uint32_t d = replica->devices[i];
            if (d >= plan->device_count) {
                return pen_error(PEN_INVALID_INPUT, "replica %u has device %u of %u", r, d,
                                 plan->device_count);
            }
            if (replica_of_device[d] > 0) {
                return pen_error(PEN_INVALID_INPUT,
                                 "device '%s' is in replica %u and in replica %u",
                                 plan->devices[d].name, replica_of_device[d] - 1, r);
            }
            replica_of_device[d] = r + 1;
        }
    }
    return PEN_OK;
}

// Each is in no replica. `replica_of_device` as check_devices has left it.
static pen_status check_owners(const pen_plan *plan, const uint32_t *replica_of_device) {
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        const uint32_t d = plan->owners[i];
        if (d >= plan->device_count || (i > 0 && plan->owners[i - 1] >= d)) {
            return pen_error(PEN_INVALID_INPUT,
                             "owner %u is device %u: expected devices in their order, each once, "
                             "below %u",
                             i, d, plan->device_count);
        }
        if (replica_of_device[d] > 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "device '%s' is an owner and in replica %u: an owner runs no replica",
                             plan->devices[d].name, replica_of_device[d] - 1);
        }
    }
    return PEN_OK;
}

// The first microbatch of a lane (graph/lanes.h).
static uint32_t check_microbatch(const pen_plan *plan, uint32_t lane) {
    const uint64_t lanes = plan->lane_count;
    return (uint32_t)((lane * (uint64_t)plan->microbatch_count + lanes - 1) / lanes);
}

// Behind the `first` stages of replicas, one for each owner.
static pen_status check_owner_stages(const pen_plan *plan, uint32_t first) {
    const uint32_t count = plan->stages.stage_count;
    for (uint32_t s = first; s < count; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        const uint32_t owner = s - first;
        if (owner >= plan->owner_count) {
            return pen_error(PEN_INVALID_INPUT, "stage %u is of no replica", s);
        }
        if (stage->is_owner && stage->device == plan->owners[owner]) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "stage %u is not on '%s': behind the stages of replicas, each owner has "
                         "one, in the order of devices",
                         s, plan->devices[plan->owners[owner]].name);
    }
    if (count - first == plan->owner_count) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the owner '%s' has no stage: behind the stages of replicas, each owner has "
                     "one, of 0 nodes",
                     plan->devices[plan->owners[count - first]].name);
}

// Stages go likewise, each on a device of its replica and with its microbatches.
static pen_status check_stages(const pen_plan *plan, const uint32_t *replica_of_device) {
    uint32_t next = 0;
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        const pen_plan_replica *replica = &plan->replicas[r];
        const uint32_t end = replica->first_lane + replica->lane_count;
        const uint32_t first = check_microbatch(plan, replica->first_lane);
        if (replica->first_stage != next || replica->stage_count == 0 ||
            replica->stage_count > plan->stages.stage_count - next) {
            return pen_error(PEN_INVALID_INPUT,
                             "replica %u has %u stages from stage %u on: expected at least one, "
                             "and stages to be numbered through the replicas",
                             r, replica->stage_count, replica->first_stage);
        }
        for (uint32_t s = next; s < next + replica->stage_count; s++) {
            const pen_stage *stage = &plan->stages.stages[s];
            if (stage->device >= plan->device_count || replica_of_device[stage->device] != r + 1) {
                return pen_error(PEN_INVALID_INPUT,
                                 "stage %u is of replica %u, but not on a device of it", s, r);
            }
            if (stage->first_microbatch != first ||
                stage->microbatch_count != check_microbatch(plan, end) - first) {
                return pen_error(PEN_INVALID_INPUT,
                                 "stage %u runs other microbatches than replica %u has", s, r);
            }
        }
        next += replica->stage_count;
    }
    return check_owner_stages(plan, next);
}

// Lanes first, since microbatches follow from them; edges last, since they name stages.
pen_status pen_replica_check(const pen_plan *plan, pen_arena *arena) {
    uint32_t *replica_of_device;
    for (uint32_t s = 0; s < plan->stages.stage_count && plan->replica_count == 0; s++) {
        const pen_stage *stage = &plan->stages.stages[s];
        if (stage->first_microbatch == 0 &&
            (stage->microbatch_count == 0 || stage->microbatch_count == plan->microbatch_count)) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT,
                         "stage %u runs some microbatches only, but the plan has no replicas", s);
    }
    if (plan->replica_count == 0 && plan->owner_count > 0) {
        return pen_error(PEN_INVALID_INPUT, "the plan has owners, but no replicas");
    }
    if (plan->replica_count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, plan->device_count, &replica_of_device));
    PEN_TRY(check_lanes(plan));
    PEN_TRY(check_devices(plan, replica_of_device));
    PEN_TRY(check_owners(plan, replica_of_device));
    PEN_TRY(check_stages(plan, replica_of_device));
    for (uint32_t e = 0; e < plan->stages.edge_count; e++) {
        const pen_stage_edge *edge = &plan->stages.edges[e];
        const uint32_t first = pen_plan_owner_stage(plan);
        if (edge->source >= first || edge->target >= first) {
            return pen_error(PEN_INVALID_INPUT,
                             "an edge leads from stage %u to stage %u, of which one is an owner's: "
                             "these exchange over step edges alone",
                             edge->source, edge->target);
        }
        if (pen_plan_replica_of_stage(plan, edge->source) ==
            pen_plan_replica_of_stage(plan, edge->target)) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT,
                         "an edge leads from stage %u of replica %u to stage %u of replica %u: "
                         "replicas exchange over step edges alone",
                         edge->source, pen_plan_replica_of_stage(plan, edge->source), edge->target,
                         pen_plan_replica_of_stage(plan, edge->target));
    }
    return PEN_OK;
}

// In stages that are there: of owners, if there are any.
static pen_status check_updates(const pen_plan *plan) {
    const uint32_t end = plan->stages.stage_count, first = pen_plan_owner_stage(plan);
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        if (node->update_stage >= end) {
            return pen_error(PEN_INVALID_INPUT,
                             "node '%s' is updated in stage %u, but there are %u", node->name,
                             node->update_stage, end);
        }
        if (plan->owner_count == 0 || node->update_stage >= first) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "node '%s' is updated in stage %u of replica %u, but the plan has owners: "
                         "expected one of their stages, %u to %u",
                         node->name, node->update_stage,
                         pen_plan_replica_of_stage(plan, node->update_stage), first, end - 1);
    }
    return PEN_OK;
}

// Nodes have been found to be in stages that are there.
pen_status pen_replica_check_nodes(const pen_plan *plan, pen_arena *arena) {
    uint32_t *times, *last;
    pen_name_map map;
    if (plan->replica_count == 0) return PEN_OK;
    PEN_TRY(check_updates(plan));
    pen_name_map_init(&map, arena);
    PEN_TRY(PEN_NEW(arena, plan->node_count, &times));
    PEN_TRY(PEN_NEW(arena, plan->node_count, &last)); // replica + 1
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_plan_node *node = &plan->nodes[n];
        const uint32_t r = pen_plan_replica_of_stage(plan, node->stage);
        uint32_t at = pen_name_map_find(&map, node->name);
        if (r == PEN_ID_NONE) {
            return pen_error(PEN_INVALID_INPUT,
                             "node '%s' is in stage %u, which is an owner's and runs no node",
                             node->name, node->stage);
        }
        if (at == PEN_NAME_MAP_NONE) PEN_TRY(pen_name_map_add(&map, node->name, at = n));
        if (last[at] > r) {
            return pen_error(PEN_INVALID_INPUT,
                             "node '%s' is in replica %u twice, or replicas are out of order",
                             node->name, r);
        }
        last[at] = r + 1;
        times[at] += 1;
        if (node->update_stage == plan->nodes[at].update_stage) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "node '%s' is updated in stage %u, replica %u says in stage %u",
                         node->name, plan->nodes[at].update_stage, r, node->update_stage);
    }
    for (uint32_t n = 0; n < plan->node_count; n++) {
        if (times[n] == 0 || times[n] == plan->replica_count) continue;
        return pen_error(PEN_INVALID_INPUT, "node '%s' is in %u of %u replicas",
                         plan->nodes[n].name, times[n], plan->replica_count);
    }
    return PEN_OK;
}
