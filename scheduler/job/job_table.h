// The contract of the job_*_table.c: tables of a job file, which is long enough for several files.
//
// Threads: immutable.
#ifndef PEN_SCHEDULER_JOB_JOB_TABLE_H
#define PEN_SCHEDULER_JOB_JOB_TABLE_H

#include "base/option/option.h"
#include "scheduler/job/job.h"

// The keys of `model`: fills pen_job_model.
extern const pen_option_table pen_job_model_table;
// The keys of `data`: fills pen_job_data.
extern const pen_option_table pen_job_data_table;
// An item of `data.augment`: fills pen_job_augment.
extern const pen_option_field pen_job_augment_item;
// `data.mix`: fills pen_job_mix; and what it needs of losses.
extern const pen_option_table pen_job_mix_table;
PEN_NODISCARD pen_status pen_job_check_mix(const pen_job *job);
// Changes that the job asks for, as datasets take them. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_job_get_augment(const pen_job *job, pen_arena *arena,
                                             pen_dataset_options *options);
// What `missing` of a table says; false: nothing that is possible.
bool pen_job_parse_missing(const char *text, pen_dataset_missing *out_missing, double *out_value);
// Those of `checkpoint` and `recovery`.
extern const pen_option_table pen_job_checkpoint_table;
extern const pen_option_table pen_job_recovery_table;
// The keys of `evaluation`: fills pen_job_evaluation.
extern const pen_option_table pen_job_evaluation_table;

// The keys of `train.consistency`, and whether it goes with the rest of `train`.
extern const pen_option_table pen_job_consistency_table;
PEN_NODISCARD pen_status pen_job_check_consistency(const pen_job_train *train,
                                                   const pen_option_source *source);

// The keys of `train.learning_rate`, and whether it goes with `train.warmup`.
extern const pen_option_table pen_job_learning_rate_table;
PEN_NODISCARD pen_status pen_job_check_learning_rate(const pen_job_train *train,
                                                     const pen_option_source *source);

// What belongs to a loss (job_loss_table.c).
extern const pen_option_field pen_job_class_weight_item;
extern const pen_option_field pen_job_loss_item; // of `losses`: fills pen_job_loss
PEN_NODISCARD pen_status pen_job_check_loss(const pen_job_loss *loss,
                                            const pen_option_source *source);

// Members of a pen_job_loss, which is `within` the struct of the table.
#define PEN_JOB_LOSS_FIELDS(type, within)                                                          \
    PEN_OPTION_AS("class_axis", INTEGER, type, within class_axis,                                  \
                  "dimension of the output that the classes are; -1: the last",                    \
                  PEN_OPTION_RANGE(1 - PEN_RANK_LIMIT, PEN_RANK_LIMIT - 1), .default_text = "-1"), \
        PEN_OPTION_AS("ignore_index", INTEGER, type, within ignore_index,                          \
                      "label of targets that do not count",                                        \
                      .present_offset = offsetof(type, within ignores)),                           \
        PEN_OPTION_AS("probabilities", BOOL, type, within has_probabilities,                       \
                      "labels are probabilities of all classes, as the output, and not indices",   \
                      .default_text = "false"),                                                    \
        PEN_OPTION_AS("label_smoothing", NUMBER, type, within label_smoothing,                     \
                      "share of a label that all classes have together", PEN_OPTION_RANGE(0, 1),   \
                      .default_text = "0"),                                                        \
        PEN_OPTION_AS("class_weights", LIST, type, within class_weights,                           \
                      "what a target of each class counts; the path is that of an NPY file",       \
                      .item = &pen_job_class_weight_item, .count_minimum = 1,                      \
                      .path_offset = offsetof(type, within class_weights_file)),                   \
        PEN_OPTION_AS("beta", NUMBER, type, within beta,                                           \
                      "of smooth_l1: the distance up to which it is a square",                     \
                      .present_offset = offsetof(type, within has_beta),                           \
                      .minimum = PEN_OPTION_FROM(0), .default_text = "1"),                         \
        PEN_OPTION_AS("delta", NUMBER, type, within delta,                                         \
                      "of huber: the distance up to which it is a square",                         \
                      .present_offset = offsetof(type, within has_delta),                          \
                      .minimum = PEN_OPTION_ABOVE(0), .default_text = "1")

#endif // PEN_SCHEDULER_JOB_JOB_TABLE_H
