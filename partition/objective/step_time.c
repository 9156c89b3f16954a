#include "partition/objective/step_time.h"

#include <math.h>
#include <string.h>

#include "graph/analysis/forward_owner.h"
#include "graph/graph.h"
#include "partition/objective/stage_forming.h"

#define STEP_TIME_ROLE_COUNT ((uint32_t)PEN_ROLE_TRANSFER) // that a node can have: not this one
#define STEP_TIME_SENT_SHARE 0.5 // of a step, that sending as much as the start counts for
#define STEP_TIME_ROUNDING 1e-9
#define STEP_TIME_OVER 20.0 // times what a step is too long by

struct pen_step_time {
    const pen_problem *problem;
    pen_stage_forming *forming;
    pen_stage *stages;         // [node_count]
    pen_stage_edge *edges;     // [edges of the problem]
    double *bytes_limit;       // [device_count]
    pen_problem_lists readers; // of nodes: those that read it and may be in another stage
    pen_problem_lists
        operands;         // of nodes with a place in a backward pass: what they read, likewise
    uint32_t *edge_of;    // [node_count] of a stage: its edge from the stage at hand,
    uint32_t *edge_from;  // [node_count] if this is 1 + the stage at hand
    uint32_t *read_by;    // [node_count] of a stage: 1 + the last node that it was seen to read
    uint32_t *read_aside; // [node_count] likewise, aside
    double *head;         // [node_count] of a stage: seconds before it can begin
    double *begin;        // [device_count] seconds before anything can,
    double *load;         // [device_count] and what a microbatch takes
    pen_stage_graph graph;
    pen_step_prediction prediction;
};

// Whether the two are in one stage wherever their group is: that of its only forward node, or both
// behind all of these.
static bool step_time_is_inside(const pen_problem *problem, const uint32_t *forward_count,
                                uint32_t u, uint32_t v) {
    const uint32_t group = problem->group_of_node[u];
    if (group != problem->group_of_node[v]) return false;
    return forward_count[group] < 2 || (!pen_problem_is_forward(&problem->given, u) &&
                                        !pen_problem_is_forward(&problem->given, v));
}

static bool step_time_goes_back(const pen_problem_given *given, uint32_t v) {
    return pen_role_is_backward(given->nodes[v].role);
}

// The edges that may lead from stage to stage, which are looked at for each placement.
static pen_status step_time_list_ties(pen_step_time *step, pen_arena *arena) {
    const pen_problem *problem = step->problem;
    const pen_problem_lists *after = &problem->successors, *before = &problem->predecessors;
    const uint32_t node_count = problem->given.node_count;
    uint32_t reader_count = 0, operand_count = 0;
    uint32_t *forward_count; // of groups
    PEN_TRY(PEN_NEW(arena, problem->group_count, &forward_count));
    PEN_TRY(PEN_NEW(arena, (size_t)node_count + 1, &step->readers.first));
    PEN_TRY(PEN_NEW(arena, (size_t)node_count + 1, &step->operands.first));
    PEN_TRY(PEN_NEW(arena, after->first[node_count], &step->readers.ids));
    PEN_TRY(PEN_NEW(arena, before->first[node_count], &step->operands.ids));
    for (uint32_t v = 0; v < node_count; v++) {
        forward_count[problem->group_of_node[v]] += pen_problem_is_forward(&problem->given, v);
    }
    for (uint32_t v = 0; v < node_count; v++) {
        for (uint32_t e = after->first[v]; e < after->first[v + 1]; e++) {
            if (step_time_is_inside(problem, forward_count, v, after->ids[e])) continue;
            step->readers.ids[reader_count++] = after->ids[e];
        }
        step->readers.first[v + 1] = reader_count;
        const uint32_t end = step_time_goes_back(&problem->given, v) ? before->first[v + 1] : 0;
        for (uint32_t e = before->first[v]; e < end; e++) {
            const uint32_t u = before->ids[e];
            if (problem->given.nodes[u].role == PEN_ROLE_UPDATE) continue;
            if (step_time_is_inside(problem, forward_count, u, v)) continue;
            step->operands.ids[operand_count++] = u;
        }
        step->operands.first[v + 1] = operand_count;
    }
    return PEN_OK;
}

// Room for the worst case is taken once: evaluating a placement allocates nothing but scratch.
pen_status pen_step_time_new(const pen_problem *problem, pen_arena *arena,
                             pen_step_time **out_step) {
    pen_step_time *step;
    const pen_problem_given *given = &problem->given;
    PEN_TRY(PEN_NEW(arena, 1, &step));
    step->problem = problem;
    PEN_TRY(pen_stage_forming_new(problem, arena, &step->forming));
    PEN_TRY(step_time_list_ties(step, arena));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->stages));
    PEN_TRY(PEN_NEW(arena, problem->successors.first[given->node_count], &step->edges));
    PEN_TRY(PEN_NEW(arena, given->device_count, &step->bytes_limit));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->head));
    PEN_TRY(PEN_NEW(arena, given->device_count, &step->begin));
    PEN_TRY(PEN_NEW(arena, given->device_count, &step->load));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->edge_of));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->edge_from));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->read_by));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->read_aside));
    PEN_TRY(PEN_NEW(arena, given->node_count, &step->prediction.in_flight));
    PEN_TRY(PEN_NEW(arena, given->device_count, &step->prediction.bytes_peak));
    for (uint32_t d = 0; d < given->device_count; d++)
        step->bytes_limit[d] = pen_problem_bytes_limit(problem, d);
    step->graph = (pen_stage_graph){
        .device_count = given->device_count,
        .microbatch_count = given->microbatch_count > 0 ? given->microbatch_count : 1,
        .stages = step->stages,
        .edges = step->edges,
        .bytes_limit = step->bytes_limit,
        .seats = given->seats,
    };
    *out_step = step;
    return PEN_OK;
}

static double *step_time_seconds_of(pen_stage *stage, pen_role role) {
    switch (role) {
    case PEN_ROLE_FORWARD:
        return &stage->forward_seconds;
    case PEN_ROLE_BACKWARD_INPUT:
        return &stage->backward_input_seconds;
    case PEN_ROLE_BACKWARD_WEIGHT:
        return &stage->backward_weight_seconds;
    case PEN_ROLE_UPDATE:
        return &stage->update_seconds;
    case PEN_ROLE_TRANSFER:
        break;
    }
    PEN_NEVER("problems have no transfer nodes");
}

// One stage: sums over its nodes, on the device where they are.
static void step_time_sum_stage(const pen_step_time *step, uint32_t s, pen_stage *stage) {
    const pen_problem_given *given = &step->problem->given;
    const pen_stage_forming *forming = step->forming;
    const pen_problem_device *device = &given->devices[stage->device];
    const double *compute = given->compute + (uint64_t)device->kind * given->node_count;
    const double slowness = device->slowness;
    double seconds[STEP_TIME_ROLE_COUNT] = {0}, fixed = 0.0, activation = 0.0, workspace = 0.0;
    bool has_role[STEP_TIME_ROLE_COUNT] = {false};
    pen_role role = PEN_ROLE_FORWARD; // of the nodes at hand, which follow each other,
    double sum = 0.0;                 // and what they take
    for (uint32_t i = forming->stage_first[s]; i < forming->stage_first[s + 1]; i++) {
        const pen_problem_node *node = &given->nodes[forming->nodes[i]];
        if (node->role != role) {
            seconds[role] = sum;
            role = node->role;
            sum = seconds[role];
            has_role[role] = true;
        }
        sum += compute[forming->nodes[i]] * slowness;
        fixed += node->bytes;
        activation += node->bytes_in_flight;
        if (node->workspace_bytes > workspace) workspace = node->workspace_bytes;
    }
    seconds[role] = sum;
    for (uint32_t r = 0; r < STEP_TIME_ROLE_COUNT; r++) {
        *step_time_seconds_of(stage, (pen_role)r) = seconds[r];
        if (!has_role[r]) continue;
        if (pen_role_is_backward((pen_role)r)) stage->has_backward = true;
        if (r == PEN_ROLE_UPDATE) stage->has_update = true;
    }
    stage->fixed_bytes = fixed;
    stage->activation_bytes = activation;
    stage->workspace_bytes = workspace;
}

static void step_time_sum_stages(pen_step_time *step) {
    const pen_stage_forming *forming = step->forming;
    for (uint32_t s = 0; s < forming->stage_count; s++) {
        step->stages[s] = (pen_stage){.device = forming->device_of_stage[s]};
        step_time_sum_stage(step, s, &step->stages[s]);
    }
}

// Seconds that the result of node `u` is on its way from one device to another. What else moving it
// takes is added to `handling`.
static double step_time_move(const pen_problem_given *given, uint32_t u, uint32_t from, uint32_t to,
                             pen_stage_handling *handling) {
    static const pen_link_handling nothing = {0};
    const double transfer = given->nodes[u].transfer;
    const double seconds = transfer * (given->devices[from].send + given->devices[to].receive);
    if (given->link == NULL || transfer == 0.0) return seconds;
    const uint64_t at = (uint64_t)from * given->device_count + to;
    pen_stage_handling_add(handling,
                           given->handling == NULL ? &nothing
                                                   : &given->handling[given->handling_of_pair[at]],
                           given->link_latency == NULL ? 0.0 : given->link_latency[at], transfer);
    return seconds + transfer * given->link[at];
}

// The edge from stage `source`, the one at hand, to the higher stage `target`.
static pen_stage_edge *step_time_edge(pen_step_time *step, uint32_t source, uint32_t target) {
    if (step->edge_from[target] != source + 1) {
        step->edge_from[target] = source + 1;
        step->edge_of[target] = step->graph.edge_count++;
        step->edges[step->edge_of[target]] = (pen_stage_edge){.source = source, .target = target};
    }
    return &step->edges[step->edge_of[target]];
}

typedef enum step_time_way {
    STEP_TIME_FORWARD,
    STEP_TIME_BACKWARD,
    STEP_TIME_ASIDE, // has no place in a schedule
} step_time_way;

// How what node u of stage s makes reaches node v of stage t, another.
static step_time_way step_time_choose_way(const pen_problem_given *given, uint32_t u, uint32_t v,
                                          bool is_up) {
    const pen_role source = given->nodes[u].role, target = given->nodes[v].role;
    if (source == PEN_ROLE_UPDATE || target == PEN_ROLE_UPDATE) return STEP_TIME_ASIDE;
    if (is_up) return source == PEN_ROLE_FORWARD ? STEP_TIME_FORWARD : STEP_TIME_ASIDE;
    return target == PEN_ROLE_FORWARD ? STEP_TIME_ASIDE : STEP_TIME_BACKWARD;
}

// What stage s makes: forward edges, and what goes aside.
static void step_time_send(pen_step_time *step, uint32_t s) {
    const pen_problem_given *given = &step->problem->given;
    const pen_stage_forming *forming = step->forming;
    const uint32_t home = forming->device_of_stage[s];
    for (uint32_t i = forming->stage_first[s]; i < forming->stage_first[s + 1]; i++) {
        const uint32_t u = forming->nodes[i];
        for (uint32_t e = step->readers.first[u]; e < step->readers.first[u + 1]; e++) {
            const uint32_t v = step->readers.ids[e];
            const uint32_t t = forming->stage_of_node[v];
            if (t == s) continue;
            const step_time_way way = step_time_choose_way(given, u, v, t > s);
            if (way == STEP_TIME_BACKWARD) continue;
            uint32_t *read = way == STEP_TIME_ASIDE ? &step->read_aside[t] : &step->read_by[t];
            if (*read == u + 1) continue;
            *read = u + 1;
            const uint32_t there = forming->device_of_stage[t];
            if (way == STEP_TIME_ASIDE) {
                pen_stage_handling handling = {0};
                double seconds = 0.0;
                if (there != home) seconds = step_time_move(given, u, home, there, &handling);
                *step_time_seconds_of(&step->stages[t], given->nodes[v].role) +=
                    seconds + handling.latency_seconds + handling.send_seconds +
                    handling.receive_seconds;
                continue;
            }
            pen_stage_edge *edge = step_time_edge(step, s, t);
            edge->forward_bytes += given->nodes[u].transfer;
            if (there == home) continue;
            edge->forward_seconds += step_time_move(given, u, home, there, &edge->forward_handling);
            step->stages[t].activation_bytes += given->nodes[u].transfer;
        }
    }
}

// What the backward nodes of stage s read of higher ones.
static void step_time_receive(pen_step_time *step, uint32_t s, uint32_t *read) {
    const pen_problem_given *given = &step->problem->given;
    const pen_stage_forming *forming = step->forming;
    const uint32_t home = forming->device_of_stage[s];
    for (uint32_t i = forming->stage_first[s]; i < forming->stage_first[s + 1]; i++) {
        const uint32_t v = forming->nodes[i];
        for (uint32_t e = step->operands.first[v]; e < step->operands.first[v + 1]; e++) {
            const uint32_t u = step->operands.ids[e];
            const uint32_t t = forming->stage_of_node[u];
            if (t <= s || read[u] == s + 1) continue;
            read[u] = s + 1;
            const uint32_t there = forming->device_of_stage[t];
            pen_stage_edge *edge = step_time_edge(step, s, t);
            edge->has_gradient = true;
            step->stages[s].has_backward = true;
            step->stages[t].has_backward = true;
            edge->backward_bytes += given->nodes[u].transfer;
            if (there == home) continue;
            edge->backward_seconds +=
                step_time_move(given, u, there, home, &edge->backward_handling);
            step->stages[s].fixed_bytes += given->nodes[u].transfer;
        }
    }
}

// Arrays that mark what was seen are cleared, then each stage's transfers are counted once for each
// reading stage.
pen_status pen_step_time_stages(pen_step_time *step, const uint32_t *device_of_node,
                                const pen_stage_graph **out_graph,
                                const uint32_t **out_stage_of_node) {
    const uint32_t node_count = step->problem->given.node_count;
    uint32_t *read; // of a node: 1 + the last stage seen to read it backward
    PEN_TRY(pen_stage_forming_run(step->forming, device_of_node));
    PEN_TRY(PEN_NEW(step->forming->scratch, node_count, &read));
    step->graph.stage_count = step->forming->stage_count;
    step->graph.edge_count = 0;
    memset(step->edge_from, 0, node_count * sizeof *step->edge_from);
    memset(step->read_by, 0, node_count * sizeof *step->read_by);
    memset(step->read_aside, 0, node_count * sizeof *step->read_aside);
    step_time_sum_stages(step);
    for (uint32_t s = 0; s < step->graph.stage_count; s++) {
        step_time_send(step, s);
        step_time_receive(step, s, read);
    }
    *out_graph = &step->graph;
    if (out_stage_of_node != NULL) *out_stage_of_node = step->forming->stage_of_node;
    return PEN_OK;
}

pen_status pen_step_time_evaluate(pen_step_time *step, const uint32_t *device_of_node,
                                  const pen_step_prediction **out_prediction) {
    const pen_stage_graph *graph;
    PEN_TRY(pen_step_time_stages(step, device_of_node, &graph, NULL));
    return pen_step_time_simulate(step, out_prediction);
}

pen_status pen_step_time_simulate(pen_step_time *step, const pen_step_prediction **out_prediction) {
    const pen_problem_given *given = &step->problem->given;
    PEN_ASSERT(given->step_time != NULL);
    PEN_TRY(given->step_time(given->step_time_context, &step->graph, &step->prediction));
    if (!(step->prediction.step_seconds >= 0.0 && step->prediction.step_seconds < INFINITY)) {
        return pen_error(PEN_INTERNAL, "the schedule predicts a step of %g seconds",
                         step->prediction.step_seconds);
    }
    *out_prediction = &step->prediction;
    return PEN_OK;
}

// Of steps that are short enough, value = limit · (1 + share · sent / sent of the start).
static double step_time_weigh(const pen_step_time *step, double seconds) {
    const pen_problem_sparing *sparing = step->problem->given.sparing;
    if (sparing == NULL) return seconds;
    const double over = fmax(0.0, seconds - sparing->step_seconds);
    const double sent = pen_stage_graph_sent_seconds(&step->graph) / sparing->sent_seconds;
    return sparing->step_seconds * (1.0 + STEP_TIME_SENT_SHARE * sent) + STEP_TIME_OVER * over;
}

double pen_step_time_value(const pen_step_time *step) {
    return step_time_weigh(step, step->prediction.step_seconds);
}

// Before `begin` a device has nothing to do: no stage without inputs, and nothing to receive. Edges
// are in the order of their sources, so what comes before a stage is known when it is met.
static void step_time_find_heads(pen_step_time *step) {
    const pen_stage_graph *graph = &step->graph;
    memset(step->head, 0, graph->stage_count * sizeof *step->head);
    for (uint32_t d = 0; d < graph->device_count; d++)
        step->begin[d] = INFINITY;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const pen_stage_handling *handling = &edge->forward_handling;
        if (!(edge->forward_bytes > 0.0)) continue;
        const double first = step->head[edge->source] +
                             graph->stages[edge->source].forward_seconds +
                             handling->latency_seconds;
        const double there = first + fmax(edge->forward_seconds, handling->receive_seconds);
        double *begin = &step->begin[graph->stages[edge->target].device];
        if (there > step->head[edge->target]) step->head[edge->target] = there;
        *begin = fmin(*begin, first);
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        if (step->head[s] == 0.0) step->begin[graph->stages[s].device] = 0.0;
    }
}

// A device cannot begin before the first of its stages can, and does one thing at a time.
double pen_step_time_least(pen_step_time *step) {
    const pen_stage_graph *graph = &step->graph;
    double most = 0.0;
    step_time_find_heads(step);
    memset(step->load, 0, graph->device_count * sizeof *step->load);
    for (uint32_t e = 0; e < graph->edge_count; e++)
        pen_stage_edge_add_handling(graph, &graph->edges[e], step->load);
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        step->load[stage->device] +=
            pen_stage_microbatch_seconds(stage) + stage->update_seconds / graph->microbatch_count;
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        if (!(step->begin[d] < INFINITY)) continue;
        const double seconds = step->begin[d] + step->load[d] * graph->microbatch_count;
        if (seconds > most) most = seconds;
    }
    return step_time_weigh(step, most * (1.0 - STEP_TIME_ROUNDING));
}

const pen_stage_graph *pen_step_time_graph(const pen_step_time *step) {
    return &step->graph;
}
