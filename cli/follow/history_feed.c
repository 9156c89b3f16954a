#include "cli/follow/history_feed.h"

#include <string.h>

// Losses one by one, then metrics in their order, as pen_run_history_new names them.
void pen_history_feed_step(pen_training_history *history, const pen_program *program,
                           const pen_step_report *report) {
    double terms[PEN_TERMS_LIMIT];
    uint32_t count = program->term_count;
    memcpy(terms, report->terms, count * sizeof *terms);
    for (uint32_t i = 0; i < program->told_count; i++)
        terms[count++] = report->metric_values[program->told[i].metric];
    const pen_training_history_step step = {.step = report->step,
                                            .loss = report->loss,
                                            .terms = terms,
                                            .learning_rate = report->learning_rate,
                                            .target_count = report->target_count,
                                            .correct_count = report->correct_count};
    pen_training_history_add(history, &step);
}

// The metric that decides stands where the job's evaluation says, if that was made while it ran.
void pen_history_feed_evaluation(pen_training_history *history, uint64_t step,
                                 const pen_step_report *report, const pen_trainer *trainer) {
    const char *names[PEN_TRAINING_HISTORY_METRICS];
    double values[PEN_TRAINING_HISTORY_METRICS];
    const pen_program *program = pen_trainer_program(trainer);
    const pen_evaluation *evaluation = &report->evaluation;
    const pen_checkpoint_evaluated *evaluated = pen_trainer_evaluated(trainer);
    uint32_t count = 0, deciding = 0;
    pen_metric_set told_metrics = evaluation->metrics & ~PEN_METRIC_BIT(PEN_METRIC_LOSS);
    if (evaluation->target_count > 0) told_metrics |= PEN_METRIC_BIT(PEN_METRIC_ACCURACY);
    names[count] = "loss";
    values[count++] = evaluation->loss;
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, told_metrics)) continue;
        if (count == PEN_TRAINING_HISTORY_METRICS) break;
        if (metric == evaluated->metric) deciding = count;
        names[count] = pen_metric_names[metric];
        values[count++] = pen_evaluation_value(evaluation, metric);
    }
    for (uint32_t i = 0; i < program->term_count && count < PEN_TRAINING_HISTORY_METRICS; i++) {
        names[count] = program->losses[i].name;
        values[count++] = evaluation->terms[i];
    }
    const pen_training_history_evaluation told = {.step = step,
                                                  .names = names,
                                                  .values = values,
                                                  .count = count,
                                                  .deciding =
                                                      evaluated->count > 0 ? deciding : UINT32_MAX,
                                                  .is_best = report->is_best};
    pen_training_history_evaluate(history, &told);
}
