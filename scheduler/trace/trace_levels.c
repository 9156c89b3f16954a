#include "scheduler/trace/trace_levels.h"

#include <stdlib.h>

#include "base/integer.h"

// A microbatch taken up, half done, or let go.
typedef struct level_change {
    double seconds;
    uint32_t device;
    uint32_t stage;
    int taken;  // microbatches: 1, 0, -1
    int halved; // between their halves: 1, 0, -1
} level_change;

static int level_compare(const void *left, const void *right) {
    const level_change *a = left;
    const level_change *b = right;
    if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
    if (a->taken != b->taken) return a->taken < b->taken ? -1 : 1; // let go first
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return (a->stage > b->stage) - (a->stage < b->stage);
}

typedef struct level_finder {
    uint32_t stage_count;
    bool *has_backward; // [form * stage_count + stage]
    level_change *changes;
    uint32_t change_count;
} level_finder;

static bool level_is_backward(pen_task_kind kind) {
    return kind == PEN_TASK_BACKWARD || kind == PEN_TASK_BACKWARD_INPUT ||
           kind == PEN_TASK_BACKWARD_WEIGHT;
}

static bool *level_backward(const level_finder *finder, const pen_trace_event *event) {
    return &finder->has_backward[(size_t)event->form * finder->stage_count + event->task.stage];
}

static void level_add(level_finder *finder, const pen_trace_event *event, double seconds, int taken,
                      int halved) {
    finder->changes[finder->change_count++] =
        (level_change){seconds, event->device, event->task.stage, taken, halved};
}

static void level_add_task(level_finder *finder, const pen_trace_event *event) {
    switch (event->task.kind) {
    case PEN_TASK_FORWARD:
        level_add(finder, event, event->start_seconds, 1, 0);
        if (!*level_backward(finder, event)) level_add(finder, event, event->end_seconds, -1, 0);
        return;
    case PEN_TASK_BACKWARD:
        level_add(finder, event, event->end_seconds, -1, 0);
        return;
    case PEN_TASK_BACKWARD_INPUT:
        level_add(finder, event, event->start_seconds, 0, 1);
        return;
    case PEN_TASK_BACKWARD_WEIGHT:
        level_add(finder, event, event->end_seconds, -1, -1);
        return;
    case PEN_TASK_UPDATE:
        return;
    }
}

// Forward tasks take memory and backward tasks give it back, at their ends. A stage without a
// backward pass holds its values for the task alone, so these stages are found first.
static pen_status level_collect(const pen_trace_entry *entries, uint32_t count, pen_arena *arena,
                                level_finder *finder) {
    uint32_t form_count = 1;
    size_t flag_count;
    finder->stage_count = 1;
    for (uint32_t i = 0; i < count; i++) {
        const pen_trace_event *event = &entries[i].event;
        if (event->kind != PEN_TRACE_TASK) continue;
        if (event->form >= form_count) form_count = event->form + 1;
        if (event->task.stage >= finder->stage_count) finder->stage_count = event->task.stage + 1;
    }
    if (!pen_size_mul(form_count, finder->stage_count, &flag_count)) {
        return pen_error_out_of_memory();
    }
    PEN_TRY(PEN_NEW(arena, flag_count, &finder->has_backward));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)count, &finder->changes));
    for (uint32_t i = 0; i < count; i++) {
        const pen_trace_event *event = &entries[i].event;
        if (event->kind == PEN_TRACE_TASK && level_is_backward(event->task.kind)) {
            *level_backward(finder, event) = true;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].event.kind == PEN_TRACE_TASK) level_add_task(finder, &entries[i].event);
    }
    if (finder->change_count > 1) {
        qsort(finder->changes, finder->change_count, sizeof *finder->changes, level_compare);
    }
    return PEN_OK;
}

// Memory and microbatches in flight over time: a running sum of the changes of each device. A trace
// may begin in the middle of a step, so levels never fall below 0.
pen_status pen_trace_levels(const pen_trace *trace, const pen_trace_entry *entries,
                            uint32_t entry_count, pen_arena *arena,
                            const pen_trace_level **out_levels, uint32_t *out_count) {
    level_finder finder = {0};
    pen_trace_level *levels;
    pen_trace_level *now; // [device_count]
    uint32_t count = 0;
    PEN_TRY(level_collect(entries, entry_count, arena, &finder));
    PEN_TRY(PEN_NEW(arena, finder.change_count, &levels));
    PEN_TRY(PEN_NEW(arena, trace->device_count, &now));
    for (uint32_t d = 0; d < trace->device_count; d++) {
        now[d].device = d;
        if (trace->fixed_bytes != NULL) now[d].bytes = trace->fixed_bytes[d];
    }
    for (uint32_t i = 0; i < finder.change_count; i++) {
        const level_change *change = &finder.changes[i];
        pen_trace_level *level = &now[change->device];
        // what is let go may have been taken up before the trace began
        const int taken = change->taken < 0 && level->in_flight == 0 ? 0 : change->taken;
        const int halved = change->halved < 0 && taken == 0 ? 0 : change->halved;
        level->seconds = change->seconds;
        level->in_flight += (uint32_t)taken;
        if (trace->stage_count > 0) {
            const pen_trace_stage *stage = &trace->stages[change->stage];
            level->bytes += taken * stage->activation_bytes + halved * stage->halved_bytes;
        }
        const bool is_same_moment = count > 0 && levels[count - 1].device == change->device &&
                                    levels[count - 1].seconds == change->seconds;
        if (!is_same_moment) count += 1;
        levels[count - 1] = *level;
    }
    *out_levels = levels;
    *out_count = count;
    return PEN_OK;
}
