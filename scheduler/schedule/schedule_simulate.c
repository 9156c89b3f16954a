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

static double simulate_bytes(const pen_stage_graph *graph, const pen_transfer_time *transfer) {
    if (transfer->is_step) return graph->step_edges[transfer->edge].bytes;
    const pen_stage_edge *edge = &graph->edges[transfer->edge];
    return transfer->is_backward ? edge->backward_bytes : edge->forward_bytes;
}

static uint32_t simulate_link(const pen_stage_index *index, const pen_transfer_time *transfer) {
    if (transfer->is_step) return index->step_link[transfer->edge];
    return transfer->is_backward ? index->backward_link[transfer->edge]
                                 : index->forward_link[transfer->edge];
}

// Only links that something goes over are listed, in the order of their first use.
static pen_status simulate_add_links(pen_timeline *timeline, const pen_stage_index *index,
                                     pen_arena *arena) {
    const pen_stage_graph *graph = timeline->graph;
    uint32_t *number; // of a link: 1 + its place among those that are used
    PEN_TRY(PEN_NEW(arena, index->link_count, &number));
    PEN_TRY(PEN_NEW(arena, index->link_count, &timeline->links));
    for (uint32_t i = 0; i < timeline->times.transfer_count; i++) {
        const pen_transfer_time *transfer = &timeline->times.transfers[i];
        const uint32_t link = simulate_link(index, transfer);
        if (number[link] == 0) {
            number[link] = ++timeline->link_count;
            pen_link_traffic *fresh = &timeline->links[number[link] - 1];
            fresh->source = graph->stages[pen_transfer_source(graph, transfer)].device;
            fresh->target = graph->stages[pen_transfer_target(graph, transfer)].device;
        }
        pen_link_traffic *traffic = &timeline->links[number[link] - 1];
        traffic->transfer_count += 1;
        traffic->bytes += simulate_bytes(graph, transfer);
        traffic->busy_seconds += transfer->end_seconds - transfer->start_seconds;
    }
    return PEN_OK;
}

// Checks the tasks first, for a schedule may come from a file; then times, memory and sums.
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
    PEN_TRY(simulate_add_links(timeline, index, arena));
    *out_timeline = timeline;
    return PEN_OK;
}
