// The keys of a job file: kinds, ranges, defaults, help.

#include "scheduler/job/job_table.h"

#include <float.h>

#include "scheduler/job/job_words.h"

#define JOB_BATCH_LIMIT 1073741824 // 2^30 examples
#define JOB_LANES_LIMIT 65536
#define JOB_WAYS_LIMIT 1024
#define JOB_SHARDS_LIMIT 4096 // entries
#define JOB_GROUPS_LIMIT 256
#define JOB_RANK_LIMIT 65536
// less would be 0, or nearly, in float32, and the division no longer finite
#define JOB_EPSILON_OF(standard)                                                                   \
    PEN_OPTION(NUMBER, pen_optimizer, epsilon, "keeps the division finite",                        \
               .minimum = PEN_OPTION_FROM(FLT_MIN), .default_text = (standard))
#define JOB_EPSILON JOB_EPSILON_OF("1e-8")
#define JOB_SHARE .minimum = PEN_OPTION_FROM(0), .maximum = PEN_OPTION_BELOW(1)

#define JOB_RATE(standard)                                                                         \
    PEN_OPTION(NUMBER, pen_optimizer, lr, "learning rate", .minimum = PEN_OPTION_ABOVE(0),         \
               .default_text = (standard))
#define JOB_DECAY                                                                                  \
    PEN_OPTION(NUMBER, pen_optimizer, weight_decay, "times the weight, added to its gradient",     \
               .minimum = PEN_OPTION_FROM(0), .default_text = "0")
#define JOB_DECAY_APART(standard)                                                                  \
    PEN_OPTION(NUMBER, pen_optimizer, weight_decay,                                                \
               "times learning rate and weight, taken off the weight",                             \
               .minimum = PEN_OPTION_FROM(0), .default_text = (standard))
#define JOB_DECOUPLED                                                                              \
    PEN_OPTION(BOOL, pen_optimizer, decoupled,                                                     \
               "weight_decay is taken off the weight, not added to its gradient",                  \
               .default_text = "false")

#define JOB_OPTIONS_OF(fields)                                                                     \
    PEN_OPTION_FIELDS(pen_optimizer, fields), .words = pen_job_optimizer_words

static const pen_option_field job_sgd_fields[] = {
    PEN_OPTION(NUMBER, pen_optimizer, lr, "learning rate", .is_required = true,
               .minimum = PEN_OPTION_ABOVE(0)),
    PEN_OPTION(NUMBER, pen_optimizer, momentum, "of the running sum of gradients", JOB_SHARE,
               .default_text = "0"),
    PEN_OPTION(BOOL, pen_optimizer, nesterov, "Nesterov's momentum", .default_text = "false"),
    JOB_DECAY,
};

static pen_status job_check_sgd(const void *object, const pen_option_source *source) {
    const pen_optimizer *sgd = object;
    if (!sgd->nesterov || sgd->momentum > 0) return PEN_OK;
    return pen_option_blame(source, &sgd->nesterov,
                            pen_error(PEN_INVALID_INPUT,
                                      "nesterov: found true with momentum 0, expected a momentum "
                                      "above 0"));
}

static const pen_option_table job_sgd_table = {
    JOB_OPTIONS_OF(job_sgd_fields),
    .check = job_check_sgd,
};

#define JOB_BETAS(standard)                                                                        \
    PEN_OPTION(NUMBER, pen_optimizer, beta1, "decay of the mean of gradients", JOB_SHARE,          \
               .default_text = "0.9"),                                                             \
        PEN_OPTION(NUMBER, pen_optimizer, beta2, "decay of the mean of squared gradients",         \
                   JOB_SHARE, .default_text = (standard))
#define JOB_ADAM_FIELDS_OF(rate) JOB_RATE(rate), JOB_BETAS("0.999"), JOB_EPSILON
#define JOB_ADAM_FIELDS JOB_ADAM_FIELDS_OF("0.001")

static const pen_option_field job_adam_fields[] = {
    JOB_ADAM_FIELDS,
    JOB_DECAY,
};
static const pen_option_field job_adamw_fields[] = {
    JOB_ADAM_FIELDS,
    JOB_DECAY_APART("0.01"),
};
static const pen_option_table job_adam_table = {JOB_OPTIONS_OF(job_adam_fields)};
static const pen_option_table job_adamw_table = {JOB_OPTIONS_OF(job_adamw_fields)};

static const pen_option_field job_rmsprop_fields[] = {
    JOB_RATE("0.01"),
    PEN_OPTION(NUMBER, pen_optimizer, alpha, "decay of the mean of squared gradients", JOB_SHARE,
               .default_text = "0.99"),
    JOB_EPSILON,
    JOB_DECAY,
    PEN_OPTION(NUMBER, pen_optimizer, momentum, "of the running sum of steps", JOB_SHARE,
               .default_text = "0"),
    PEN_OPTION(BOOL, pen_optimizer, centered, "takes the mean of gradients off",
               .default_text = "false"),
};
static const pen_option_table job_rmsprop_table = {JOB_OPTIONS_OF(job_rmsprop_fields)};

static const pen_option_field job_adagrad_fields[] = {
    JOB_RATE("0.01"),
    PEN_OPTION(NUMBER, pen_optimizer, lr_decay, "lr is divided by 1 + this times the steps before",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
    JOB_EPSILON_OF("1e-10"),
    JOB_DECAY,
};
static const pen_option_table job_adagrad_table = {JOB_OPTIONS_OF(job_adagrad_fields)};

static const pen_option_field job_adadelta_fields[] = {
    JOB_RATE("1"),
    PEN_OPTION(NUMBER, pen_optimizer, rho, "decay of the means of squared gradients and steps",
               JOB_SHARE, .default_text = "0.9"),
    JOB_EPSILON_OF("1e-6"),
    JOB_DECAY,
};
static const pen_option_table job_adadelta_table = {JOB_OPTIONS_OF(job_adadelta_fields)};

static const pen_option_field job_adamax_fields[] = {JOB_ADAM_FIELDS_OF("0.002"), JOB_DECAY};
static const pen_option_field job_nadam_fields[] = {
    JOB_ADAM_FIELDS_OF("0.002"),
    JOB_DECAY,
    PEN_OPTION(NUMBER, pen_optimizer, momentum_decay, "how fast the momentum rises to beta1",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0.004"),
    JOB_DECOUPLED,
};
static const pen_option_field job_radam_fields[] = {JOB_ADAM_FIELDS, JOB_DECAY, JOB_DECOUPLED};
static const pen_option_field job_lion_fields[] = {JOB_RATE("0.0001"), JOB_BETAS("0.99"),
                                                   JOB_DECAY_APART("0")};
static const pen_option_field job_lamb_fields[] = {
    JOB_RATE("0.001"),
    JOB_BETAS("0.999"),
    JOB_EPSILON_OF("1e-6"),
    PEN_OPTION(NUMBER, pen_optimizer, weight_decay, "times the weight, added to its step",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
};
static const pen_option_field job_adafactor_fields[] = {
    JOB_RATE("0.01"),
    PEN_OPTION(NUMBER, pen_optimizer, beta2_decay,
               "steps to this power are what is new of the means of squared gradients",
               .maximum = PEN_OPTION_TO(0), .default_text = "-0.8"),
    JOB_EPSILON_OF("1.1920928955078125e-07"),
    PEN_OPTION(NUMBER, pen_optimizer, epsilon2, "least size that a parameter counts as",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0.001"),
    PEN_OPTION(NUMBER, pen_optimizer, clip_threshold, "size of a step before its rate, at most",
               .minimum = PEN_OPTION_FROM(1), .default_text = "1"),
    JOB_DECAY_APART("0"),
};
static const pen_option_table job_adafactor_table = {JOB_OPTIONS_OF(job_adafactor_fields)};
static const pen_option_table job_adamax_table = {JOB_OPTIONS_OF(job_adamax_fields)};
static const pen_option_table job_nadam_table = {JOB_OPTIONS_OF(job_nadam_fields)};
static const pen_option_table job_radam_table = {JOB_OPTIONS_OF(job_radam_fields)};
static const pen_option_table job_lion_table = {JOB_OPTIONS_OF(job_lion_fields)};
static const pen_option_table job_lamb_table = {JOB_OPTIONS_OF(job_lamb_fields)};

// Each fills the same struct; `kind` says which did.
#define JOB_OPTIMIZER(name, text)                                                                  \
    { .key = #name, .kind = PEN_OPTION_MAPPING, .help = text, .table = &job_##name##_table }
static const pen_option_field job_optimizer_fields[] = {
    [PEN_OPTIMIZER_SGD] = JOB_OPTIMIZER(sgd, "gradient descent, with momentum if asked"),
    [PEN_OPTIMIZER_ADAM] = JOB_OPTIMIZER(adam, "Adam"),
    [PEN_OPTIMIZER_ADAMW] = JOB_OPTIMIZER(adamw, "Adam with decoupled weight decay"),
    [PEN_OPTIMIZER_RMSPROP] = JOB_OPTIMIZER(rmsprop, "RMSprop, with momentum or centered if asked"),
    [PEN_OPTIMIZER_ADAGRAD] = JOB_OPTIMIZER(adagrad, "Adagrad"),
    [PEN_OPTIMIZER_ADADELTA] = JOB_OPTIMIZER(adadelta, "Adadelta"),
    [PEN_OPTIMIZER_ADAMAX] = JOB_OPTIMIZER(adamax, "Adamax"),
    [PEN_OPTIMIZER_NADAM] = JOB_OPTIMIZER(nadam, "Adam with Nesterov's momentum"),
    [PEN_OPTIMIZER_RADAM] = JOB_OPTIMIZER(radam, "Adam with a rectified variance"),
    [PEN_OPTIMIZER_LION] = JOB_OPTIMIZER(lion, "Lion: the sign of a mean of gradients"),
    [PEN_OPTIMIZER_LAMB] = JOB_OPTIMIZER(lamb, "LAMB: Adam by norms of whole parameters"),
    [PEN_OPTIMIZER_ADAFACTOR] =
        JOB_OPTIMIZER(adafactor, "Adafactor: keeps means of rows and columns alone"),
};
static const pen_option_table job_optimizer_table = {
    PEN_OPTION_FIELDS(pen_optimizer, job_optimizer_fields),
    .words = pen_job_one_of_words,
    .chosen_offset = offsetof(pen_optimizer, kind),
};

static const pen_option_field job_shard_fields[] = {
    PEN_OPTION(PATTERN, pen_job_shard, nodes, "a node's name, or a pattern of names",
               .is_required = true),
    PEN_OPTION(INTEGER, pen_job_shard, ways, "slices of each parameter", .is_required = true,
               PEN_OPTION_RANGE(2, JOB_WAYS_LIMIT)),
};
static const pen_option_table job_shard_table = {
    PEN_OPTION_FIELDS(pen_job_shard, job_shard_fields)};
static const pen_option_field job_shard_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &job_shard_table};

static const pen_option_field job_group_fields[] = {
    PEN_OPTION(PATTERN, pen_optimizer_group, match, "pattern of the names of parameters",
               .is_required = true),
    PEN_OPTION(BOOL, pen_optimizer_group, freeze, "they stay as they are", .default_text = "false"),
    PEN_OPTION(NUMBER, pen_optimizer_group, weight_decay, "in place of the optimizer's",
               .present_offset = offsetof(pen_optimizer_group, has_weight_decay),
               .minimum = PEN_OPTION_FROM(0)),
    PEN_OPTION(NUMBER, pen_optimizer_group, lr_scale, "times the learning rate",
               .minimum = PEN_OPTION_ABOVE(0), .default_text = "1"),
};
static const pen_option_table job_group_table = {
    PEN_OPTION_FIELDS(pen_optimizer_group, job_group_fields)};
static const pen_option_field job_group_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &job_group_table};

static const pen_option_field job_lora_fields[] = {
    PEN_OPTION(PATTERN, pen_job_lora, nodes, "a node's name, or a pattern of names",
               .is_required = true),
    PEN_OPTION(INTEGER, pen_job_lora, rank, "of adapters: less than a weight has inputs or outputs",
               PEN_OPTION_RANGE(1, JOB_RANK_LIMIT), .default_text = "8"),
    PEN_OPTION(NUMBER, pen_job_lora, alpha, "adapters count alpha / rank",
               .minimum = PEN_OPTION_ABOVE(0), .default_text = "16"),
    PEN_OPTION(PATH, pen_job_lora, weights,
               "safetensors file of adapters to begin with, as outputs.adapters writes it"),
};
static const pen_option_table job_lora_table = {PEN_OPTION_FIELDS(pen_job_lora, job_lora_fields),
                                                .words = pen_job_lora_words};

static const pen_option_field job_adapt_fields[] = {
    PEN_OPTION(MAPPING, pen_job_adapt, lora, "low-rank adapters beside weights",
               .is_required = true, .table = &job_lora_table),
};
static const pen_option_table job_adapt_table = {
    PEN_OPTION_FIELDS(pen_job_adapt, job_adapt_fields)};

static const pen_option_field job_average_fields[] = {
    PEN_OPTION(NUMBER, pen_job_average, decay, "what is left of it after a step",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_BELOW(1),
               .default_text = "0.999"),
    PEN_OPTION(INTERVAL, pen_job_average, from, "how long it is the parameters themselves",
               .default_text = "0 steps"),
    PEN_OPTION(BOOL, pen_job_average, use,
               "evaluations, outputs and exports have it in place of the parameters",
               .default_text = "true"),
};
static const pen_option_table job_average_table = {
    PEN_OPTION_FIELDS(pen_job_average, job_average_fields)};

static const pen_option_field job_train_fields[] = {
    PEN_OPTION_AS("loss", CHOICE, pen_job_train, loss.kind,
                  "what is made small; output: the model computes it; or else losses",
                  .present_offset = offsetof(pen_job_train, loss.has_kind),
                  .choices = pen_loss_kind_names, .words = pen_job_loss_words),
    PEN_OPTION_AS("loss_output", TEXT, pen_job_train, loss.output,
                  "the model's output that the loss is taken of, when it has several"),
    PEN_JOB_LOSS_FIELDS(pen_job_train, loss.),
    PEN_OPTION(LIST, pen_job_train, losses, "in place of loss: several, which are added up",
               .item = &pen_job_loss_item, .count_minimum = 1,
               .count_maximum = PEN_DATASET_LABEL_COUNT_LIMIT,
               .present_offset = offsetof(pen_job_train, has_losses)),
    PEN_OPTION(ONE_OF, pen_job_train, optimizer, "how weights follow their gradients",
               .is_required = true, .table = &job_optimizer_table),
    PEN_OPTION(ONE_OF, pen_job_train, learning_rate, "how the optimizer's lr changes",
               .table = &pen_job_learning_rate_table, .default_text = "constant"),
    PEN_OPTION(INTERVAL, pen_job_train, warmup, "how long the learning rate rises at first",
               .default_text = "0 steps"),
    // below its minimum, float32 gradients would be scaled to nothing
    PEN_OPTION(NUMBER, pen_job_train, clip_norm,
               "all gradients together are scaled to this norm when above",
               .minimum = PEN_OPTION_FROM(1e-30)),
    PEN_OPTION(NUMBER, pen_job_train, clip_value,
               "in place of clip_norm: no element of a gradient is further from 0 than this",
               .minimum = PEN_OPTION_FROM(1e-30)),
    PEN_OPTION(INTEGER, pen_job_train, batch, "examples a step", .is_required = true,
               PEN_OPTION_RANGE(1, JOB_BATCH_LIMIT)),
    PEN_OPTION(INTEGER, pen_job_train, microbatches, "equal parts of a batch, one after the other",
               PEN_OPTION_RANGE(1, JOB_BATCH_LIMIT), .default_text = "1"),
    PEN_OPTION(INTEGER, pen_job_train, lanes,
               "parts of the microbatches whose gradients are summed by themselves",
               PEN_OPTION_RANGE(1, JOB_LANES_LIMIT), .default_text = "1"),
    PEN_OPTION(ONE_OF, pen_job_train, consistency, "whether lanes wait for each other",
               .table = &pen_job_consistency_table, .default_text = "sync"),
    PEN_OPTION(INTEGER, pen_job_train, epochs,
               "times through the data; 1 when steps is not given either",
               PEN_OPTION_RANGE(1, JOB_BATCH_LIMIT)),
    PEN_OPTION(INTEGER, pen_job_train, steps, "most steps", .minimum = PEN_OPTION_FROM(1)),
    PEN_OPTION(INTEGER, pen_job_train, seed, "of everything random", .minimum = PEN_OPTION_FROM(0),
               .default_text = "0"),
    PEN_OPTION(PATTERN, pen_job_train, freeze, "parameters whose names match stay as they are"),
    PEN_OPTION(LIST, pen_job_train, groups,
               "parameters with a decay or rate of their own; the first that matches counts",
               .item = &job_group_item, .count_maximum = JOB_GROUPS_LIMIT),
    PEN_OPTION(MAPPING, pen_job_train, average, "a moving average of the parameters",
               .present_offset = offsetof(pen_job_train, has_average), .table = &job_average_table),
    PEN_OPTION(LIST, pen_job_train, shard, "nodes too large for a device, computed in slices",
               .item = &job_shard_item, .count_maximum = JOB_SHARDS_LIMIT),
    PEN_OPTION(BOOL, pen_job_train, shuffle, "a new order of the examples in each epoch",
               .default_text = "true"),
    PEN_OPTION(BOOL, pen_job_train, drop_last, "leave out a last batch that is not full",
               .default_text = "false"),
};

// There is the one or the other, and what belongs to a loss stands with it.
static pen_status job_check_losses(const pen_job_train *train, const pen_option_source *source) {
    const pen_job_loss *loss = &train->loss;
    if (!train->has_losses && loss->has_kind) return pen_job_check_loss(loss, source);
    if (!train->has_losses) {
        return pen_option_blame(source, train,
                                pen_error(PEN_INVALID_INPUT,
                                          "train: 'loss' is missing, expected the name of one; or "
                                          "'losses', a list of several"));
    }
    const bool has_own = loss->has_kind || loss->output != NULL || loss->class_axis != -1 ||
                         loss->ignores || loss->has_probabilities || loss->label_smoothing > 0 ||
                         loss->has_beta || loss->has_delta || loss->class_weights.count > 0 ||
                         loss->class_weights_file != NULL;
    if (!has_own) return PEN_OK;
    return pen_option_blame(source, &train->losses,
                            pen_error(PEN_INVALID_INPUT,
                                      "train.losses: found together with loss, or with what "
                                      "belongs to one, expected all of it in the list"));
}

// What one key alone cannot say: numbers that go together, and keys that do not.
static pen_status job_check_train(const void *object, const pen_option_source *source) {
    const pen_job_train *train = object;
    PEN_TRY(job_check_losses(train, source));
    if (train->batch % train->microbatches != 0) {
        return pen_option_blame(source, &train->microbatches,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.microbatches: found %lld, expected a divisor of "
                                          "the batch, %lld",
                                          (long long)train->microbatches, (long long)train->batch));
    }
    if (train->lanes > train->microbatches) {
        return pen_option_blame(source, &train->lanes,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.lanes: found %lld, expected at most as many as "
                                          "train.microbatches, %lld",
                                          (long long)train->lanes, (long long)train->microbatches));
    }
    if (train->clip_norm > 0 && train->clip_value > 0) {
        return pen_option_blame(source, &train->clip_value,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.clip_value: found together with clip_norm, "
                                          "expected one of the two"));
    }
    if (train->shard.count > 0 && pen_optimizer_entry_of(train->optimizer.kind)->needs_whole) {
        return pen_option_blame(
            source, &train->shard,
            pen_error(PEN_INVALID_INPUT,
                      "train.shard: found together with optimizer %s, whose steps depend on the "
                      "norm of a whole parameter; expected another optimizer, or no shard",
                      job_optimizer_fields[train->optimizer.kind].key));
    }
    // states that lanes keep by themselves have no slices
    if (train->shard.count > 0 && train->consistency.kind == PEN_JOB_ASYNC) {
        return pen_option_blame(source, &train->shard,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.shard: found together with consistency: async, "
                                          "expected one of the two"));
    }
    PEN_TRY(pen_job_check_learning_rate(train, source));
    return pen_job_check_consistency(train, source);
}

static const pen_option_table job_train_table = {
    PEN_OPTION_FIELDS(pen_job_train, job_train_fields),
    .explain = pen_job_explain,
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

static const char *const job_transport_names[] = {
    [PEN_JOB_TRANSPORT_AUTO] = "auto",
    [PEN_JOB_TRANSPORT_GRPC] = "grpc",
    NULL,
};

static const pen_option_field job_pipeline_fields[] = {
    PEN_OPTION(CHOICE, pen_job_pipeline, schedule,
               "order of the microbatches on each device; auto: the fastest that fits",
               .choices = pen_job_schedule_names, .default_text = "auto"),
    PEN_OPTION(CHOICE, pen_job_pipeline, recompute,
               "stages that run forward once more before backward, to keep less; stage: all; auto: "
               "as few as make it fit",
               .choices = job_recompute_names, .default_text = "none"),
    PEN_OPTION(CHOICE, pen_job_pipeline, exchange,
               "of sums and new values between replicas: overlapped: while backward passes are "
               "computed, where a device has several stages; after_backward: behind them. The "
               "numbers are the same",
               .choices = pen_exchange_names, .default_text = "overlapped"),
    PEN_OPTION(CHOICE, pen_job_pipeline, transport,
               "how tensors go between processes of one host; auto: through shared memory, where "
               "both have it; grpc: as between hosts. The numbers are the same",
               .choices = job_transport_names, .default_text = "auto"),
    PEN_OPTION_AS("time_limit", SECONDS, pen_job_pipeline, time_limit_seconds,
                  "for the search of a schedule; 0 s: only those that have a name",
                  PEN_OPTION_RANGE(0, 86400), .default_text = "1 s"),
    PEN_OPTION_AS("rendezvous_timeout", SECONDS, pen_job_pipeline, rendezvous_timeout_seconds,
                  "how long workers may take to be there", .minimum = PEN_OPTION_ABOVE(0),
                  .maximum = PEN_OPTION_TO(86400), .default_text = "60 s"),
};
static const pen_option_table job_pipeline_table = {
    PEN_OPTION_FIELDS(pen_job_pipeline, job_pipeline_fields)};

#define LOSS_SCALE(kind, member, ...) PEN_OPTION(kind, pen_loss_scale_options, member, __VA_ARGS__)
static const pen_option_field job_loss_scale_fields[] = {
    LOSS_SCALE(NUMBER, initial, "the gradient of the loss begins as this, in place of 1",
               .minimum = PEN_OPTION_FROM(1e-7), .maximum = PEN_OPTION_TO(1e30),
               .default_text = "65536"),
    LOSS_SCALE(NUMBER, growth, "the scale is multiplied by it after `every` good steps",
               PEN_OPTION_RANGE(1, 1024), .default_text = "2"),
    LOSS_SCALE(NUMBER, backoff,
               "and by this after a step one of whose gradients is not finite, which is skipped",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_BELOW(1),
               .default_text = "0.5"),
    LOSS_SCALE(INTEGER, every, "good steps, one after another, after which the scale grows",
               PEN_OPTION_RANGE(1, 1000000000), .default_text = "2000"),
    LOSS_SCALE(NUMBER, floor, "a training ends whose scale would fall below",
               .minimum = PEN_OPTION_FROM(1e-30), .maximum = PEN_OPTION_TO(1e30),
               .default_text = "0.0001"),
};
static const pen_option_table job_loss_scale_table = {
    PEN_OPTION_FIELDS(pen_loss_scale_options, job_loss_scale_fields)};

static const pen_option_field job_numerics_fields[] = {
    PEN_OPTION(CHOICE, pen_job_numerics, level,
               "instructions of the kernels, of x86-64: v2 (SSE4.2), v3 (AVX2), v4 (AVX-512). Each "
               "rounds otherwise. auto: the best of the machine that plans first; plans and "
               "checkpoints keep it",
               .choices = pen_kernel_level_names, .default_text = "auto"),
    PEN_OPTION(
        CHOICE, pen_job_numerics, precision,
        "operands of matrix products, convolutions, attention and recurrent layers are "
        "rounded to it; sums, and all else, are float32. Only for devices of kind cuda. float16 "
        "scales the loss",
        .choices = pen_precision_names, .words = pen_job_precision_words,
        .default_text = "float32"),
    PEN_OPTION(CHOICE, pen_job_numerics, libraries,
               "what devices of kind cuda use for matrix products and convolutions. auto: cuBLAS "
               "and cuDNN of NVIDIA, where they are found and begin, for which 32 MiB of each "
               "GPU's memory are planned; required: the same, and without one of them, or without "
               "such a device, nothing is trained; none: own kernels. Each rounds otherwise",
               .choices = pen_libraries_names, .default_text = "auto"),
    PEN_OPTION(MAPPING, pen_job_numerics, loss_scale,
               "float16: how gradients are kept from becoming 0 in it, as PyTorch's GradScaler "
               "does it",
               .present_offset = offsetof(pen_job_numerics, has_loss_scale),
               .table = &job_loss_scale_table),
};
static const pen_option_table job_numerics_table = {
    PEN_OPTION_FIELDS(pen_job_numerics, job_numerics_fields)};

static const pen_option_field job_tls_name = {.kind = PEN_OPTION_TEXT,
                                              .help = "as in the certificate"};

static const pen_option_field job_tls_fields[] = {
    PEN_OPTION(PATH, pen_job_tls, ca,
               "certificates (PEM) of those who sign for workers and coordinator",
               .is_required = true),
    PEN_OPTION(PATH, pen_job_tls, cert, "certificate (PEM) of the coordinator",
               .is_required = true),
    PEN_OPTION(PATH, pen_job_tls, key, "its private key (PEM)", .is_required = true),
    PEN_OPTION(PATH, pen_job_tls, crl,
               "lists (PEM) of certificates that were revoked, one for each authority"),
    PEN_OPTION(
        LIST, pen_job_tls, coordinators,
        "names of certificates that workers started by this job take as a coordinator's; any, "
        "when not given",
        .item = &job_tls_name, .is_list_optional = true),
    PEN_OPTION(
        LIST, pen_job_tls, workers,
        "names of certificates that are taken as a worker's (workers started by this job have "
        "its own); any, when not given",
        .item = &job_tls_name, .is_list_optional = true),
};
static const pen_option_table job_tls_table = {PEN_OPTION_FIELDS(pen_job_tls, job_tls_fields)};

static const char *const job_outputs_from_names[] = {
    [PEN_JOB_OUTPUTS_LAST] = "last",
    [PEN_JOB_OUTPUTS_BEST] = "best",
    NULL,
};

static const pen_option_field job_outputs_fields[] = {
    PEN_OPTION(PATH, pen_job_outputs, dir, "folder for what a run leaves behind"),
    PEN_OPTION(PATH, pen_job_outputs, export, "ONNX file of the trained model"),
    PEN_OPTION(PATH, pen_job_outputs, adapters,
               "safetensors file of low-rank adapters alone (adapt.lora), called as PEFT does"),
    PEN_OPTION(CHOICE, pen_job_outputs, types,
               "in it, of weights that were read from float16 or bfloat16: own, as they were read; "
               "float32; auto: float32 in ONNX, else own",
               .choices = pen_export_types_names, .default_text = "auto"),
    PEN_OPTION(CHOICE, pen_job_outputs, from,
               "which parameters they have: those after the last step, or those of the best "
               "evaluation",
               .choices = job_outputs_from_names, .default_text = "last"),
};
static const pen_option_table job_outputs_table = {
    PEN_OPTION_FIELDS(pen_job_outputs, job_outputs_fields), .words = pen_job_outputs_words};

static const pen_option_field job_serve_fields[] = {
    PEN_OPTION(TEXT, pen_job_serve, name, "of the model, as requests call it; else its file's"),
    PEN_OPTION(INTEGER, pen_job_serve, max_batch,
               "rows that are computed at once; when not given, as many as train.batch",
               PEN_OPTION_RANGE(1, 65536)),
    PEN_OPTION(INTEGER, pen_job_serve, small_batch,
               "rows of a second, smaller size of batches, for when no more wait",
               PEN_OPTION_RANGE(1, 65535)),
    PEN_OPTION_AS("max_wait", SECONDS, pen_job_serve, max_wait_seconds,
                  "how long a request may wait for others to share its batch",
                  PEN_OPTION_RANGE(0, 60), .default_text = "2 ms"),
    PEN_OPTION(INTEGER, pen_job_serve, queue, "requests that wait; more are refused",
               PEN_OPTION_RANGE(1, 1000000), .default_text = "256"),
    PEN_OPTION_AS("timeout", SECONDS, pen_job_serve, timeout_seconds,
                  "how long a request may wait before it is refused; gRPC's callers may say less",
                  .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(86400),
                  .default_text = "30 s"),
    PEN_OPTION(BYTES, pen_job_serve, max_bytes, "of a request", PEN_OPTION_RANGE(1024, 2147483647),
               .default_text = "64MiB"),
    PEN_OPTION(INTEGER, pen_job_serve, connections,
               "to each door, three quarters of them from one address; more are refused",
               PEN_OPTION_RANGE(16, 4096), .default_text = "1024"),
    PEN_OPTION(PATH, pen_job_serve, token,
               "file whose first line callers must send as a bearer token"),
};
static const pen_option_table job_serve_table = {
    PEN_OPTION_FIELDS(pen_job_serve, job_serve_fields)};

static const pen_option_field job_fields[] = {
    PEN_OPTION(INTEGER, pen_job, version, "of the job file's format", .is_required = true,
               PEN_OPTION_RANGE(1, 1)),
    PEN_OPTION(MAPPING, pen_job, model, "what is trained", .is_required = true,
               .table = &pen_job_model_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, data, "the examples", .is_required = true,
               .table = &pen_job_data_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, train, "how it is trained", .is_required = true,
               .table = &job_train_table, .may_be_file = true),
    PEN_OPTION_AS("devices", LIST, pen_job, cluster.written_devices,
                  "where it runs; one cpu when not given", .item = &pen_cluster_device_item,
                  .count_minimum = 1, .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
                  .may_be_file = true),
    PEN_OPTION_AS("links", LIST, pen_job, cluster.written_links,
                  "how fast devices reach each other; later ones win",
                  .item = &pen_cluster_link_item, .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
                  .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, cluster,
               "in place of devices and links, most often a file with both",
               .present_offset = offsetof(pen_job, has_cluster), .table = &pen_cluster_table,
               .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, placement, "how the model is placed on several devices",
               .table = &pen_placement_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, pipeline, "how microbatches go through several devices",
               .table = &job_pipeline_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, numerics, "how numbers are rounded", .table = &job_numerics_table,
               .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, tls, "certificates for links to workers on other machines",
               .table = &job_tls_table, .may_be_file = true),
    PEN_OPTION(PATH, pen_job, token_file,
               "file that workers of this machine have as well (`penstock worker --token-file`): "
               "they are another user's, or have no other way to know this one"),
    PEN_OPTION(PATH, pen_job, costs,
               "cost table, measured by `penstock profile` and `penstock probe`, for plans"),
    PEN_OPTION(MAPPING, pen_job, evaluation, "how a training is judged while it runs",
               .present_offset = offsetof(pen_job, has_evaluation),
               .table = &pen_job_evaluation_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, adapt,
               "small weights beside the model's, trained in place of these",
               .present_offset = offsetof(pen_job, has_adapt), .table = &job_adapt_table,
               .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, checkpoint,
               "where a training stands, kept so that it can go on from there",
               .table = &pen_job_checkpoint_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, recovery, "what is done when a worker is lost",
               .table = &pen_job_recovery_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, serve, "how `penstock serve` answers requests",
               .table = &job_serve_table, .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job, outputs, "what is written", .table = &job_outputs_table,
               .may_be_file = true),
};

const pen_option_table pen_job_table = {
    .help = "A Penstock job: a model, its data, and how it is trained.",
    PEN_OPTION_FIELDS(pen_job, job_fields),
    .explain = pen_job_explain};
