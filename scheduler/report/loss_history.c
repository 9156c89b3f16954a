#include "scheduler/report/loss_history.h"

#include "base/format/palette.h"

// A point is the sums of some steps that follow each other.
struct pen_loss_history {
    const char *const *names; // [series_count - 1]
    uint32_t series_count;
    uint64_t first_step, last_step;
    uint64_t steps_a_point;
    uint32_t point_count; // the last one may have fewer steps
    uint64_t *counts;     // [PEN_LOSS_HISTORY_POINTS] steps
    double *steps;        // [PEN_LOSS_HISTORY_POINTS] their numbers, added up
    double *sums;         // [PEN_LOSS_HISTORY_POINTS][series_count]
};

pen_status pen_loss_history_new(const char *const *names, uint32_t count, pen_arena *arena,
                                pen_loss_history **out_history) {
    pen_loss_history *history;
    PEN_TRY(PEN_NEW(arena, 1, &history));
    *history = (pen_loss_history){.names = names, .series_count = count + 1, .steps_a_point = 1};
    PEN_TRY(PEN_NEW(arena, PEN_LOSS_HISTORY_POINTS, &history->counts));
    PEN_TRY(PEN_NEW(arena, PEN_LOSS_HISTORY_POINTS, &history->steps));
    PEN_TRY(
        PEN_NEW(arena, (size_t)PEN_LOSS_HISTORY_POINTS * history->series_count, &history->sums));
    *out_history = history;
    return PEN_OK;
}

static double *history_sums(const pen_loss_history *history, uint32_t point) {
    return history->sums + (size_t)point * history->series_count;
}

// Each two points become one.
static void history_halve(pen_loss_history *history) {
    for (uint32_t p = 0; p < history->point_count / 2; p++) {
        double *to = history_sums(history, p);
        const double *left = history_sums(history, 2 * p),
                     *right = history_sums(history, 2 * p + 1);
        history->counts[p] = history->counts[2 * p] + history->counts[2 * p + 1];
        history->steps[p] = history->steps[2 * p] + history->steps[2 * p + 1];
        for (uint32_t s = 0; s < history->series_count; s++) {
            to[s] = left[s] + right[s];
        }
    }
    history->point_count /= 2;
    history->steps_a_point *= 2;
}

// The place of the point that the next step belongs to.
static uint32_t history_place(pen_loss_history *history) {
    const bool is_full = history->point_count == PEN_LOSS_HISTORY_POINTS &&
                         history->counts[history->point_count - 1] == history->steps_a_point;
    if (is_full) history_halve(history);
    const uint32_t last = history->point_count;
    if (last > 0 && history->counts[last - 1] < history->steps_a_point) return last - 1;
    history->counts[last] = 0;
    history->steps[last] = 0;
    for (uint32_t s = 0; s < history->series_count; s++) {
        history_sums(history, last)[s] = 0;
    }
    history->point_count++;
    return last;
}

void pen_loss_history_add(pen_loss_history *history, uint64_t step, double loss,
                          const double *terms) {
    if (history == NULL) return;
    const uint32_t point = history_place(history);
    double *sums = history_sums(history, point);
    if (history->last_step == 0) history->first_step = step;
    history->last_step = step;
    history->counts[point]++;
    history->steps[point] += (double)step;
    sums[0] += loss;
    for (uint32_t s = 1; s < history->series_count; s++) {
        sums[s] += terms[s - 1];
    }
}

static void history_write_series(const pen_loss_history *history, uint32_t series,
                                 pen_json_writer *json) {
    char color[PEN_PALETTE_TEXT_BYTES];
    pen_json_begin_object(json);
    pen_json_key_text(json, "name", series == 0 ? "loss" : history->names[series - 1]);
    if (series > 0) {
        pen_json_key_text(json, "color", pen_palette_series(series - 1, color));
    }
    pen_json_key_array(json, "points");
    for (uint32_t p = 0; p < history->point_count; p++) {
        const double count = (double)history->counts[p];
        pen_json_begin_array(json);
        pen_json_number(json, history->steps[p] / count);
        pen_json_number(json, history_sums(history, p)[series] / count);
        pen_json_end_array(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

void pen_loss_history_write(const pen_loss_history *history, pen_json_writer *json) {
    if (history == NULL || history->point_count == 0) return;
    pen_json_key_object(json, "losses");
    pen_json_key_unsigned(json, "first_step", history->first_step);
    pen_json_key_unsigned(json, "last_step", history->last_step);
    pen_json_key_array(json, "series");
    for (uint32_t s = 0; s < history->series_count; s++) {
        history_write_series(history, s, json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}
