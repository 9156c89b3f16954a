#include "scheduler/plan/planned_trace.h"

#include <math.h>
#include <stdlib.h>

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

// What leaves a stage with one task, for one device: of the forward pass, backward, or once a step.
typedef enum planned_way {
    PLANNED_FORWARD,
    PLANNED_BACKWARD,
    PLANNED_STEP,
} planned_way;

typedef struct planned_entry {
    planned_way way;
    uint32_t stage;
    uint32_t phase; // of the update that it leaves with, once a step
    uint32_t target_device;
    double seconds; // a mean over microbatches: from the task's end until all of it is there
    double latency;
    uint32_t first_channel; // of those that carry it
} planned_entry;

// Sorted by all that says which it is; edges to several stages of a device are one entry.
typedef struct planned_entries {
    planned_entry *list;
    uint32_t count;
} planned_entries;

static int planned_compare(const void *left, const void *right) {
    const planned_entry *a = left, *b = right;
    if (a->way != b->way) return a->way < b->way ? -1 : 1;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->phase != b->phase) return a->phase < b->phase ? -1 : 1;
    if (a->target_device == b->target_device) return 0;
    return a->target_device < b->target_device ? -1 : 1;
}

static void planned_add(planned_entries *entries, planned_entry entry) {
    entry.first_channel = PEN_TRACE_NO_CHANNEL;
    entries->list[entries->count++] = entry;
}

// An entry for each way that an edge is gone, without seconds.
static pen_status planned_list(const pen_stage_graph *graph, pen_arena *arena,
                               planned_entries *out_entries) {
    const pen_stage *stages = graph->stages;
    planned_entries entries = {0};
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)graph->edge_count + graph->step_edge_count, &entries.list));
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        planned_add(&entries, (planned_entry){.way = PLANNED_FORWARD,
                                              .stage = edge->source,
                                              .target_device = stages[edge->target].device,
                                              .latency = edge->forward_handling.latency_seconds});
        planned_add(&entries, (planned_entry){.way = PLANNED_BACKWARD,
                                              .stage = edge->target,
                                              .target_device = stages[edge->source].device,
                                              .latency = edge->backward_handling.latency_seconds});
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        planned_add(&entries, (planned_entry){.way = PLANNED_STEP,
                                              .stage = edge->source,
                                              .phase = edge->phase,
                                              .target_device = stages[edge->target].device,
                                              .latency = edge->handling.latency_seconds});
    }
    if (entries.count > 1) {
        qsort(entries.list, entries.count, sizeof *entries.list, planned_compare);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < entries.count; i++) {
        planned_entry *entry = &entries.list[i];
        if (count > 0 && planned_compare(&entries.list[count - 1], entry) == 0) {
            entries.list[count - 1].latency = fmax(entries.list[count - 1].latency, entry->latency);
        } else {
            entries.list[count++] = *entry;
        }
    }
    entries.count = count;
    *out_entries = entries;
    return PEN_OK;
}

static planned_entry *planned_find(const planned_entries *entries, const planned_entry *wanted) {
    uint32_t low = 0, high = entries->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (planned_compare(&entries->list[middle], wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == entries->count || planned_compare(&entries->list[low], wanted) != 0) return NULL;
    return &entries->list[low];
}

// When what is sent was made: ends of tasks by way, stage, and microbatch or phase.
typedef struct planned_ends {
    double *seconds; // [3][stage_count][width]
    size_t width;
    size_t stage_count;
} planned_ends;

static double *planned_end(const planned_ends *ends, planned_way way, uint32_t stage,
                           uint32_t number) {
    return &ends->seconds[((size_t)way * ends->stage_count + stage) * ends->width + number];
}

// Of halved backward tasks, what goes on is made by the half for inputs.
static pen_status planned_find_ends(const pen_timeline *timeline, pen_arena *arena,
                                    planned_ends *out_ends) {
    static const planned_way ways[] = {[PEN_TASK_FORWARD] = PLANNED_FORWARD,
                                       [PEN_TASK_BACKWARD] = PLANNED_BACKWARD,
                                       [PEN_TASK_BACKWARD_INPUT] = PLANNED_BACKWARD,
                                       [PEN_TASK_BACKWARD_WEIGHT] = PLANNED_BACKWARD,
                                       [PEN_TASK_UPDATE] = PLANNED_STEP};
    const pen_stage_graph *graph = timeline->graph;
    const pen_schedule *schedule = timeline->schedule;
    const uint32_t phases = pen_stage_graph_phases(graph);
    planned_ends ends = {.stage_count = graph->stage_count, .width = graph->microbatch_count};
    if (phases > ends.width) ends.width = phases;
    PEN_TRY(PEN_NEW(arena, 3 * ends.stage_count * ends.width, &ends.seconds));
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        const pen_task task = schedule->tasks[t];
        if (task.kind == PEN_TASK_BACKWARD_WEIGHT) continue; // nothing goes on from it
        *planned_end(&ends, ways[task.kind], task.stage, task.microbatch) =
            timeline->times.end_seconds[t];
    }
    *out_ends = ends;
    return PEN_OK;
}

// Of several stages of a device, what the last of them waits for.
static pen_status planned_time(const pen_timeline *timeline, pen_arena *arena,
                               planned_entries *entries) {
    const pen_stage_graph *graph = timeline->graph;
    const uint32_t edge_count = graph->edge_count;
    planned_ends ends;
    double *means; // [2 * edge_count + step_edge_count]
    PEN_TRY(planned_find_ends(timeline, arena, &ends));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)edge_count + graph->step_edge_count, &means));
    for (uint32_t i = 0; i < timeline->times.transfer_count; i++) {
        const pen_transfer_time *transfer = &timeline->times.transfers[i];
        const planned_way way = transfer->is_step       ? PLANNED_STEP
                                : transfer->is_backward ? PLANNED_BACKWARD
                                                        : PLANNED_FORWARD;
        const uint32_t stage = pen_transfer_source(graph, transfer);
        const uint32_t target = pen_transfer_target(graph, transfer);
        double *mean = &means[(size_t)way * edge_count + transfer->edge];
        const double seconds =
            transfer->end_seconds - *planned_end(&ends, way, stage, transfer->microbatch);
        *mean += transfer->is_step ? seconds
                                   : seconds / pen_stage_microbatches(graph, &graph->stages[stage]);
        planned_entry *entry = planned_find(
            entries, &(planned_entry){.way = way,
                                      .stage = stage,
                                      .phase = transfer->is_step ? transfer->microbatch : 0,
                                      .target_device = graph->stages[target].device});
        PEN_ASSERT(entry != NULL);
        entry->seconds = fmax(entry->seconds, *mean);
    }
    return PEN_OK;
}

// What the plan says of a channel: of all that leaves with its task for its device.
static void planned_set_channel(const planned_entries *entries, const pen_task *task, uint32_t c,
                                pen_trace_channel *channel) {
    channel->planned_seconds = -1;
    channel->together = c;
    if (channel->source_device == PEN_TRACE_HOST) return;
    planned_entry wanted = {.way =
                                task->kind == PEN_TASK_FORWARD ? PLANNED_FORWARD : PLANNED_BACKWARD,
                            .stage = task->stage,
                            .target_device = channel->target_device};
    if (channel->is_per_step) {
        wanted.way = PLANNED_STEP;
        wanted.phase = task->kind == PEN_TASK_UPDATE ? task->microbatch : 0;
    }
    planned_entry *entry = planned_find(entries, &wanted);
    if (entry == NULL) return;
    if (entry->first_channel == PEN_TRACE_NO_CHANNEL) entry->first_channel = c;
    channel->together = entry->first_channel;
    channel->planned_seconds = entry->seconds;
    channel->planned_latency = entry->latency;
}

// The plan's step is simulated once, and each channel looked up in what it says.
pen_status pen_planned_expect(const pen_plan *plan, const pen_task *tasks, pen_arena *arena,
                              pen_trace_channel *channels, pen_trace *io_trace) {
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    planned_entries entries;
    double *slowness;
    PEN_TRY(pen_plan_schedule(plan, arena, &schedule));
    PEN_TRY(pen_schedule_simulate(&plan->stages, schedule, arena, &timeline));
    PEN_TRY(planned_list(&plan->stages, arena, &entries));
    PEN_TRY(planned_time(timeline, arena, &entries));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &slowness));
    for (uint32_t c = 0; c < io_trace->channel_count; c++) {
        planned_set_channel(&entries, &tasks[c], c, &channels[c]);
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        slowness[d] = plan->devices[d].slowness > 0 ? plan->devices[d].slowness : 1;
    }
    io_trace->planned_slowness = slowness;
    return PEN_OK;
}
