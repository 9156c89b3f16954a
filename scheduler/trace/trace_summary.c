#include "scheduler/trace/trace_summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/sets/order.h"

typedef struct summary_maker {
    const pen_trace *trace;
    pen_arena *arena;
    const pen_trace_event **events; // of form 0, by round, then start
    uint32_t event_count;
    pen_trace_step *steps;
    uint32_t step_count;
    pen_trace_summary *summary;
    double last_end;   // of the tasks of the rounds before
    double bubble_sum; // of all steps; a step that lives off the time of another has less than 0
} summary_maker;

static int summary_compare_rounds(const void *left, const void *right) {
    const pen_trace_event *a = *(const pen_trace_event *const *)left;
    const pen_trace_event *b = *(const pen_trace_event *const *)right;
    if (a->round != b->round) return a->round < b->round ? -1 : 1;
    return (a > b) - (a < b); // they lie in order of their start
}

static pen_status summary_collect(summary_maker *maker) {
    const pen_trace_entry *entries;
    uint32_t count;
    PEN_TRY(pen_trace_merge(maker->trace, maker->arena, &entries, &count));
    PEN_TRY(PEN_NEW(maker->arena, count, &maker->events));
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].event.form == 0) maker->events[maker->event_count++] = &entries[i].event;
    }
    if (maker->event_count > 1) {
        qsort(maker->events, maker->event_count, sizeof *maker->events, summary_compare_rounds);
    }
    return PEN_OK;
}

// ---- steps

static uint32_t summary_round_end(const summary_maker *maker, uint32_t first) {
    uint32_t end = first;
    while (end < maker->event_count && maker->events[end]->round == maker->events[first]->round) {
        end += 1;
    }
    return end;
}

static uint32_t summary_count_tasks(const summary_maker *maker, uint32_t first, uint32_t end) {
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        if (maker->events[i]->kind == PEN_TRACE_TASK) count += 1;
    }
    return count;
}

// Steps overlap in a pipeline: own_seconds counts from the end of the step before, and the bubble
// is what its devices leave of that time.
static pen_status summary_fill_step(summary_maker *maker, uint32_t first, uint32_t end,
                                    const bool *computes, pen_trace_step *step) {
    const uint32_t device_count = maker->trace->device_count;
    double busy = 0;
    uint32_t computing = 0;
    PEN_TRY(PEN_NEW(maker->arena, device_count, &step->busy_seconds));
    PEN_TRY(PEN_NEW(maker->arena, device_count, &step->wait_seconds));
    step->round = maker->events[first]->round;
    step->step = maker->events[first]->step;
    step->start_seconds = INFINITY;
    step->end_seconds = -INFINITY;
    for (uint32_t i = first; i < end; i++) {
        const pen_trace_event *event = maker->events[i];
        const double seconds = event->end_seconds - event->start_seconds;
        if (event->kind == PEN_TRACE_WAIT) step->wait_seconds[event->device] += seconds;
        if (event->kind != PEN_TRACE_TASK) continue;
        step->busy_seconds[event->device] += seconds;
        step->start_seconds = fmin(step->start_seconds, event->start_seconds);
        step->end_seconds = fmax(step->end_seconds, event->end_seconds);
    }
    for (uint32_t d = 0; d < device_count; d++) {
        busy += step->busy_seconds[d];
        if (computes[d]) computing += 1;
    }
    step->own_seconds = step->end_seconds - fmax(step->start_seconds, maker->last_end);
    const double all = computing * step->own_seconds;
    const double bubble = all > 0 ? 1 - busy / all : 0;
    step->bubble = fmax(0, bubble);
    maker->bubble_sum += bubble;
    return PEN_OK;
}

// Steps that are whole, but the first.
static pen_status summary_make_steps(summary_maker *maker) {
    uint32_t most = 0, whole = 0;
    bool *computes;
    PEN_TRY(PEN_NEW(maker->arena, maker->trace->device_count, &computes));
    for (uint32_t i = 0; i < maker->event_count; i++) {
        if (maker->events[i]->kind == PEN_TRACE_TASK) computes[maker->events[i]->device] = true;
    }
    for (uint32_t first = 0, end; first < maker->event_count; first = end) {
        end = summary_round_end(maker, first);
        const uint32_t count = summary_count_tasks(maker, first, end);
        if (count > most) whole = 0;
        if (count > most) most = count;
        if (count == most) whole += 1;
    }
    if (most == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(maker->arena, whole, &maker->steps));
    bool is_first = whole > 1;
    for (uint32_t first = 0, end; first < maker->event_count; first = end) {
        end = summary_round_end(maker, first);
        const bool is_whole = summary_count_tasks(maker, first, end) == most;
        if (is_whole && !is_first) {
            PEN_TRY(
                summary_fill_step(maker, first, end, computes, &maker->steps[maker->step_count++]));
        }
        if (is_whole) is_first = false;
        for (uint32_t i = first; i < end; i++) {
            if (maker->events[i]->kind != PEN_TRACE_TASK) continue;
            maker->last_end = fmax(maker->last_end, maker->events[i]->end_seconds);
        }
    }
    return PEN_OK;
}

// The events of the steps that count, moved to the front.
static void summary_keep_steps(summary_maker *maker) {
    uint32_t kept = 0, step = 0;
    for (uint32_t i = 0; i < maker->event_count; i++) {
        const uint64_t round = maker->events[i]->round;
        while (step < maker->step_count && maker->steps[step].round < round) {
            step += 1;
        }
        if (step == maker->step_count) break;
        if (maker->steps[step].round == round) maker->events[kept++] = maker->events[i];
    }
    maker->event_count = kept;
}

static pen_status summary_average(summary_maker *maker) {
    pen_trace_summary *summary = maker->summary;
    const uint32_t count = maker->step_count;
    double *seconds;
    PEN_TRY(PEN_NEW(maker->arena, count, &seconds));
    for (uint32_t s = 0; s < count; s++) {
        const pen_trace_step *step = &maker->steps[s];
        seconds[s] = step->own_seconds;
        for (uint32_t d = 0; d < summary->device_count; d++) {
            summary->busy_seconds[d] += step->busy_seconds[d] / count;
            summary->wait_seconds[d] += step->wait_seconds[d] / count;
        }
    }
    summary->step_seconds = pen_median(seconds, count);
    summary->bubble = fmax(0, maker->bubble_sum / count);
    return PEN_OK;
}

// ---- links

typedef struct summary_send {
    uint32_t source;
    uint32_t target;
    uint64_t bytes;
    double start_seconds;
    double end_seconds;
} summary_send;

static int summary_compare_sends(const void *left, const void *right) {
    const summary_send *a = left;
    const summary_send *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    if (a->start_seconds != b->start_seconds) return a->start_seconds < b->start_seconds ? -1 : 1;
    return (a->end_seconds > b->end_seconds) - (a->end_seconds < b->end_seconds);
}

// Sorted by link and time, so that frames under way at once count once in the time for which a link
// was busy.
static pen_status summary_make_links(summary_maker *maker) {
    pen_trace_summary *summary = maker->summary;
    const double steps = maker->step_count;
    summary_send *sends;
    pen_trace_link *links;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(maker->arena, maker->event_count, &sends));
    PEN_TRY(PEN_NEW(maker->arena, maker->event_count, &links));
    for (uint32_t i = 0; i < maker->event_count; i++) {
        const pen_trace_event *event = maker->events[i];
        if (event->kind != PEN_TRACE_SEND) continue;
        sends[count++] =
            (summary_send){event->device, maker->trace->channels[event->channel].target_device,
                           event->bytes, event->start_seconds, event->end_seconds};
        if (event->device != PEN_TRACE_HOST) {
            summary->sent_bytes[event->device] += (double)event->bytes;
        }
    }
    if (count > 1) qsort(sends, count, sizeof *sends, summary_compare_sends);
    double busy_until = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const summary_send *send = &sends[i];
        pen_trace_link *link = summary->link_count > 0 ? &links[summary->link_count - 1] : NULL;
        if (link == NULL || link->source != send->source || link->target != send->target) {
            link = &links[summary->link_count++];
            *link = (pen_trace_link){.source = send->source, .target = send->target};
            busy_until = -INFINITY;
        }
        link->bytes += (double)send->bytes;
        link->frames += 1;
        const double from = fmax(busy_until, send->start_seconds);
        if (send->end_seconds > from) link->seconds += send->end_seconds - from;
        busy_until = fmax(busy_until, send->end_seconds);
    }
    for (uint32_t i = 0; i < summary->link_count; i++) {
        links[i].bytes /= steps;
        links[i].frames /= steps;
        links[i].seconds /= steps;
    }
    for (uint32_t d = 0; d < summary->device_count; d++) {
        summary->sent_bytes[d] /= steps;
    }
    summary->links = links;
    return PEN_OK;
}

// ---- what tasks take

static int summary_compare_tasks(const void *left, const void *right) {
    const pen_trace_event *a = *(const pen_trace_event *const *)left;
    const pen_trace_event *b = *(const pen_trace_event *const *)right;
    if (a->task.stage != b->task.stage) return a->task.stage < b->task.stage ? -1 : 1;
    if (a->task.kind != b->task.kind) return a->task.kind < b->task.kind ? -1 : 1;
    return (a > b) - (a < b);
}

// The tasks from `first` on that are of its stage and kind; returns where they end.
static uint32_t summary_make_cost(const pen_trace_event *const *tasks, uint32_t first,
                                  uint32_t count, double *seconds, pen_trace_cost *cost) {
    const pen_trace_event *example = tasks[first];
    uint32_t end = first;
    while (end < count && tasks[end]->task.stage == example->task.stage &&
           tasks[end]->task.kind == example->task.kind) {
        seconds[end - first] = tasks[end]->end_seconds - tasks[end]->start_seconds;
        end += 1;
    }
    *cost = (pen_trace_cost){.kind = example->task.kind,
                             .stage = example->task.stage,
                             .device = example->device,
                             .count = end - first,
                             .seconds = pen_median(seconds, end - first)};
    return end;
}

// The median of each task of a stage, and the stage whose tasks take longest in a step.
static pen_status summary_make_costs(summary_maker *maker) {
    pen_trace_summary *summary = maker->summary;
    const pen_trace_event **tasks;
    pen_trace_cost *costs;
    double *seconds;
    uint32_t count = 0;
    double stage_seconds = 0;
    PEN_TRY(PEN_NEW(maker->arena, maker->event_count, &tasks));
    PEN_TRY(PEN_NEW(maker->arena, maker->event_count, &costs));
    PEN_TRY(PEN_NEW(maker->arena, maker->event_count, &seconds));
    for (uint32_t i = 0; i < maker->event_count; i++) {
        if (maker->events[i]->kind == PEN_TRACE_TASK) tasks[count++] = maker->events[i];
    }
    if (count > 1) qsort(tasks, count, sizeof *tasks, summary_compare_tasks);
    for (uint32_t first = 0, end; first < count; first = end) {
        pen_trace_cost *cost = &costs[summary->cost_count++];
        end = summary_make_cost(tasks, first, count, seconds, cost);
        if (first == 0 || cost[-1].stage != cost->stage) stage_seconds = 0;
        stage_seconds += cost->seconds * (double)cost->count / maker->step_count;
        if (!summary->has_slowest || stage_seconds > summary->slowest_seconds) {
            summary->has_slowest = true;
            summary->slowest_stage = cost->stage;
            summary->slowest_device = cost->device;
            summary->slowest_seconds = stage_seconds;
        }
    }
    summary->costs = costs;
    return PEN_OK;
}

// The first step, in which caches and connections warm up, does not count where there are others.
pen_status pen_trace_summarize(const pen_trace *trace, pen_arena *arena,
                               const pen_trace_summary **out_summary) {
    summary_maker maker = {.trace = trace, .arena = arena, .last_end = -INFINITY};
    PEN_TRY(summary_collect(&maker));
    PEN_TRY(PEN_NEW(arena, 1, &maker.summary));
    pen_trace_summary *summary = maker.summary;
    summary->device_count = trace->device_count;
    PEN_TRY(PEN_NEW(arena, trace->device_count, &summary->busy_seconds));
    PEN_TRY(PEN_NEW(arena, trace->device_count, &summary->wait_seconds));
    PEN_TRY(PEN_NEW(arena, trace->device_count, &summary->sent_bytes));
    for (uint32_t w = 0; w < trace->worker_count; w++) {
        summary->lost_count += trace->workers[w].lost_count;
    }
    PEN_TRY(summary_make_steps(&maker));
    summary_keep_steps(&maker);
    summary->step_count = maker.step_count;
    summary->steps = maker.steps;
    if (maker.step_count > 0) {
        PEN_TRY(summary_average(&maker));
        PEN_TRY(summary_make_links(&maker));
        PEN_TRY(summary_make_costs(&maker));
    }
    *out_summary = summary;
    return PEN_OK;
}

double pen_trace_summary_cost(const pen_trace_summary *summary, pen_task_kind kind,
                              uint32_t stage) {
    for (uint32_t i = 0; i < summary->cost_count; i++) {
        const pen_trace_cost *cost = &summary->costs[i];
        if (cost->kind == kind && cost->stage == stage) return cost->seconds;
    }
    return -1;
}
