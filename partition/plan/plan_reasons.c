#include "partition/plan/plan_reasons.h"

#include "base/text.h"
#include "graph/graph.h"
#include "partition/objective/step_time.h"

// Evaluations of moves; past that reasons are in words only. Fewer where each takes long: that is
// with the nodes, which are formed into stages, with the tasks, and with the stages of a device,
// among which a schedule chooses. All together take half a second at most.
#define REASON_EVALUATIONS 400u
#define REASON_EVALUATIONS_LEAST 8u
#define REASON_WORK ((uint64_t)4 << 20)

typedef struct reason_builder {
    const pen_planner *planner;
    const pen_plan_solution *solution;
    const pen_forward_owners *owners;
    const uint32_t *color;
    pen_arena *arena;
    pen_step_time *step;
    uint32_t *device; // [node_count of the problem]
    double now;       // step time by the same evaluator
    double sent;      // seconds of all transfers, likewise
    uint32_t evaluations;
    uint32_t evaluation_limit;
    const char **reason_of_color; // [node_count]
    uint32_t *other_device;       // [node_count], of a colour: a neighbour's, or PEN_PROBLEM_ANY
    uint32_t *neighbours;         // [node_count], of a colour: values to and from other colours
} reason_builder;

// Notes for each colour a device that a neighbour is on and it is not.
static void reason_find_edges(reason_builder *b) {
    const pen_graph *graph = b->owners->graph;
    const uint32_t *device_of_node = b->solution->device_of_node;
    for (uint32_t n = 0; n < b->owners->node_count; n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_node_id source = pen_graph_value(graph, node->inputs[i])->producer;
            if (!pen_node_is(source) || b->color[source.index] == b->color[n]) continue;
            b->neighbours[b->color[n]] += 1;
            b->neighbours[b->color[source.index]] += 1;
            if (device_of_node[source.index] == device_of_node[n]) continue;
            b->other_device[b->color[n]] = device_of_node[source.index];
            b->other_device[b->color[source.index]] = device_of_node[n];
        }
    }
}

static void reason_move(reason_builder *b, uint32_t color, uint32_t device) {
    const pen_problem_given *given = &b->planner->forming->problem->given;
    for (uint32_t v = 0; v < given->node_count; v++) {
        if (given->nodes[v].color == color) b->device[v] = device;
    }
}

static uint32_t reason_count_devices(const pen_stage_graph *graph) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        bool is_new = true;
        for (uint32_t t = 0; t < s && is_new; t++) {
            is_new = graph->stages[t].device != graph->stages[s].device;
        }
        count += is_new;
    }
    return count;
}

// What the step would take with a colour on the other side of the edge it lies at.
static pen_status reason_evaluate(reason_builder *b, uint32_t color, uint32_t device,
                                  const char **out_reason) {
    const pen_cluster *cluster = b->planner->request->cluster;
    const uint32_t here = b->solution->device_of_node[color];
    const pen_step_prediction *prediction;
    const pen_stage_graph *stages = pen_step_time_graph(b->step);
    b->evaluations++;
    reason_move(b, color, device);
    const pen_status status = pen_step_time_evaluate(b->step, b->device, &prediction);
    reason_move(b, color, here);
    PEN_TRY(status);
    const double seconds = prediction->step_seconds;
    const bool is_cyclic = stages->stage_count > reason_count_devices(stages);
    const char *name = cluster->devices[device].name;
    char text[PEN_QUANTITY_TEXT_BYTES];
    if (is_cyclic && b->planner->request->placement->contiguous) {
        return pen_arena_format(b->arena, out_reason,
                                "on '%s' the devices would wait for each other in a circle", name);
    }
    const pen_objective objective = b->planner->request->placement->objective;
    if (objective != PEN_OBJECTIVE_STEP_TIME) {
        return pen_arena_format(b->arena, out_reason,
                                "at the edge to '%s': the placement was chosen for %s, not for "
                                "the time of a step",
                                name, pen_objective_names[objective]);
    }
    const double more = seconds - b->now;
    if (more > 1e-9 * b->now) {
        return pen_arena_format(b->arena, out_reason, "on '%s' a step would take %s longer", name,
                                pen_seconds_format(more, text));
    }
    if (more >= -1e-9 * b->now) {
        return pen_arena_format(b->arena, out_reason, "on '%s' a step would take as long", name);
    }
    if (seconds * (1.0 + PEN_PLAN_ALIKE) >= b->now &&
        pen_stage_graph_sent_seconds(stages) > b->sent) {
        return pen_arena_format(b->arena, out_reason,
                                "on '%s' a step would take %s less, but more would be sent", name,
                                pen_seconds_format(-more, text));
    }
    return pen_arena_format(
        b->arena, out_reason,
        "on '%s' a step would take %s less: the search did not find it, or memory "
        "or the objective is against it",
        name, pen_seconds_format(-more, text));
}

// The reason of a group of nodes, by what can be said for certain first (a pin, nothing else near
// it); working out the step with the group elsewhere costs time and comes last.
static pen_status reason_color(reason_builder *b, uint32_t color) {
    const pen_cluster *cluster = b->planner->request->cluster;
    const uint32_t device = b->solution->device_of_node[color];
    const char *name = cluster->devices[device].name;
    const char **reason = &b->reason_of_color[color];
    if (cluster->device_count == 1) return pen_arena_format(b->arena, reason, "the only device");
    if (b->planner->constraints.pin[color] != PEN_PROBLEM_ANY) {
        return pen_arena_format(b->arena, reason, "pinned to '%s'", name);
    }
    const uint32_t other = b->other_device[color];
    if (other == PEN_PROBLEM_ANY && b->solution->split.stage_count == 1) {
        return pen_arena_format(b->arena, reason, "'%s' alone is the best that was found", name);
    }
    if (other == PEN_PROBLEM_ANY) {
        return pen_arena_format(b->arena, reason,
                                "all that it reads or feeds is on '%s': elsewhere up to %u more "
                                "tensors would travel",
                                name, b->neighbours[color]);
    }
    for (uint32_t i = 0; i < b->planner->constraints.forbidden_count; i++) {
        const pen_problem_forbidden *forbidden = &b->planner->constraints.forbidden[i];
        if (b->color[forbidden->node] != color || forbidden->device != other) continue;
        return pen_arena_format(b->arena, reason, "forbidden on '%s'",
                                cluster->devices[other].name);
    }
    if (b->evaluations >= b->evaluation_limit) {
        return pen_arena_format(b->arena, reason, "at the edge to '%s'",
                                cluster->devices[other].name);
    }
    return reason_evaluate(b, color, other, reason);
}

static uint32_t reason_limit(const reason_builder *b) {
    const uint64_t stages = b->solution->split.stage_count;
    const uint64_t of_device = stages / b->planner->request->cluster->device_count + 1;
    const pen_problem_given *given = &b->planner->forming->problem->given;
    const uint64_t tasks = stages * given->microbatch_count + 1;
    const uint64_t fitting = REASON_WORK / (tasks * of_device + given->node_count);
    if (fitting > REASON_EVALUATIONS) return REASON_EVALUATIONS;
    return fitting < REASON_EVALUATIONS_LEAST ? REASON_EVALUATIONS_LEAST : (uint32_t)fitting;
}

// The number of steps that are worked out for reasons is bounded: they are for people, and must not
// take longer than the plan.
static pen_status reason_init(reason_builder *b) {
    b->evaluation_limit = reason_limit(b);
    const pen_problem *problem = b->planner->forming->problem;
    const uint32_t node_count = b->owners->node_count;
    PEN_TRY(PEN_NEW(b->arena, problem->given.node_count, &b->device));
    PEN_TRY(PEN_NEW(b->arena, node_count, &b->reason_of_color));
    PEN_TRY(PEN_NEW(b->arena, node_count, &b->other_device));
    PEN_TRY(PEN_NEW(b->arena, node_count, &b->neighbours));
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        b->device[v] = b->solution->device_of_node[problem->given.nodes[v].color];
    }
    for (uint32_t n = 0; n < node_count; n++) {
        b->other_device[n] = PEN_PROBLEM_ANY;
    }
    const pen_step_prediction *prediction;
    PEN_TRY(pen_step_time_new(problem, b->arena, &b->step));
    PEN_TRY(pen_step_time_evaluate(b->step, b->device, &prediction));
    b->now = prediction->step_seconds;
    b->sent = pen_stage_graph_sent_seconds(pen_step_time_graph(b->step));
    reason_find_edges(b);
    return PEN_OK;
}

static reason_builder reason_begin(const pen_planner *planner, const pen_plan_solution *solution,
                                   pen_arena *arena) {
    return (reason_builder){.planner = planner,
                            .solution = solution,
                            .owners = planner->owners,
                            .color = planner->constraints.color,
                            .arena = arena};
}

pen_status pen_plan_reasons(const pen_planner *planner, const pen_plan_solution *solution,
                            pen_arena *arena, const char *const **out_reasons) {
    reason_builder b = reason_begin(planner, solution, arena);
    const char **reasons;
    PEN_TRY(PEN_NEW(arena, b.owners->node_count, &reasons));
    PEN_TRY(reason_init(&b));
    for (uint32_t n = 0; n < b.owners->node_count; n++) {
        const uint32_t color = b.color[n];
        if (!b.owners->is_listed[n]) continue;
        if (b.reason_of_color[color] == NULL) PEN_TRY(reason_color(&b, color));
        reasons[n] = b.reason_of_color[color];
    }
    *out_reasons = reasons;
    return PEN_OK;
}

pen_status pen_plan_reason(const pen_planner *planner, const pen_plan_solution *solution,
                           uint32_t node, pen_arena *arena, const char **out_reason) {
    reason_builder b = reason_begin(planner, solution, arena);
    const uint32_t color = b.color[node];
    PEN_TRY(reason_init(&b));
    PEN_TRY(reason_color(&b, color));
    *out_reason = b.reason_of_color[color];
    return PEN_OK;
}
