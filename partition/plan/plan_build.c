#include "partition/plan/plan_build.h"

#include <math.h>
#include <string.h>

#include "base/name_map.h"
#include "graph/graph.h"
#include "partition/lower/stage_costs.h"
#include "partition/plan/plan_check.h"
#include "partition/plan/plan_memory_error.h"
#include "partition/plan/plan_place.h"
#include "partition/plan/plan_reasons.h"
#include "partition/plan/plan_value.h"

// What a plan is written from. Planner and solution live in `scratch`, which goes: the plan borrows
// nothing of them.
typedef struct plan_writer {
    const pen_planner *planner;
    const pen_plan_request *request;
    const pen_plan_solution *solution;
    pen_arena *scratch;
    pen_arena *arena;
    pen_plan *plan;
    pen_problem_given given; // for the bytes of nodes
} plan_writer;

static pen_status writer_lower(plan_writer *w) {
    const pen_planner_wish wish = {.objective = PEN_OBJECTIVE_THROUGHPUT,
                                   .bytes_limit = w->planner->bytes_limit,
                                   .microbatches = w->planner->one_microbatch};
    return pen_planner_lower(w->planner, &wish, w->scratch, &w->given);
}

// Nodes are counted as they are listed: helpers that follow a node do not count.
static pen_status writer_devices(plan_writer *w) {
    const pen_plan_solution *solution = w->solution;
    const uint32_t device_count = w->request->cluster->device_count;
    pen_plan_device *devices;
    double *load;
    PEN_TRY(PEN_NEW(w->arena, device_count, &devices));
    PEN_TRY(PEN_NEW(w->scratch, device_count, &load));
    pen_stage_graph_add_loads(&solution->stages, load);
    for (uint32_t d = 0; d < device_count; d++) {
        devices[d].name = w->request->cluster->devices[d].name;
        devices[d].memory = solution->device_memory[d];
        devices[d].load_seconds = load[d];
        devices[d].slowness = w->request->cluster->devices[d].slowness;
    }
    for (uint32_t n = 0; n < w->planner->owners->node_count; n++) {
        devices[solution->device_of_node[n]].node_count += w->planner->owners->is_listed[n];
    }
    w->plan->devices = devices;
    w->plan->device_count = device_count;
    return PEN_OK;
}

static pen_status writer_stages(plan_writer *w) {
    const pen_plan_solution *solution = w->solution;
    pen_plan_stage *stages;
    PEN_TRY(PEN_NEW(w->arena, solution->split.stage_count, &stages));
    for (uint32_t s = 0; s < solution->split.stage_count; s++) {
        PEN_TRY(pen_arena_format(w->arena, &stages[s].name, "stage %u", s));
        stages[s].in_flight = solution->prediction.in_flight[s];
        stages[s].parameter_bytes = solution->stage_memory[s].parameters;
    }
    for (uint32_t n = 0; n < w->planner->owners->node_count; n++) {
        stages[solution->split.stage_of_node[n]].node_count += w->planner->owners->is_listed[n];
    }
    w->plan->stage_figures = stages;
    return pen_stage_graph_copy(&solution->stages, w->arena, &w->plan->stages);
}

// What a plan tells of transfers: those between devices. Stages of one device read each other's
// values where they lie.
static pen_status writer_transfers(plan_writer *w) {
    const pen_stage_transfers *found = &w->solution->transfers;
    pen_plan_transfer *transfers;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(w->arena, found->count, &transfers));
    for (uint32_t i = 0; i < found->count; i++) {
        const pen_stage_transfer *transfer = &found->items[i];
        const uint32_t *device_of_stage = w->solution->split.device_of_stage;
        if (device_of_stage[transfer->source] == device_of_stage[transfer->target]) continue;
        transfers[count++] =
            (pen_plan_transfer){.value = pen_value_name(w->planner->owners->graph, transfer->value),
                                .source = transfer->source,
                                .target = transfer->target,
                                .bytes = transfer->bytes,
                                .seconds = transfer->seconds + transfer->handling.latency_seconds,
                                .is_backward = transfer->is_backward,
                                .is_per_step = transfer->is_per_step};
    }
    w->plan->transfers = transfers;
    w->plan->transfer_count = count;
    return PEN_OK;
}

static void writer_count_source(pen_plan *plan, pen_figure_source source) {
    switch (source) {
    case PEN_FIGURE_MEASURED:
        plan->measured_count++;
        break;
    case PEN_FIGURE_STATED:
        plan->stated_count++;
        break;
    case PEN_FIGURE_ASSUMED:
        plan->assumed_count++;
        break;
    }
}

// A listed node has the times and bytes of all that follows it: its backward nodes, sums and
// helpers.
static pen_status writer_nodes(plan_writer *w) {
    const pen_forward_owners *owners = w->planner->owners;
    const pen_plan_solution *solution = w->solution;
    const pen_planned_graph *planned = w->request->planned;
    pen_plan_node *all, *nodes;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(w->scratch, owners->node_count, &all));
    for (uint32_t n = 0; n < owners->node_count; n++) {
        count += owners->is_listed[n];
    }
    PEN_TRY(PEN_NEW(w->arena, count, &nodes));
    count = 0;
    for (uint32_t p = 0; p < planned->order_count; p++) {
        const uint32_t n = planned->order[p].index;
        const pen_node_cost *cost =
            pen_cost_model_at(w->request->costs, solution->device_of_node[n], planned->order[p]);
        const pen_problem_node *bytes = &w->given.nodes[n];
        const uint32_t in_flight = solution->prediction.in_flight[solution->split.stage_of_node[n]];
        pen_plan_node *node = &all[owners->listed[n]];
        const pen_role role = pen_graph_node(owners->graph, planned->order[p])->role;
        if (role != PEN_ROLE_UPDATE) node->seconds += cost->seconds;
        node->bytes += (uint64_t)(bytes->bytes + bytes->bytes_in_flight * in_flight);
        if (cost->seconds > 0.0) writer_count_source(w->plan, cost->source);
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (!owners->is_listed[n]) continue;
        nodes[count] = all[n];
        nodes[count].name = pen_node_name(owners->graph, (pen_node_id){n});
        nodes[count].stage = solution->split.stage_of_node[n];
        nodes[count].update_stage = nodes[count].stage;
        nodes[count].reason = ""; // pen_plan_add_reasons
        nodes[count++].source =
            pen_cost_model_at(w->request->costs, solution->device_of_node[n], (pen_node_id){n})
                ->source;
    }
    w->plan->nodes = nodes;
    w->plan->node_count = count;
    return PEN_OK;
}

// What was made is checked as if it came from a file: nothing that plans is trusted.
static pen_status build_write(const pen_planner *planner, const pen_plan_placed *placed,
                              pen_arena *scratch, pen_arena *arena, pen_plan **out_plan) {
    const pen_plan_request *request = planner->request;
    plan_writer w = {.planner = planner,
                     .request = request,
                     .solution = &placed->solution,
                     .scratch = scratch,
                     .arena = arena};
    const bool is_step_time = request->placement->objective == PEN_OBJECTIVE_STEP_TIME;
    PEN_TRY(PEN_NEW(arena, 1, &w.plan));
    *w.plan =
        (pen_plan){.job = request->job,
                   .settings = request->settings,
                   .setting_count = request->setting_count,
                   .model = request->model,
                   .costs = request->cost_table,
                   .model_hash = pen_graph_hash(planner->owners),
                   .cluster_hash = request->cluster->tables.hash,
                   .seed = (uint64_t)request->placement->seed,
                   .strategy = placed->strategy,
                   .objective = pen_objective_names[request->placement->objective],
                   .value = is_step_time ? placed->solution.prediction.step_seconds : placed->value,
                   .lower_bound = placed->lower_bound,
                   .is_cut = placed->is_cut,
                   .schedule = request->schedule,
                   .level = request->level,
                   .precision = request->precision,
                   .lane_count = request->lanes,
                   .microbatch_count = request->planned->microbatch_count,
                   .microbatch_size = request->microbatch_size,
                   .process_bytes = request->process_bytes,
                   .step_seconds = placed->solution.prediction.step_seconds,
                   .bubble = placed->solution.prediction.bubble};
    PEN_TRY(writer_lower(&w));
    PEN_TRY(writer_devices(&w));
    PEN_TRY(writer_stages(&w));
    PEN_TRY(writer_transfers(&w));
    PEN_TRY(writer_nodes(&w));
    *out_plan = w.plan;
    return pen_plan_check(w.plan, false, scratch);
}

// Where the nodes of the line are that was found before, if it fits under this schedule too.
static pen_status build_find_line(pen_planner *planner, pen_arena *scratch) {
    const pen_planner_wish wish = {.objective = planner->request->placement->objective,
                                   .bytes_limit = planner->no_limit,
                                   .microbatches = planner->one_microbatch};
    pen_problem_given given;
    pen_plan_solution line;
    uint32_t *device_of_node;
    if (planner->request->line == NULL) return PEN_OK;
    const pen_status status = pen_plan_solve_given(planner, planner->request->line, scratch, &line);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "another is looked for");
        return PEN_OK;
    }
    PEN_TRY(status);
    if (!line.fits) return PEN_OK;
    PEN_TRY(pen_planner_lower(planner, &wish, scratch, &given));
    PEN_TRY(PEN_NEW(scratch, given.node_count, &device_of_node));
    for (uint32_t n = 0; n < given.node_count; n++)
        device_of_node[n] = line.device_of_node[given.nodes[n].color];
    planner->line = device_of_node;
    return PEN_OK;
}

static pen_status build_placed(const pen_plan_request *request, pen_arena *scratch,
                               pen_arena *arena, pen_plan **out_plan) {
    pen_planner *planner;
    pen_plan_placed placed;
    PEN_TRY(pen_planner_new(request, scratch, &planner));
    PEN_TRY(build_find_line(planner, scratch));
    planner->is_recomputing = request->recompute == PEN_RECOMPUTE_STAGE;
    pen_status status = pen_plan_place(planner, scratch, &placed);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT &&
        request->recompute == PEN_RECOMPUTE_AUTO) {
        pen_status_ignore(status, "recomputing takes less memory");
        planner->is_recomputing = true;
        status = pen_plan_place(planner, scratch, &placed);
    }
    PEN_TRY(status);
    return build_write(planner, &placed, scratch, arena, out_plan);
}

// Problems and solutions of a large graph take several times what the plan does, and a job makes
// many plans to compare: only the plan stays.
pen_status pen_pipeline_build(const pen_plan_request *request, pen_arena *arena,
                              pen_plan **out_plan) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = build_placed(request, scratch, arena, out_plan);
    pen_arena_destroy(scratch);
    return status;
}

// ---- from a plan that is given

// Names first, which say more than a hash, then the hash.
pen_status pen_plan_check_devices(const pen_cluster *cluster, const pen_plan *plan) {
    if (plan->device_count != cluster->device_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan was made for %u devices, but the cluster has %u",
                         plan->device_count, cluster->device_count);
    }
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (strcmp(plan->devices[d].name, cluster->devices[d].name) == 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "the plan was made for device %u called '%s', but the cluster's is called "
                         "'%s'",
                         d, plan->devices[d].name, cluster->devices[d].name);
    }
    const uint64_t hash = cluster->tables.hash;
    if (hash == plan->cluster_hash) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the cluster has changed since the plan was made (its hash is %016llx, the "
                     "plan's %016llx): devices, hosts, threads, or what is stated of them differ; "
                     "plan again",
                     (unsigned long long)hash, (unsigned long long)plan->cluster_hash);
}

// A limit that rests on what the user states is the cluster's; others are of another day's machine.
static pen_status build_check_limits(const pen_planner *planner, const pen_plan *plan) {
    const pen_cluster *cluster = planner->request->cluster;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const double limit = planner->bytes_limit[d], given = plan->stages.bytes_limit[d];
        if (cluster->devices[d].bytes_source != PEN_FIGURE_STATED) continue;
        if (given == limit || given == INFINITY) continue; // or left out
        return pen_error(PEN_INVALID_INPUT,
                         "device '%s': the plan's limit is %.0f bytes, but the job grants %.0f",
                         cluster->devices[d].name, given, limit);
    }
    return PEN_OK;
}

// Maps the plan's nodes to the graph's. Also says which are missing or too many.
static pen_status build_match_nodes(const pen_planner *planner, const pen_plan *plan,
                                    pen_arena *arena, uint32_t *stage_of_node) {
    const pen_forward_owners *owners = planner->owners;
    pen_name_map map;
    pen_name_map_init(&map, arena);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        PEN_TRY(pen_name_map_add(&map, plan->nodes[i].name, i));
    }
    uint32_t found = 0;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        stage_of_node[n] = PEN_ID_NONE;
        if (!owners->is_listed[n]) continue;
        const char *name = pen_node_name(owners->graph, (pen_node_id){n});
        const uint32_t at = pen_name_map_find(&map, name);
        if (at == PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "node '%s' of the model is in no stage of the plan",
                             name);
        }
        stage_of_node[n] = plan->nodes[at].stage;
        found++;
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        stage_of_node[n] = stage_of_node[owners->listed[n]];
    }
    if (found == plan->node_count) return PEN_OK;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        pen_node_id node;
        const pen_status status = pen_graph_find_node(owners->graph, plan->nodes[i].name, &node);
        if (status == PEN_OK && owners->is_listed[node.index]) continue;
        pen_status_ignore(status, "told below");
        return pen_error(PEN_INVALID_INPUT, "the plan's node '%s' is none of the model's",
                         plan->nodes[i].name);
    }
    return PEN_OK;
}

static uint32_t build_lanes(uint32_t lanes) {
    return lanes == 0 ? 1 : lanes;
}

// A plan holds for one model, cluster and size of microbatch. Names are compared first, since they
// say what differs.
pen_status pen_plan_check_model(const pen_planner *planner, const pen_plan *plan,
                                pen_arena *arena) {
    uint32_t *stage_of_node;
    PEN_TRY(PEN_NEW(arena, planner->owners->node_count, &stage_of_node));
    PEN_TRY(pen_plan_check_devices(planner->request->cluster, plan));
    PEN_TRY(build_check_limits(planner, plan));
    if (plan->microbatch_count != planner->request->planned->microbatch_count ||
        plan->microbatch_size != planner->request->microbatch_size) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan was made for %u microbatches of %llu examples, but the job has "
                         "%u of %llu",
                         plan->microbatch_count, (unsigned long long)plan->microbatch_size,
                         planner->request->planned->microbatch_count,
                         (unsigned long long)planner->request->microbatch_size);
    }
    const uint32_t planned = build_lanes(plan->lane_count);
    const uint32_t lanes = build_lanes(planner->request->lanes);
    if (planned != lanes) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan was made for %u lanes of microbatches, but the job has %u",
                         planned, lanes);
    }
    if (plan->precision != planner->request->precision) {
        return pen_error(PEN_INVALID_INPUT,
                         "the plan was made for products of %s, but the job has numerics.precision "
                         "%s; plan again",
                         pen_precision_names[plan->precision],
                         pen_precision_names[planner->request->precision]);
    }
    PEN_TRY(build_match_nodes(planner, plan, arena, stage_of_node));
    const uint64_t hash = pen_graph_hash(planner->owners);
    if (hash == plan->model_hash) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the model has changed since the plan was made (its hash is %016llx, the "
                     "plan's %016llx): its nodes are called alike, but not all of them are the "
                     "same; plan again",
                     (unsigned long long)hash, (unsigned long long)plan->model_hash);
}

// What the job says of one node. A change of layout, which no plan lists, is called by the node
// that it goes with.
static pen_status build_check_node(const pen_planner *planner, const pen_plan_solution *solution,
                                   uint32_t n) {
    const pen_forward_owners *owners = planner->owners;
    const pen_cluster_device *devices = planner->request->cluster->devices;
    const uint32_t device = solution->device_of_node[n];
    const uint32_t color = planner->constraints.color[n], pin = planner->constraints.pin[n];
    const char *name = pen_node_name(owners->graph, (pen_node_id){owners->listed[n]});
    if (solution->device_of_node[color] != device) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' is on device '%s', but it must share one with '%s', which is on "
                         "'%s'",
                         name, devices[device].name,
                         pen_node_name(owners->graph, (pen_node_id){owners->listed[color]}),
                         devices[solution->device_of_node[color]].name);
    }
    if (pin != PEN_PROBLEM_ANY && pin != device) {
        return pen_error(PEN_INVALID_INPUT, "'%s' is on device '%s', but pinned to '%s'", name,
                         devices[device].name, devices[pin].name);
    }
    return PEN_OK;
}

// Of an edited plan, whose nodes somebody moved by hand. Listed nodes are named before those that
// follow them.
static pen_status build_check_constraints(const pen_planner *planner,
                                          const pen_plan_solution *solution) {
    const pen_forward_owners *owners = planner->owners;
    const pen_cluster_device *devices = planner->request->cluster->devices;
    const pen_graph_constraints *constraints = &planner->constraints;
    for (uint32_t n = 0; n < owners->node_count; n++) {
        if (owners->is_listed[n]) PEN_TRY(build_check_node(planner, solution, n));
    }
    for (uint32_t n = 0; n < owners->node_count; n++) {
        PEN_TRY(build_check_node(planner, solution, n));
    }
    for (uint32_t i = 0; i < constraints->forbidden_count; i++) {
        const pen_problem_forbidden *forbidden = &constraints->forbidden[i];
        if (solution->device_of_node[forbidden->node] != forbidden->device) continue;
        return pen_error(PEN_INVALID_INPUT, "'%s' is on device '%s', which is forbidden",
                         pen_node_name(owners->graph, (pen_node_id){forbidden->node}),
                         devices[forbidden->device].name);
    }
    return PEN_OK;
}

// Names are matched, then stages are put in order; constraints are judged of what comes of it.
pen_status pen_plan_solve_given(const pen_planner *planner, const pen_plan *plan, pen_arena *arena,
                                pen_plan_solution *out_solution) {
    pen_stage_split split = {.stage_count = plan->stages.stage_count};
    bool *is_recomputed;
    if (plan->replica_count > 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "the plan has %u replicas: they cannot be shown over one model yet",
                         plan->replica_count);
    }
    PEN_TRY(pen_plan_check_model(planner, plan, arena));
    PEN_TRY(PEN_NEW(arena, split.stage_count, &split.device_of_stage));
    PEN_TRY(PEN_NEW(arena, planner->owners->node_count, &split.stage_of_node));
    for (uint32_t s = 0; s < split.stage_count; s++) {
        split.device_of_stage[s] = plan->stages.stages[s].device;
    }
    PEN_TRY(build_match_nodes(planner, plan, arena, split.stage_of_node));
    PEN_TRY(PEN_NEW(arena, planner->owners->node_count, &is_recomputed));
    for (uint32_t n = 0; n < planner->owners->node_count; n++) {
        is_recomputed[n] = plan->stages.stages[split.stage_of_node[n]].is_recomputed;
    }
    PEN_TRY(pen_plan_solve_stages(planner, &split, is_recomputed, arena, out_solution));
    return build_check_constraints(planner, out_solution);
}

static pen_status build_given(const pen_plan_request *request, const pen_plan *given,
                              pen_arena *scratch, pen_arena *arena, pen_plan **out_plan) {
    pen_planner *planner;
    pen_plan_placed placed = {.strategy = given->strategy};
    PEN_TRY(pen_planner_new(request, scratch, &planner));
    PEN_TRY(pen_plan_solve_given(planner, given, scratch, &placed.solution));
    if (!placed.solution.fits) {
        return pen_plan_error_memory(planner, &placed.solution, scratch);
    }
    PEN_TRY(pen_plan_value(planner, &placed.solution, scratch, &placed.value, &placed.lower_bound));
    return build_write(planner, &placed, scratch, arena, out_plan);
}

pen_status pen_pipeline_rebuild(const pen_plan_request *request, const pen_plan *given,
                                pen_arena *arena, pen_plan **out_plan) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = build_given(request, given, scratch, arena, out_plan);
    pen_arena_destroy(scratch);
    return status;
}

// Reasons come for the nodes of the graph, and a plan lists some of them, in the same order.
static pen_status build_reasons(const pen_plan_request *request, pen_arena *scratch, pen_plan *plan,
                                pen_arena *arena) {
    pen_planner *planner;
    pen_plan_solution solution;
    const char *const *reasons;
    pen_plan_node *nodes;
    uint32_t count = 0;
    PEN_TRY(pen_planner_new(request, scratch, &planner));
    PEN_TRY(pen_plan_solve_given(planner, plan, scratch, &solution));
    PEN_TRY(pen_plan_reasons(planner, &solution, scratch, &reasons));
    PEN_TRY(PEN_NEW(arena, plan->node_count, &nodes));
    for (uint32_t n = 0; n < planner->owners->node_count; n++) {
        if (!planner->owners->is_listed[n]) continue;
        nodes[count] = plan->nodes[count];
        PEN_TRY(pen_arena_copy_text(arena, reasons[n], strlen(reasons[n]), &nodes[count].reason));
        count++;
    }
    plan->nodes = nodes;
    return PEN_OK;
}

pen_status pen_pipeline_add_reasons(const pen_plan_request *request, pen_plan *plan,
                                    pen_arena *arena) {
    pen_arena *scratch;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = build_reasons(request, scratch, plan, arena);
    pen_arena_destroy(scratch);
    return status;
}
