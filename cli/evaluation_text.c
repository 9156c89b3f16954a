#include "cli/evaluation_text.h"

#include <stdio.h>

#include "base/log.h"

void pen_evaluation_write_metrics(pen_json_writer *json, const pen_evaluation *evaluation) {
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, evaluation->metrics)) continue;
        pen_json_key_number(json, pen_metric_names[metric],
                            pen_evaluation_value(evaluation, metric));
    }
}

static void evaluation_format_metrics(const pen_evaluation *evaluation,
                                      char out_text[PEN_EVALUATION_METRICS_BYTES]) {
    size_t length = 0;
    out_text[0] = 0;
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, evaluation->metrics)) continue;
        length +=
            (size_t)snprintf(out_text + length, PEN_EVALUATION_METRICS_BYTES - length, "  %s %.4g",
                             pen_metric_names[metric], pen_evaluation_value(evaluation, metric));
        if (length >= PEN_EVALUATION_METRICS_BYTES) return; // there is room for all
    }
}

const char *pen_evaluation_format(const pen_program *program, const pen_evaluation *evaluation,
                                  char out_text[PEN_EVALUATION_TEXT_BYTES]) {
    char terms[PEN_LOSS_TERMS_TEXT_BYTES], metrics[PEN_EVALUATION_METRICS_BYTES];
    pen_loss_terms_format(program, evaluation->terms, terms);
    evaluation_format_metrics(evaluation, metrics);
    if (evaluation->target_count > 0) {
        snprintf(out_text, PEN_EVALUATION_TEXT_BYTES,
                 "loss %.4f%s  accuracy %.4f%s over %llu examples", evaluation->loss, terms,
                 pen_evaluation_value(evaluation, PEN_METRIC_ACCURACY), metrics,
                 (unsigned long long)evaluation->example_count);
    } else {
        snprintf(out_text, PEN_EVALUATION_TEXT_BYTES, "loss %.6g%s%s over %llu examples",
                 evaluation->loss, terms, metrics, (unsigned long long)evaluation->example_count);
    }
    return out_text;
}

void pen_evaluation_say_best(const pen_trainer *trainer, uint64_t steps_done) {
    const pen_checkpoint_evaluated *evaluated = pen_trainer_evaluated(trainer);
    if (evaluated->count == 0) return;
    if (pen_trainer_is_over(trainer)) {
        pen_log(PEN_LOG_NOTE, "ended after step %llu: %llu %s no better than that after step %llu",
                (unsigned long long)steps_done, (unsigned long long)evaluated->since_best,
                evaluated->since_best == 1 ? "evaluation was" : "evaluations in a row were",
                (unsigned long long)evaluated->best_step);
    }
    pen_log(PEN_LOG_NOTE, "the best evaluation was that after step %llu: %s %.6g%s",
            (unsigned long long)evaluated->best_step, pen_metric_names[evaluated->metric],
            evaluated->best, evaluated->keeps_best ? "; its checkpoint stays" : "");
}
