#include "scheduler/job/job_words.h"

#include <stddef.h>
#include <string.h>

typedef struct job_word {
    const char *key;
    const char *said; // in a job
} job_word;

// As Keras, PyTorch and Lightning, Hugging Face and DeepSpeed call them.
static const job_word job_words[] = {
    {"accumulate_grad_batches", "train.microbatches says in how many parts a batch is computed"},
    {"batch_size", "train.batch says how many examples a step has"},
    {"callbacks", "see evaluation, checkpoint, and the options of `penstock train --help`"},
    {"early_stopping", "evaluation: {every: 1 epoch, patience: 5} ends a training"},
    {"ema", "a moving average of the parameters is train.average: {decay: 0.999}"},
    {"ema_decay", "a moving average of the parameters is train.average: {decay: 0.999}"},
    {"gradient_accumulation_steps",
     "train.microbatches says in how many parts a batch is computed"},
    {"gradient_clipping", "train.clip_norm, or train.clip_value, is the limit"},
    {"grid", "it is a key of sweeps, which `penstock sweep` runs"},
    {"lr", "the rate is the optimizer's: train.optimizer: {adam: {lr: 0.001}}"},
    {"lr_scheduler", "train.learning_rate says how the optimizer's lr changes"},
    {"max_epochs", "train.epochs says how often the data are gone through"},
    {"max_grad_norm", "train.clip_norm is the limit"},
    {"max_steps", "train.steps is the limit"},
    {"num_epochs", "train.epochs says how often the data are gone through"},
    {"num_train_epochs", "train.epochs says how often the data are gone through"},
    {"num_workers", "data.threads says how many threads read"},
    {"sample_weight", "weights of examples are data.train.weights, or weight_column of a table"},
    {"save_best_only", "evaluation.keep_best, with checkpoint.dir, keeps the best"},
    {"scheduler", "train.learning_rate says how the optimizer's lr changes"},
    {"validation_split", "data.holdout is the share of data.train that is evaluated"},
    {"warmup_steps", "train.warmup: 500 steps"},
};

const char *pen_job_explain(const char *key) {
    for (size_t i = 0; i < sizeof job_words / sizeof *job_words; i++) {
        if (strcmp(job_words[i].key, key) == 0) return job_words[i].said;
    }
    return NULL;
}

// Keras and PyTorch write some of them as names of classes; case and "_" do not count.
const pen_option_word pen_job_loss_words[] = {
    {"bce", "binary_cross_entropy"},
    {"bce_loss", "binary_cross_entropy"},
    {"bce_with_logits", "binary_cross_entropy_with_logits"},
    {"bce_with_logits_loss", "binary_cross_entropy_with_logits"},
    {"binary_crossentropy", "binary_cross_entropy"},
    {"categorical_crossentropy", "softmax_cross_entropy"},
    {"cross_entropy", "softmax_cross_entropy"},
    {"cross_entropy_loss", "softmax_cross_entropy"},
    {"kl_div", "kl_divergence"},
    {"kl_div_loss", "kl_divergence"},
    {"l1_loss", "l1"},
    {"mae", "l1"},
    {"mean_absolute_error", "l1"},
    {"mse", "mean_squared_error"},
    {"mse_loss", "mean_squared_error"},
    {"nll", "negative_log_likelihood"},
    {"nll_loss", "negative_log_likelihood"},
    {"sparse_categorical_crossentropy", "softmax_cross_entropy"},
    {NULL, NULL},
};

const pen_option_word pen_job_metric_words[] = {
    {"acc", "accuracy"},
    {"auroc", "auc"},
    {"iou", "mean_iou"},
    {"jaccard", "mean_iou"},
    {"jaccard_score", "mean_iou"},
    {"mae", "mean_absolute_error"},
    {"mse", "mean_squared_error"},
    {"rmse", "root_mean_squared_error"},
    {"roc_auc", "auc"},
    {"roc_auc_score", "auc"},
    {"val_accuracy", "accuracy"},
    {"val_loss", "loss"},
    {NULL, NULL},
};

const pen_option_word pen_job_precision_words[] = {
    {"bf16", "bfloat16"},
    {"fp32", "float32"},
    {NULL, NULL},
};
