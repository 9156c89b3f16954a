#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format/svg_writer.h"
#include "base/text.h"
#include "scheduler/schedule/schedule_dump.h"

// In pixels.
#define SVG_TIME_WIDTH 1200.0
#define SVG_MARGIN 12.0
#define SVG_HEAD 54.0      // title and legend
#define SVG_ROW 38.0       // a device
#define SVG_TASK 22.0      // of which its tasks
#define SVG_SEND 5.0       // and its sends
#define SVG_FOOT 26.0      // the scale
#define SVG_LETTER 6.2     // a digit of 10 pixels, wide
#define SVG_NAME_LIMIT 48u // letters; beyond, a name is cut, and told to the mouse

#define SVG_GAP 0.8       // between tasks that touch, where there is room for one
#define SVG_GAP_WIDTH 3.0 // and from which width on there is
#define SVG_THINNEST 1.0  // whatever takes time is seen

// Classes of the style sheet, the last that of sends.
static const char *const svg_classes[PEN_TASK_KIND_COUNT + 1] = {
    [PEN_TASK_FORWARD] = "f",         [PEN_TASK_BACKWARD] = "b", [PEN_TASK_BACKWARD_INPUT] = "x",
    [PEN_TASK_BACKWARD_WEIGHT] = "w", [PEN_TASK_UPDATE] = "u",   [PEN_TASK_KIND_COUNT] = "s",
};
static const char svg_style[] =
    "text{font:11px sans-serif;fill:var(--ink)}"
    ".m{font-size:10px;fill:var(--digit);text-anchor:middle;pointer-events:none}"
    ".d{font-weight:bold}.n,.t{fill:var(--soft);font-size:10px}.t{text-anchor:middle}"
    ".h{font-size:13px;font-weight:bold}line{stroke:var(--line);stroke-width:.6}"
    ".i{fill:var(--row)}.s{fill:var(--transfer)}.f{fill:var(--forward)}.b{fill:var(--backward)}"
    ".x{fill:var(--backward-inputs)}.w{fill:var(--backward-weights)}.u{fill:var(--update)}";

typedef struct svg_page {
    const pen_timeline *timeline;
    const char *const *device_names;
    pen_markup_writer markup;
    double left;   // where time 0 is
    double scale;  // pixels a second
    bool *several; // [device_count], has more than one stage
} svg_page;

// What the mouse is told about a span.
static void svg_tell(svg_page *page, const char *what, double start, double end) {
    char from[PEN_QUANTITY_TEXT_BYTES];
    char to[PEN_QUANTITY_TEXT_BYTES];
    pen_markup_open(&page->markup, "title");
    pen_markup_print(&page->markup, "%s: %s to %s", what, pen_seconds_format(start, from),
                     pen_seconds_format(end, to));
    pen_markup_close(&page->markup, "title");
}

// Letters of UTF-8 up to the limit, the last of them "…" when there are more.
static void svg_cut(const char *name, char out_text[4 * SVG_NAME_LIMIT + 4]) {
    size_t letters = 0, length = 0, shorter = 0;
    const size_t all = strlen(name);
    while (length < all && letters < SVG_NAME_LIMIT) {
        const size_t bytes =
            pen_text_sequence_length((const unsigned char *)name + length, all - length);
        if (letters + 1 < SVG_NAME_LIMIT) shorter = length + (bytes > 0 ? bytes : 1);
        length += bytes > 0 ? bytes : 1;
        letters += 1;
    }
    const bool is_cut = length < all;
    const size_t kept = is_cut ? shorter : length;
    memcpy(out_text, name, kept);
    memcpy(out_text + kept, is_cut ? "\u2026" : "", is_cut ? 4 : 1);
}

static double svg_row(uint32_t device) {
    return SVG_HEAD + SVG_ROW * device;
}

// Opens the rect of what takes time.
static void svg_span(svg_page *page, double x, double y, double width, double height) {
    const double drawn = width > SVG_GAP_WIDTH ? width - SVG_GAP : fmax(width, SVG_THINNEST);
    pen_svg_open_rect(&page->markup, x, y, drawn, height);
}

// The label is left out where it would not fit; the tooltip has it anyway.
static void svg_task(svg_page *page, uint32_t device, uint32_t t) {
    const pen_task task = page->timeline->schedule->tasks[t];
    const double start = page->timeline->times.start_seconds[t];
    const double end = page->timeline->times.end_seconds[t];
    const double x = page->left + start * page->scale;
    const double width = (end - start) * page->scale;
    char name[PEN_TASK_TEXT_BYTES];
    if (width <= 0) return;
    pen_markup_line(&page->markup);
    svg_span(page, x, svg_row(device), width, SVG_TASK);
    pen_markup_attribute(&page->markup, "class", svg_classes[task.kind]);
    svg_tell(page, pen_task_format(task, name), start, end);
    pen_markup_close(&page->markup, "rect");
    if (task.kind == PEN_TASK_UPDATE) return;
    int length = snprintf(name, sizeof name, "%u", task.microbatch);
    if (page->several[device]) {
        char both[PEN_TASK_TEXT_BYTES];
        const int wide = snprintf(both, sizeof both, "%u:%u", task.stage, task.microbatch);
        if (wide * SVG_LETTER + 2 <= width) {
            length = wide;
            memcpy(name, both, sizeof both);
        }
    }
    if (length * SVG_LETTER + 2 > width) return;
    pen_svg_text(&page->markup, x + width / 2, svg_row(device) + SVG_TASK / 2 + 3.5, "m", name);
}

// Drawn below the device that sends, where the value was made.
static void svg_transfer(svg_page *page, const pen_transfer_time *transfer) {
    const pen_stage_graph *graph = page->timeline->graph;
    const uint32_t from = pen_transfer_source(graph, transfer);
    const uint32_t to = pen_transfer_target(graph, transfer);
    const double width = (transfer->end_seconds - transfer->start_seconds) * page->scale;
    char what[96];
    if (width <= 0) return;
    if (transfer->is_step) {
        snprintf(what, sizeof what, "values of phase %u of the updates, from stage %u to %u",
                 transfer->microbatch, from, to);
    } else {
        snprintf(what, sizeof what, "%s of microbatch %u from stage %u to %u",
                 transfer->is_backward ? "gradients" : "activations", transfer->microbatch, from,
                 to);
    }
    pen_markup_line(&page->markup);
    svg_span(page, page->left + transfer->start_seconds * page->scale,
             svg_row(graph->stages[from].device) + SVG_TASK + 2, width, SVG_SEND);
    pen_markup_attribute(&page->markup, "class", "s");
    svg_tell(page, what, transfer->start_seconds, transfer->end_seconds);
    pen_markup_close(&page->markup, "rect");
}

// A long name is cut in the picture and whole in the tooltip.
static void svg_device(svg_page *page, uint32_t device) {
    const pen_timeline *timeline = page->timeline;
    const pen_schedule *schedule = timeline->schedule;
    char name[4 * SVG_NAME_LIMIT + 4];
    if (page->device_names != NULL) {
        svg_cut(page->device_names[device], name);
    } else {
        snprintf(name, sizeof name, "device %u", device);
    }
    pen_markup_line(&page->markup);
    pen_svg_open_text(&page->markup, SVG_MARGIN, svg_row(device) + 11, "d");
    pen_markup_text(&page->markup, name);
    if (page->device_names != NULL && strcmp(name, page->device_names[device]) != 0) {
        pen_markup_element(&page->markup, "title", page->device_names[device]);
    }
    pen_markup_close(&page->markup, "text");
    const double share =
        timeline->step_seconds > 0 ? timeline->busy_seconds[device] / timeline->step_seconds : 0;
    snprintf(name, sizeof name, "%.0f %% busy", 100 * share);
    pen_svg_text(&page->markup, SVG_MARGIN, svg_row(device) + 24, "n", name);
    pen_svg_open_rect(&page->markup, page->left, svg_row(device), SVG_TIME_WIDTH, SVG_TASK);
    pen_markup_attribute(&page->markup, "class", "i");
    pen_markup_close(&page->markup, "rect");
    for (uint32_t t = schedule->first_task[device]; t < schedule->first_task[device + 1]; t++) {
        svg_task(page, device, t);
    }
}

// The kinds that take time, each with its colour.
static void svg_legend(svg_page *page) {
    const pen_schedule *schedule = page->timeline->schedule;
    double x = page->left;
    for (int kind = 0; kind <= PEN_TASK_KIND_COUNT; kind++) {
        const bool is_send = kind == PEN_TASK_KIND_COUNT;
        bool is_there = is_send && page->timeline->times.transfer_count > 0;
        for (uint32_t t = 0; t < schedule->task_count && !is_send; t++) {
            if ((int)schedule->tasks[t].kind != kind) continue;
            if (pen_task_seconds(page->timeline->graph, schedule->tasks[t]) > 0) is_there = true;
        }
        if (!is_there) continue;
        const char *name = is_send ? "transfer" : pen_task_kind_name((pen_task_kind)kind);
        pen_svg_open_rect(&page->markup, x, 32, 11, 11);
        pen_markup_attribute(&page->markup, "class", svg_classes[kind]);
        pen_markup_close(&page->markup, "rect");
        pen_svg_text(&page->markup, x + 16, 41.5, NULL, name);
        x += 34 + SVG_LETTER * (double)strlen(name);
    }
}

// Marks at round numbers of seconds.
static void svg_scale(svg_page *page) {
    const double step = page->timeline->step_seconds;
    const double bottom = svg_row(page->timeline->graph->device_count);
    if (step <= 0) return;
    double interval = pow(10, floor(log10(step / 5)));
    if (step / interval > 25) interval *= 5;
    if (step / interval > 12) interval *= 2;
    const int mark_count = (int)floor(step / interval * (1 + 1e-12));
    for (int i = 0; i <= mark_count; i++) {
        char label[PEN_QUANTITY_TEXT_BYTES];
        const double x = page->left + i * interval * page->scale;
        pen_markup_line(&page->markup);
        pen_markup_open(&page->markup, "line");
        pen_markup_attribute_number(&page->markup, "x1", x);
        pen_markup_attribute_number(&page->markup, "x2", x);
        pen_markup_attribute_number(&page->markup, "y1", SVG_HEAD - 4);
        pen_markup_attribute_number(&page->markup, "y2", bottom);
        pen_markup_close(&page->markup, "line");
        pen_svg_text(&page->markup, x, bottom + 13, "t",
                     i == 0 ? "0" : pen_seconds_format(i * interval, label));
    }
}

static void svg_head(svg_page *page, double width, double height) {
    const pen_timeline *timeline = page->timeline;
    const pen_stage_graph *graph = timeline->graph;
    char quantity[PEN_QUANTITY_TEXT_BYTES];
    char title[256];
    snprintf(title, sizeof title,
             "step %s, bubble %.1f %% (stages: %u, devices: %u, microbatches: %u)",
             pen_seconds_format(timeline->step_seconds, quantity), 100 * timeline->bubble,
             graph->stage_count, graph->device_count, graph->microbatch_count);
    pen_svg_begin(&page->markup, width, height, title, svg_style);
    pen_svg_text(&page->markup, SVG_MARGIN, 19, "h", title);
}

// Everything is measured from the longest name and the time of a step, so that all plans fit the
// same width.
pen_status pen_schedule_dump_svg(const pen_timeline *timeline, const char *const *device_names,
                                 pen_arena *arena, const char **out_text) {
    const pen_stage_graph *graph = timeline->graph;
    svg_page page = {.timeline = timeline, .device_names = device_names};
    pen_text text;
    PEN_TRY(PEN_NEW(arena, graph->device_count, &page.several));
    size_t longest = 10;
    for (uint32_t d = 0; d < graph->device_count; d++) {
        uint32_t stage_count = 0;
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            if (graph->stages[s].device == d) stage_count += 1;
        }
        page.several[d] = stage_count > 1;
        const size_t length = device_names != NULL ? strlen(device_names[d]) : 0;
        if (length > longest) longest = length > SVG_NAME_LIMIT ? SVG_NAME_LIMIT : length;
    }
    page.left = 2 * SVG_MARGIN + (SVG_LETTER + 0.6) * (double)longest;
    page.scale = timeline->step_seconds > 0 ? SVG_TIME_WIDTH / timeline->step_seconds : 0;
    pen_text_init(&text, arena);
    pen_markup_init(&page.markup, &text);
    svg_head(&page, page.left + SVG_TIME_WIDTH + 2 * SVG_MARGIN,
             svg_row(graph->device_count) + SVG_FOOT);
    svg_legend(&page);
    svg_scale(&page);
    for (uint32_t d = 0; d < graph->device_count; d++) {
        svg_device(&page, d);
    }
    for (uint32_t i = 0; i < timeline->times.transfer_count; i++) {
        svg_transfer(&page, &timeline->times.transfers[i]);
    }
    pen_markup_close(&page.markup, "svg");
    pen_markup_line(&page.markup);
    return pen_text_finish(&text, out_text);
}
