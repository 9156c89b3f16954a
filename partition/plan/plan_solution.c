#include "partition/plan/plan_solution.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "partition/lower/stage_costs.h"
#include "partition/problem/problem_build.h"

#define SOLUTION_STAGES_TRIED 6u // of a device, that may be recomputed

// The problem as strategies get it. Where stages may be recomputed, activations count for one
// microbatch only.
pen_status pen_planner_lower(const pen_planner *planner, const pen_planner_wish *wish,
                             pen_arena *arena, pen_problem_given *out_given) {
    const pen_plan_request *request = planner->request;
    const pen_stage_bounds *stages = &request->placement->constraints.stages;
    const pen_graph_problem_request lowering = {
        .planned = request->planned,
        .owners = planner->owners,
        .constraints = &planner->constraints,
        .cluster = request->cluster,
        .costs = request->costs,
        .objective = wish->objective,
        .is_contiguous = wish->is_contiguous,
        .devices_used_minimum = wish->counts_devices ? (uint32_t)stages->minimum : 0,
        .devices_used_maximum = wish->counts_devices ? (uint32_t)stages->maximum : 0,
        .bytes_limit = wish->bytes_limit,
        .microbatches = wish->microbatches,
        .step_time = request->step_time,
        .step_time_context = request->step_time_context};
    PEN_TRY(pen_graph_problem_build(&lowering, arena, out_given));
    if (!planner->is_recomputing) return PEN_OK;
    // activations live within a task, of one microbatch at a time
    pen_problem_node *nodes;
    PEN_TRY(PEN_NEW(arena, out_given->node_count, &nodes));
    for (uint32_t n = 0; n < out_given->node_count; n++) {
        nodes[n] = out_given->nodes[n];
        nodes[n].bytes += nodes[n].bytes_in_flight;
        nodes[n].bytes_in_flight = 0.0;
    }
    out_given->nodes = nodes;
    return PEN_OK;
}

// Stages are formed on the problem's nodes, whatever the limits.
static pen_status planner_form(pen_planner *planner, pen_arena *arena) {
    const pen_planner_wish wish = {.objective = PEN_OBJECTIVE_STEP_TIME,
                                   .bytes_limit = planner->no_limit,
                                   .microbatches = planner->one_microbatch};
    pen_problem_given given;
    pen_problem *problem;
    PEN_TRY(pen_planner_lower(planner, &wish, arena, &given));
    PEN_TRY(pen_problem_build(&given, arena, &problem));
    return pen_stage_forming_new(problem, arena, &planner->forming);
}

// What does not change between rounds is worked out once: which nodes go together, constraints,
// limits.
pen_status pen_planner_new(const pen_plan_request *request, pen_arena *arena,
                           pen_planner **out_planner) {
    const pen_cluster *cluster = request->cluster;
    pen_planner *planner;
    PEN_TRY(PEN_NEW(arena, 1, &planner));
    planner->request = request;
    PEN_TRY(pen_forward_owners_build(request->planned->graph, arena, &planner->owners));
    PEN_TRY(pen_graph_constraints_resolve(
        planner->owners, cluster, &request->placement->constraints, arena, &planner->constraints));
    if (request->placement->contiguous) {
        PEN_TRY(pen_graph_constraints_check_line(planner->owners, cluster, &planner->constraints,
                                                 arena));
    }
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &planner->bytes_limit));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &planner->no_limit));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &planner->one_microbatch));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        planner->no_limit[d] = INFINITY;
        planner->one_microbatch[d] = 1;
        planner->bytes_limit[d] = (double)cluster->devices[d].bytes_limit;
    }
    PEN_TRY(planner_form(planner, arena));
    *out_planner = planner;
    return PEN_OK;
}

// What the schedule makes of the stages. Where no order of tasks fits, every stage holds one
// microbatch, the least there is, so that it can be said how much is missing; where that would fit,
// the schedule holds more than it must, and as many count as it wants.
static pen_status solution_predict(const pen_planner *planner, pen_arena *arena,
                                   pen_plan_solution *solution) {
    const pen_plan_request *request = planner->request;
    const uint32_t device_count = request->cluster->device_count;
    PEN_TRY(PEN_NEW(arena, solution->stages.stage_count, &solution->prediction.in_flight));
    PEN_TRY(PEN_NEW(arena, solution->stages.stage_count, &solution->prediction.halved));
    PEN_TRY(PEN_NEW(arena, device_count, &solution->prediction.bytes_peak));
    pen_status status =
        request->step_time(request->step_time_context, &solution->stages, &solution->prediction);
    solution->fits = status == PEN_OK;
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    pen_status_ignore(status, "said by the solution, with more detail");
    pen_stage_graph relaxed = solution->stages;
    relaxed.bytes_limit = planner->no_limit;
    PEN_TRY(request->step_time(request->step_time_context, &relaxed, &solution->prediction));
    uint32_t *ones;
    PEN_TRY(PEN_NEW(arena, solution->stages.stage_count, &ones));
    for (uint32_t s = 0; s < solution->stages.stage_count; s++) {
        ones[s] = 1;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        const pen_device_memory least =
            pen_memory_model_device(solution->stage_memory, &solution->split, ones, d);
        if ((double)least.total <= planner->bytes_limit[d]) continue;
        solution->prediction.in_flight = ones;
        memset(solution->prediction.halved, 0,
               solution->stages.stage_count * sizeof *solution->prediction.halved);
        break;
    }
    return PEN_OK;
}

// Memory of each device by kind, with what halves of backward tasks keep, and the device that
// exceeds its limit most.
static pen_status solution_add_memory(const pen_planner *planner, pen_arena *arena,
                                      pen_plan_solution *solution) {
    const uint32_t device_count = planner->request->cluster->device_count;
    pen_device_memory *memory;
    PEN_TRY(PEN_NEW(arena, device_count, &memory));
    double worst = -INFINITY;
    for (uint32_t d = 0; d < device_count; d++) {
        memory[d] = pen_memory_model_device(solution->stage_memory, &solution->split,
                                            solution->prediction.in_flight, d);
        for (uint32_t s = 0; s < solution->split.stage_count; s++) {
            if (solution->split.device_of_stage[s] != d) continue;
            const uint64_t bytes =
                solution->prediction.halved[s] * (uint64_t)solution->stages.stages[s].halved_bytes;
            memory[d].activations += bytes;
            memory[d].total += bytes;
        }
        const double excess = (double)memory[d].total - planner->bytes_limit[d];
        if (excess <= worst) continue;
        worst = excess;
        solution->worst_device = d;
    }
    solution->device_memory = memory;
    solution->fits = solution->fits && worst <= 0.0;
    return PEN_OK;
}

// ---- recomputing

// A solution while it is worked out: what stages take plainly, and which are recomputed.
typedef struct solution_work {
    const pen_planner *planner;
    pen_arena *arena;
    pen_plan_solution *solution;
    const pen_stage_memory *plain; // [stage_count]
    const pen_stage_extra *extra;  // [stage_count]
    bool *is_recomputed;           // [stage_count]
} solution_work;

// Stages, schedule and memory with those recomputed that are said to be.
static pen_status work_evaluate(solution_work *work) {
    const pen_planner *planner = work->planner;
    const pen_plan_request *request = planner->request;
    pen_plan_solution *solution = work->solution;
    const uint32_t stage_count = solution->split.stage_count;
    pen_stage_memory *memory;
    PEN_TRY(PEN_NEW(work->arena, stage_count, &memory));
    for (uint32_t s = 0; s < stage_count; s++) {
        memory[s] = work->is_recomputed[s]
                        ? pen_stage_memory_recomputed(&work->plain[s], &work->extra[s])
                        : work->plain[s];
    }
    solution->stage_memory = memory;
    const pen_stage_costs_request costs = {.planned = request->planned,
                                           .owners = planner->owners,
                                           .cluster = request->cluster,
                                           .costs = request->costs,
                                           .split = &solution->split,
                                           .transfers = &solution->transfers,
                                           .memory = memory,
                                           .extra = work->extra,
                                           .is_recomputed = work->is_recomputed,
                                           .bytes_limit = planner->bytes_limit};
    PEN_TRY(pen_stage_costs_find(&costs, work->arena, &solution->stages));
    PEN_TRY(solution_predict(planner, work->arena, solution));
    return solution_add_memory(planner, work->arena, solution);
}

// What recomputing the stages of `mask`, bits of `stages`, adds to a microbatch.
static double work_cost(const solution_work *work, const uint32_t *stages, uint32_t mask) {
    double seconds = 0.0;
    for (uint32_t i = 0; mask >> i != 0; i++) {
        if ((mask >> i & 1) != 0)
            seconds += work->solution->stages.stages[stages[i]].forward_seconds;
    }
    return seconds;
}

// Whether `device` keeps to its limit with the stages of `mask` recomputed; others do not count.
static pen_status work_try(solution_work *work, uint32_t device, const uint32_t *stages,
                           uint32_t mask, bool *out_fits) {
    for (uint32_t i = 0; i < SOLUTION_STAGES_TRIED && mask >> i != 0; i++) {
        if ((mask >> i & 1) != 0) work->is_recomputed[stages[i]] = true;
    }
    PEN_TRY(work_evaluate(work));
    *out_fits =
        (double)work->solution->device_memory[device].total <= work->planner->bytes_limit[device];
    for (uint32_t i = 0; i < SOLUTION_STAGES_TRIED && mask >> i != 0 && !*out_fits; i++) {
        if ((mask >> i & 1) != 0) work->is_recomputed[stages[i]] = false;
    }
    return PEN_OK;
}

// Recomputes those stages of a device that take the least time to make it fit; all of them where
// that is not enough, or where there are too many to try.
static pen_status work_recompute_device(solution_work *work, uint32_t device) {
    const pen_stage_graph *graph = &work->solution->stages;
    uint32_t stages[SOLUTION_STAGES_TRIED];
    uint32_t count = 0;
    bool is_tried[1u << SOLUTION_STAGES_TRIED] = {false};
    bool fits = false;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        if (graph->stages[s].device != device || !graph->stages[s].has_backward) continue;
        if (work->is_recomputed[s]) continue;
        if (count == SOLUTION_STAGES_TRIED) work->is_recomputed[s] = true;
        if (count < SOLUTION_STAGES_TRIED) stages[count++] = s;
    }
    const uint32_t all = (1u << count) - 1;
    for (uint32_t tries = 0; tries < all && !fits; tries++) {
        uint32_t least = 0;
        for (uint32_t mask = 1; mask <= all; mask++) {
            if (is_tried[mask]) continue;
            if (least == 0 || work_cost(work, stages, mask) < work_cost(work, stages, least))
                least = mask;
        }
        is_tried[least] = true;
        PEN_TRY(work_try(work, device, stages, least, &fits));
    }
    for (uint32_t i = 0; i < count && !fits; i++) {
        work->is_recomputed[stages[i]] = true;
    }
    return PEN_OK;
}

// Recomputing is decided last: first stages that were asked for, then, with `auto`, those of
// devices that do not fit.
static pen_status solution_finish(const pen_planner *planner, const bool *recomputed_nodes,
                                  pen_arena *arena, pen_plan_solution *solution) {
    const pen_plan_request *request = planner->request;
    const pen_stage_split *split = &solution->split;
    solution_work work = {.planner = planner, .arena = arena, .solution = solution};
    pen_stage_memory *memory;
    pen_stage_extra *extra;
    PEN_TRY(PEN_NEW(arena, split->stage_count, &work.is_recomputed));
    PEN_TRY(pen_stage_transfers_find(request->planned, planner->owners, request->cluster, split,
                                     arena, &solution->transfers));
    PEN_TRY(pen_memory_model_stages(request->planned, planner->owners, split, arena, &memory));
    PEN_TRY(pen_stage_memory_extra(request->planned, planner->owners, split, arena, &extra));
    for (uint32_t s = 0; s < split->stage_count; s++) // of a device's workspaces the largest counts
        memory[s].workspace += request->cluster->devices[split->device_of_stage[s]].own_bytes;
    work.plain = memory;
    work.extra = extra;
    for (uint32_t n = 0; n < planner->owners->node_count; n++) {
        const pen_role role = pen_graph_node(planner->owners->graph, (pen_node_id){n})->role;
        const bool is_asked =
            request->recompute == PEN_RECOMPUTE_STAGE && pen_role_is_backward(role);
        if (is_asked || (recomputed_nodes != NULL && recomputed_nodes[n])) {
            work.is_recomputed[split->stage_of_node[n]] = true;
        }
    }
    PEN_TRY(work_evaluate(&work));
    if (solution->fits || request->recompute != PEN_RECOMPUTE_AUTO) return PEN_OK;
    for (uint32_t d = 0; d < request->cluster->device_count; d++) {
        if ((double)solution->device_memory[d].total <= planner->bytes_limit[d]) continue;
        PEN_TRY(work_recompute_device(&work, d));
        PEN_TRY(work_evaluate(&work));
    }
    return PEN_OK;
}

pen_status pen_plan_solve(const pen_planner *planner, const uint32_t *device_of_node,
                          pen_arena *arena, pen_plan_solution *out_solution) {
    pen_plan_solution solution = {.device_of_node = device_of_node};
    PEN_TRY(pen_stage_split_build(planner->owners, planner->forming, device_of_node, arena,
                                  &solution.split));
    PEN_TRY(solution_finish(planner, NULL, arena, &solution));
    *out_solution = solution;
    return PEN_OK;
}

// Stages are put in order, whatever order they were given in: their numbers are those of the
// forward pass.
pen_status pen_plan_solve_stages(const pen_planner *planner, const pen_stage_split *split,
                                 const bool *is_recomputed, pen_arena *arena,
                                 pen_plan_solution *out_solution) {
    const uint32_t node_count = planner->owners->node_count;
    pen_plan_solution solution = {.split = {.stage_count = split->stage_count}};
    uint32_t *device_of_node;
    PEN_TRY(PEN_NEW(arena, node_count, &solution.split.device_of_stage));
    PEN_TRY(PEN_NEW(arena, node_count, &solution.split.stage_of_node));
    PEN_TRY(PEN_NEW(arena, node_count, &device_of_node));
    for (uint32_t s = 0; s < split->stage_count && s < node_count; s++) {
        solution.split.device_of_stage[s] = split->device_of_stage[s];
    }
    for (uint32_t n = 0; n < node_count; n++) {
        solution.split.stage_of_node[n] = split->stage_of_node[n];
    }
    PEN_TRY(pen_stage_split_order(planner->owners, &solution.split));
    for (uint32_t n = 0; n < node_count; n++) {
        device_of_node[n] = solution.split.device_of_stage[solution.split.stage_of_node[n]];
    }
    solution.device_of_node = device_of_node;
    PEN_TRY(solution_finish(planner, is_recomputed, arena, &solution));
    *out_solution = solution;
    return PEN_OK;
}
