#include "scheduler/schedule/schedule_memory.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "scheduler/schedule/stage_index.h"

typedef struct memory_held {
    uint32_t *held;      // [stage_count] microbatches
    bool *has_backward;  // [stage_count] by the tasks that there are
    uint32_t *in_flight; // [stage_count] most of held
} memory_held;

// The most bytes of activations that tasks [first, end) hold at once.
static double memory_of_tasks(const pen_stage_graph *graph, const pen_schedule *schedule,
                              uint32_t device, memory_held *held) {
    double bytes = 0;
    double peak = 0;
    for (uint32_t t = schedule->first_task[device]; t < schedule->first_task[device + 1]; t++) {
        const pen_task task = schedule->tasks[t];
        const double activation_bytes = graph->stages[task.stage].activation_bytes;
        if (task.kind == PEN_TASK_FORWARD) {
            const uint32_t now = ++held->held[task.stage];
            if (now > held->in_flight[task.stage]) held->in_flight[task.stage] = now;
            bytes += activation_bytes;
            if (bytes > peak) peak = bytes;
        }
        const bool releases =
            task.kind == PEN_TASK_FORWARD
                ? !held->has_backward[task.stage]
                : task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_WEIGHT;
        if (releases) {
            held->held[task.stage] -= 1;
            bytes -= activation_bytes;
        }
    }
    return peak;
}

pen_status pen_schedule_memory(const pen_stage_graph *graph, const pen_schedule *schedule,
                               pen_arena *arena, uint32_t *out_in_flight, double *out_bytes_peak) {
    memory_held held = {.in_flight = out_in_flight};
    double *workspace_bytes;
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &held.held));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &held.has_backward));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &workspace_bytes));
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        const pen_task_kind kind = schedule->tasks[t].kind;
        if (kind == PEN_TASK_BACKWARD || kind == PEN_TASK_BACKWARD_WEIGHT) {
            held.has_backward[schedule->tasks[t].stage] = true;
        }
    }
    memset(out_in_flight, 0, graph->stage_count * sizeof *out_in_flight);
    for (uint32_t d = 0; d < graph->device_count; d++) {
        out_bytes_peak[d] = memory_of_tasks(graph, schedule, d, &held);
    }
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        out_bytes_peak[stage->device] += stage->fixed_bytes;
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
