#include "scheduler/trace/trace_seen.h"

#include "scheduler/trace/trace_summary.h"

// What all tasks of a kind and stage were planned to take in a step.
static double seen_planned(const pen_trace_stage *stage, const pen_trace_cost *cost,
                           uint32_t step_count) {
    const double runs = (double)cost->count / step_count;
    switch (cost->kind) {
    case PEN_TASK_FORWARD:
        return runs * stage->forward_seconds;
    case PEN_TASK_BACKWARD:
        return runs * (stage->backward_input_seconds + stage->backward_weight_seconds);
    case PEN_TASK_BACKWARD_INPUT:
        return runs * stage->backward_input_seconds;
    case PEN_TASK_BACKWARD_WEIGHT:
        return runs * stage->backward_weight_seconds;
    case PEN_TASK_UPDATE: // of all phases together
        return stage->update_seconds;
    }
    PEN_NEVER("a task has one of the kinds");
}

// By means and not by medians: a device that now and then is not let go on is slow, too.
static pen_status seen_devices(const pen_trace *trace, pen_arena *arena, double *slowness) {
    const pen_trace_summary *summary;
    double *planned; // [device_count] of a step
    PEN_TRY(pen_trace_summarize(trace, arena, &summary));
    PEN_TRY(PEN_NEW(arena, trace->device_count, &planned));
    for (uint32_t i = 0; i < summary->cost_count; i++) {
        const pen_trace_cost *cost = &summary->costs[i];
        if (cost->stage >= trace->stage_count) continue; // a file may tell of none
        planned[cost->device] +=
            seen_planned(&trace->stages[cost->stage], cost, summary->step_count);
    }
    for (uint32_t d = 0; d < trace->device_count; d++) {
        if (!(planned[d] > 0)) continue;
        slowness[d] = summary->busy_seconds[d] / planned[d] * trace->planned_slowness[d];
    }
    return PEN_OK;
}

// ---- links

typedef struct seen_maker {
    const pen_trace *trace;
    const pen_trace_entry *entries; // on one clock, by start
    uint32_t entry_count;
    double *sent;         // [channel_count][SEEN_PLACES] when a frame set off
    uint64_t *sequence;   // likewise: 1 + which
    pen_seen_link *links; // [device_count][device_count]
} seen_maker;

#define SEEN_PLACES 64u // frames of a channel under way at once, at most: others are not looked at

// A send is noted, and a receive adds what lies between the two. Inputs, and what goes once a step,
// are not of the plan's edges.
static void seen_take(seen_maker *maker, const pen_trace_event *event) {
    const uint32_t c = event->channel;
    const bool is_told = event->form == 0 && c < maker->trace->channel_count && event->round > 0;
    if (!is_told || (event->kind != PEN_TRACE_SEND && event->kind != PEN_TRACE_RECEIVE)) return;
    const pen_trace_channel *channel = &maker->trace->channels[c];
    if (channel->source_device == PEN_TRACE_HOST || channel->target_device == PEN_TRACE_HOST ||
        channel->is_per_step || channel->planned_seconds < 0) {
        return;
    }
    const size_t place = (size_t)c * SEEN_PLACES + event->sequence % SEEN_PLACES;
    if (event->kind == PEN_TRACE_SEND) {
        maker->sent[place] = event->start_seconds;
        maker->sequence[place] = event->sequence + 1;
        return;
    }
    if (maker->sequence[place] != event->sequence + 1) return;
    const double seconds = event->end_seconds - maker->sent[place];
    pen_seen_link *link =
        &maker->links[(size_t)channel->source_device * maker->trace->device_count +
                      channel->target_device];
    link->count += 1;
    link->seconds += seconds > 0 ? seconds : 0; // clocks differ by microseconds
    link->planned_seconds += channel->planned_seconds;
    if (channel->planned_latency > link->latency_seconds) {
        link->latency_seconds = channel->planned_latency;
    }
}

// A frame's receive begins after its send, but for what clocks differ: sends are noted first.
static pen_status seen_links(seen_maker *maker, pen_arena *arena, pen_trace_seen *seen) {
    const uint32_t device_count = maker->trace->device_count;
    const size_t pairs = (size_t)device_count * device_count;
    const size_t places = (size_t)maker->trace->channel_count * SEEN_PLACES;
    pen_seen_link *found;
    PEN_TRY(PEN_NEW(arena, places, &maker->sent));
    PEN_TRY(PEN_NEW(arena, places, &maker->sequence));
    PEN_TRY(PEN_NEW(arena, pairs, &maker->links));
    for (uint32_t i = 0; i < maker->entry_count; i++) {
        seen_take(maker, &maker->entries[i].event);
    }
    for (size_t i = 0; i < pairs; i++) {
        if (maker->links[i].count > 0) seen->link_count += 1;
    }
    PEN_TRY(PEN_NEW(arena, seen->link_count, &found));
    uint32_t filled = 0;
    for (size_t i = 0; i < pairs; i++) {
        pen_seen_link *link = &maker->links[i];
        if (link->count == 0) continue;
        link->source = (uint32_t)(i / device_count);
        link->target = (uint32_t)(i % device_count);
        link->seconds /= (double)link->count;
        link->planned_seconds /= (double)link->count;
        found[filled++] = *link;
    }
    seen->links = found;
    return PEN_OK;
}

pen_status pen_trace_see(const pen_trace *trace, pen_arena *arena, pen_trace_seen *out_seen) {
    seen_maker maker = {.trace = trace};
    pen_trace_seen seen = {.device_count = trace->device_count};
    double *slowness;
    if (trace->planned_slowness == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "the trace does not say what was planned: it is of an earlier version");
    }
    PEN_TRY(pen_trace_merge(trace, arena, &maker.entries, &maker.entry_count));
    PEN_TRY(PEN_NEW(arena, trace->device_count, &slowness));
    PEN_TRY(seen_devices(trace, arena, slowness));
    PEN_TRY(seen_links(&maker, arena, &seen));
    seen.slowness = slowness;
    *out_seen = seen;
    return PEN_OK;
}

const pen_seen_link *pen_trace_seen_find(const pen_trace_seen *seen, uint32_t source,
                                         uint32_t target) {
    uint32_t low = 0, high = seen->link_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const pen_seen_link *link = &seen->links[middle];
        if (link->source == source && link->target == target) return link;
        if (link->source < source || (link->source == source && link->target < target)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
