#include "cli/option_words.h"

#include <stddef.h>

#define SAID_ALL "all is told, unless --quiet is given"
#define SAID_JOB "the job is the argument, as in `penstock train job.yaml`"
#define SAID_PLAN "`penstock plan JOB` says what a job takes, and whether it fits"

const pen_text_word pen_cli_words[] = {
    {"config*", SAID_JOB},
    {"job", SAID_JOB},
    {"dry_run", SAID_PLAN},
    {"v", SAID_ALL},
    {"verbose", SAID_ALL},
    {"debug", SAID_ALL},
    {"log_level", SAID_ALL},
    {"version", "`penstock --version` prints it"},
    {NULL, NULL},
};

#define SAID_EVERY "--every N says how often a checkpoint is kept"
#define SAID_RESUME                                                                                \
    "--continue goes on from the job's own checkpoints, --resume DIR from those of another folder"
#define SAID_SAVE "--save FILE writes the parameters, outputs.dir of the job is a folder for all"
#define SAID_STEPS "--steps N is the limit"
#define SAID_TOLD "--log FILE tells each step, --tensorboard DIR writes event files"

const pen_text_word pen_cli_train_words[] = {
    {"o", SAID_SAVE},
    {"output*", SAID_SAVE},
    {"resume_*", SAID_RESUME},
    {"restart", SAID_RESUME},
    {"load*", SAID_RESUME},
    {"ckpt_path", SAID_RESUME},
    {"checkpoint_dir", "--checkpoint DIR keeps checkpoints"},
    {"save_dir", "--checkpoint DIR keeps checkpoints"},
    {"save_every*", SAID_EVERY},
    {"save_steps", SAID_EVERY},
    {"save_interval", SAID_EVERY},
    {"checkpoint_every*", SAID_EVERY},
    {"checkpoint_interval", SAID_EVERY},
    {"max_steps", SAID_STEPS},
    {"num_steps", SAID_STEPS},
    {"total_steps", SAID_STEPS},
    {"*iters", SAID_STEPS},
    {"*iterations", SAID_STEPS},
    {"log_*", SAID_TOLD},
    {"logdir", SAID_TOLD},
    {"logger", SAID_TOLD},
    {"logging*", SAID_TOLD},
    {"print_every", SAID_TOLD},
    {"wandb*", SAID_TOLD},
    {"report_to", SAID_TOLD},
    {"profile*",
     "--trace FILE shows what each device did; `penstock profile JOB` measures operators"},
    {NULL, NULL},
};

#define SAID_PARAMETERS "--parameters FILE; else what training left in the job's folder is taken"

const pen_text_word pen_cli_trained_words[] = {
    {"batch_size", "--batch N is how many examples are computed at a time"},
    {"checkpoint*", SAID_PARAMETERS},
    {"ckpt*", SAID_PARAMETERS},
    {"weights", SAID_PARAMETERS},
    {"model_path", SAID_PARAMETERS},
    {NULL, NULL},
};

#define SAID_LISTEN "--listen HOST:PORT says where it takes links"
#define SAID_TLS "--tls CA,CERT,KEY are the files of certificates"
#define SAID_DEVICES "devices of the job say what runs here: {name: a, host: HOST:PORT, threads: 8}"
#define SAID_NAMED "a job names its workers, and no worker a job: {name: a, host: HOST:PORT}"

const pen_text_word pen_cli_worker_words[] = {
    {"host", SAID_LISTEN},
    {"port", SAID_LISTEN},
    {"address", SAID_LISTEN},
    {"addr", SAID_LISTEN},
    {"bind*", SAID_LISTEN},
    {"cert*", SAID_TLS},
    {"key", SAID_TLS},
    {"key_file", SAID_TLS},
    {"keyfile", SAID_TLS},
    {"private_key", SAID_TLS},
    {"ca", SAID_TLS},
    {"ca_cert", SAID_TLS},
    {"cacert", SAID_TLS},
    {"ca_file", SAID_TLS},
    {"cafile", SAID_TLS},
    {"ssl*", SAID_TLS},
    {"name", SAID_DEVICES},
    {"kind", SAID_DEVICES},
    {"device*", SAID_DEVICES},
    {"*gpu*", SAID_DEVICES},
    {"*cpus", SAID_DEVICES},
    {"threads", SAID_DEVICES},
    {"nproc*", SAID_DEVICES},
    {"*rank", SAID_NAMED},
    {"master_*", SAID_NAMED},
    {"world_size", SAID_NAMED},
    {"rdzv_*", SAID_NAMED},
    {"nnodes", SAID_NAMED},
    {"coordinator", SAID_NAMED},
    {NULL, NULL},
};

#define SAID_DOORS "--http HOST:PORT and --grpc HOST:PORT say where it answers"

const pen_text_word pen_cli_serve_words[] = {
    {"host", SAID_DOORS},  {"port", SAID_DOORS},         {"address", SAID_DOORS},
    {"bind*", SAID_DOORS}, {"weights", SAID_PARAMETERS}, {"checkpoint*", SAID_PARAMETERS},
    {NULL, NULL},
};

#define SAID_ENDING                                                                                \
    "the ending of --output says it: FILE.onnx, .pt2, .safetensors, .keras, .h5, .pb"

const pen_text_word pen_cli_export_words[] = {
    {"format", SAID_ENDING},          {"type", SAID_ENDING},        {"to", SAID_ENDING},
    {"checkpoint*", SAID_PARAMETERS}, {"weights", SAID_PARAMETERS}, {NULL, NULL},
};

#define SAID_PARALLEL "--parallel N, or -j N, is how many run at once"

const pen_text_word pen_cli_sweep_words[] = {
    {"workers", SAID_PARALLEL},
    {"jobs", SAID_PARALLEL},
    {"n_jobs", SAID_PARALLEL},
    {"*concurren*", SAID_PARALLEL},
    {"*trials", "`grid` and `list` of the sweep say what is tried"},
    {"num_samples", "`grid` and `list` of the sweep say what is tried"},
    {NULL, NULL},
};
