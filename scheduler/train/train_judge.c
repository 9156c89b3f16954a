#include "scheduler/train/train_judge.h"

#include <math.h>

#include "base/log.h"
#include "graph/graph.h"

static pen_status judge_needs_folder(const pen_job *job, const void *field, const char *what) {
    return pen_job_blame(job, field,
                         pen_error(PEN_INVALID_INPUT,
                                   "%s, but no folder for checkpoints, expected `checkpoint: {dir: "
                                   "…}` in the job, or --checkpoint DIR",
                                   what));
}

// Whether there are more scores than auc keeps.
static pen_status judge_check_scores(const pen_program *program, const pen_metric_choice *choice,
                                     uint64_t example_count) {
    if (!pen_metric_is_in(PEN_METRIC_AUC, choice->metrics)) return PEN_OK;
    const pen_program_loss *loss = &program->losses[choice->classes_loss];
    const pen_shape *labels = &pen_value_type(program->graph, loss->labels)->shape;
    const bool has_all = loss->class_count == 0 && !pen_metric_is_decision(loss->seen.kind);
    uint64_t targets = (uint64_t)pen_shape_element_count(labels) / program->microbatch_size;
    if (has_all) targets /= loss->seen.class_count; // a probability of each class
    return pen_metric_check_scores(targets * example_count, loss->seen.class_count);
}

// Whether the losses are such that the metrics can be told.
static pen_status judge_check_metrics(const pen_job *job, pen_dataset *dataset,
                                      const pen_program *program) {
    const pen_job_evaluation *options = &job->evaluation;
    const bool counts_right = pen_value_is(program->accuracy);
    pen_metric_loss losses[PEN_LOSSES_LIMIT];
    pen_metric_choice choice;
    for (uint32_t i = 0; i < program->loss_count; i++) {
        losses[i] = program->losses[i].seen;
    }
    PEN_TRY(pen_job_blame(job, &options->metrics,
                          pen_metric_choose(losses, program->loss_count, counts_right,
                                            pen_job_evaluation_metrics(options), &choice)));
    const uint64_t example_count = pen_dataset_get_info(dataset)->example_count;
    return pen_job_blame(job, &options->metrics,
                         judge_check_scores(program, &choice, example_count));
}

// What cannot be is found before the first step.
pen_status pen_train_judge_init(pen_train_judge *judge, const pen_job *job, pen_dataset *dataset,
                                const pen_program *program, uint64_t step_count, bool has_folder) {
    const pen_job_evaluation *options = &job->evaluation;
    *judge = (pen_train_judge){.job = job, .step_count = step_count};
    if (!job->has_evaluation || dataset == NULL) return PEN_OK;
    if (options->keep_best && !has_folder) {
        return judge_needs_folder(job, &options->keep_best, "evaluation.keep_best: found true");
    }
    if (job->outputs.from == PEN_JOB_OUTPUTS_BEST && !has_folder) {
        return judge_needs_folder(job, &job->outputs.from, "outputs.from: found best");
    }
    PEN_TRY(judge_check_metrics(job, dataset, program));
    judge->dataset = dataset;
    judge->verdict.keeps_best = has_folder && (!options->has_keep_best || options->keep_best);
    return PEN_OK;
}

// Where nothing is evaluated any more, the best that there was stays.
void pen_train_judge_stand_at(pen_train_judge *judge, const pen_checkpoint_evaluated *verdict) {
    const bool keeps_best =
        judge->dataset != NULL ? judge->verdict.keeps_best : verdict->keeps_best;
    judge->verdict = *verdict;
    judge->verdict.keeps_best = keeps_best;
}

bool pen_train_judge_is_due(const pen_train_judge *judge, uint64_t step, uint64_t epoch,
                            bool ends_epoch) {
    if (judge->dataset == NULL) return false;
    return step == judge->step_count ||
           pen_interval_is_due(&judge->job->evaluation.every, step, epoch, ends_epoch);
}

// Whether what was found so far is of another metric, with which nothing is compared.
static bool judge_is_of_other(const pen_train_judge *judge) {
    return judge->verdict.count > 0 && judge->verdict.metric != judge->job->evaluation.metric;
}

// The best is looked for anew; a rate that has fallen stays.
static void judge_turn(pen_train_judge *judge) {
    pen_checkpoint_evaluated *verdict = &judge->verdict;
    const pen_metric metric = judge->job->evaluation.metric;
    pen_log(PEN_LOG_NOTE,
            "evaluations so far were compared by %s: the best is looked for anew, by %s",
            pen_metric_names[verdict->metric], pen_metric_names[metric]);
    verdict->count = 0;
    verdict->since_best = 0;
    verdict->plateau.best = pen_metric_kinds[metric].is_larger_better ? -INFINITY : INFINITY;
    verdict->plateau.bad = 0;
}

// The first is the best there is, unless it is no number.
bool pen_train_judge_add(pen_train_judge *judge, uint64_t step, const pen_evaluation *evaluation) {
    const pen_job_evaluation *options = &judge->job->evaluation;
    pen_checkpoint_evaluated *verdict = &judge->verdict;
    const bool is_larger_better = pen_metric_kinds[options->metric].is_larger_better;
    const double value = pen_evaluation_value(evaluation, options->metric);
    if (judge_is_of_other(judge)) judge_turn(judge);
    verdict->metric = options->metric;
    const pen_job_learning_rate *rate = &judge->job->train.learning_rate;
    if (rate->kind == PEN_LEARNING_RATE_PLATEAU) {
        pen_plateau_rate_add(&rate->plateau, judge->job->train.optimizer.lr, is_larger_better,
                             value, &verdict->plateau);
    }
    const bool is_first = verdict->count == 0 || (isnan(verdict->best) && !isnan(value));
    const bool is_better = is_larger_better ? value > verdict->best + options->min_delta
                                            : value < verdict->best - options->min_delta;
    verdict->count += 1;
    verdict->since_best += 1;
    if (!is_first && !is_better) return false;
    verdict->best_step = step;
    verdict->best = value;
    verdict->since_best = 0;
    return true;
}

bool pen_train_judge_is_over(const pen_train_judge *judge) {
    const int64_t patience = judge->job->evaluation.patience;
    return judge->dataset != NULL && patience > 0 && !judge_is_of_other(judge) &&
           judge->verdict.since_best >= (uint64_t)patience;
}

double pen_train_judge_rate(const pen_train_judge *judge, double scheduled) {
    const pen_plateau_state *plateau = &judge->verdict.plateau;
    const pen_job_train *train = &judge->job->train;
    const bool is_decided = train->learning_rate.kind == PEN_LEARNING_RATE_PLATEAU &&
                            judge->dataset != NULL && plateau->rate > 0;
    if (!is_decided) return scheduled;
    const double base = train->optimizer.lr;
    return scheduled == base ? plateau->rate : scheduled * (plateau->rate / base);
}
