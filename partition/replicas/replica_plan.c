#include "partition/replicas/replica_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format/yaml_writer.h"
#include "graph/graph.h"
#include "partition/bound/replica_bound.h"
#include "partition/plan/plan_build.h"
#include "partition/plan/plan_check.h"
#include "partition/plan/replica_check.h"
#include "partition/problem/problem_build.h"
#include "partition/replicas/replica_exchange.h"
#include "partition/replicas/replica_owners.h"
#include "partition/replicas/replica_view.h"

// ---- planners

static pen_status planner_bound(pen_planner *whole, pen_arena *arena, double *out_bound) {
    const pen_planner_wish wish = {.objective = PEN_OBJECTIVE_STEP_TIME,
                                   .bytes_limit = whole->no_limit,
                                   .microbatches = whole->one_microbatch};
    pen_problem_given given;
    pen_problem *problem;
    PEN_TRY(pen_planner_lower(whole, &wish, arena, &given));
    PEN_TRY(pen_problem_build(&given, arena, &problem));
    PEN_TRY(pen_replica_bound(problem, arena, out_bound));
    *out_bound *= 1.0 - PEN_YAML_ROUNDING; // costs are rounded where steps are simulated
    return PEN_OK;
}

pen_status pen_replica_planner_new(const pen_plan_request *request, pen_arena *arena,
                                   pen_replica_planner **out_planner) {
    pen_replica_planner *planner;
    pen_planner *whole;
    if (request->placement->objective != PEN_OBJECTIVE_STEP_TIME) {
        return pen_error(PEN_UNSUPPORTED,
                         "replicas are planned for step_time, but the objective is %s",
                         pen_objective_names[request->placement->objective]);
    }
    PEN_TRY(PEN_NEW(arena, 1, &planner));
    PEN_TRY(pen_planner_new(request, arena, &whole));
    planner->request = request;
    planner->owners = whole->owners;
    PEN_TRY(planner_bound(whole, arena, &planner->lower_bound));
    *out_planner = planner;
    return PEN_OK;
}

pen_status pen_replica_plan_one(const pen_replica_planner *planner, const pen_plan_replica *replica,
                                uint32_t replica_count, const uint64_t *reserved, pen_arena *arena,
                                const pen_plan **out_plan) {
    const pen_replica_view *view;
    pen_plan *plan;
    PEN_TRY(pen_replica_view_new(planner->request, replica, replica_count, reserved, arena, &view));
    PEN_TRY(pen_pipeline_build(&view->request, arena, &plan));
    *out_plan = plan;
    return PEN_OK;
}

// ---- one plan of several

typedef struct join_work {
    const pen_replica_planner *planner;
    const pen_plan_request *request;
    const pen_replica_parts *parts;
    const pen_plan *const *plans; // [replica_count]
    uint32_t replica_count;
    pen_arena *scratch;
    pen_arena *arena;
    pen_plan *plan;
    pen_plan_replica *replicas;
    uint32_t owner_stage; // the first behind those of replicas
    pen_stage *stages;
    pen_plan_stage *figures;
    pen_plan_device *devices;
    const uint32_t **stage_of_node; // [replica_count][node_count]
    uint32_t *device_of_stage;
    const uint32_t *owner;
    pen_replica_exchange exchange;
} join_work;

static pen_status join_replicas(join_work *j) {
    const pen_plan_replica *replicas = j->parts->replicas;
    uint32_t stage_count = 0;
    PEN_TRY(PEN_NEW(j->arena, j->replica_count, &j->replicas));
    for (uint32_t r = 0; r < j->replica_count; r++) {
        uint32_t *devices;
        PEN_TRY(PEN_NEW(j->arena, replicas[r].device_count, &devices));
        memcpy(devices, replicas[r].devices, replicas[r].device_count * sizeof *devices);
        j->replicas[r] = replicas[r];
        j->replicas[r].devices = devices;
        j->replicas[r].first_stage = stage_count;
        j->replicas[r].stage_count = j->plans[r]->stages.stage_count;
        stage_count += j->replicas[r].stage_count;
    }
    j->owner_stage = stage_count;
    j->plan->stages.stage_count = stage_count + j->parts->owner_count;
    return PEN_OK;
}

// Behind all, a stage for each device that owns parameters: nothing runs there but updates.
static pen_status join_owner_stages(join_work *j) {
    uint32_t *owners;
    PEN_TRY(PEN_NEW(j->arena, j->parts->owner_count, &owners));
    for (uint32_t i = 0; i < j->parts->owner_count; i++) {
        const uint32_t s = j->owner_stage + i;
        owners[i] = j->parts->owners[i];
        j->stages[s] = (pen_stage){.device = owners[i], .is_owner = true};
        j->figures[s] = (pen_plan_stage){0};
        PEN_TRY(pen_arena_format(j->arena, &j->figures[s].name, "stage %u", s));
        j->device_of_stage[s] = owners[i];
    }
    j->plan->owner_count = j->parts->owner_count;
    j->plan->owners = owners;
    return PEN_OK;
}

// Stages of the replicas' plans, on devices of the whole, with ranges of microbatches.
static pen_status join_stages(join_work *j) {
    const uint32_t count = j->plan->stages.stage_count;
    PEN_TRY(PEN_NEW(j->arena, count, &j->stages));
    PEN_TRY(PEN_NEW(j->arena, count, &j->figures));
    PEN_TRY(PEN_NEW(j->scratch, count, &j->device_of_stage));
    for (uint32_t r = 0; r < j->replica_count; r++) {
        const pen_plan_replica *replica = &j->replicas[r];
        const uint32_t first = pen_replica_microbatch(j->request, replica->first_lane);
        const uint32_t end =
            pen_replica_microbatch(j->request, replica->first_lane + replica->lane_count);
        for (uint32_t i = 0; i < replica->stage_count; i++) {
            const uint32_t s = replica->first_stage + i;
            j->stages[s] = j->plans[r]->stages.stages[i];
            j->stages[s].device = replica->devices[j->stages[s].device];
            j->stages[s].first_microbatch = first;
            j->stages[s].microbatch_count = end - first;
            j->figures[s] = j->plans[r]->stage_figures[i];
            PEN_TRY(pen_arena_format(j->arena, &j->figures[s].name, "stage %u", s));
            j->device_of_stage[s] = j->stages[s].device;
        }
    }
    return join_owner_stages(j);
}

// Plans list nodes in the graph's order.
static pen_status join_nodes(join_work *j) {
    const pen_forward_owners *owners = j->planner->owners;
    PEN_TRY(PEN_NEW(j->scratch, j->replica_count, &j->stage_of_node));
    for (uint32_t r = 0; r < j->replica_count; r++) {
        uint32_t *stages, count = 0;
        PEN_TRY(PEN_NEW(j->scratch, owners->node_count, &stages));
        for (uint32_t n = 0; n < owners->node_count; n++) {
            if (!owners->is_listed[n]) continue;
            stages[n] = j->replicas[r].first_stage + j->plans[r]->nodes[count++].stage;
        }
        PEN_ASSERT(count == j->plans[r]->node_count);
        for (uint32_t n = 0; n < owners->node_count; n++) {
            stages[n] = stages[owners->listed[n]];
        }
        j->stage_of_node[r] = stages;
    }
    return PEN_OK;
}

// Updates take what their owners do; who takes part has update tasks.
static pen_status join_exchange(join_work *j) {
    const pen_replica_exchange_request request = {
        .whole = j->request,
        .owners = j->planner->owners,
        .replica_count = j->replica_count,
        .replicas = j->replicas,
        .stage_of_node = j->stage_of_node,
        .stage_count = j->plan->stages.stage_count,
        .device_of_stage = j->device_of_stage,
        .owner_stage = j->parts->owner_count > 0 ? j->owner_stage : PEN_ID_NONE,
        .owner_of_node = j->owner};
    PEN_TRY(pen_replica_exchange_find(&request, j->scratch, &j->exchange));
    for (uint32_t s = 0; s < j->plan->stages.stage_count; s++) {
        j->stages[s].update_seconds =
            pen_yaml_round(j->exchange.update_seconds[s], PEN_UNIT_SECONDS);
        if (j->stages[s].update_seconds > 0.0) j->stages[s].has_update = true;
    }
    for (uint32_t e = 0; e < j->exchange.edge_count; e++) {
        j->stages[j->exchange.edges[e].source].has_update = true;
        j->stages[j->exchange.edges[e].target].has_update = true;
    }
    return PEN_OK;
}

// Edges of each replica by the new numbers, and those between the updates of all.
static pen_status join_edges(join_work *j) {
    pen_stage_edge *edges;
    uint32_t count = 0;
    for (uint32_t r = 0; r < j->replica_count; r++) {
        count += j->plans[r]->stages.edge_count;
    }
    PEN_TRY(PEN_NEW(j->scratch, count, &edges));
    count = 0;
    for (uint32_t r = 0; r < j->replica_count; r++) {
        for (uint32_t e = 0; e < j->plans[r]->stages.edge_count; e++) {
            edges[count] = j->plans[r]->stages.edges[e];
            edges[count].source += j->replicas[r].first_stage;
            edges[count++].target += j->replicas[r].first_stage;
        }
    }
    j->plan->stages.edges = edges;
    j->plan->stages.edge_count = count;
    j->plan->stages.stages = j->stages;
    j->plan->stages.step_edges = j->exchange.edges;
    j->plan->stages.step_edge_count = j->exchange.edge_count;
    j->plan->stages.update_phase_count = j->exchange.phase_count;
    j->plan->stages.exchange = j->request->exchange;
    return PEN_OK;
}

// An owner holds its parameters, their states and a sum of all replicas for each, and what came.
static void join_owner_devices(join_work *j) {
    for (uint32_t i = 0; i < j->parts->owner_count; i++) {
        const uint32_t d = j->parts->owners[i];
        pen_stage *stage = &j->stages[j->owner_stage + i];
        j->devices[d].memory =
            (pen_device_memory){.parameters = j->exchange.updated_bytes[d],
                                .gradients = j->exchange.updated_bytes[d],
                                .optimizer_state = j->exchange.optimizer_bytes[d],
                                .receive_buffers = j->exchange.received_bytes[d],
                                .workspace = j->request->cluster->devices[d].own_bytes};
        stage->fixed_bytes = (double)pen_device_memory_sum(&j->devices[d].memory);
        j->figures[j->owner_stage + i].parameter_bytes = j->exchange.updated_bytes[d];
    }
}

// Optimizer states are with the owners, and what comes from others has places. The difference is
// told to the schedule with the first stage of the device.
static pen_status join_devices(join_work *j) {
    const pen_cluster *cluster = j->request->cluster;
    double *limits;
    PEN_TRY(PEN_NEW(j->arena, cluster->device_count, &j->devices));
    PEN_TRY(PEN_NEW(j->arena, cluster->device_count, &limits));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        j->devices[d].name = cluster->devices[d].name;
        j->devices[d].slowness = cluster->devices[d].slowness;
        limits[d] = (double)cluster->devices[d].bytes_limit;
    }
    for (uint32_t r = 0; r < j->replica_count; r++) {
        for (uint32_t i = 0; i < j->replicas[r].device_count; i++) {
            const uint32_t d = j->replicas[r].devices[i];
            pen_device_memory *memory = &j->devices[d].memory;
            *memory = j->plans[r]->devices[i].memory;
            j->devices[d].node_count = j->plans[r]->devices[i].node_count;
            if (j->devices[d].node_count == 0) continue;
            const double before = (double)memory->optimizer_state;
            memory->optimizer_state = j->exchange.optimizer_bytes[d];
            memory->receive_buffers += j->exchange.received_bytes[d];
            uint32_t s = j->replicas[r].first_stage;
            while (j->device_of_stage[s] != d)
                s++;
            const double more =
                (double)memory->optimizer_state - before + (double)j->exchange.received_bytes[d];
            j->stages[s].fixed_bytes = fmax(0.0, j->stages[s].fixed_bytes + more);
        }
    }
    join_owner_devices(j);
    j->plan->stages.bytes_limit = limits;
    j->plan->stages.device_count = cluster->device_count;
    j->plan->stages.seats = cluster->tables.seats;
    return PEN_OK;
}

// The schedule of the whole may hold more or fewer microbatches than that of a replica alone.
static void join_count_in_flight(join_work *j, const pen_step_prediction *prediction) {
    for (uint32_t s = 0; s < j->plan->stages.stage_count; s++) {
        pen_device_memory *memory = &j->devices[j->device_of_stage[s]].memory;
        const double kept = (double)memory->activations +
                            ((double)prediction->in_flight[s] - j->figures[s].in_flight) *
                                j->stages[s].activation_bytes;
        memory->activations = (uint64_t)fmax(0.0, kept);
        j->figures[s].in_flight = prediction->in_flight[s];
    }
    for (uint32_t d = 0; d < j->plan->stages.device_count; d++) {
        pen_device_memory *memory = &j->devices[d].memory;
        memory->total = (uint64_t)pen_device_memory_sum(memory);
    }
}

// "replica 1", or "owners".
static const char *join_part_of(const join_work *j, uint32_t device, char text[32]) {
    (void)snprintf(text, 32, "owners");
    for (uint32_t r = 0; r < j->replica_count; r++) {
        for (uint32_t i = 0; i < j->replicas[r].device_count; i++) {
            if (j->replicas[r].devices[i] == device) (void)snprintf(text, 32, "replica %u", r);
        }
    }
    return text;
}

// What every device lacks, and an error for the one that lacks most.
static pen_status join_check_memory(const join_work *j) {
    uint64_t *out_excess = j->parts->excess;
    uint32_t worst = UINT32_MAX;
    double most = 0.0;
    for (uint32_t d = 0; d < j->plan->stages.device_count; d++) {
        const double excess = (double)j->devices[d].memory.total - j->plan->stages.bytes_limit[d];
        if (out_excess != NULL) out_excess[d] = excess > 0.0 ? (uint64_t)excess : 0;
        if (excess <= most) continue;
        most = excess;
        worst = d;
    }
    if (worst == UINT32_MAX) return PEN_OK;
    char needed[PEN_QUANTITY_TEXT_BYTES], limit[PEN_QUANTITY_TEXT_BYTES], part[32];
    const char *kinds;
    PEN_TRY(pen_device_memory_format(&j->devices[worst].memory, j->scratch, &kinds));
    return pen_error(PEN_DOES_NOT_FIT, "device '%s' of %s needs %s of memory and may use %s: %s",
                     j->devices[worst].name, join_part_of(j, worst, part),
                     pen_bytes_format(j->devices[worst].memory.total, needed),
                     pen_bytes_format((uint64_t)j->plan->stages.bytes_limit[worst], limit), kinds);
}

// Limits are judged with what is found then: the simulation is asked without.
static pen_status join_simulate(join_work *j) {
    pen_stage_graph graph = j->plan->stages;
    pen_step_prediction prediction = {0};
    double *no_limit;
    PEN_TRY(PEN_NEW(j->scratch, graph.stage_count, &prediction.in_flight));
    PEN_TRY(PEN_NEW(j->scratch, graph.device_count, &prediction.bytes_peak));
    PEN_TRY(PEN_NEW(j->scratch, graph.device_count, &no_limit));
    for (uint32_t d = 0; d < graph.device_count; d++) {
        no_limit[d] = INFINITY;
    }
    pen_status status = j->request->step_time(j->request->step_time_context, &graph, &prediction);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "told below, by device");
        graph.bytes_limit = no_limit;
        status = j->request->step_time(j->request->step_time_context, &graph, &prediction);
    }
    PEN_TRY(status);
    double *load;
    PEN_TRY(PEN_NEW(j->scratch, graph.device_count, &load));
    pen_stage_graph_add_loads(&graph, load);
    for (uint32_t d = 0; d < graph.device_count; d++) {
        j->devices[d].load_seconds = load[d];
    }
    join_count_in_flight(j, &prediction);
    j->plan->step_seconds = prediction.step_seconds;
    j->plan->value = prediction.step_seconds;
    j->plan->bubble = prediction.bubble;
    return join_check_memory(j);
}

// What goes from device to device within replicas for every microbatch, and between all once a
// step.
static pen_status join_transfers(join_work *j) {
    pen_plan_transfer *transfers;
    uint32_t count = j->exchange.transfer_count;
    for (uint32_t r = 0; r < j->replica_count; r++) {
        count += j->plans[r]->transfer_count;
    }
    PEN_TRY(PEN_NEW(j->arena, count, &transfers));
    count = 0;
    for (uint32_t r = 0; r < j->replica_count; r++) {
        for (uint32_t i = 0; i < j->plans[r]->transfer_count; i++) {
            if (j->plans[r]->transfers[i].is_per_step) continue;
            transfers[count] = j->plans[r]->transfers[i];
            transfers[count].source += j->replicas[r].first_stage;
            transfers[count++].target += j->replicas[r].first_stage;
        }
    }
    for (uint32_t i = 0; i < j->exchange.transfer_count; i++) {
        transfers[count++] = j->exchange.transfers[i];
    }
    j->plan->transfers = transfers;
    j->plan->transfer_count = count;
    return PEN_OK;
}

static pen_status join_list_nodes(join_work *j) {
    const pen_forward_owners *owners = j->planner->owners;
    const uint32_t each = j->plans[0]->node_count;
    pen_plan_node *nodes;
    PEN_TRY(PEN_NEW(j->arena, (size_t)each * j->replica_count, &nodes));
    for (uint32_t r = 0; r < j->replica_count; r++) {
        uint32_t at = r * each;
        for (uint32_t n = 0; n < owners->node_count; n++) {
            if (!owners->is_listed[n]) continue;
            nodes[at] = j->plans[r]->nodes[at - r * each];
            nodes[at].stage = j->stage_of_node[r][n];
            nodes[at++].update_stage = j->exchange.update_stage[n];
        }
    }
    j->plan->nodes = nodes;
    j->plan->node_count = each * j->replica_count;
    return PEN_OK;
}

// Stages and nodes come first, then what they exchange, then what follows from both.
static pen_status join_run(join_work *j) {
    PEN_TRY(join_replicas(j));
    PEN_TRY(join_stages(j));
    PEN_TRY(join_nodes(j));
    if (j->owner == NULL) {
        const uint32_t owners = j->parts->owner_count;
        PEN_TRY(pen_replica_owners_choose(j->request->planned, j->planner->owners,
                                          owners > 0 ? owners : j->replica_count, j->scratch,
                                          &j->owner));
    }
    PEN_TRY(join_exchange(j));
    PEN_TRY(join_devices(j));
    PEN_TRY(join_edges(j));
    PEN_TRY(join_simulate(j));
    PEN_TRY(join_transfers(j));
    PEN_TRY(join_list_nodes(j));
    const pen_stage_graph graph = j->plan->stages;
    PEN_TRY(pen_stage_graph_copy(&graph, j->arena, &j->plan->stages));
    j->plan->devices = j->devices;
    j->plan->replicas = j->replicas;
    j->plan->stage_figures = j->figures;
    return pen_plan_check(j->plan, false, j->scratch);
}

// The head of the plan of all: that of the first, for the whole cluster and step.
static pen_plan join_head(const join_work *j) {
    pen_plan plan = *j->parts->plans[0];
    plan.cluster_hash = j->request->cluster->tables.hash;
    plan.device_count = j->request->cluster->device_count;
    plan.lane_count = j->request->lanes > 1 ? j->request->lanes : 1;
    plan.replica_count = j->replica_count;
    plan.microbatch_count = j->request->planned->microbatch_count;
    plan.lower_bound = j->planner->lower_bound;
    plan.stages.microbatch_count = plan.microbatch_count;
    for (uint32_t r = 0; r < j->replica_count; r++) {
        plan.is_cut = plan.is_cut || j->parts->plans[r]->is_cut;
    }
    return plan;
}

pen_status pen_replica_plan_join(const pen_replica_planner *planner, const pen_replica_parts *parts,
                                 pen_arena *arena, pen_plan **out_plan) {
    join_work j = {.planner = planner,
                   .request = planner->request,
                   .parts = parts,
                   .plans = parts->plans,
                   .replica_count = parts->replica_count,
                   .arena = arena,
                   .owner = parts->owner};
    PEN_TRY(PEN_NEW(arena, 1, &j.plan));
    *j.plan = join_head(&j);
    PEN_TRY(pen_arena_create(&j.scratch));
    const pen_status status = join_run(&j);
    pen_arena_destroy(j.scratch);
    PEN_TRY(status);
    *out_plan = j.plan;
    return PEN_OK;
}
