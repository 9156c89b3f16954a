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

#define SEEN_PLACES 64u // frames of a channel under way at once, at most: others are not looked at

// What left together for one device.
typedef struct seen_sending {
    uint64_t sequence; // 1 + which frame of its channels; 0: none
    uint32_t received; // channels
    double first;      // when it set off
    double last;       // when the last of it was there
} seen_sending;

typedef struct seen_maker {
    const pen_trace *trace;
    const pen_trace_entry *entries; // on one clock, by start
    uint32_t entry_count;
    uint32_t *sizes;        // [channel_count] channels that go together with it; of the first
    seen_sending *sendings; // [channel_count][SEEN_PLACES], of the first of those together
    pen_seen_link *links;   // [device_count][device_count][2], the second once a step
} seen_maker;

// Inputs and losses are not of the plan.
static bool seen_is_planned(const pen_trace_channel *channel) {
    return channel->source_device != PEN_TRACE_HOST && channel->target_device != PEN_TRACE_HOST &&
           channel->planned_seconds >= 0;
}

static pen_seen_link *seen_link(const seen_maker *maker, const pen_trace_channel *channel) {
    const size_t pair =
        (size_t)channel->source_device * maker->trace->device_count + channel->target_device;
    return &maker->links[2 * pair + (channel->is_per_step ? 1 : 0)];
}

static void seen_send(seen_sending *sending, const pen_trace_event *event) {
    if (sending->sequence == event->sequence + 1) return; // entries are by start
    *sending = (seen_sending){.sequence = event->sequence + 1, .first = event->start_seconds};
}

// The last that is received adds what lies between.
static void seen_receive(const seen_maker *maker, const pen_trace_channel *channel,
                         seen_sending *sending, const pen_trace_event *event) {
    if (sending->sequence != event->sequence + 1) return;
    if (event->end_seconds > sending->last) sending->last = event->end_seconds;
    if (++sending->received < maker->sizes[channel->together]) return;
    const double seconds = sending->last - sending->first;
    pen_seen_link *link = seen_link(maker, channel);
    link->count += 1;
    link->seconds += seconds > 0 ? seconds : 0; // clocks differ by microseconds
    link->planned_seconds += channel->planned_seconds;
    if (channel->planned_latency > link->latency_seconds) {
        link->latency_seconds = channel->planned_latency;
    }
    sending->sequence = 0;
}

static void seen_take(const seen_maker *maker, const pen_trace_event *event) {
    const uint32_t c = event->channel;
    const bool is_told = event->form == 0 && c < maker->trace->channel_count && event->round > 0;
    if (!is_told || (event->kind != PEN_TRACE_SEND && event->kind != PEN_TRACE_RECEIVE)) return;
    const pen_trace_channel *channel = &maker->trace->channels[c];
    if (!seen_is_planned(channel)) return;
    seen_sending *sending =
        &maker->sendings[(size_t)channel->together * SEEN_PLACES + event->sequence % SEEN_PLACES];
    if (event->kind == PEN_TRACE_SEND) {
        seen_send(sending, event);
    } else {
        seen_receive(maker, channel, sending, event);
    }
}

// A file may say anything of what goes together.
static pen_status seen_count_together(seen_maker *maker, pen_arena *arena) {
    const pen_trace *trace = maker->trace;
    PEN_TRY(PEN_NEW(arena, trace->channel_count, &maker->sizes));
    for (uint32_t c = 0; c < trace->channel_count; c++) {
        const pen_trace_channel *channel = &trace->channels[c];
        if (!seen_is_planned(channel)) continue;
        if (channel->together > c) {
            return pen_error(PEN_CORRUPT, "channel %u goes together with %u", c, channel->together);
        }
        maker->sizes[channel->together] += 1;
    }
    return PEN_OK;
}

// A frame's receive begins after its send, but for what clocks differ: sends are noted first.
static pen_status seen_links(seen_maker *maker, pen_arena *arena, pen_trace_seen *seen) {
    const uint32_t device_count = maker->trace->device_count;
    const size_t pairs = (size_t)device_count * device_count;
    pen_seen_link *found;
    PEN_TRY(seen_count_together(maker, arena));
    PEN_TRY(PEN_NEW(arena, (size_t)maker->trace->channel_count * SEEN_PLACES, &maker->sendings));
    PEN_TRY(PEN_NEW(arena, 2 * pairs, &maker->links));
    for (uint32_t i = 0; i < maker->entry_count; i++) {
        seen_take(maker, &maker->entries[i].event);
    }
    for (size_t i = 0; i < 2 * pairs; i++) {
        if (maker->links[i].count > 0) seen->link_count += 1;
    }
    PEN_TRY(PEN_NEW(arena, seen->link_count, &found));
    uint32_t filled = 0;
    for (size_t i = 0; i < 2 * pairs; i++) {
        pen_seen_link *link = &maker->links[i];
        if (link->count == 0) continue;
        link->source = (uint32_t)(i / 2 / device_count);
        link->target = (uint32_t)(i / 2 % device_count);
        link->is_per_step = i % 2 == 1;
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

static int seen_compare(const pen_seen_link *link, uint32_t source, uint32_t target,
                        bool is_per_step) {
    if (link->source != source) return link->source < source ? -1 : 1;
    if (link->target != target) return link->target < target ? -1 : 1;
    return (int)link->is_per_step - (int)is_per_step;
}

const pen_seen_link *pen_trace_seen_find(const pen_trace_seen *seen, uint32_t source,
                                         uint32_t target, bool is_per_step) {
    uint32_t low = 0, high = seen->link_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const pen_seen_link *link = &seen->links[middle];
        const int order = seen_compare(link, source, target, is_per_step);
        if (order == 0) return link;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
