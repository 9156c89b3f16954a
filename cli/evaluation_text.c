#include "cli/evaluation_text.h"

#include <stdio.h>

#include "base/log.h"

const char *pen_evaluation_format(const pen_program *program, const pen_evaluation *evaluation,
                                  char out_text[PEN_EVALUATION_TEXT_BYTES]) {
    char terms[PEN_LOSS_TERMS_TEXT_BYTES];
    pen_loss_terms_format(program, evaluation->terms, terms);
    if (evaluation->target_count > 0) {
        snprintf(out_text, PEN_EVALUATION_TEXT_BYTES,
                 "loss %.4f%s  accuracy %.4f over %llu examples", evaluation->loss, terms,
                 (double)evaluation->correct_count / (double)evaluation->target_count,
                 (unsigned long long)evaluation->example_count);
    } else {
        snprintf(out_text, PEN_EVALUATION_TEXT_BYTES, "loss %.6g%s over %llu examples",
                 evaluation->loss, terms, (unsigned long long)evaluation->example_count);
    }
    return out_text;
}

void pen_evaluation_say_best(const pen_trainer *trainer, uint64_t steps_done) {
    const pen_checkpoint_evaluated *evaluated = pen_trainer_evaluated(trainer);
    if (evaluated->count == 0) return;
    if (pen_trainer_is_over(trainer)) {
        pen_log(PEN_LOG_NOTE,
                "ended after step %llu: %llu evaluations in a row were no better than that after "
                "step %llu",
                (unsigned long long)steps_done, (unsigned long long)evaluated->since_best,
                (unsigned long long)evaluated->best_step);
    }
    pen_log(PEN_LOG_NOTE, "the best evaluation was that after step %llu: %s %.6g%s",
            (unsigned long long)evaluated->best_step,
            pen_job_metric_names[evaluated->by_accuracy ? PEN_JOB_METRIC_ACCURACY
                                                        : PEN_JOB_METRIC_LOSS],
            evaluated->best, evaluated->keeps_best ? "; its checkpoint stays" : "");
}
