#include "partition/plan_solution.h"

#include <math.h>
#include <string.h>

pen_status pen_planner_lower(const pen_planner *planner, const pen_planner_wish *wish,
                             pen_arena *arena, pen_problem_given *out_given) {
    const pen_plan_request *request = planner->request;
    const pen_stage_bounds *stages = &request->placement->constraints.stages;
    const pen_graph_problem_request lowering = {
        .planned = request->planned,
        .homes = planner->homes,
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
    return pen_graph_problem_build(&lowering, arena, out_given);
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

pen_status pen_planner_new(const pen_plan_request *request, pen_arena *arena,
                           pen_planner **out_planner) {
    const pen_cluster *cluster = request->cluster;
    pen_planner *planner;
    PEN_TRY(PEN_NEW(arena, 1, &planner));
    planner->request = request;
    PEN_TRY(pen_node_homes_build(request->planned->graph, arena, &planner->homes));
    PEN_TRY(pen_graph_constraints_resolve(planner->homes, cluster, &request->placement->constraints,
                                          arena, &planner->constraints));
    if (request->placement->contiguous) {
        PEN_TRY(pen_graph_constraints_check_line(planner->homes, cluster, &planner->constraints,
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
        const pen_plan_memory least =
            pen_memory_model_device(solution->stage_memory, &solution->split, ones, d);
        if ((double)least.total <= planner->bytes_limit[d]) continue;
        solution->prediction.in_flight = ones;
        memset(solution->prediction.halved, 0,
               solution->stages.stage_count * sizeof *solution->prediction.halved);
        break;
    }
    return PEN_OK;
}

static pen_status solution_add_memory(const pen_planner *planner, pen_arena *arena,
                                      pen_plan_solution *solution) {
    const uint32_t device_count = planner->request->cluster->device_count;
    pen_plan_memory *memory;
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

static pen_status solution_finish(const pen_planner *planner, pen_arena *arena,
                                  pen_plan_solution *solution) {
    const pen_plan_request *request = planner->request;
    const pen_stage_split *split = &solution->split;
    pen_stage_memory *memory;
    pen_stage_extra *extra;
    PEN_TRY(pen_stage_split_transfers(request->planned, planner->homes, request->cluster, split,
                                      arena, &solution->transfers));
    PEN_TRY(pen_memory_model_stages(request->planned, planner->homes, split, arena, &memory));
    PEN_TRY(pen_stage_memory_extra(request->planned, planner->homes, split, arena, &extra));
    solution->stage_memory = memory;
    const pen_stage_costs_request costs = {.planned = request->planned,
                                           .homes = planner->homes,
                                           .cluster = request->cluster,
                                           .costs = request->costs,
                                           .split = split,
                                           .transfers = &solution->transfers,
                                           .memory = memory,
                                           .extra = extra,
                                           .bytes_limit = planner->bytes_limit};
    PEN_TRY(pen_stage_split_costs(&costs, arena, &solution->stages));
    PEN_TRY(solution_predict(planner, arena, solution));
    return solution_add_memory(planner, arena, solution);
}

pen_status pen_plan_solve(const pen_planner *planner, const uint32_t *device_of_node,
                          pen_arena *arena, pen_plan_solution *out_solution) {
    pen_plan_solution solution = {.device_of_node = device_of_node};
    PEN_TRY(pen_stage_split_build(planner->homes, planner->forming, device_of_node, arena,
                                  &solution.split));
    PEN_TRY(solution_finish(planner, arena, &solution));
    *out_solution = solution;
    return PEN_OK;
}

pen_status pen_plan_solve_stages(const pen_planner *planner, const pen_stage_split *split,
                                 pen_arena *arena, pen_plan_solution *out_solution) {
    const uint32_t node_count = planner->homes->node_count;
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
    PEN_TRY(pen_stage_split_order(planner->homes, &solution.split));
    for (uint32_t n = 0; n < node_count; n++) {
        device_of_node[n] = solution.split.device_of_stage[solution.split.stage_of_node[n]];
    }
    solution.device_of_node = device_of_node;
    PEN_TRY(solution_finish(planner, arena, &solution));
    *out_solution = solution;
    return PEN_OK;
}
