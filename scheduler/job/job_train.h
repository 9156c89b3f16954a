// What a job says of its training: losses, optimizer, rate, batches, and what is left of it.
//
// The keys, with ranges and help, are in job_table.c, job_loss_table.c and job_evaluation_table.c.
#ifndef PEN_SCHEDULER_JOB_JOB_TRAIN_H
#define PEN_SCHEDULER_JOB_JOB_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format/quantity.h"
#include "base/option/option.h"
#include "graph/arrivals.h"
#include "graph/import/export_contents.h"
#include "graph/ops/training/optimizer.h"
#include "graph/passes/gradient/attach_loss.h"
#include "scheduler/job/learning_rate.h"
#include "scheduler/job/plateau_rate.h"
#include "scheduler/metric/metric.h"

typedef struct pen_job_step_rate {
    pen_interval every;
    double factor;
} pen_job_step_rate;

typedef struct pen_job_final_rate {
    double final; // the learning rate at the end
} pen_job_final_rate;

typedef struct pen_job_polynomial_rate {
    double power;
} pen_job_polynomial_rate;

// Keys of job_rate_table.c.
typedef struct pen_job_learning_rate {
    pen_learning_rate_kind kind;
    pen_job_step_rate step;
    pen_job_final_rate cosine;
    pen_job_final_rate linear;
    pen_job_polynomial_rate polynomial;
    pen_learning_rate_cycle one_cycle;
    pen_option_list chained; // of pen_job_rate_piece
    pen_plateau_rate plateau;
} pen_job_learning_rate;

// One of several that follow each other.
typedef struct pen_job_rate_piece {
    pen_job_learning_rate schedule; // not chained
    pen_interval length;
    bool has_length; // the last may have none: all that is left
    double scale;    // times the optimizer's lr
} pen_job_rate_piece;

// A loss, by keys of `train` or by an entry of its `losses`.
typedef struct pen_job_loss {
    const char *output; // name of the model's output; NULL: its only one
    const char *labels; // name of the data's labels; NULL: that of the output, or the only ones
    pen_loss_kind kind;
    bool has_kind;
    double weight;
    int64_t class_axis; // negative: from the end
    bool ignores;       // targets with the label
    int64_t ignore_index;
    bool has_probabilities; // labels are
    double label_smoothing;
    pen_option_list class_weights;  // of double; none: all 1, or
    const char *class_weights_file; // NPY; NULL: none
    double beta;
    bool has_beta;
    double delta;
    bool has_delta;
} pen_job_loss;

typedef enum pen_job_consistency_kind { PEN_JOB_SYNC, PEN_JOB_ASYNC } pen_job_consistency_kind;
typedef enum pen_job_order { PEN_JOB_ORDER_SEED, PEN_JOB_ORDER_FREE } pen_job_order;

// Keys of job_consistency_table.c; what they mean: graph/arrivals.h.
typedef struct pen_job_async {
    int64_t staleness;
    pen_job_order order;
    pen_compensation compensation;
    double lambda;
    bool has_lambda;
} pen_job_async;

typedef struct pen_job_consistency {
    pen_job_consistency_kind kind;
    pen_job_async async;
} pen_job_consistency;

// Nodes whose parameters are cut.
typedef struct pen_job_shard {
    const char *nodes; // a name, or a pattern of names
    int64_t ways;
} pen_job_shard;

// Nodes whose weights stay as they are and get low-rank adapters, which are trained.
typedef struct pen_job_lora {
    const char *nodes; // a name, or a pattern of names
    int64_t rank;
    double alpha;
    const char *weights; // adapters that were saved alone; NULL: none
} pen_job_lora;

typedef struct pen_job_adapt {
    pen_job_lora lora;
} pen_job_adapt;

// Of the parameters of steps: the optimizer's (graph/ops/training/optimizer.h).
typedef struct pen_job_average {
    double decay;
    pen_interval from;
    bool use; // it is evaluated and written in place of the parameters
} pen_job_average;

typedef struct pen_job_train {
    pen_job_loss loss;       // by keys of its own
    pen_option_list losses;  // of pen_job_loss: what counts; that one where none are written
    bool has_losses;         // some are written
    pen_optimizer optimizer; // its clip_norm and clip_value stay 0: those are below
    pen_job_learning_rate learning_rate;
    pen_interval warmup;
    double clip_norm;                // 0: none
    double clip_value;               // likewise; one of the two
    int64_t batch;                   // examples a step
    int64_t microbatches;            // divides `batch`
    int64_t lanes;                   // that they form: graph/lanes.h
    pen_job_consistency consistency; // of lanes
    int64_t epochs;                  // 0: no limit, only when `steps` is given
    int64_t steps;                   // 0: no limit; the first limit reached ends the training
    int64_t seed;                    // not negative
    const char *freeze;              // pattern of parameter names; NULL: none
    pen_option_list groups;          // of pen_optimizer_group
    pen_job_average average;
    bool has_average;
    pen_option_list shard; // of pen_job_shard
    bool shuffle;
    bool drop_last; // a last batch that is not full is left out
} pen_job_train;

// Keys of job_evaluation_table.c: how a training is judged while it runs.
typedef struct pen_job_evaluation {
    pen_interval every;
    pen_metric metric;       // what says which of two evaluations is better
    pen_option_list metrics; // of pen_metric: what is told besides
    bool keep_best;          // the checkpoint of the best evaluation stays
    bool has_keep_best;      // it is said; else as there is a folder
    int64_t patience;        // evaluations in a row that are no better, after which it ends; 0: any
    double min_delta;        // by which one must be better
} pen_job_evaluation;

// What evaluations are told in, and the one that judges them.
static inline pen_metric_set pen_job_evaluation_metrics(const pen_job_evaluation *evaluation) {
    const int *metrics = evaluation->metrics.items;
    pen_metric_set set = PEN_METRIC_BIT(evaluation->metric);
    for (uint32_t i = 0; i < evaluation->metrics.count; i++) {
        set |= PEN_METRIC_BIT(metrics[i]);
    }
    return set;
}

// What is left of it; keys of job_table.c.
typedef enum pen_job_outputs_from {
    PEN_JOB_OUTPUTS_LAST,
    PEN_JOB_OUTPUTS_BEST
} pen_job_outputs_from;

typedef struct pen_job_outputs {
    const char *dir;        // NULL: nothing is written there
    const char *export;     // NULL: the trained model is not written
    const char *adapters;   // NULL: its adapters are not written by themselves
    pen_export_types types; // of weights of 16 bits in it
    pen_job_outputs_from from;
} pen_job_outputs;

#endif // PEN_SCHEDULER_JOB_JOB_TRAIN_H
