// The keys of `evaluation`: how a training is judged while it runs.
#include "scheduler/job/job.h"
#include "scheduler/job/job_table.h"
#include "scheduler/job/job_words.h"

static const pen_option_field job_metric_item = {.kind = PEN_OPTION_CHOICE,
                                                 .help = "a metric",
                                                 .choices = pen_metric_names,
                                                 .words = pen_job_metric_words};

static const pen_option_field job_evaluation_fields[] = {
    PEN_OPTION(INTERVAL, pen_job_evaluation, every,
               "how often the evaluation data are gone through; once more after the last step",
               .minimum = PEN_OPTION_FROM(1), .default_text = "1 epoch"),
    PEN_OPTION(CHOICE, pen_job_evaluation, metric,
               "what says which parameters are better: a smaller loss or error, or a larger value",
               .choices = pen_metric_names, .words = pen_job_metric_words, .default_text = "loss"),
    PEN_OPTION(LIST, pen_job_evaluation, metrics, "what evaluations tell besides",
               .item = &job_metric_item, .is_list_optional = true),
    PEN_OPTION(BOOL, pen_job_evaluation, keep_best,
               "the checkpoint of the best evaluation stays, beside those of checkpoint.keep; true "
               "where there is a folder for checkpoints, when not given",
               .takes_digits = true, .present_offset = offsetof(pen_job_evaluation, has_keep_best)),
    PEN_OPTION(INTEGER, pen_job_evaluation, patience,
               "the training ends when so many evaluations in a row were no better; 0: it does not",
               PEN_OPTION_RANGE(0, 1000000000), .default_text = "0"),
    PEN_OPTION(NUMBER, pen_job_evaluation, min_delta,
               "by how much an evaluation must be better than the best, to be better",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
};

const pen_option_table pen_job_evaluation_table = {
    PEN_OPTION_FIELDS(pen_job_evaluation, job_evaluation_fields),
    .words = pen_job_evaluation_words,
    .explain = pen_job_explain,
};
