#include "scheduler/schedule/schedule_simulate.h"

#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_memory.h"
#include "scheduler/schedule/stage_index.h"

static void simulate_sum_up(pen_timeline *timeline, const pen_stage_index *index) {
    const pen_schedule *schedule = timeline->schedule;
    double busy_seconds = 0;
    uint32_t device_count = 0;
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            timeline->busy_seconds[d] += pen_task_seconds(timeline->graph, schedule->tasks[t]);
            if (timeline->times.end_seconds[t] > timeline->step_seconds) {
                timeline->step_seconds = timeline->times.end_seconds[t];
            }
        }
        busy_seconds += timeline->busy_seconds[d];
        if (index->first_stage[d] < index->first_stage[d + 1]) device_count += 1;
    }
    const double whole = timeline->step_seconds * device_count;
    if (whole > 0) timeline->bubble = 1 - busy_seconds / whole;
    if (timeline->bubble < 0) timeline->bubble = 0; // by rounding
}

pen_status pen_schedule_simulate(const pen_stage_graph *graph, const pen_schedule *schedule,
                                 pen_arena *arena, const pen_timeline **out_timeline) {
    const pen_stage_index *index;
    pen_timeline *timeline;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(pen_schedule_check_tasks(graph, schedule, arena));
    PEN_TRY(PEN_NEW(arena, 1, &timeline));
    timeline->graph = graph;
    timeline->schedule = schedule;
    PEN_TRY(PEN_NEW(arena, graph->device_count, &timeline->busy_seconds));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &timeline->in_flight));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &timeline->halved));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &timeline->bytes_peak));
    PEN_TRY(pen_task_walk(index, schedule, arena, &timeline->times));
    PEN_TRY(pen_schedule_memory(graph, schedule, arena, timeline->in_flight, timeline->halved,
                                timeline->bytes_peak));
    simulate_sum_up(timeline, index);
    *out_timeline = timeline;
    return PEN_OK;
}
