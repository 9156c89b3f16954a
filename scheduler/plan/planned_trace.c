#include "scheduler/plan/planned_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/plan_schedule.h"

// What goes from stage to stage, as channels: forward edges, then backward, then step edges.
typedef struct planned_maker {
    const pen_plan *plan;
    const pen_timeline *timeline;
    pen_arena *arena;
    pen_trace_channel *channels;
    pen_trace_event *events;
    uint32_t event_count;
} planned_maker;

// What a device holds all the time, and what a microbatch in flight adds, by stage.
pen_status pen_planned_memory(const pen_stage_graph *stages, pen_arena *arena,
                              const pen_trace_stage **out_stages, const double **out_fixed_bytes) {
    pen_trace_stage *made;
    double *fixed, *workspace;
    PEN_TRY(PEN_NEW(arena, stages->stage_count, &made));
    PEN_TRY(PEN_NEW(arena, stages->device_count, &fixed));
    PEN_TRY(PEN_NEW(arena, stages->device_count, &workspace));
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        const pen_stage *stage = &stages->stages[s];
        made[s] = (pen_trace_stage){
            .device = stage->device,
            .activation_bytes = stage->activation_bytes,
            .halved_bytes = stage->halved_bytes,
            .forward_seconds = stage->forward_seconds,
            .backward_input_seconds = pen_stage_backward_input_seconds(stage),
            .backward_weight_seconds = stage->backward_weight_seconds,
            .update_seconds = stage->update_seconds,
        };
        fixed[stage->device] += stage->fixed_bytes;
        workspace[stage->device] = fmax(workspace[stage->device], stage->workspace_bytes);
    }
    for (uint32_t d = 0; d < stages->device_count; d++) {
        fixed[d] += workspace[d];
    }
    *out_stages = made;
    *out_fixed_bytes = fixed;
    return PEN_OK;
}

// The name of the first transfer of a channel, and how many others there are.
static pen_status planned_name(const planned_maker *maker, uint32_t source, uint32_t target,
                               const pen_trace_channel *channel, const char **out_name) {
    const char *first = NULL;
    uint32_t count = 0;
    for (uint32_t t = 0; t < maker->plan->transfer_count; t++) {
        const pen_plan_transfer *transfer = &maker->plan->transfers[t];
        if (transfer->source != source || transfer->target != target) continue;
        if (transfer->is_per_step != channel->is_per_step) continue;
        if (!channel->is_per_step && transfer->is_backward != channel->is_backward) continue;
        if (first == NULL) first = transfer->value;
        count += 1;
    }
    if (count > 1) {
        return pen_arena_format(maker->arena, out_name, "%s and %u more", first, count - 1);
    }
    *out_name = first;
    if (first != NULL) return PEN_OK;
    return pen_arena_format(maker->arena, out_name, "%s of stage %u",
                            channel->is_backward ? "gradients" : "values", source);
}

static pen_status planned_channel(planned_maker *maker, uint32_t number, uint32_t source,
                                  uint32_t target, const pen_trace_channel *channel) {
    const pen_stage *stages = maker->timeline->graph->stages;
    pen_trace_channel *made = &maker->channels[number];
    *made = *channel;
    made->source_device = stages[source].device;
    made->target_device = stages[target].device;
    return planned_name(maker, source, target, channel, &made->value);
}

// Numbered as the simulation numbers its transfers: forward edges, backward edges, then those once
// a step.
static pen_status planned_channels(planned_maker *maker, uint32_t count) {
    const pen_stage_graph *graph = maker->timeline->graph;
    PEN_TRY(PEN_NEW(maker->arena, count, &maker->channels));
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const pen_trace_channel forward = {.bytes = (uint64_t)edge->forward_bytes};
        const pen_trace_channel backward = {.bytes = (uint64_t)edge->backward_bytes,
                                            .is_backward = true};
        PEN_TRY(planned_channel(maker, e, edge->source, edge->target, &forward));
        PEN_TRY(
            planned_channel(maker, graph->edge_count + e, edge->target, edge->source, &backward));
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        const pen_trace_channel channel = {.bytes = (uint64_t)edge->bytes, .is_per_step = true};
        PEN_TRY(planned_channel(maker, 2 * graph->edge_count + e, edge->source, edge->target,
                                &channel));
    }
    return PEN_OK;
}

static void planned_tasks(planned_maker *maker) {
    const pen_timeline *timeline = maker->timeline;
    const pen_schedule *schedule = timeline->schedule;
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            maker->events[maker->event_count++] =
                (pen_trace_event){.kind = PEN_TRACE_TASK,
                                  .task = schedule->tasks[t],
                                  .device = d,
                                  .channel = PEN_TRACE_NO_CHANNEL,
                                  .start_seconds = timeline->times.start_seconds[t],
                                  .end_seconds = timeline->times.end_seconds[t]};
        }
    }
}

static void planned_transfers(planned_maker *maker) {
    const pen_timeline *timeline = maker->timeline;
    const uint32_t edge_count = timeline->graph->edge_count;
    for (uint32_t i = 0; i < timeline->times.transfer_count; i++) {
        const pen_transfer_time *transfer = &timeline->times.transfers[i];
        uint32_t channel = transfer->edge;
        if (transfer->is_backward) channel += edge_count;
        if (transfer->is_step) channel = 2 * edge_count + transfer->edge;
        const uint32_t source = pen_transfer_source(timeline->graph, transfer);
        maker->events[maker->event_count++] =
            (pen_trace_event){.kind = PEN_TRACE_SEND,
                              .device = timeline->graph->stages[source].device,
                              .channel = channel,
                              .sequence = transfer->microbatch,
                              .bytes = maker->channels[channel].bytes,
                              .start_seconds = transfer->start_seconds,
                              .end_seconds = transfer->end_seconds};
    }
}

// The plan's step as one worker's events: what draws and sums up measured traces serves for plans
// too.
pen_status pen_planned_trace(const pen_plan *plan, const pen_timeline *timeline, pen_arena *arena,
                             const pen_trace **out_trace) {
    const pen_stage_graph *graph = timeline->graph;
    planned_maker maker = {.plan = plan, .timeline = timeline, .arena = arena};
    const uint32_t channel_count = 2 * graph->edge_count + graph->step_edge_count;
    const size_t event_limit =
        (size_t)timeline->schedule->task_count + timeline->times.transfer_count;
    const char **names;
    uint32_t *workers;
    pen_trace_worker *worker;
    pen_trace *trace;
    PEN_TRY(PEN_NEW(arena, event_limit, &maker.events));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &names));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &workers));
    PEN_TRY(PEN_NEW(arena, 1, &worker));
    PEN_TRY(PEN_NEW(arena, 1, &trace));
    PEN_TRY(planned_channels(&maker, channel_count));
    planned_tasks(&maker);
    planned_transfers(&maker);
    for (uint32_t d = 0; d < graph->device_count; d++) {
        names[d] = plan->devices[d].name;
    }
    *worker = (pen_trace_worker){
        .name = "plan", .events = maker.events, .event_count = maker.event_count};
    *trace = (pen_trace){.worker_count = 1,
                         .workers = worker,
                         .device_count = graph->device_count,
                         .device_names = names,
                         .worker_of_device = workers,
                         .channel_count = channel_count,
                         .channels = maker.channels,
                         .stage_count = graph->stage_count};
    PEN_TRY(pen_planned_memory(graph, arena, &trace->stages, &trace->fixed_bytes));
    *out_trace = trace;
    return PEN_OK;
}

// ---- what a run is compared with

// Means over microbatches, by edge: from the end of the task that made the values until they are
// there. [2][edge_count], forward first.
static pen_status planned_means(const pen_timeline *timeline, pen_arena *arena,
                                double **out_means) {
    const pen_stage_graph *graph = timeline->graph;
    const pen_schedule *schedule = timeline->schedule;
    const size_t cells = (size_t)graph->stage_count * graph->microbatch_count;
    double *ends; // [2][stage_count][microbatch_count]
    double *means;
    PEN_TRY(PEN_NEW(arena, 2 * cells, &ends));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)graph->edge_count, &means));
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        const pen_task task = schedule->tasks[t];
        const size_t cell = (size_t)task.stage * graph->microbatch_count + task.microbatch;
        const double end = timeline->times.end_seconds[t];
        if (task.kind == PEN_TASK_FORWARD) ends[cell] = end;
        if (task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_INPUT) {
            ends[cells + cell] = end;
        }
    }
    for (uint32_t i = 0; i < timeline->times.transfer_count; i++) {
        const pen_transfer_time *transfer = &timeline->times.transfers[i];
        if (transfer->is_step) continue;
        const size_t side = transfer->is_backward ? 1 : 0;
        const size_t source = pen_transfer_source(graph, transfer);
        const double ready =
            ends[side * cells + source * graph->microbatch_count + transfer->microbatch];
        means[side * graph->edge_count + transfer->edge] +=
            (transfer->end_seconds - ready) / graph->microbatch_count;
    }
    *out_means = means;
    return PEN_OK;
}

// What a plan says of something that goes from one to another: a value between devices, or an edge,
// which has no name, between stages.
typedef struct planned_entry {
    const char *name;
    uint32_t source;
    uint32_t target;
    uint32_t index; // in the plan
} planned_entry;

// Sorted by all fields.
typedef struct planned_entries {
    planned_entry *list;
    uint32_t count;
} planned_entries;

static int planned_compare(const void *left, const void *right) {
    const planned_entry *a = left, *b = right;
    const int order = strcmp(a->name, b->name);
    if (order != 0) return order;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

// The first that is called so; none: PEN_TRACE_NO_CHANNEL.
static uint32_t planned_find(const planned_entries *entries, const char *name, uint32_t source,
                             uint32_t target) {
    const planned_entry wanted = {name, source, target, 0};
    uint32_t low = 0, high = entries->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (planned_compare(&entries->list[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == entries->count) return PEN_TRACE_NO_CHANNEL;
    const planned_entry *found = &entries->list[low];
    const bool is_it =
        found->source == source && found->target == target && strcmp(found->name, name) == 0;
    return is_it ? found->index : PEN_TRACE_NO_CHANNEL;
}

static void planned_sort(planned_entries *entries) {
    if (entries->count < 2) return;
    qsort(entries->list, entries->count, sizeof *entries->list, planned_compare);
}

// What channels are looked up in.
typedef struct planned_index {
    const pen_plan *plan;
    const double *means;
    planned_entries transfers; // of each microbatch
    planned_entries edges;
} planned_index;

// Channels are as many as transfers, so none looks through all of these.
static pen_status planned_index_build(planned_index *index, pen_arena *arena) {
    const pen_stage_graph *graph = &index->plan->stages;
    PEN_TRY(PEN_NEW(arena, index->plan->transfer_count, &index->transfers.list));
    PEN_TRY(PEN_NEW(arena, graph->edge_count, &index->edges.list));
    for (uint32_t t = 0; t < index->plan->transfer_count; t++) {
        const pen_plan_transfer *transfer = &index->plan->transfers[t];
        if (transfer->is_per_step) continue;
        index->transfers.list[index->transfers.count++] =
            (planned_entry){transfer->value, graph->stages[transfer->source].device,
                            graph->stages[transfer->target].device, t};
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        index->edges.list[index->edges.count++] =
            (planned_entry){"", graph->edges[e].source, graph->edges[e].target, e};
    }
    planned_sort(&index->transfers);
    planned_sort(&index->edges);
    return PEN_OK;
}

// What the plan says of a channel: of the values that it names, from device to device.
static void planned_set_channel(const planned_index *index, pen_trace_channel *channel) {
    const pen_stage_graph *graph = &index->plan->stages;
    channel->planned_seconds = -1;
    if (channel->value == NULL) return;
    const uint32_t t = planned_find(&index->transfers, channel->value, channel->source_device,
                                    channel->target_device);
    if (t == PEN_TRACE_NO_CHANNEL) return;
    const pen_plan_transfer *transfer = &index->plan->transfers[t];
    const bool is_up = transfer->source < transfer->target;
    const uint32_t low = is_up ? transfer->source : transfer->target;
    const uint32_t high = is_up ? transfer->target : transfer->source;
    const uint32_t e = planned_find(&index->edges, "", low, high);
    if (e == PEN_TRACE_NO_CHANNEL) return;
    const pen_stage_edge *edge = &graph->edges[e];
    channel->planned_seconds = index->means[(transfer->is_backward ? graph->edge_count : 0) + e];
    channel->planned_latency = transfer->is_backward ? edge->backward_handling.latency_seconds
                                                     : edge->forward_handling.latency_seconds;
}

// The plan's step is simulated once, and each channel looked up in what it says.
pen_status pen_planned_expect(const pen_plan *plan, pen_arena *arena, pen_trace_channel *channels,
                              pen_trace *io_trace) {
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    planned_index index = {.plan = plan};
    double *means, *slowness;
    PEN_TRY(pen_plan_schedule(plan, arena, &schedule));
    PEN_TRY(pen_schedule_simulate(&plan->stages, schedule, arena, &timeline));
    PEN_TRY(planned_means(timeline, arena, &means));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &slowness));
    index.means = means;
    PEN_TRY(planned_index_build(&index, arena));
    for (uint32_t c = 0; c < io_trace->channel_count; c++) {
        planned_set_channel(&index, &channels[c]);
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        slowness[d] = plan->devices[d].slowness > 0 ? plan->devices[d].slowness : 1;
    }
    io_trace->planned_slowness = slowness;
    return PEN_OK;
}
