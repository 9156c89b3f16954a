#include "scheduler/report/training_history.h"

#include <string.h>

// A point is the sums of some steps that follow each other.
struct pen_training_history {
    const char *const *names; // [term_count]
    uint32_t term_count;
    uint32_t step_metric_count; // the last terms
    uint32_t column_count; // of `sums`: the loss, the terms, the learning rate, predictions judged
                           // and those of them that were right
    uint64_t first_step, last_step;
    uint64_t steps_a_point;
    uint32_t point_count; // the last one may have fewer steps
    uint64_t *counts;     // [PEN_TRAINING_HISTORY_POINTS] steps
    double *steps;        // [PEN_TRAINING_HISTORY_POINTS] their numbers, added up
    double *sums;         // [PEN_TRAINING_HISTORY_POINTS][column_count]

    const char *metric_names[PEN_TRAINING_HISTORY_METRICS]; // [metric_count]
    uint32_t metric_count;
    uint32_t deciding;  // as that of an evaluation
    uint64_t best_step; // 0: none
    uint32_t evaluation_count;
    uint64_t *evaluated_steps; // [PEN_TRAINING_HISTORY_POINTS]
    double *metrics;           // [PEN_TRAINING_HISTORY_POINTS][PEN_TRAINING_HISTORY_METRICS]
};

static pen_status history_make_room(pen_training_history *history, pen_arena *arena) {
    const size_t points = PEN_TRAINING_HISTORY_POINTS;
    PEN_TRY(PEN_NEW(arena, points, &history->counts));
    PEN_TRY(PEN_NEW(arena, points, &history->steps));
    PEN_TRY(PEN_NEW(arena, points * history->column_count, &history->sums));
    PEN_TRY(PEN_NEW(arena, points, &history->evaluated_steps));
    return PEN_NEW(arena, points * PEN_TRAINING_HISTORY_METRICS, &history->metrics);
}

pen_status pen_training_history_new(const char *const *names, uint32_t count, uint32_t metric_count,
                                    pen_arena *arena, pen_training_history **out_history) {
    pen_training_history *history;
    PEN_TRY(PEN_NEW(arena, 1, &history));
    *history = (pen_training_history){.names = names,
                                      .term_count = count,
                                      .step_metric_count = metric_count,
                                      .column_count = count + 4,
                                      .steps_a_point = 1};
    PEN_TRY(history_make_room(history, arena));
    *out_history = history;
    return PEN_OK;
}

static double *history_sums(const pen_training_history *history, uint32_t point) {
    return history->sums + (size_t)point * history->column_count;
}

static double *history_metrics(const pen_training_history *history, uint32_t evaluation) {
    return history->metrics + (size_t)evaluation * PEN_TRAINING_HISTORY_METRICS;
}

pen_status pen_training_history_copy(const pen_training_history *history, pen_arena *arena,
                                     pen_training_history **out_history) {
    pen_training_history *copy;
    PEN_TRY(PEN_NEW(arena, 1, &copy));
    *copy = *history;
    PEN_TRY(history_make_room(copy, arena));
    const size_t points = history->point_count, evaluations = history->evaluation_count;
    memcpy(copy->counts, history->counts, points * sizeof *copy->counts);
    memcpy(copy->steps, history->steps, points * sizeof *copy->steps);
    memcpy(copy->sums, history->sums, points * history->column_count * sizeof *copy->sums);
    memcpy(copy->evaluated_steps, history->evaluated_steps,
           evaluations * sizeof *copy->evaluated_steps);
    memcpy(copy->metrics, history->metrics,
           evaluations * PEN_TRAINING_HISTORY_METRICS * sizeof *copy->metrics);
    *out_history = copy;
    return PEN_OK;
}

// ---- steps

// Each two points become one.
static void history_halve(pen_training_history *history) {
    for (uint32_t p = 0; p < history->point_count / 2; p++) {
        double *to = history_sums(history, p);
        const double *left = history_sums(history, 2 * p),
                     *right = history_sums(history, 2 * p + 1);
        history->counts[p] = history->counts[2 * p] + history->counts[2 * p + 1];
        history->steps[p] = history->steps[2 * p] + history->steps[2 * p + 1];
        for (uint32_t c = 0; c < history->column_count; c++) {
            to[c] = left[c] + right[c];
        }
    }
    history->point_count /= 2;
    history->steps_a_point *= 2;
}

// The place of the point that the next step belongs to.
static uint32_t history_place(pen_training_history *history) {
    const bool is_full = history->point_count == PEN_TRAINING_HISTORY_POINTS &&
                         history->counts[history->point_count - 1] == history->steps_a_point;
    if (is_full) history_halve(history);
    const uint32_t last = history->point_count;
    if (last > 0 && history->counts[last - 1] < history->steps_a_point) return last - 1;
    history->counts[last] = 0;
    history->steps[last] = 0;
    for (uint32_t c = 0; c < history->column_count; c++) {
        history_sums(history, last)[c] = 0;
    }
    history->point_count++;
    return last;
}

void pen_training_history_add(pen_training_history *history,
                              const pen_training_history_step *step) {
    if (history == NULL) return;
    const uint32_t point = history_place(history);
    double *sums = history_sums(history, point);
    if (history->last_step == 0) history->first_step = step->step;
    history->last_step = step->step;
    history->counts[point]++;
    history->steps[point] += (double)step->step;
    sums[0] += step->loss;
    for (uint32_t t = 0; t < history->term_count; t++) {
        sums[1 + t] += step->terms[t];
    }
    sums += 1 + history->term_count;
    sums[0] += step->learning_rate;
    sums[1] += (double)step->target_count;
    sums[2] += (double)step->correct_count;
}

// ---- evaluations

static void history_move_evaluation(pen_training_history *history, uint32_t from, uint32_t to) {
    if (from == to) return;
    history->evaluated_steps[to] = history->evaluated_steps[from];
    memcpy(history_metrics(history, to), history_metrics(history, from),
           PEN_TRAINING_HISTORY_METRICS * sizeof *history->metrics);
}

// Drops each second evaluation, but not the best.
static void history_thin(pen_training_history *history) {
    uint32_t kept = 0;
    for (uint32_t e = 0; e < history->evaluation_count; e++) {
        if (e % 2 == 1 && history->evaluated_steps[e] != history->best_step) continue;
        history_move_evaluation(history, e, kept);
        kept++;
    }
    history->evaluation_count = kept;
}

// Where there is no room, each second one makes some.
void pen_training_history_evaluate(pen_training_history *history,
                                   const pen_training_history_evaluation *evaluation) {
    if (history == NULL) return;
    uint32_t place = history->evaluation_count;
    if (place > 0 && history->evaluated_steps[place - 1] == evaluation->step) place--;
    if (place == PEN_TRAINING_HISTORY_POINTS) {
        history_thin(history);
        place = history->evaluation_count;
    }
    history->metric_count = evaluation->count < PEN_TRAINING_HISTORY_METRICS
                                ? evaluation->count
                                : PEN_TRAINING_HISTORY_METRICS;
    history->deciding = evaluation->deciding;
    if (evaluation->is_best) history->best_step = evaluation->step;
    history->evaluated_steps[place] = evaluation->step;
    for (uint32_t m = 0; m < history->metric_count; m++) {
        history->metric_names[m] = evaluation->names[m];
        history_metrics(history, place)[m] = evaluation->values[m];
    }
    history->evaluation_count = place + 1;
}

// ---- as JSON

// The means of a column.
static void history_write_column(const pen_training_history *history, uint32_t column,
                                 pen_json_writer *json) {
    pen_json_key_array(json, "points");
    for (uint32_t p = 0; p < history->point_count; p++) {
        const double count = (double)history->counts[p];
        pen_json_begin_array(json);
        pen_json_number(json, history->steps[p] / count);
        pen_json_number(json, history_sums(history, p)[column] / count);
        pen_json_end_array(json);
    }
    pen_json_end_array(json);
}

// The share of right predictions of each point; nothing where no step has any.
static void history_write_accuracy(const pen_training_history *history, pen_json_writer *json) {
    const uint32_t judged = 2 + history->term_count;
    double all = 0;
    for (uint32_t p = 0; p < history->point_count; p++) {
        all += history_sums(history, p)[judged];
    }
    if (all == 0) return;
    pen_json_key_object(json, "accuracy");
    pen_json_key_array(json, "points");
    for (uint32_t p = 0; p < history->point_count; p++) {
        const double *sums = history_sums(history, p) + judged;
        pen_json_begin_array(json);
        pen_json_number(json, history->steps[p] / (double)history->counts[p]);
        if (sums[0] > 0) {
            pen_json_number(json, sums[1] / sums[0]);
        } else {
            pen_json_null(json);
        }
        pen_json_end_array(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

// Columns [first, end), which are the loss and, behind it, the terms.
static void history_write_series(const pen_training_history *history, uint32_t first, uint32_t end,
                                 pen_json_writer *json) {
    pen_json_key_array(json, "series");
    for (uint32_t t = first; t < end; t++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", t == 0 ? "loss" : history->names[t - 1]);
        history_write_column(history, t, json);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

static void history_write_steps(const pen_training_history *history, pen_json_writer *json) {
    const uint32_t end = 1 + history->term_count, metrics = end - history->step_metric_count;
    pen_json_key_object(json, "losses");
    pen_json_key_unsigned(json, "first_step", history->first_step);
    pen_json_key_unsigned(json, "last_step", history->last_step);
    history_write_series(history, 0, metrics, json);
    pen_json_end_object(json);
    history_write_accuracy(history, json);
    if (metrics < end) {
        pen_json_key_object(json, "metrics");
        history_write_series(history, metrics, end, json);
        pen_json_end_object(json);
    }
    pen_json_key_object(json, "rate");
    history_write_column(history, 1 + history->term_count, json);
    pen_json_end_object(json);
}

// A series for each metric, over the same steps.
static void history_write_evaluations(const pen_training_history *history, pen_json_writer *json) {
    if (history->evaluation_count == 0) return;
    pen_json_key_object(json, "evaluations");
    if (history->best_step > 0) pen_json_key_unsigned(json, "best_step", history->best_step);
    if (history->deciding < history->metric_count) {
        pen_json_key_text(json, "deciding", history->metric_names[history->deciding]);
    }
    pen_json_key_array(json, "series");
    for (uint32_t m = 0; m < history->metric_count; m++) {
        pen_json_begin_object(json);
        pen_json_key_text(json, "name", history->metric_names[m]);
        pen_json_key_array(json, "points");
        for (uint32_t e = 0; e < history->evaluation_count; e++) {
            pen_json_begin_array(json);
            pen_json_unsigned(json, history->evaluated_steps[e]);
            pen_json_number(json, history_metrics(history, e)[m]);
            pen_json_end_array(json);
        }
        pen_json_end_array(json);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}

void pen_training_history_write(const pen_training_history *history, pen_json_writer *json) {
    if (history == NULL) return;
    if (history->point_count > 0) history_write_steps(history, json);
    history_write_evaluations(history, json);
}
