#include "scheduler/schedule/schedule_dump.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"

#define DUMP_COLUMN_COUNT 100

static char dump_letter(pen_task_kind kind) {
    static const char letters[] = "FBIWU";
    return letters[kind];
}

// What a device does in the middle of each column.
static void dump_draw(const pen_timeline *timeline, uint32_t device, char *kinds, char *digits) {
    const pen_schedule *schedule = timeline->schedule;
    uint32_t t = schedule->first_task[device];
    const uint32_t end = schedule->first_task[device + 1];
    for (uint32_t column = 0; column < DUMP_COLUMN_COUNT; column++) {
        const double seconds = (column + 0.5) * timeline->step_seconds / DUMP_COLUMN_COUNT;
        while (t < end && timeline->times.end_seconds[t] <= seconds)
            t++;
        const bool is_idle = t == end || timeline->times.start_seconds[t] > seconds;
        kinds[column] = is_idle ? '.' : dump_letter(schedule->tasks[t].kind);
        digits[column] = is_idle || schedule->tasks[t].kind == PEN_TASK_UPDATE
                             ? ' '
                             : (char)('0' + schedule->tasks[t].microbatch % 10);
    }
    kinds[DUMP_COLUMN_COUNT] = '\0';
    digits[DUMP_COLUMN_COUNT] = '\0';
}

static const char *dump_device_name(const char *const *device_names, uint32_t device,
                                    char out_text[PEN_QUANTITY_TEXT_BYTES]) {
    if (device_names != NULL) return device_names[device];
    snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "device %u", device);
    return out_text;
}

// Two lines of a fixed number of columns: kinds of tasks, and the last digit of the microbatch.
static void dump_device(const pen_timeline *timeline, const char *name, uint32_t device,
                        pen_text *text) {
    const pen_stage_graph *graph = timeline->graph;
    char kinds[DUMP_COLUMN_COUNT + 1];
    char digits[DUMP_COLUMN_COUNT + 1];
    char quantity[PEN_QUANTITY_TEXT_BYTES];
    dump_draw(timeline, device, kinds, digits);
    const double share =
        timeline->step_seconds > 0 ? timeline->busy_seconds[device] / timeline->step_seconds : 0;
    pen_text_print(text, "%s: %.1f %% busy, %s", name, 100 * share,
                   pen_bytes_format((uint64_t)timeline->bytes_peak[device], quantity));
    if (isfinite(graph->bytes_limit[device])) {
        pen_text_print(text, " of %s",
                       pen_bytes_format((uint64_t)graph->bytes_limit[device], quantity));
    }
    const char *before = "; microbatches in flight: ";
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        if (graph->stages[s].device != device) continue;
        pen_text_print(text, "%s%u in stage %u", before, timeline->in_flight[s], s);
        before = ", ";
    }
    pen_text_print(text, "\n  %s\n", kinds);
    size_t length = DUMP_COLUMN_COUNT;
    while (length > 0 && digits[length - 1] == ' ')
        length--;
    if (length > 0) pen_text_print(text, "  %.*s\n", (int)length, digits);
}

// For terminals and golden files: equal time lines give equal texts.
pen_status pen_schedule_dump_text(const pen_timeline *timeline, const char *const *device_names,
                                  pen_arena *arena, const char **out_text) {
    const pen_stage_graph *graph = timeline->graph;
    pen_text text;
    char name[PEN_QUANTITY_TEXT_BYTES];
    char quantity[PEN_QUANTITY_TEXT_BYTES];
    pen_text_init(&text, arena);
    pen_text_print(&text, "step %s, bubble %.1f %%; stages: %u, devices: %u, microbatches: %u\n",
                   pen_seconds_format(timeline->step_seconds, quantity), 100 * timeline->bubble,
                   graph->stage_count, graph->device_count, graph->microbatch_count);
    for (uint32_t d = 0; d < graph->device_count; d++) {
        dump_device(timeline, dump_device_name(device_names, d, name), d, &text);
    }
    for (uint32_t l = 0; l < timeline->link_count; l++) {
        const pen_link_traffic *link = &timeline->links[l];
        char target[PEN_QUANTITY_TEXT_BYTES];
        const double share =
            timeline->step_seconds > 0 ? link->busy_seconds / timeline->step_seconds : 0;
        pen_text_print(&text, "%s to %s: %s in %u transfers, %.1f %% busy\n",
                       dump_device_name(device_names, link->source, name),
                       dump_device_name(device_names, link->target, target),
                       pen_bytes_format((uint64_t)link->bytes, quantity), link->transfer_count,
                       100 * share);
    }
    return pen_text_finish(&text, out_text);
}
