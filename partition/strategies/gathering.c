#include "partition/strategies/gathering.h"

#include <string.h>

#include "partition/objective/placement.h"
#include "partition/objective/step_time.h"

#define GATHERING_NEIGHBOURS 6 // devices that one is moved to, at most
#define GATHERING_TRIED -1.0   // in place of what is exchanged
#define GATHERING_TRIALS 400   // steps simulated, at most

typedef struct gathering {
    const pen_problem *problem;
    pen_arena *arena; // of what stays for all trials
    pen_arena *scratch;
    pen_step_time *step;
    uint32_t *tried;   // [node_count]
    double *load;      // [device_count] of a microbatch
    double *exchanged; // [device_count] seconds that one device exchanges with others
    double limit;      // of the step
    uint32_t trial_count;
} gathering;

// What devices do where nodes are now, and what `from` exchanges with each.
static pen_status gathering_look(gathering *g, const uint32_t *device_of_node, uint32_t from) {
    const uint32_t device_count = g->problem->given.device_count;
    const pen_stage_graph *graph;
    PEN_TRY(pen_step_time_stages(g->step, device_of_node, &graph, NULL));
    memset(g->load, 0, device_count * sizeof *g->load);
    memset(g->exchanged, 0, device_count * sizeof *g->exchanged);
    for (uint32_t s = 0; s < graph->stage_count; s++)
        g->load[graph->stages[s].device] += pen_stage_microbatch_seconds(&graph->stages[s]);
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const uint32_t source = graph->stages[edge->source].device;
        const uint32_t target = graph->stages[edge->target].device;
        const double seconds = edge->forward_seconds + edge->backward_seconds +
                               edge->forward_handling.latency_seconds +
                               edge->backward_handling.latency_seconds;
        if (source == target) continue;
        if (source == from) g->exchanged[target] += seconds;
        if (target == from) g->exchanged[source] += seconds;
    }
    return PEN_OK;
}

// The device that most is exchanged with, then the one with the least work; PEN_PROBLEM_ANY: none.
// Those without work would be no gain.
static uint32_t gathering_next(const gathering *g) {
    uint32_t next = PEN_PROBLEM_ANY;
    for (uint32_t d = 0; d < g->problem->given.device_count; d++) {
        if (g->exchanged[d] < 0.0 || !(g->load[d] > 0.0)) continue;
        if (next == PEN_PROBLEM_ANY || g->exchanged[d] > g->exchanged[next] ||
            (g->exchanged[d] == g->exchanged[next] && g->load[d] < g->load[next])) {
            next = d;
        }
    }
    return next;
}

// Whether the placement in `tried` is right and its step short enough.
static pen_status gathering_judge(gathering *g, bool *out_is_good) {
    const pen_step_prediction *prediction;
    const pen_stage_graph *graph;
    pen_placement *placement;
    *out_is_good = false;
    PEN_TRY(pen_step_time_stages(g->step, g->tried, &graph, NULL));
    if (pen_step_time_least(g->step) > g->limit) return PEN_OK;
    g->trial_count++;
    pen_status status = pen_step_time_simulate(g->step, &prediction);
    if (status == PEN_OK && prediction->step_seconds > g->limit) return PEN_OK;
    pen_arena_reset(g->scratch);
    if (status == PEN_OK) {
        status = pen_placement_new(g->problem, g->tried, g->scratch, &placement);
    }
    if (status == PEN_OK) status = pen_placement_check(g->problem, placement);
    const pen_status_code code = pen_status_get_code(status);
    if (code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT) {
        pen_status_ignore(status, "it stays as it was");
        return PEN_OK;
    }
    *out_is_good = status == PEN_OK;
    return status;
}

// Whether all that is on `from` may be on `to`; puts it there in `tried`.
static bool gathering_move(gathering *g, const uint32_t *device_of_node, uint32_t from,
                           uint32_t to) {
    const pen_problem *problem = g->problem;
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        g->tried[v] = device_of_node[v];
        if (device_of_node[v] != from) continue;
        if (!pen_problem_allows(problem, problem->group_of_node[v], to)) return false;
        g->tried[v] = to;
    }
    return true;
}

// Tries to empty one device.
static pen_status gathering_empty(gathering *g, uint32_t from, uint32_t *device_of_node,
                                  bool *out_is_empty) {
    *out_is_empty = false;
    PEN_TRY(gathering_look(g, device_of_node, from));
    g->exchanged[from] = GATHERING_TRIED;
    for (uint32_t i = 0; i < GATHERING_NEIGHBOURS && g->trial_count < GATHERING_TRIALS; i++) {
        const uint32_t to = gathering_next(g);
        if (to == PEN_PROBLEM_ANY) return PEN_OK;
        g->exchanged[to] = GATHERING_TRIED;
        if (!gathering_move(g, device_of_node, from, to)) continue;
        PEN_TRY(gathering_judge(g, out_is_empty));
        if (!*out_is_empty) continue;
        memcpy(device_of_node, g->tried, g->problem->given.node_count * sizeof *device_of_node);
        return gathering_look(g, device_of_node, from);
    }
    return PEN_OK;
}

// The device with the least work of those that were not seen yet, or PEN_PROBLEM_ANY.
static uint32_t gathering_least(const gathering *g, const bool *is_seen) {
    uint32_t least = PEN_PROBLEM_ANY;
    for (uint32_t d = 0; d < g->problem->given.device_count; d++) {
        if (is_seen[d]) continue;
        if (least == PEN_PROBLEM_ANY || g->load[d] < g->load[least]) least = d;
    }
    return least;
}

// Each device once, those with the least work first: what could not be moved once can hardly be
// moved when others have got more.
static pen_status gathering_search(gathering *g, double share, uint32_t *device_of_node) {
    const pen_problem_given *given = &g->problem->given;
    const pen_step_prediction *prediction;
    bool *is_seen;
    PEN_TRY(PEN_NEW(g->arena, given->device_count, &is_seen));
    PEN_TRY(PEN_NEW(g->arena, given->node_count, &g->tried));
    PEN_TRY(PEN_NEW(g->arena, given->device_count, &g->load));
    PEN_TRY(PEN_NEW(g->arena, given->device_count, &g->exchanged));
    PEN_TRY(pen_arena_create_within(g->arena, &g->scratch));
    PEN_TRY(pen_step_time_new(g->problem, g->arena, &g->step));
    PEN_TRY(pen_step_time_evaluate(g->step, device_of_node, &prediction));
    g->limit = prediction->step_seconds * (1.0 + share);
    PEN_TRY(gathering_look(g, device_of_node, PEN_PROBLEM_ANY));
    for (uint32_t i = 0; i < given->device_count; i++) {
        bool is_empty;
        const uint32_t from = gathering_least(g, is_seen);
        is_seen[from] = true;
        PEN_TRY(gathering_empty(g, from, device_of_node, &is_empty));
    }
    return PEN_OK;
}

pen_status pen_gathering_run(const pen_problem *problem, double share, pen_arena *arena,
                             uint32_t *device_of_node) {
    gathering g = {.problem = problem, .arena = arena};
    const pen_status status = gathering_search(&g, share, device_of_node);
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    pen_status_ignore(status, "what it begins with has no step under this memory");
    return PEN_OK;
}
