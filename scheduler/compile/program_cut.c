#include "scheduler/compile/program_cut.h"

#include "graph/graph.h"
#include "graph/passes/cut/replicate.h"
#include "partition/plan/stage_assign.h"
#include "scheduler/runtime/run/run_form.h"

typedef struct program_cutter {
    const pen_program *program;
    const pen_plan *plan; // NULL: of one replica
    const pen_stage_graph *stages;
    const pen_schedule *schedule;
    pen_arena *arena;
} program_cutter;

// What a plan says of stages, in the arrays that the cut takes.
static pen_status cutter_cut(const program_cutter *c, pen_cut_request *request,
                             const pen_cut **out_cut) {
    const pen_stage_graph *stages = c->stages;
    uint32_t *device_of_stage;
    bool *is_halved, *is_recomputed;
    PEN_TRY(PEN_NEW(c->arena, stages->stage_count, &device_of_stage));
    PEN_TRY(PEN_NEW(c->arena, stages->stage_count, &is_halved));
    PEN_TRY(PEN_NEW(c->arena, stages->stage_count, &is_recomputed));
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        device_of_stage[s] = stages->stages[s].device;
        is_recomputed[s] = stages->stages[s].is_recomputed;
    }
    pen_schedule_find_halved(c->schedule, stages->stage_count, is_halved);
    request->device_count = stages->device_count;
    request->stage_count = stages->stage_count;
    request->device_of_stage = device_of_stage;
    request->is_halved = is_halved;
    request->is_recomputed = is_recomputed;
    return pen_cut_stages(request, c->arena, out_cut);
}

pen_status pen_program_cut_stages(const pen_program *program, const pen_stage_graph *stages,
                                  const pen_schedule *schedule, const uint32_t *stage_of_node,
                                  pen_arena *arena, const pen_cut **out_cut) {
    const program_cutter cutter = {program, NULL, stages, schedule, arena};
    pen_cut_request request = {.graph = program->graph,
                               .order = program->order,
                               .order_count = program->order_count,
                               .fed = program->inputs,
                               .fed_count = program->fed_count,
                               .kept = program->kept,
                               .kept_count = program->kept_count,
                               .stage_of_node = stage_of_node};
    return cutter_cut(&cutter, &request, out_cut);
}

// ---- of several replicas

// The graph with what all replicas run, each in its own stages, and updates in those of the owners.
static pen_status cutter_replicate(const program_cutter *c, pen_replicated *out_replicated) {
    const pen_plan *plan = c->plan;
    pen_replica *replicas;
    pen_replicate_request request = {.graph = c->program->graph,
                                     .order = c->program->order,
                                     .order_count = c->program->order_count,
                                     .microbatch_count = plan->microbatch_count,
                                     .replica_count = plan->replica_count};
    PEN_TRY(PEN_NEW(c->arena, plan->replica_count, &replicas));
    request.replicas = replicas;
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        replicas[r].first_lane = plan->replicas[r].first_lane;
        replicas[r].lane_count = plan->replicas[r].lane_count;
        PEN_TRY(pen_stage_assign_replica(c->program->graph, plan, r, c->arena,
                                         &replicas[r].stage_of_node));
    }
    PEN_TRY(
        pen_stage_assign_updates(c->program->graph, plan, c->arena, &request.update_stage_of_node));
    return pen_replicate(&request, c->arena, out_replicated);
}

// Inputs are there once; what is kept each replica makes.
static pen_status cutter_cut_replicas(const program_cutter *c, pen_program_parts *parts) {
    const pen_program *program = c->program;
    const uint32_t replica_count = c->plan->replica_count;
    pen_replicated replicated;
    pen_value_id *fed, *kept;
    PEN_TRY(cutter_replicate(c, &replicated));
    PEN_TRY(PEN_NEW(c->arena, program->fed_count, &fed));
    PEN_TRY(PEN_NEW(c->arena, (size_t)program->kept_count * replica_count, &kept));
    for (uint32_t i = 0; i < program->fed_count; i++) {
        fed[i] = replicated.values[0][program->inputs[i].index];
    }
    for (uint32_t i = 0; i < program->kept_count * replica_count; i++) {
        const uint32_t value = program->kept[i % program->kept_count].index;
        kept[i] = replicated.values[i / program->kept_count][value];
    }
    pen_cut_request request = {.graph = replicated.graph,
                               .order = replicated.order,
                               .order_count = replicated.order_count,
                               .fed = fed,
                               .fed_count = program->fed_count,
                               .kept = kept,
                               .kept_count = program->kept_count * replica_count,
                               .stage_of_node = replicated.stage_of_node};
    parts->graph = replicated.graph;
    parts->values = replicated.values;
    return cutter_cut(c, &request, &parts->cut);
}

static bool cutter_has_updates(const pen_program *program) {
    for (uint32_t p = 0; p < program->order_count; p++) {
        if (pen_graph_node(program->graph, program->order[p])->role == PEN_ROLE_UPDATE) return true;
    }
    return false;
}

pen_status pen_program_cut(const pen_program *program, const pen_plan *plan,
                           const pen_schedule *schedule, pen_arena *arena,
                           pen_program_parts *out_parts) {
    const program_cutter cutter = {program, plan, &plan->stages, schedule, arena};
    const uint32_t *stage_of_node;
    *out_parts = (pen_program_parts){.graph = program->graph};
    const bool has_owners = plan->replica_count > 1 || plan->owner_count > 0;
    if (has_owners && cutter_has_updates(program)) return cutter_cut_replicas(&cutter, out_parts);
    if (has_owners) {
        PEN_TRY(pen_stage_assign_replica(program->graph, plan, 0, arena, &stage_of_node));
    } else {
        PEN_TRY(pen_stage_assign(program->graph, plan, arena, &stage_of_node));
    }
    return pen_program_cut_stages(program, &plan->stages, schedule, stage_of_node, arena,
                                  &out_parts->cut);
}

// What replicas share, as updates make it, is in the first one's numbers alone.
static pen_value_id parts_value(const pen_program_parts *parts, uint32_t replica,
                                pen_value_id value) {
    const pen_value_id own = parts->values[replica][value.index];
    return pen_value_is(own) ? own : parts->values[0][value.index];
}

pen_value_id pen_program_part_value(const pen_program_parts *parts, const pen_plan *plan,
                                    uint32_t device, pen_value_id value) {
    if (parts->values == NULL || !pen_value_is(value)) return value;
    for (uint32_t r = 0; r < plan->replica_count; r++) {
        for (uint32_t d = 0; d < plan->replicas[r].device_count; d++) {
            if (plan->replicas[r].devices[d] == device) return parts_value(parts, r, value);
        }
    }
    for (uint32_t i = 0; i < plan->owner_count; i++) { // what is there once
        if (plan->owners[i] == device) return parts->values[0][value.index];
    }
    return PEN_VALUE_NONE;
}
