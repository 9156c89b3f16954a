#include "scheduler/report/run_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format/text_columns.h"
#include "base/text.h"

// A group of rows: a figure of each device, or of each process.
typedef struct run_figure {
    const char *title;
    bool is_bytes; // else seconds
    bool is_of_process;
    size_t predicted_offset;
    size_t measured_offset;
} run_figure;

#define RUN_FIGURE(title, is_bytes, is_of_process, member)                                         \
    {                                                                                              \
        title, is_bytes, is_of_process, offsetof(pen_engine_device_report, member##_predicted),    \
            offsetof(pen_engine_device_report, member)                                             \
    }

static const run_figure run_figures[] = {
    RUN_FIGURE("busy in a step", false, false, busy_seconds),
    RUN_FIGURE("sent in a step", true, false, sent_bytes),
    RUN_FIGURE("buffers", true, false, bytes),
    RUN_FIGURE("process, at its peak", true, true, process_bytes),
};
#define RUN_FIGURE_COUNT (sizeof run_figures / sizeof *run_figures)

static double run_get(const pen_engine_device_report *device, size_t offset) {
    double figure;
    memcpy(&figure, (const char *)device + offset, sizeof figure);
    return figure;
}

// ---- as text

#define RUN_COLUMN_COUNT 5

typedef struct run_row {
    const char *cells[RUN_COLUMN_COUNT]; // what, of whom, predicted, measured, ratio
} run_row;

typedef struct run_table {
    pen_arena *arena;
    uint32_t row_count;
    run_row *rows;
} run_table;

static pen_status run_format(pen_arena *arena, bool is_bytes, double figure,
                             const char **out_text) {
    char room[PEN_QUANTITY_TEXT_BYTES];
    const char *text = "-";
    if (figure >= 0 && is_bytes) text = pen_bytes_format((uint64_t)fmin(figure, 0x1p63), room);
    if (figure >= 0 && !is_bytes) text = pen_seconds_format(figure, room);
    return pen_arena_copy_text(arena, text, strlen(text), out_text);
}

static pen_status run_add(run_table *table, const char *what, const char *whom, bool is_bytes,
                          const double figures[2]) {
    run_row *row = &table->rows[table->row_count++];
    *row = (run_row){{what, whom, "", "", "-"}};
    for (int side = 0; side < 2; side++) {
        PEN_TRY(run_format(table->arena, is_bytes, figures[side], &row->cells[2 + side]));
    }
    if (!(figures[0] > 0) || !(figures[1] >= 0)) return PEN_OK;
    return pen_arena_format(table->arena, &row->cells[4], "%.2f", figures[1] / figures[0]);
}

static pen_status run_add_bubble(run_table *table, const pen_engine_report *report) {
    const double figures[2] = {report->bubble_predicted, report->bubble};
    run_row *row = &table->rows[table->row_count++];
    *row = (run_row){{"bubble", "", "-", "-", ""}};
    for (int side = 0; side < 2; side++) {
        if (!(figures[side] >= 0)) continue;
        PEN_TRY(
            pen_arena_format(table->arena, &row->cells[2 + side], "%.1f %%", 100 * figures[side]));
    }
    return PEN_OK;
}

static bool run_is_new_worker(const pen_engine_report *report, uint32_t device) {
    for (uint32_t d = 0; d < device; d++) {
        if (strcmp(report->devices[d].worker, report->devices[device].worker) == 0) return false;
    }
    return true;
}

static pen_status run_add_figure(run_table *table, const pen_engine_report *report,
                                 const run_figure *figure) {
    const char *title = figure->title;
    for (uint32_t d = 0; d < report->device_count; d++) {
        const pen_engine_device_report *device = &report->devices[d];
        const double figures[2] = {run_get(device, figure->predicted_offset),
                                   run_get(device, figure->measured_offset)};
        if (figures[0] < 0 && figures[1] < 0) continue;
        if (figure->is_of_process && !run_is_new_worker(report, d)) continue;
        if (figure->is_of_process && figures[0] <= 0 && figures[1] <= 0) continue; // another's
        PEN_TRY(run_add(table, title, figure->is_of_process ? device->worker : device->name,
                        figure->is_bytes, figures));
        title = "";
    }
    return PEN_OK;
}

static void run_add_spaces(pen_text *text, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pen_text_add(text, " ");
    }
}

// Names to the left, numbers to the right; widths are what a terminal makes of the texts. No spaces
// at the ends of lines.
static void run_print(const run_table *table, pen_text *text) {
    size_t widths[RUN_COLUMN_COUNT] = {0};
    for (uint32_t r = 0; r < table->row_count; r++) {
        for (int c = 0; c < RUN_COLUMN_COUNT; c++) {
            const size_t width = pen_text_columns(table->rows[r].cells[c]);
            if (width > widths[c]) widths[c] = width;
        }
    }
    for (uint32_t r = 0; r < table->row_count; r++) {
        for (int c = 0; c < RUN_COLUMN_COUNT; c++) {
            const char *cell = table->rows[r].cells[c];
            const size_t gap = widths[c] - pen_text_columns(cell);
            const bool is_last = c + 1 == RUN_COLUMN_COUNT;
            if (c < 2) {
                pen_text_add_column(text, cell, widths[c]);
            } else if (!is_last || cell[0] != '\0') {
                run_add_spaces(text, gap);
                pen_text_add(text, cell);
            }
            if (c < RUN_COLUMN_COUNT - 2 ||
                (c == RUN_COLUMN_COUNT - 2 && table->rows[r].cells[c + 1][0] != '\0')) {
                run_add_spaces(text, 2);
            }
        }
        pen_text_add(text, "\n");
    }
}

pen_status pen_run_report_text(const pen_engine_report *report, pen_arena *arena,
                               const char **out_text) {
    const double step[2] = {report->step_seconds_predicted, report->step_seconds};
    run_table table = {.arena = arena};
    pen_text text;
    pen_text_init(&text, arena);
    if (report->device_count == 0) return pen_text_finish(&text, out_text);
    PEN_TRY(PEN_NEW(arena, 3 + RUN_FIGURE_COUNT * (size_t)report->device_count, &table.rows));
    table.rows[table.row_count++] = (run_row){{"", "", "predicted", "measured", "ratio"}};
    PEN_TRY(run_add(&table, "step", "", false, step));
    PEN_TRY(run_add_bubble(&table, report));
    for (size_t i = 0; i < RUN_FIGURE_COUNT; i++) {
        PEN_TRY(run_add_figure(&table, report, &run_figures[i]));
    }
    run_print(&table, &text);
    return pen_text_finish(&text, out_text);
}

// ---- as JSON

static void run_key(pen_json_writer *json, const char *key, double figure) {
    if (figure >= 0) pen_json_key_number(json, key, figure);
}

// The keys of both sides are the same, so that a script can compare them.
void pen_run_report_json(pen_json_writer *json, const pen_engine_report *report,
                         pen_run_report_side side) {
    const bool is_measured = side == PEN_RUN_REPORT_MEASURED;
    if (report->device_count == 0) return;
    run_key(json, "step_seconds",
            is_measured ? report->step_seconds : report->step_seconds_predicted);
    run_key(json, "bubble", is_measured ? report->bubble : report->bubble_predicted);
    pen_json_key_array(json, "devices");
    for (uint32_t d = 0; d < report->device_count; d++) {
        const pen_engine_device_report *device = &report->devices[d];
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", device->name);
        if (is_measured) pen_json_key_text(json, "worker", device->worker);
        run_key(json, "busy_seconds",
                is_measured ? device->busy_seconds : device->busy_seconds_predicted);
        if (is_measured) run_key(json, "wait_seconds", device->wait_seconds);
        run_key(json, "bytes", is_measured ? device->bytes : device->bytes_predicted);
        run_key(json, "process_bytes",
                is_measured ? device->process_bytes : device->process_bytes_predicted);
        run_key(json, "sent_bytes",
                is_measured ? device->sent_bytes : device->sent_bytes_predicted);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

// ---- as a line

// Bytes of `name` up to a limit, cut where a letter of UTF-8 begins.
static int run_cut(const char *name) {
    size_t length = strlen(name);
    if (length <= 40) return (int)length;
    length = 40;
    while (length > 0 && ((unsigned char)name[length] & 0xC0u) == 0x80u) {
        length -= 1;
    }
    return (int)length;
}

const char *pen_run_report_line(const pen_engine_pulse *pulse,
                                char out_text[PEN_RUN_REPORT_LINE_BYTES]) {
    int length = 0;
    out_text[0] = '\0';
    if (pulse->bubble >= 0) {
        length = snprintf(out_text, PEN_RUN_REPORT_LINE_BYTES, "bubble %.0f %%",
                          100 * fmin(1, pulse->bubble));
    }
    if (!pulse->has_slowest) return out_text;
    snprintf(out_text + length, PEN_RUN_REPORT_LINE_BYTES - (size_t)length,
             "%sslowest stage %u on '%.*s'", length > 0 ? ", " : "", pulse->slowest_stage,
             run_cut(pulse->slowest_device), pulse->slowest_device);
    return out_text;
}
