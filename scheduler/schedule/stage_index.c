#include "scheduler/schedule/stage_index.h"

#include <math.h>

// All arrays are indexed by device, stage or edge, and times by stage and microbatch in 32 bits.
#define INDEX_TASK_LIMIT (UINT32_MAX / 8)

static bool index_amount_is_valid(double amount) {
    return isfinite(amount) && amount >= 0;
}

// Figures may come from a plan that was edited by hand.
static pen_status index_check_stage(const pen_stage_graph *graph, uint32_t s) {
    const pen_stage *stage = &graph->stages[s];
    if (stage->device >= graph->device_count) {
        return pen_error(PEN_INVALID_INPUT, "stage %u is on device %u, there are %u devices", s,
                         stage->device, graph->device_count);
    }
    const uint32_t first = stage->first_microbatch;
    if (first >= graph->microbatch_count ||
        stage->microbatch_count > graph->microbatch_count - first ||
        (stage->microbatch_count == 0 && first > 0)) {
        return pen_error(PEN_INVALID_INPUT,
                         "stage %u runs %u microbatches from %u on, a step has %u", s,
                         stage->microbatch_count, first, graph->microbatch_count);
    }
    if (stage->is_owner && (first > 0 || stage->microbatch_count > 0 || stage->has_backward)) {
        return pen_error(PEN_INVALID_INPUT,
                         "stage %u has updates alone, but a backward pass or microbatches too", s);
    }
    const struct {
        const char *name;
        double amount;
    } amounts[] = {
        {"forward_seconds", stage->forward_seconds},
        {"backward_input_seconds", stage->backward_input_seconds},
        {"backward_weight_seconds", stage->backward_weight_seconds},
        {"update_seconds", stage->update_seconds},
        {"fixed_bytes", stage->fixed_bytes},
        {"workspace_bytes", stage->workspace_bytes},
        {"activation_bytes", stage->activation_bytes},
        {"halved_bytes", stage->halved_bytes},
    };
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        if (index_amount_is_valid(amounts[i].amount)) continue;
        return pen_error(PEN_INVALID_INPUT, "stage %u: %s is %g, expected a number from 0 up", s,
                         amounts[i].name, amounts[i].amount);
    }
    return PEN_OK;
}

static bool index_handling_is_valid(const pen_stage_handling *handling) {
    return index_amount_is_valid(handling->latency_seconds) &&
           index_amount_is_valid(handling->send_seconds) &&
           index_amount_is_valid(handling->receive_seconds);
}

// Edges go from lower to higher stages, which makes circles impossible.
static pen_status index_check_edge(const pen_stage_graph *graph, uint32_t e) {
    const pen_stage_edge *edge = &graph->edges[e];
    if (edge->target >= graph->stage_count || edge->source >= edge->target) {
        return pen_error(PEN_INVALID_INPUT,
                         "edge %u goes from stage %u to %u, expected a lower to a higher of %u", e,
                         edge->source, edge->target, graph->stage_count);
    }
    const pen_stage *source = &graph->stages[edge->source], *target = &graph->stages[edge->target];
    if (source->first_microbatch != target->first_microbatch ||
        source->microbatch_count != target->microbatch_count || source->is_owner ||
        target->is_owner) {
        return pen_error(PEN_INVALID_INPUT,
                         "edge %u goes from stage %u to %u, which run other microbatches", e,
                         edge->source, edge->target);
    }
    const double amounts[] = {edge->forward_bytes, edge->backward_bytes, edge->forward_seconds,
                              edge->backward_seconds};
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        if (index_amount_is_valid(amounts[i])) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "edge %u from stage %u to %u has %g bytes or seconds, expected a number "
                         "from 0 up",
                         e, edge->source, edge->target, amounts[i]);
    }
    if (!index_handling_is_valid(&edge->forward_handling) ||
        !index_handling_is_valid(&edge->backward_handling)) {
        return pen_error(PEN_INVALID_INPUT,
                         "edge %u from stage %u to %u: latencies and what devices compute must be "
                         "numbers from 0 up",
                         e, edge->source, edge->target);
    }
    if (!edge->has_gradient) return PEN_OK;
    const uint32_t ends[] = {edge->source, edge->target};
    for (size_t i = 0; i < 2; i++) {
        if (graph->stages[ends[i]].has_backward) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "edge %u from stage %u to %u has a gradient, but stage %u has no backward "
                         "pass",
                         e, edge->source, edge->target, ends[i]);
    }
    return PEN_OK;
}

// Between two stages with updates, and to a phase that is not the last.
static pen_status index_check_step_edge(const pen_stage_graph *graph, uint32_t e) {
    const pen_stage_step_edge *edge = &graph->step_edges[e];
    if (edge->source >= graph->stage_count || edge->target >= graph->stage_count ||
        edge->source == edge->target || edge->phase + 1 >= pen_stage_graph_phases(graph) ||
        edge->phase == UINT32_MAX) {
        return pen_error(PEN_INVALID_INPUT,
                         "step edge %u goes from stage %u to %u with phase %u, there are %u stages "
                         "and %u phases",
                         e, edge->source, edge->target, edge->phase, graph->stage_count,
                         pen_stage_graph_phases(graph));
    }
    const uint32_t ends[] = {edge->source, edge->target};
    for (size_t i = 0; i < 2; i++) {
        if (graph->stages[ends[i]].has_update) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "step edge %u from stage %u to %u: stage %u has no updates", e,
                         edge->source, edge->target, ends[i]);
    }
    if (index_amount_is_valid(edge->bytes) && index_amount_is_valid(edge->seconds) &&
        index_handling_is_valid(&edge->handling)) {
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "step edge %u from stage %u to %u has %g bytes and %g seconds, expected "
                     "numbers from 0 up",
                     e, edge->source, edge->target, edge->bytes, edge->seconds);
}

static pen_status index_check_seats(const pen_stage_graph *graph) {
    for (uint32_t d = 0; d < graph->device_count && graph->seats != NULL; d++) {
        const pen_device_seat *seat = &graph->seats[d];
        if (seat->host < graph->device_count && seat->process < graph->device_count &&
            seat->out_rate > 0 && seat->in_rate > 0) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT,
                         "device %u is on host %u, in process %u, with lines of %g and %g bytes a "
                         "second: expected hosts and processes below %u and rates above 0",
                         d, seat->host, seat->process, seat->out_rate, seat->in_rate,
                         graph->device_count);
    }
    return PEN_OK;
}

// The number of tasks is bounded before anything is allocated for them.
static pen_status index_check(const pen_stage_graph *graph) {
    if (graph->microbatch_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "a step has 0 microbatches, expected at least 1");
    }
    if ((uint64_t)(graph->stage_count + (uint64_t)graph->edge_count) * graph->microbatch_count >
        INDEX_TASK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%u stages for %u microbatches are too many tasks",
                         graph->stage_count, graph->microbatch_count);
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        PEN_TRY(index_check_stage(graph, s));
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        PEN_TRY(index_check_edge(graph, e));
    }
    if ((uint64_t)graph->stage_count * pen_stage_graph_phases(graph) > INDEX_TASK_LIMIT ||
        graph->step_edge_count > INDEX_TASK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%u stages with %u phases of updates are too many",
                         graph->stage_count, pen_stage_graph_phases(graph));
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        PEN_TRY(index_check_step_edge(graph, e));
    }
    return index_check_seats(graph);
}

// Turns counts at [key + 1] into where each key's items begin.
static void index_sum(uint32_t *first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        first[i + 1] += first[i];
    }
}

// Stages by device, edges by both ends: counts, sums, then places.
static void index_sort(pen_stage_index *index, uint32_t *cursor) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        index->first_stage[graph->stages[s].device + 1] += 1;
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        index->first_output[graph->edges[e].source + 1] += 1;
        index->first_input[graph->edges[e].target + 1] += 1;
    }
    index_sum(index->first_stage, graph->device_count);
    index_sum(index->first_output, graph->stage_count);
    index_sum(index->first_input, graph->stage_count);
    uint32_t *output_cursor = cursor;
    uint32_t *input_cursor = cursor + graph->stage_count;
    uint32_t *stage_cursor = input_cursor + graph->stage_count;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const uint32_t d = graph->stages[s].device;
        index->device_stages[index->first_stage[d] + stage_cursor[d]++] = s;
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        index->out_edges[index->first_output[edge->source] + output_cursor[edge->source]++] = e;
        index->in_edges[index->first_input[edge->target] + input_cursor[edge->target]++] = e;
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        index->first_step[graph->step_edges[e].source + 1] += 1;
    }
    index_sum(index->first_step, graph->stage_count);
    uint32_t *step_cursor = stage_cursor + graph->device_count;
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const uint32_t source = graph->step_edges[e].source;
        index->step_edges[index->first_step[source] + step_cursor[source]++] = e;
    }
}

static void index_mark_backward(pen_stage_index *index) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        index->has_backward[s] = graph->stages[s].has_backward;
        index->has_update[s] = graph->stages[s].has_update;
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        if (graph->edges[e].has_gradient) index->gradient_count[graph->edges[e].source] += 1;
    }
}

// Links by number, in a table of open addressing.
typedef struct index_links {
    uint32_t mask;
    uint32_t count;
    uint32_t *numbers; // [mask + 1], from 1; 0: free
    uint32_t *sources; // [mask + 1]
    uint32_t *targets; // [mask + 1]
} index_links;

static uint32_t index_link(index_links *links, uint32_t source, uint32_t target) {
    if (source == target) return PEN_LINK_NONE;
    uint32_t slot = (source * 0x9e3779b1u ^ target * 0x85ebca6bu) & links->mask;
    while (links->numbers[slot] != 0) {
        if (links->sources[slot] == source && links->targets[slot] == target) break;
        slot = (slot + 1) & links->mask;
    }
    if (links->numbers[slot] == 0) {
        links->sources[slot] = source;
        links->targets[slot] = target;
        links->numbers[slot] = ++links->count;
    }
    return links->numbers[slot] - 1;
}

// A hash table and not a matrix: thousands of devices use few of their pairs.
static pen_status index_number_links(pen_stage_index *index, pen_arena *arena) {
    const pen_stage_graph *graph = index->graph;
    const size_t edge_count = (size_t)graph->edge_count + graph->step_edge_count;
    size_t capacity = 8;
    while (capacity < edge_count * 4)
        capacity *= 2;
    index_links links = {.mask = (uint32_t)(capacity - 1)};
    PEN_TRY(PEN_NEW(arena, capacity, &links.numbers));
    PEN_TRY(PEN_NEW(arena, capacity, &links.sources));
    PEN_TRY(PEN_NEW(arena, capacity, &links.targets));
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const uint32_t source = graph->stages[graph->edges[e].source].device;
        const uint32_t target = graph->stages[graph->edges[e].target].device;
        index->forward_link[e] = index_link(&links, source, target);
        index->backward_link[e] = index_link(&links, target, source);
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        index->step_link[e] = index_link(&links, graph->stages[edge->source].device,
                                         graph->stages[edge->target].device);
    }
    index->link_count = links.count;
    return PEN_OK;
}

// What the values of an edge take on their way from one device to another.
typedef struct index_move {
    uint32_t from;
    uint32_t to;
    uint32_t link;
    double bytes;
    double seconds;
    const pen_stage_handling *handling;
} index_move;

// Lines of hosts out and in come first, then those of processes; without seats, lines are links.
static pen_route index_route(const pen_stage_graph *graph, const index_move *move) {
    const uint32_t count = graph->device_count;
    pen_route route = {.out_line = PEN_LINK_NONE,
                       .in_line = PEN_LINK_NONE,
                       .seconds = move->seconds,
                       .handling = *move->handling};
    if (move->from == move->to) {
        route.seconds = 0;
        route.handling = (pen_stage_handling){0};
    } else if (graph->seats == NULL) {
        route.out_line = move->link;
        route.out_seconds = move->seconds;
    } else {
        const pen_device_seat *from = &graph->seats[move->from], *to = &graph->seats[move->to];
        if (from->host != to->host) {
            route.out_line = from->host;
            route.in_line = count + to->host;
            route.out_seconds = move->bytes / from->out_rate;
            route.in_seconds = move->bytes / to->in_rate;
        } else if (from->process != to->process) {
            route.out_line = 2 * count + from->process;
            route.in_line = 3 * count + to->process;
            route.out_seconds = route.in_seconds = move->seconds;
        }
    }
    return route;
}

// Worked out once for each edge and direction: simulations look them up for each microbatch.
static pen_status index_find_routes(pen_stage_index *index, pen_arena *arena) {
    const pen_stage_graph *graph = index->graph;
    index->line_count = graph->seats == NULL ? index->link_count : 4 * graph->device_count;
    PEN_TRY(PEN_NEW(arena, graph->edge_count, &index->forward_route));
    PEN_TRY(PEN_NEW(arena, graph->edge_count, &index->backward_route));
    PEN_TRY(PEN_NEW(arena, graph->step_edge_count, &index->step_route));
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const uint32_t from = graph->stages[edge->source].device;
        const uint32_t to = graph->stages[edge->target].device;
        const index_move forward = {from,
                                    to,
                                    index->forward_link[e],
                                    edge->forward_bytes,
                                    edge->forward_seconds,
                                    &edge->forward_handling};
        const index_move backward = {to,
                                     from,
                                     index->backward_link[e],
                                     edge->backward_bytes,
                                     edge->backward_seconds,
                                     &edge->backward_handling};
        index->forward_route[e] = index_route(graph, &forward);
        index->backward_route[e] = index_route(graph, &backward);
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        const index_move move = {graph->stages[edge->source].device,
                                 graph->stages[edge->target].device,
                                 index->step_link[e],
                                 edge->bytes,
                                 edge->seconds,
                                 &edge->handling};
        index->step_route[e] = index_route(graph, &move);
    }
    return PEN_OK;
}

// Everything that generators, check and simulation look up, built once from a graph that was
// checked.
pen_status pen_stage_index_new(const pen_stage_graph *graph, pen_arena *arena,
                               const pen_stage_index **out_index) {
    PEN_TRY(index_check(graph));
    const size_t stages = graph->stage_count;
    const size_t edges = graph->edge_count;
    const size_t devices = graph->device_count;
    pen_stage_index *index;
    uint32_t *cursor;
    PEN_TRY(PEN_NEW(arena, 1, &index));
    index->graph = graph;
    index->phase_count = pen_stage_graph_phases(graph);
    PEN_TRY(PEN_NEW(arena, stages + 1, &index->first_output));
    PEN_TRY(PEN_NEW(arena, edges, &index->out_edges));
    PEN_TRY(PEN_NEW(arena, stages + 1, &index->first_input));
    PEN_TRY(PEN_NEW(arena, edges, &index->in_edges));
    PEN_TRY(PEN_NEW(arena, devices + 1, &index->first_stage));
    PEN_TRY(PEN_NEW(arena, stages, &index->device_stages));
    PEN_TRY(PEN_NEW(arena, stages, &index->gradient_count));
    PEN_TRY(PEN_NEW(arena, stages, &index->has_backward));
    PEN_TRY(PEN_NEW(arena, stages, &index->has_update));
    PEN_TRY(PEN_NEW(arena, edges, &index->forward_link));
    PEN_TRY(PEN_NEW(arena, edges, &index->backward_link));
    PEN_TRY(PEN_NEW(arena, stages + 1, &index->first_step));
    PEN_TRY(PEN_NEW(arena, graph->step_edge_count, &index->step_edges));
    PEN_TRY(PEN_NEW(arena, graph->step_edge_count, &index->step_link));
    PEN_TRY(PEN_NEW(arena, 3 * stages + devices, &cursor));
    index_sort(index, cursor);
    index_mark_backward(index);
    PEN_TRY(index_number_links(index, arena));
    PEN_TRY(index_find_routes(index, arena));
    *out_index = index;
    return PEN_OK;
}
