#include "scheduler/schedule/schedule_memory.h"

#include <math.h>
#include <string.h>

typedef struct memory_held {
    uint32_t *held;      // [stage_count] microbatches
    uint32_t *between;   // [stage_count] of them between their halves
    uint32_t *in_flight; // [stage_count] most of held
    uint32_t *halved;    // [stage_count] most of between
} memory_held;

static void memory_take(uint32_t *now, uint32_t *most) {
    *now += 1;
    if (*now > *most) *most = *now;
}

// A forward task takes memory that the backward task gives back; a halved one keeps part of it
// until its second half.
static void memory_count(const pen_stage_graph *graph, pen_task task, memory_held *held) {
    const uint32_t s = task.stage;
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        memory_take(&held->held[s], &held->in_flight[s]);
        if (!graph->stages[s].has_backward) held->held[s] -= 1;
        break;
    case PEN_TASK_BACKWARD_INPUT:
        memory_take(&held->between[s], &held->halved[s]);
        break;
    case PEN_TASK_BACKWARD_WEIGHT:
        held->between[s] -= 1;
        held->held[s] -= 1;
        break;
    case PEN_TASK_BACKWARD:
        held->held[s] -= 1;
        break;
    case PEN_TASK_UPDATE:
        break;
    }
}

// The peak follows from the order of a device's tasks alone, whatever they take: so what is proved
// here holds for every timing.
pen_status pen_schedule_memory(const pen_stage_graph *graph, const pen_schedule *schedule,
                               pen_arena *arena, uint32_t *out_in_flight, uint32_t *out_halved,
                               double *out_bytes_peak) {
    memory_held held = {.in_flight = out_in_flight, .halved = out_halved};
    double *workspace_bytes;
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &held.held));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &held.between));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &workspace_bytes));
    if (out_halved == NULL) PEN_TRY(PEN_NEW(arena, graph->stage_count, &held.halved));
    memset(out_in_flight, 0, graph->stage_count * sizeof *out_in_flight);
    memset(held.halved, 0, graph->stage_count * sizeof *held.halved);
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        memory_count(graph, schedule->tasks[t], &held);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        out_bytes_peak[d] = 0;
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        out_bytes_peak[stage->device] += stage->fixed_bytes +
                                         out_in_flight[s] * stage->activation_bytes +
                                         held.halved[s] * stage->halved_bytes;
        workspace_bytes[stage->device] =
            fmax(workspace_bytes[stage->device], stage->workspace_bytes);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        out_bytes_peak[d] += workspace_bytes[d];
    }
    return PEN_OK;
}

pen_status pen_schedule_check_memory(const pen_stage_graph *graph, const uint32_t *in_flight,
                                     const double *bytes_peak) {
    for (uint32_t d = 0; d < graph->device_count; d++) {
        if (bytes_peak[d] <= graph->bytes_limit[d]) continue;
        uint32_t most = 0;
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            if (graph->stages[s].device == d && in_flight[s] > most) most = in_flight[s];
        }
        return pen_error(PEN_DOES_NOT_FIT,
                         "device %u needs %.0f bytes with %u microbatches in flight, its limit is "
                         "%.0f bytes",
                         d, bytes_peak[d], most, graph->bytes_limit[d]);
    }
    return PEN_OK;
}
