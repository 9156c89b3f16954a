// 1F1B: each device goes on with a backward task as soon as there is one, and a stage holds no more
// microbatches than it takes to fill the pipeline behind it (Narayanan et al., "PipeDream", SOSP
// 2019; "Memory-efficient pipeline-parallel DNN training", ICML 2021).
//
// What a stage may hold is its window: the stages on the longest way over gradients from it to the
// end, itself included. That is p - i for stage i of a chain of p. Where transfers make the way
// longer than its stages account for, so many that the stage is at most 5 % slower than the busiest
// device or link:
//
//   round(s) = f + b + max over edges s -> t with gradients (transfer + transfer back + round(t))
//   window(s) = min(microbatches, max(stages(s), ceil(0.95 round(s) / period)))
//
// where the period is what the busiest device or link takes for a microbatch. Where devices cannot
// hold so much, their stages' windows shrink, the largest for its depth first, down to 1.
//
// A uniform chain of p stages takes (m + p - 1)(f + b) for m microbatches.

#include <math.h>
#include <string.h>

#include "scheduler/schedule/list_scheduling.h"
#include "scheduler/schedule/schedule_memory.h"

// Of the rate of the busiest device or link, what a window has to allow.
#define ONE_F_ONE_B_RATE 0.95

// What the busiest device or link takes for a microbatch.
static pen_status one_f_one_b_period(const pen_stage_index *index, pen_arena *arena,
                                     double *out_seconds) {
    const pen_stage_graph *graph = index->graph;
    double *busy; // devices, then links
    PEN_TRY(PEN_NEW(arena, (size_t)graph->device_count + index->link_count, &busy));
    double *link_busy = busy + graph->device_count;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        busy[graph->stages[s].device] += pen_stage_microbatch_seconds(&graph->stages[s]);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        if (index->forward_link[e] == PEN_LINK_NONE) continue;
        link_busy[index->forward_link[e]] += edge->forward_seconds;
        if (edge->has_gradient) link_busy[index->backward_link[e]] += edge->backward_seconds;
    }
    *out_seconds = 0;
    for (uint32_t i = 0; i < graph->device_count + index->link_count; i++) {
        *out_seconds = fmax(*out_seconds, busy[i]);
    }
    return PEN_OK;
}

static pen_status one_f_one_b_windows(const pen_stage_index *index, pen_arena *arena,
                                      uint32_t *out_window) {
    const pen_stage_graph *graph = index->graph;
    double period;
    double *round_seconds;
    PEN_TRY(one_f_one_b_period(index, arena, &period));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &round_seconds));
    for (uint32_t s = graph->stage_count; s-- > 0;) {
        uint32_t depth = 0;
        double behind = 0;
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            const pen_stage_edge *edge = &graph->edges[index->out_edges[i]];
            if (!edge->has_gradient) continue;
            if (out_window[edge->target] > depth) depth = out_window[edge->target];
            behind = fmax(behind, edge->forward_seconds + edge->backward_seconds +
                                      round_seconds[edge->target]);
        }
        out_window[s] = depth + 1;
        round_seconds[s] = pen_stage_microbatch_seconds(&graph->stages[s]) + behind;
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const double rounds = period > 0 ? ceil(ONE_F_ONE_B_RATE * round_seconds[s] / period) : 0;
        if (rounds >= graph->microbatch_count) {
            out_window[s] = graph->microbatch_count;
        } else if (rounds > out_window[s]) {
            out_window[s] = (uint32_t)rounds;
        }
        if (out_window[s] > graph->microbatch_count) out_window[s] = graph->microbatch_count;
    }
    return PEN_OK;
}

// Shrinks the windows of a device's stages until what they may hold at once fits, or all are 1.
// Returns whether one did.
static bool one_f_one_b_shrink(const pen_stage_index *index, uint32_t device,
                               const uint32_t *wanted, uint32_t *window) {
    const pen_stage_graph *graph = index->graph;
    double fixed_bytes = 0;
    double workspace_bytes = 0;
    double held_bytes = 0;
    bool shrank = false;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        const pen_stage *stage = &graph->stages[s];
        fixed_bytes += stage->fixed_bytes;
        workspace_bytes = fmax(workspace_bytes, stage->workspace_bytes);
        held_bytes += window[s] * stage->activation_bytes;
    }
    while (fixed_bytes + workspace_bytes + held_bytes > graph->bytes_limit[device]) {
        uint32_t largest = UINT32_MAX;
        for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
            const uint32_t s = index->device_stages[i];
            if (window[s] == 1 || graph->stages[s].activation_bytes <= 0) continue;
            if (!index->has_backward[s]) continue;
            if (largest == UINT32_MAX ||
                (double)window[s] * wanted[largest] > (double)window[largest] * wanted[s])
                largest = s;
        }
        if (largest == UINT32_MAX) break;
        window[largest] -= 1;
        held_bytes -= graph->stages[largest].activation_bytes;
        shrank = true;
    }
    return shrank;
}

// Shrinks where a device is above its limit. Returns whether anything shrank.
static bool one_f_one_b_make_room(const pen_stage_index *index, const double *bytes_peak,
                                  const uint32_t *wanted, uint32_t *window) {
    bool shrank = false;
    for (uint32_t d = 0; d < index->graph->device_count; d++) {
        if (bytes_peak[d] <= index->graph->bytes_limit[d]) continue;
        if (one_f_one_b_shrink(index, d, wanted, window)) shrank = true;
    }
    return shrank;
}

static pen_status one_f_one_b_generate(const pen_stage_graph *graph, pen_arena *arena,
                                       const pen_schedule **out_schedule) {
    const pen_stage_index *index;
    uint32_t *wanted;
    uint32_t *window;
    uint32_t *in_flight;
    double *bytes_peak;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &wanted));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &window));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &in_flight));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &bytes_peak));
    PEN_TRY(one_f_one_b_windows(index, arena, wanted));
    memcpy(window, wanted, graph->stage_count * sizeof *window);
    // a device that shrank fits in any order, so each shrinks once at most
    const pen_list_scheduling options = {.window = window};
    do {
        PEN_TRY(pen_list_schedule(index, &options, arena, out_schedule));
        PEN_TRY(pen_schedule_memory(graph, *out_schedule, arena, in_flight, bytes_peak));
    } while (one_f_one_b_make_room(index, bytes_peak, wanted, window));
    return pen_schedule_check_memory(graph, in_flight, bytes_peak);
}

const pen_schedule_generator pen_schedule_one_f_one_b = {
    .name = "1f1b",
    .summary = "backward passes as early as they can; holds as many microbatches as stages follow",
    .generate = one_f_one_b_generate,
};
