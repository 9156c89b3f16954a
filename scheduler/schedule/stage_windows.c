#include "scheduler/schedule/stage_windows.h"

#include <math.h>

#include "scheduler/schedule/schedule_memory.h"

// Of the rate of the busiest device or link, what a window has to allow.
#define WINDOW_RATE 0.95

// `busy`: of devices, then of lines.
static void windows_add_route(const pen_stage_graph *graph, const pen_route *route, uint32_t source,
                              uint32_t target, double *busy) {
    double *line_busy = busy + graph->device_count;
    busy[source] += route->handling.send_seconds;
    busy[target] += route->handling.receive_seconds;
    if (route->out_line != PEN_LINK_NONE) line_busy[route->out_line] += route->out_seconds;
    if (route->in_line != PEN_LINK_NONE) line_busy[route->in_line] += route->in_seconds;
}

// `busy` as above.
static void windows_see_lines(const pen_stage_graph *graph, const pen_route *route,
                              const double *busy, double *period) {
    const double *line_busy = busy + graph->device_count;
    if (route->out_line != PEN_LINK_NONE) *period = fmax(*period, line_busy[route->out_line]);
    if (route->in_line != PEN_LINK_NONE) *period = fmax(*period, line_busy[route->in_line]);
}

// What the busiest device or line of a stage's replica takes for a microbatch: of those that run
// the same range, out_period [microbatch_count] by its first.
static pen_status windows_periods(const pen_stage_index *index, pen_arena *arena,
                                  double *out_period) {
    const pen_stage_graph *graph = index->graph;
    double *busy; // devices, then lines
    PEN_TRY(PEN_NEW(arena, (size_t)graph->device_count + index->line_count, &busy));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        busy[graph->stages[s].device] += pen_stage_microbatch_seconds(&graph->stages[s]);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const uint32_t source = graph->stages[edge->source].device;
        const uint32_t target = graph->stages[edge->target].device;
        windows_add_route(graph, &index->forward_route[e], source, target, busy);
        if (!edge->has_gradient) continue;
        windows_add_route(graph, &index->backward_route[e], target, source, busy);
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        double *period = &out_period[graph->stages[s].first_microbatch];
        *period = fmax(*period, busy[graph->stages[s].device]);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        double *period = &out_period[graph->stages[graph->edges[e].source].first_microbatch];
        windows_see_lines(graph, &index->forward_route[e], busy, period);
        windows_see_lines(graph, &index->backward_route[e], busy, period);
    }
    return PEN_OK;
}

// A stage may hold as many microbatches as it takes until the first comes back: by depth, or by
// time where stages are uneven.
static pen_status windows_fill(const pen_stage_index *index, pen_arena *arena,
                               uint32_t *out_window) {
    const pen_stage_graph *graph = index->graph;
    double *periods, *round_seconds;
    PEN_TRY(PEN_NEW(arena, graph->microbatch_count, &periods));
    PEN_TRY(windows_periods(index, arena, periods));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &round_seconds));
    for (uint32_t s = graph->stage_count; s-- > 0;) {
        uint32_t depth = 0;
        double behind = 0;
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            const uint32_t e = index->out_edges[i];
            const pen_stage_edge *edge = &graph->edges[e];
            if (!edge->has_gradient) continue;
            if (out_window[edge->target] > depth) depth = out_window[edge->target];
            behind = fmax(behind, pen_route_seconds(&index->forward_route[e]) +
                                      pen_route_seconds(&index->backward_route[e]) +
                                      round_seconds[edge->target]);
        }
        out_window[s] = depth + 1;
        round_seconds[s] = pen_stage_microbatch_seconds(&graph->stages[s]) + behind;
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const double period = periods[graph->stages[s].first_microbatch];
        const uint32_t most = pen_stage_microbatches(graph, &graph->stages[s]);
        const double rounds = period > 0 ? ceil(WINDOW_RATE * round_seconds[s] / period) : 0;
        if (rounds >= most) {
            out_window[s] = most;
        } else if (rounds > out_window[s]) {
            out_window[s] = (uint32_t)rounds;
        }
        if (out_window[s] > most) out_window[s] = most;
        if (!index->has_backward[s]) out_window[s] = 1;
    }
    return PEN_OK;
}

pen_status pen_stage_windows_new(const pen_stage_index *index, pen_arena *arena,
                                 pen_stage_windows *out_windows) {
    const uint32_t stage_count = index->graph->stage_count;
    PEN_TRY(PEN_NEW(arena, stage_count, &out_windows->window));
    PEN_TRY(PEN_NEW(arena, stage_count, &out_windows->hold));
    PEN_TRY(PEN_NEW(arena, stage_count, &out_windows->halved));
    PEN_TRY(PEN_NEW(arena, stage_count, &out_windows->is_halved));
    PEN_TRY(windows_fill(index, arena, out_windows->window));
    for (uint32_t s = 0; s < stage_count; s++) {
        out_windows->hold[s] = out_windows->window[s];
        out_windows->halved[s] = out_windows->window[s];
    }
    return PEN_OK;
}

void pen_stage_index_depths(const pen_stage_index *index, uint32_t *out_depth) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        out_depth[s] = 0;
        for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
            const pen_stage_edge *edge = &graph->edges[index->in_edges[i]];
            if (!edge->has_gradient) continue;
            if (out_depth[edge->source] + 1 > out_depth[s]) {
                out_depth[s] = out_depth[edge->source] + 1;
            }
        }
    }
}

// ---- memory

// What is wanted of a schedule, and what it came to.
typedef struct windows_fit {
    const pen_stage_index *index;
    pen_stage_windows *windows;
    uint32_t *in_flight; // [stage_count]
    uint32_t *halved;    // [stage_count]
    double *bytes_peak;  // [device_count]
} windows_fit;

// What the windows of a device's stages may come to.
static double fit_bytes(const windows_fit *fit, uint32_t device) {
    const pen_stage_index *index = fit->index;
    double bytes = 0;
    double workspace_bytes = 0;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        const pen_stage *stage = &index->graph->stages[s];
        workspace_bytes = fmax(workspace_bytes, stage->workspace_bytes);
        bytes += stage->fixed_bytes + fit->windows->hold[s] * stage->activation_bytes;
        if (fit->windows->is_halved[s]) bytes += fit->windows->halved[s] * stage->halved_bytes;
    }
    return bytes + workspace_bytes;
}

// The window that is largest for what was wanted, of those that take memory. NULL: all are 1.
static uint32_t *fit_find_largest(const windows_fit *fit, uint32_t device) {
    const pen_stage_index *index = fit->index;
    uint32_t *largest = NULL;
    double share = 0;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        const pen_stage *stage = &index->graph->stages[s];
        uint32_t *hold = &fit->windows->hold[s];
        uint32_t *halved = &fit->windows->halved[s];
        if (*hold > 1 && stage->activation_bytes > 0 && *hold >= share * fit->in_flight[s]) {
            share = (double)*hold / fit->in_flight[s];
            largest = hold;
        }
        if (!fit->windows->is_halved[s] || *halved <= 1 || stage->halved_bytes <= 0) continue;
        if (*halved > share * fit->halved[s]) {
            share = (double)*halved / fit->halved[s];
            largest = halved;
        }
    }
    return largest;
}

// Makes room on a device: its windows are at most what the schedule came to, and shrink from there
// until they fit. Returns whether anything changed.
static bool fit_shrink(const windows_fit *fit, uint32_t device) {
    const pen_stage_index *index = fit->index;
    pen_stage_windows *windows = fit->windows;
    bool shrank = false;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        if (fit->in_flight[s] < windows->hold[s]) windows->hold[s] = fit->in_flight[s];
        if (fit->halved[s] < windows->halved[s]) windows->halved[s] = fit->halved[s];
        if (windows->hold[s] == 0) windows->hold[s] = 1;
        if (windows->halved[s] == 0) windows->halved[s] = 1;
    }
    while (fit_bytes(fit, device) > index->graph->bytes_limit[device]) {
        uint32_t *largest = fit_find_largest(fit, device);
        if (largest == NULL) break;
        *largest -= 1;
        shrank = true;
    }
    if (fit_bytes(fit, device) > index->graph->bytes_limit[device]) {
        for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
            const uint32_t s = index->device_stages[i];
            shrank = shrank || windows->is_halved[s];
            windows->is_halved[s] = false;
        }
    }
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        if (windows->window[s] > windows->hold[s]) windows->window[s] = windows->hold[s];
    }
    return shrank;
}

// Shrinks where a device is above its limit. Returns whether anything shrank.
static bool fit_make_room(const windows_fit *fit) {
    const pen_stage_graph *graph = fit->index->graph;
    bool shrank = false;
    for (uint32_t d = 0; d < graph->device_count; d++) {
        if (fit->bytes_peak[d] <= graph->bytes_limit[d]) continue;
        if (fit_shrink(fit, d)) shrank = true;
    }
    return shrank;
}

// Schedules, looks at the memory, and shrinks what holds most, until it fits or nothing can shrink.
pen_status pen_stage_windows_schedule(const pen_stage_index *index,
                                      const pen_list_scheduling *options,
                                      pen_stage_windows *windows, pen_arena *arena,
                                      const pen_schedule **out_schedule) {
    const pen_stage_graph *graph = index->graph;
    pen_list_scheduling own = *options;
    windows_fit fit = {.index = index, .windows = windows};
    own.window = windows->window;
    own.hold = windows->hold;
    own.halved = windows->halved;
    own.is_halved = windows->is_halved;
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &fit.in_flight));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &fit.halved));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &fit.bytes_peak));
    // each round shrinks a device that is above its limit until its windows fit, or lets its
    // backward tasks run whole
    do {
        PEN_TRY(pen_list_schedule(index, &own, arena, out_schedule));
        PEN_TRY(pen_schedule_memory(graph, *out_schedule, arena, fit.in_flight, fit.halved,
                                    fit.bytes_peak));
    } while (fit_make_room(&fit));
    return pen_schedule_check_memory(graph, fit.in_flight, fit.bytes_peak);
}
