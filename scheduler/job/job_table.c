// The keys of a job file: kinds, ranges, defaults, help.

#include "scheduler/job/job_table.h"

#include "partition/costs/cluster.h"

#define JOB_BATCH_LIMIT 1073741824 // 2^30 examples

static const pen_option_field job_sgd_fields[] = {
    {.key = "lr",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_sgd, lr),
     .is_required = true,
     .minimum = PEN_OPTION_ABOVE(0),
     .help = "learning rate"},
    {.key = "momentum",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_sgd, momentum),
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_BELOW(1),
     .default_text = "0",
     .help = "of the running sum of gradients"},
    {.key = "nesterov",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_sgd, nesterov),
     .default_text = "false",
     .help = "Nesterov's momentum"},
    {.key = "weight_decay",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_sgd, weight_decay),
     .minimum = PEN_OPTION_FROM(0),
     .default_text = "0",
     .help = "times the weight, added to its gradient"},
};

static pen_status job_check_sgd(const void *object, const pen_option_source *source) {
    const pen_job_sgd *sgd = object;
    if (!sgd->nesterov || sgd->momentum > 0) return PEN_OK;
    return pen_option_blame(source, &sgd->nesterov,
                            pen_error(PEN_INVALID_INPUT,
                                      "nesterov: found true with momentum 0, expected a momentum "
                                      "above 0"));
}

static const pen_option_table job_sgd_table = {
    .size = sizeof(pen_job_sgd),
    PEN_OPTION_FIELDS(job_sgd_fields),
    .check = job_check_sgd,
};

#define JOB_ADAM_FIELDS(decay_default, decay_help)                                                 \
    {.key = "lr",                                                                                  \
     .kind = PEN_OPTION_NUMBER,                                                                    \
     .offset = offsetof(pen_job_adam, lr),                                                         \
     .minimum = PEN_OPTION_ABOVE(0),                                                               \
     .default_text = "0.001",                                                                      \
     .help = "learning rate"},                                                                     \
        {.key = "beta1",                                                                           \
         .kind = PEN_OPTION_NUMBER,                                                                \
         .offset = offsetof(pen_job_adam, beta1),                                                  \
         .minimum = PEN_OPTION_FROM(0),                                                            \
         .maximum = PEN_OPTION_BELOW(1),                                                           \
         .default_text = "0.9",                                                                    \
         .help = "decay of the mean of gradients"},                                                \
        {.key = "beta2",                                                                           \
         .kind = PEN_OPTION_NUMBER,                                                                \
         .offset = offsetof(pen_job_adam, beta2),                                                  \
         .minimum = PEN_OPTION_FROM(0),                                                            \
         .maximum = PEN_OPTION_BELOW(1),                                                           \
         .default_text = "0.999",                                                                  \
         .help = "decay of the mean of squared gradients"},                                        \
        {.key = "epsilon",                                                                         \
         .kind = PEN_OPTION_NUMBER,                                                                \
         .offset = offsetof(pen_job_adam, epsilon),                                                \
         .minimum = PEN_OPTION_ABOVE(0),                                                           \
         .default_text = "1e-8",                                                                   \
         .help = "keeps the division finite"},                                                     \
    {                                                                                              \
        .key = "weight_decay", .kind = PEN_OPTION_NUMBER,                                          \
        .offset = offsetof(pen_job_adam, weight_decay), .minimum = PEN_OPTION_FROM(0),             \
        .default_text = (decay_default), .help = (decay_help)                                      \
    }

static const pen_option_field job_adam_fields[] = {
    JOB_ADAM_FIELDS("0", "times the weight, added to its gradient"),
};
static const pen_option_field job_adamw_fields[] = {
    JOB_ADAM_FIELDS("0.01", "times learning rate and weight, taken off the weight"),
};
static const pen_option_table job_adam_table = {
    .size = sizeof(pen_job_adam),
    PEN_OPTION_FIELDS(job_adam_fields),
};
static const pen_option_table job_adamw_table = {
    .size = sizeof(pen_job_adam),
    PEN_OPTION_FIELDS(job_adamw_fields),
};

static const pen_option_field job_optimizer_fields[] = {
    [PEN_JOB_SGD] = {.key = "sgd",
                     .kind = PEN_OPTION_MAPPING,
                     .offset = offsetof(pen_job_optimizer, sgd),
                     .table = &job_sgd_table,
                     .help = "gradient descent, with momentum if asked"},
    [PEN_JOB_ADAM] = {.key = "adam",
                      .kind = PEN_OPTION_MAPPING,
                      .offset = offsetof(pen_job_optimizer, adam),
                      .table = &job_adam_table,
                      .help = "Adam"},
    [PEN_JOB_ADAMW] = {.key = "adamw",
                       .kind = PEN_OPTION_MAPPING,
                       .offset = offsetof(pen_job_optimizer, adamw),
                       .table = &job_adamw_table,
                       .help = "Adam with decoupled weight decay"},
};
static const pen_option_table job_optimizer_table = {
    .size = sizeof(pen_job_optimizer),
    PEN_OPTION_FIELDS(job_optimizer_fields),
    .chosen_offset = offsetof(pen_job_optimizer, kind),
};

static const pen_option_table job_constant_table = {.size = 0};

static const pen_option_field job_step_fields[] = {
    {.key = "every",
     .kind = PEN_OPTION_INTERVAL,
     .offset = offsetof(pen_job_step_rate, every),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(1),
     .help = "how long a rate is kept"},
    {.key = "factor",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_step_rate, factor),
     .minimum = PEN_OPTION_ABOVE(0),
     .default_text = "0.1",
     .help = "by which it is multiplied then"},
};
static const pen_option_table job_step_table = {
    .size = sizeof(pen_job_step_rate),
    PEN_OPTION_FIELDS(job_step_fields),
};

static const pen_option_field job_final_fields[] = {
    {.key = "final",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_final_rate, final),
     .minimum = PEN_OPTION_FROM(0),
     .default_text = "0",
     .help = "learning rate at the end of the training"},
};
static const pen_option_table job_final_table = {
    .size = sizeof(pen_job_final_rate),
    PEN_OPTION_FIELDS(job_final_fields),
};

static const pen_option_field job_learning_rate_fields[] = {
    [PEN_LEARNING_RATE_CONSTANT] = {.key = "constant",
                                    .kind = PEN_OPTION_MAPPING,
                                    .table = &job_constant_table,
                                    .help = "stays"},
    [PEN_LEARNING_RATE_STEP] = {.key = "step",
                                .kind = PEN_OPTION_MAPPING,
                                .offset = offsetof(pen_job_learning_rate, step),
                                .table = &job_step_table,
                                .help = "is multiplied by a factor from time to time"},
    [PEN_LEARNING_RATE_COSINE] = {.key = "cosine",
                                  .kind = PEN_OPTION_MAPPING,
                                  .offset = offsetof(pen_job_learning_rate, cosine),
                                  .table = &job_final_table,
                                  .help = "falls along half a cosine"},
    [PEN_LEARNING_RATE_LINEAR] = {.key = "linear",
                                  .kind = PEN_OPTION_MAPPING,
                                  .offset = offsetof(pen_job_learning_rate, linear),
                                  .table = &job_final_table,
                                  .help = "falls along a line"},
};
static const pen_option_table job_learning_rate_table = {
    .size = sizeof(pen_job_learning_rate),
    PEN_OPTION_FIELDS(job_learning_rate_fields),
    .chosen_offset = offsetof(pen_job_learning_rate, kind),
};

static const char *const job_losses[] = {
    [PEN_JOB_SOFTMAX_CROSS_ENTROPY] = "softmax_cross_entropy",
    [PEN_JOB_NEGATIVE_LOG_LIKELIHOOD] = "negative_log_likelihood",
    [PEN_JOB_MEAN_SQUARED_ERROR] = "mean_squared_error",
    [PEN_JOB_BINARY_CROSS_ENTROPY] = "binary_cross_entropy",
    [PEN_JOB_BINARY_CROSS_ENTROPY_WITH_LOGITS] = "binary_cross_entropy_with_logits",
    [PEN_JOB_OUTPUT] = "output",
    NULL,
};
static const pen_option_field job_train_fields[] = {
    {.key = "loss",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_train, loss),
     .is_required = true,
     .choices = job_losses,
     .help = "what is made small; output: the model computes it"},
    {.key = "loss_output",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_train, loss_output),
     .help = "with loss: output, the model's output that is the loss, when it has several"},
    {.key = "optimizer",
     .kind = PEN_OPTION_ONE_OF,
     .offset = offsetof(pen_job_train, optimizer),
     .is_required = true,
     .table = &job_optimizer_table,
     .help = "how weights follow their gradients"},
    {.key = "learning_rate",
     .kind = PEN_OPTION_ONE_OF,
     .offset = offsetof(pen_job_train, learning_rate),
     .table = &job_learning_rate_table,
     .default_text = "constant",
     .help = "how the optimizer's lr changes"},
    {.key = "warmup",
     .kind = PEN_OPTION_INTERVAL,
     .offset = offsetof(pen_job_train, warmup),
     .default_text = "0 steps",
     .help = "how long the learning rate rises at first"},
    {.key = "clip_norm",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_train, clip_norm),
     .minimum = PEN_OPTION_FROM(1e-30), // below, float32 gradients would be scaled to nothing
     .help = "all gradients together are scaled to this norm when above"},
    {.key = "batch",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_train, batch),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(JOB_BATCH_LIMIT),
     .help = "examples a step"},
    {.key = "microbatches",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_train, microbatches),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(JOB_BATCH_LIMIT),
     .default_text = "1",
     .help = "equal parts of a batch, one after the other"},
    {.key = "epochs",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_train, epochs),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(JOB_BATCH_LIMIT),
     .help = "times through the data; 1 when steps is not given either"},
    {.key = "steps",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_train, steps),
     .minimum = PEN_OPTION_FROM(1),
     .help = "most steps"},
    {.key = "seed",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_train, seed),
     .minimum = PEN_OPTION_FROM(0),
     .default_text = "0",
     .help = "of everything random"},
    {.key = "freeze",
     .kind = PEN_OPTION_PATTERN,
     .offset = offsetof(pen_job_train, freeze),
     .help = "parameters whose names match stay as they are"},
    {.key = "shuffle",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_train, shuffle),
     .default_text = "true",
     .help = "a new order of the examples in each epoch"},
    {.key = "drop_last",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_train, drop_last),
     .default_text = "false",
     .help = "leave out a last batch that is not full"},
};

static pen_status job_check_train(const void *object, const pen_option_source *source) {
    const pen_job_train *train = object;
    if (train->loss_output != NULL && train->loss != PEN_JOB_OUTPUT) {
        return pen_option_blame(source, &train->loss_output,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.loss_output: found with loss %s, expected only "
                                          "with loss: output",
                                          job_losses[train->loss]));
    }
    if (train->batch % train->microbatches != 0) {
        return pen_option_blame(source, &train->microbatches,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.microbatches: found %lld, expected a divisor of "
                                          "the batch, %lld",
                                          (long long)train->microbatches, (long long)train->batch));
    }
    return PEN_OK;
}

static const pen_option_table job_train_table = {
    .size = sizeof(pen_job_train),
    PEN_OPTION_FIELDS(job_train_fields),
    .check = job_check_train,
};

const char *const pen_job_schedule_names[] = {
    [PEN_JOB_SCHEDULE_AUTO] = "auto",
    [PEN_JOB_SCHEDULE_GPIPE] = "gpipe",
    [PEN_JOB_SCHEDULE_1F1B] = "1f1b",
    [PEN_JOB_SCHEDULE_INTERLEAVED] = "interleaved",
    [PEN_JOB_SCHEDULE_ZERO_BUBBLE] = "zero_bubble",
    NULL,
};

const char *pen_job_schedule_name(pen_job_schedule schedule) {
    return pen_job_schedule_names[schedule];
}

static const char *const job_recompute_names[] = {
    [PEN_RECOMPUTE_NONE] = "none",
    [PEN_RECOMPUTE_STAGE] = "stage",
    [PEN_RECOMPUTE_AUTO] = "auto",
    NULL,
};

static const pen_option_field job_pipeline_fields[] = {
    {.key = "schedule",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_pipeline, schedule),
     .choices = pen_job_schedule_names,
     .default_text = "auto",
     .help = "order of the microbatches on each device; auto: the fastest that fits"},
    {.key = "recompute",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_pipeline, recompute),
     .choices = job_recompute_names,
     .default_text = "none",
     .help = "stages that run forward once more before backward, to keep less; stage: all; auto: "
             "as few as make it fit"},
    {.key = "time_limit",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_job_pipeline, time_limit_seconds),
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_TO(86400),
     .default_text = "1 s",
     .help = "for the search of a schedule; 0 s: only those that have a name"},
    {.key = "rendezvous_timeout",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_job_pipeline, rendezvous_timeout_seconds),
     .minimum = PEN_OPTION_ABOVE(0),
     .maximum = PEN_OPTION_TO(86400),
     .default_text = "60 s",
     .help = "how long workers may take to be there"},
};
static const pen_option_table job_pipeline_table = {
    .size = sizeof(pen_job_pipeline),
    PEN_OPTION_FIELDS(job_pipeline_fields),
};

static const pen_option_field job_tls_name = {.kind = PEN_OPTION_TEXT,
                                              .help = "as in the certificate"};

static const pen_option_field job_tls_fields[] = {
    {.key = "ca",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_tls, ca),
     .is_required = true,
     .help = "certificates (PEM) of those who sign for workers and coordinator"},
    {.key = "cert",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_tls, cert),
     .is_required = true,
     .help = "certificate (PEM) of the coordinator"},
    {.key = "key",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_tls, key),
     .is_required = true,
     .help = "its private key (PEM)"},
    {.key = "coordinators",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_tls, coordinators),
     .item = &job_tls_name,
     .is_list_optional = true,
     .help = "names of certificates that workers started by this job take as a coordinator's; any, "
             "when not given"},
    {.key = "workers",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_tls, workers),
     .item = &job_tls_name,
     .is_list_optional = true,
     .help = "names of certificates that are taken as a worker's (workers started by this job have "
             "its own); any, when not given"},
};
static const pen_option_table job_tls_table = {
    .size = sizeof(pen_job_tls),
    PEN_OPTION_FIELDS(job_tls_fields),
};

static const pen_option_field job_outputs_fields[] = {
    {.key = "dir",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_outputs, dir),
     .help = "folder for what a run leaves behind"},
    {.key = "export",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_outputs, export),
     .help = "ONNX file of the trained model"},
};
static const pen_option_table job_outputs_table = {
    .size = sizeof(pen_job_outputs),
    PEN_OPTION_FIELDS(job_outputs_fields),
};

static const pen_option_field job_fields[] = {
    {.key = "version",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job, version),
     .is_required = true,
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(1),
     .help = "of the job file's format"},
    {.key = "model",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, model),
     .is_required = true,
     .table = &pen_job_model_table,
     .may_be_file = true,
     .help = "what is trained"},
    {.key = "data",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, data),
     .is_required = true,
     .table = &pen_job_data_table,
     .may_be_file = true,
     .help = "the examples"},
    {.key = "train",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, train),
     .is_required = true,
     .table = &job_train_table,
     .may_be_file = true,
     .help = "how it is trained"},
    {.key = "devices",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job, cluster.written_devices),
     .item = &pen_cluster_device_item,
     .count_minimum = 1,
     .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
     .may_be_file = true,
     .help = "where it runs; one cpu when not given"},
    {.key = "links",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job, cluster.written_links),
     .item = &pen_cluster_link_item,
     .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
     .may_be_file = true,
     .help = "how fast devices reach each other; later ones win"},
    {.key = "cluster",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, cluster),
     .present_offset = offsetof(pen_job, has_cluster),
     .table = &pen_cluster_table,
     .may_be_file = true,
     .help = "in place of devices and links, most often a file with both"},
    {.key = "placement",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, placement),
     .table = &pen_placement_table,
     .may_be_file = true,
     .help = "how the model is placed on several devices"},
    {.key = "pipeline",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, pipeline),
     .table = &job_pipeline_table,
     .may_be_file = true,
     .help = "how microbatches go through several devices"},
    {.key = "tls",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, tls),
     .table = &job_tls_table,
     .may_be_file = true,
     .help = "certificates for links to workers on other machines"},
    {.key = "costs",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job, costs),
     .help = "cost table, measured by `penstock profile` and `penstock probe`, for plans"},
    {.key = "checkpoint",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, checkpoint),
     .table = &pen_job_checkpoint_table,
     .may_be_file = true,
     .help = "where a training stands, kept so that it can go on from there"},
    {.key = "recovery",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, recovery),
     .table = &pen_job_recovery_table,
     .may_be_file = true,
     .help = "what is done when a worker is lost"},
    {.key = "outputs",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job, outputs),
     .table = &job_outputs_table,
     .may_be_file = true,
     .help = "what is written"},
};

const pen_option_table pen_job_table = {
    .help = "A Penstock job: a model, its data, and how it is trained.",
    .size = sizeof(pen_job),
    PEN_OPTION_FIELDS(job_fields),
};
