#include "scheduler/job/job_words.h"

#include <stddef.h>

#define SAID_ACCUMULATE "train.microbatches says in how many parts a batch is computed"
#define SAID_AVERAGE "a moving average of the parameters is train.average: {decay: 0.999}"
#define SAID_BATCH                                                                                 \
    "train.batch says how many examples a step has, on all devices together, and "                 \
    "train.microbatches in how many parts they are computed"
#define SAID_CHECKPOINTS "checkpoint.dir is the folder of checkpoints"
#define SAID_CONTINUE                                                                              \
    "`penstock train --continue` goes on from checkpoint.dir, --resume DIR from another folder"
#define SAID_DATA "data.train says which files, of what format; `penstock init` writes it for them"
#define SAID_DEVICES                                                                               \
    "devices says where it runs, each by a name: [{name: a, kind: cuda, gpu: 0}, {name: b}]"
#define SAID_EPOCHS "train.epochs says how often the data are gone through"
#define SAID_EVALUATE "data.eval is what is evaluated on, and evaluation.every says how often"
#define SAID_EVERY "evaluation.every says how often, like 1 epoch"
#define SAID_HOSTS                                                                                 \
    "`penstock train` is started once; each of devices may have a host, where `penstock worker "   \
    "--listen HOST:PORT` serves it"
#define SAID_INPUTS "data.train has inputs, and so has model when it has layers"
#define SAID_KEEP "checkpoint.keep says how many checkpoints stay"
#define SAID_LOG "`penstock train --log FILE` tells each step, --tensorboard DIR writes event files"
#define SAID_LOSS "it is train.loss"
#define SAID_NAME "outputs.dir is the folder for what a run leaves, and its only name"
#define SAID_OUTPUTS "outputs.dir is the folder for what a run leaves"
#define SAID_OWN_STAGES "a device keeps only the parameters of its own stages, without being told"
#define SAID_PICTURES "data.augment changes pictures by chance, and data.normalize scales inputs"
#define SAID_PRECISION                                                                             \
    "numerics.precision says how operands are rounded, like numerics: {precision: bfloat16}"
#define SAID_RATE "the rate is the optimizer's: train.optimizer: {adam: {lr: 0.001}}"
#define SAID_RECOMPUTE "pipeline.recompute says which stages compute values again to keep less"
#define SAID_SAVE "checkpoint.every says how often, like 500 steps or 1 epoch"
#define SAID_SCHEDULE "train.learning_rate says how the optimizer's lr changes"
#define SAID_SEED "it is train.seed"
#define SAID_SLICES "train.shard names nodes that are computed in slices"
#define SAID_STAGES "placement.stages says how many of devices are used, in stages"
#define SAID_STEPS "train.steps is the limit"
#define SAID_STOP "evaluation: {every: 1 epoch, patience: 5} ends a training"
#define SAID_WARMUP "train.warmup says how long the rate rises at first, like 500 steps"
#define SAID_WEIGHTS "model.weights is a safetensors file of the first parameters"

// As Keras, PyTorch and Lightning, torchrun and torchtitan, Hugging Face and DeepSpeed call them,
// as keys and as options. The first that fits counts.
static const pen_text_word job_words[] = {
    {"batch_size", "train.batch says how many examples a step has"},
    {"*batch_size*", SAID_BATCH},
    {"accumulate_grad_batches", SAID_ACCUMULATE},
    {"gradient_accumulation*", SAID_ACCUMULATE},
    {"grad_accum*", SAID_ACCUMULATE},
    {"num_microbatches", SAID_ACCUMULATE},
    {"callbacks", "see evaluation, checkpoint, and the options of `penstock train --help`"},
    {"early_stop*", SAID_STOP},
    {"ema", SAID_AVERAGE},
    {"ema_*", SAID_AVERAGE},
    {"gradient_clipping", "train.clip_norm, or train.clip_value, is the limit"},
    {"gradient_clip*", "train.clip_norm, or train.clip_value, is the limit"},
    {"grad_clip*", "train.clip_norm, or train.clip_value, is the limit"},
    {"clip_grad*", "train.clip_norm, or train.clip_value, is the limit"},
    {"max_grad_norm", "train.clip_norm is the limit"},
    {"max_norm", "train.clip_norm is the limit"},
    {"grid", "it is a key of sweeps, which `penstock sweep` runs"},
    {"lr", SAID_RATE},
    {"base_lr", SAID_RATE},
    {"init_lr", SAID_RATE},
    {"learning_rate", SAID_RATE ", and train.learning_rate says how it changes"},
    {"lr_*", SAID_SCHEDULE},
    {"scheduler", SAID_SCHEDULE},
    {"warmup_steps", SAID_WARMUP},
    {"warmup_epochs", SAID_WARMUP},
    {"warmup_ratio", SAID_WARMUP},
    {"num_warmup_steps", SAID_WARMUP},
    {"weight_decay", "it is the optimizer's: train.optimizer: {adamw: {weight_decay: 0.01}}"},
    {"optim", "it is train.optimizer"},
    {"solver", "it is train.optimizer"},
    {"criterion", SAID_LOSS},
    {"loss_fn", SAID_LOSS},
    {"loss_function", SAID_LOSS},
    {"max_epochs", SAID_EPOCHS},
    {"num_epochs", SAID_EPOCHS},
    {"n_epochs", SAID_EPOCHS},
    {"nb_epoch*", SAID_EPOCHS},
    {"num_train_epochs", SAID_EPOCHS},
    {"steps_per_epoch", "an epoch goes through the data once; train.steps is the limit of all"},
    {"max_*steps", SAID_STEPS},
    {"num_steps", SAID_STEPS},
    {"total_steps", SAID_STEPS},
    {"*iters", SAID_STEPS},
    {"*iterations", SAID_STEPS},
    {"random_seed", SAID_SEED},
    {"manual_seed", SAID_SEED},
    {"fp16*", "it is numerics: {precision: float16}"},
    {"float16", "it is numerics: {precision: float16}"},
    {"bf16*", "it is numerics: {precision: bfloat16}"},
    {"bfloat16", "it is numerics: {precision: bfloat16}"},
    {"amp*", SAID_PRECISION},
    {"use_amp", SAID_PRECISION},
    {"autocast", SAID_PRECISION},
    {"mixed_precision*", SAID_PRECISION},
    {"activation_checkpoint*", SAID_RECOMPUTE},
    {"gradient_checkpointing", SAID_RECOMPUTE},
    {"recompute_activations", SAID_RECOMPUTE},
    {"class_weight", "it is train.class_weights"},
    {"sample_weight", "weights of examples are data.train.weights, or weight_column of a table"},

    {"device", SAID_DEVICES},
    {"accelerator", SAID_DEVICES},
    {"gpu", SAID_DEVICES},
    {"*cuda", SAID_DEVICES},
    {"gpus", SAID_DEVICES},
    {"gpu_ids", SAID_DEVICES},
    {"num_gpus", SAID_DEVICES},
    {"n_gpu*", SAID_DEVICES},
    {"nproc_per_node", SAID_DEVICES},
    {"num_proc*", SAID_DEVICES},
    {"threads", "each of devices may have threads; data.threads says how many decode pictures"},
    {"nnodes", SAID_HOSTS},
    {"num_nodes", SAID_HOSTS},
    {"nodes", SAID_HOSTS},
    {"num_machines", SAID_HOSTS},
    {"*world_size", SAID_HOSTS},
    {"*rank", SAID_HOSTS},
    {"hosts", SAID_HOSTS},
    {"port", SAID_HOSTS},
    {"hostfile", SAID_HOSTS},
    {"workers", SAID_HOSTS},
    {"machines", SAID_HOSTS},
    {"master_*", SAID_HOSTS},
    {"rdzv_*", SAID_HOSTS},
    {"dist", SAID_HOSTS},
    {"dist_*", SAID_HOSTS},
    {"distributed*", SAID_HOSTS},
    {"standalone", SAID_HOSTS},
    {"deepspeed*", SAID_HOSTS},
    {"pipeline_parallel*", SAID_STAGES},
    {"pp", SAID_STAGES},
    {"pp_*", SAID_STAGES},
    {"parallelism", "devices, placement and pipeline say how it is done"},
    {"data_parallel*", "placement.replicas says how many pipelines share a step"},
    {"tensor_parallel*", SAID_SLICES},
    {"tp", SAID_SLICES},
    {"tp_*", SAID_SLICES},
    {"fsdp*", SAID_OWN_STAGES},
    {"zero", SAID_OWN_STAGES},
    {"zero_*", SAID_OWN_STAGES},

    {"dataset*", SAID_DATA},
    {"dataloader*", SAID_DATA},
    {"data_dir", SAID_DATA},
    {"data_path", SAID_DATA},
    {"train_data*", SAID_DATA},
    {"train_dir", SAID_DATA},
    {"train_file", SAID_DATA},
    {"training_data*", SAID_DATA},
    {"input", SAID_INPUTS},
    {"inputs", SAID_INPUTS},
    {"labels", "data.train has labels"},
    {"targets", "data.train has labels"},
    {"validation_split", "data.holdout is the share of data.train that is evaluated"},
    {"val_split", "data.holdout is the share of data.train that is evaluated"},
    {"test_size", "data.holdout is the share of data.train that is evaluated"},
    {"test", SAID_EVALUATE},
    {"test_*", SAID_EVALUATE},
    {"testing", SAID_EVALUATE},
    {"val_check_interval", SAID_EVERY},
    {"validation_freq", SAID_EVERY},
    {"val", SAID_EVALUATE},
    {"val_*", SAID_EVALUATE},
    {"valid", SAID_EVALUATE},
    {"valid_*", SAID_EVALUATE},
    {"validate", SAID_EVALUATE},
    {"validation", SAID_EVALUATE},
    {"validation_*", SAID_EVALUATE},
    {"eval_data*", SAID_EVALUATE},
    {"eval_steps", SAID_EVERY},
    {"eval_every*", SAID_EVERY},
    {"eval_interval", SAID_EVERY},
    {"eval_freq*", SAID_EVERY},
    {"eval_strategy", SAID_EVERY},
    {"evaluation_strategy", SAID_EVERY},
    {"check_val_every_n_epoch", SAID_EVERY},
    {"monitor", "evaluation.metric says which parameters are better"},
    {"num_workers", "data.threads says how many threads read"},
    {"prefetch*",
     "the next batch is read while one is computed; data.threads says how many decode pictures"},
    {"transform*", SAID_PICTURES},
    {"augmentation*", SAID_PICTURES},
    {"preprocess*", SAID_PICTURES},

    {"checkpoint_dir", SAID_CHECKPOINTS},
    {"checkpoint_path", SAID_CHECKPOINTS},
    {"ckpt*", SAID_CHECKPOINTS},
    {"save_dir", SAID_CHECKPOINTS},
    {"resume*", SAID_CONTINUE},
    {"save_best_only", "evaluation.keep_best, with checkpoint.dir, keeps the best"},
    {"save_top_k", SAID_KEEP},
    {"save_total_limit", SAID_KEEP},
    {"max_to_keep", SAID_KEEP},
    {"save", SAID_SAVE},
    {"save_*", SAID_SAVE},
    {"checkpoint_every*", SAID_SAVE},
    {"checkpoint_interval", SAID_SAVE},
    {"output", SAID_OUTPUTS},
    {"output_dir", SAID_OUTPUTS},
    {"output_path", SAID_OUTPUTS},
    {"name", SAID_NAME},
    {"run_name", SAID_NAME},
    {"experiment*", SAID_NAME},
    {"log", SAID_LOG},
    {"log_*", SAID_LOG},
    {"logdir", SAID_LOG},
    {"logger", SAID_LOG},
    {"logging*", SAID_LOG},
    {"steps_per_print", SAID_LOG},
    {"print_every", SAID_LOG},
    {"report_to", SAID_LOG},
    {"tensorboard", SAID_LOG},
    {"wandb*", SAID_LOG},
    {"model_path", "it is model: {file: …}"},
    {"model_file", "it is model: {file: …}"},
    {"model_name*", "it is model: {file: …}"},
    {"pretrained*", SAID_WEIGHTS},
    {"init_from*", SAID_WEIGHTS},
    {"load_from*", SAID_WEIGHTS},
    {NULL, NULL},
};

const char *pen_job_explain(const char *key) {
    return pen_text_find_word(job_words, key);
}

const pen_text_word pen_job_optimizer_words[] = {
    {"learning_rate", "it is lr"},
    {"betas", "it is beta1 and beta2"},
    {"eps", "it is epsilon"},
    {"wd", "it is weight_decay"},
    {"l2", "it is weight_decay"},
    {"decay", "it is weight_decay; train.learning_rate lets the rate fall"},
    {"clip*", "it is train.clip_norm, or train.clip_value"},
    {"fused", "it says how PyTorch computes, and is not needed"},
    {"foreach", "it says how PyTorch computes, and is not needed"},
    {"capturable", "it says how PyTorch computes, and is not needed"},
    {NULL, NULL},
};

const pen_text_word pen_job_one_of_words[] = {
    {"name", "the name is itself the key, with what it has behind it, as in {adam: {lr: 0.001}}"},
    {"type", "the name is itself the key, with what it has behind it, as in {adam: {lr: 0.001}}"},
    {"class_name", "the name is itself the key, as in {adam: {lr: 0.001}}"},
    {"lr", "it stands behind the optimizer's name, as in {adam: {lr: 0.001}}"},
    {"learning_rate", "it stands behind the optimizer's name, as in {adam: {lr: 0.001}}"},
    {"weight_decay", "it stands behind the optimizer's name, as in {adamw: {weight_decay: 0.01}}"},
    {NULL, NULL},
};

const pen_text_word pen_job_rate_words[] = {
    {"name", "the name is itself the key, as in {cosine: {final: 0.0001}}"},
    {"type", "the name is itself the key, as in {cosine: {final: 0.0001}}"},
    {"exponential*", "{step: {every: 1 epoch, factor: 0.9}} falls so"},
    {"*warmup*", "train.warmup says how long the rate rises at first, like 500 steps"},
    {"t_max", "it falls until the training ends"},
    {"total_steps", "it falls until the training ends"},
    {"eta_min", "it is final"},
    {"min_lr", "it is final"},
    {"step_size", "it is every, like 30 epochs"},
    {"gamma", "it is factor"},
    {"max_lr", "the optimizer's lr is the highest"},
    {NULL, NULL},
};

const pen_text_word pen_job_dataset_words[] = {
    {"x", "it is inputs, or images of format idx"},
    {"x_train", "it is inputs, or images of format idx"},
    {"data", "it is inputs, or images of format idx"},
    {"features", "it is inputs, or images of format idx"},
    {"y", "it is labels, or label_column of a table"},
    {"y_train", "it is labels, or label_column of a table"},
    {"target*", "it is labels, or label_column of a table"},
    {"path", "it is file, or folder of format images"},
    {"root", "it is file, or folder of format images"},
    {"dir", "it is file, or folder of format images"},
    {"files", "it is file, or shards of format webdataset"},
    {"host", "it is part of connection, of format sql: postgresql://user@host:port/name"},
    {"port", "it is part of connection, of format sql: postgresql://user@host:port/name"},
    {NULL, NULL},
};

const pen_text_word pen_job_format_words[] = {
    {"imagefolder", "images"}, {"image_folder", "images"},
    {"folder", "images"},      {"mnist", "idx"},
    {"numpy*", "npy"},         {"wds", "webdataset"},
    {"sqlite", "sql"},         {"postgres*", "sql"},
    {"txt", "text"},           {NULL, NULL},
};

const pen_text_word pen_job_checkpoint_words[] = {
    {"interval", "it is every, like 500 steps"},
    {"every_n_*", "it is every, like 500 steps"},
    {"freq*", "it is every, like 500 steps"},
    {"folder", "it is dir"},
    {"path", "it is dir"},
    {"save_top_k", "it is keep"},
    {"enabled", "whether there is dir says it"},
    {"enable", "whether there is dir says it"},
    {NULL, NULL},
};

const pen_text_word pen_job_evaluation_words[] = {
    {"interval", "it is every, like 1 epoch"},
    {"every_n_*", "it is every, like 1 epoch"},
    {"freq*", "it is every, like 1 epoch"},
    {"monitor", "it is metric"},
    {"mode", "whether less or more is better follows from metric"},
    {NULL, NULL},
};

const pen_text_word pen_job_outputs_words[] = {
    {"path", "it is dir"}, {"folder", "it is dir"}, {"onnx", "it is export"}, {NULL, NULL}};

const pen_text_word pen_job_lora_words[] = {
    {"r", "it is rank"},
    {"lora_alpha", "it is alpha"},
    {"target_modules", "it is nodes, a pattern of names"},
    {"modules", "it is nodes, a pattern of names"},
    {NULL, NULL},
};

// Keras and PyTorch write some of them as names of classes; case and "_" do not count.
const pen_text_word pen_job_loss_words[] = {
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
    {"smooth_l1_loss", "smooth_l1"},
    {"sparse_categorical_crossentropy", "softmax_cross_entropy"},
    {NULL, NULL},
};

const pen_text_word pen_job_metric_words[] = {
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

const pen_text_word pen_job_precision_words[] = {
    {"bf16", "bfloat16"},
    {"fp32", "float32"},
    {NULL, NULL},
};
