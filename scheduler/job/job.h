// The contract of jobs. A job is what a user asks for, read from one YAML file and the files that
// it names as its parts.
//
//   version: 1
//   model: {file: lenet.onnx}
//   data:
//     train: {format: idx, images: train-images.gz, labels: train-labels.gz}
//     eval: {format: idx, images: test-images.gz, labels: test-labels.gz}
//     normalize: {mean: 0.1307, std: 0.3081}
//   train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 128}
//   devices: [{name: a, threads: 2}, {name: b, host: 10.0.0.2:7070, memory: 4GiB}]
//   links: [{between: [a, b], bandwidth: 10Gbit/s, latency: 50us}]
//   placement: {objective: step_time, pin: [{nodes: "^/layer4/", to: b}]}
//   checkpoint: {dir: run1, every: 100 steps}
//   outputs: {export: trained.onnx}
//
// The job says what is wanted, and is checked as far as that can be done without looking anywhere
// else: no file but the YAML is opened. Every path is resolved against the folder of the job file,
// also those within parts. The keys, with ranges and help, are in job_table.c, cluster_spec.c and
// placement_spec.c; `penstock schema` prints them.
//
// Lifetime: a job lives in the arena it was read into.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_JOB_JOB_H
#define PEN_SCHEDULER_JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/quantity.h"
#include "base/libraries.h"
#include "base/option/option.h"
#include "base/precision.h"
#include "base/status.h"
#include "base/system/kernel_level.h"
#include "graph/import/import.h"
#include "partition/problem/stage_graph.h"
#include "partition/spec/cluster_spec.h"
#include "partition/strategies/placement_spec.h"
#include "scheduler/data/dataset.h"
#include "scheduler/job/job_data.h"
#include "scheduler/job/job_model.h"
#include "scheduler/job/job_train.h"
#include "scheduler/job/learning_rate.h"
#include "scheduler/job/loss_scale.h"

typedef enum pen_job_schedule {
    PEN_JOB_SCHEDULE_AUTO, // the fastest that fits
    PEN_JOB_SCHEDULE_GPIPE,
    PEN_JOB_SCHEDULE_1F1B,
    PEN_JOB_SCHEDULE_INTERLEAVED,
    PEN_JOB_SCHEDULE_ZERO_BUBBLE,
} pen_job_schedule;

// "auto", "gpipe", "1f1b", "interleaved", "zero_bubble", NULL: by the numbers above.
extern const char *const pen_job_schedule_names[];
const char *pen_job_schedule_name(pen_job_schedule schedule);

// How frames go between processes of one host; AUTO: through shared memory where they can.
typedef enum pen_job_transport { PEN_JOB_TRANSPORT_AUTO, PEN_JOB_TRANSPORT_GRPC } pen_job_transport;

typedef struct pen_job_pipeline {
    pen_job_schedule schedule;
    pen_recompute recompute;
    pen_exchange exchange;
    pen_job_transport transport;
    double time_limit_seconds;         // for the search of a schedule
    double rendezvous_timeout_seconds; // for all workers to be there
} pen_job_pipeline;

typedef struct pen_job_numerics {
    pen_kernel_level level;  // AUTO: that of the plan or checkpoint it goes on from, else the best
    pen_precision precision; // of operands of products
    pen_libraries libraries; // of NVIDIA's, by which GPUs do products
    pen_loss_scale_options loss_scale; // with FLOAT16
    bool has_loss_scale;               // it is written
} pen_job_numerics;

typedef struct pen_job_tls { // paths of PEM files; all NULL: none
    const char *ca;
    const char *cert;
    const char *key;
    const char *crl;              // NULL: no certificate is taken back
    pen_option_list coordinators; // const char *: names in their certificates; none: any
    pen_option_list workers;
} pen_job_tls;

typedef struct pen_job_checkpoint {
    const char *dir;      // NULL: none is written
    const char *mirror;   // folder that has each of them, too; NULL: none
    pen_interval every;   // and after the last step
    double mtbf_seconds;  // mean time between failures: one every sqrt(2 x cost of one x this)
                          // seconds of training (Young, Daly); 0: by `every`
    bool shared;          // all workers see the same folder; else each its own
    int64_t keep;         // checkpoints that stay
    double retry_seconds; // for which writing what is trained is tried again
} pen_job_checkpoint;

// What is done when a worker is lost.
typedef enum pen_job_on_loss {
    PEN_JOB_ON_LOSS_WAIT,   // for it to come back
    PEN_JOB_ON_LOSS_SPARE,  // a spare takes its place
    PEN_JOB_ON_LOSS_REPLAN, // its work is placed anew on the devices that are left
    PEN_JOB_ON_LOSS_STOP,   // the training ends
} pen_job_on_loss;

typedef struct pen_job_recovery {
    pen_job_on_loss on_loss;
    double grace_seconds;    // that a lost worker has to come back, before anything else is done
    double lease_seconds;    // without a word, after which a worker is lost
    double progress_seconds; // without progress; 0: ten planned steps, at least 20 s
    int64_t attempts;        // that may fail one after another without a step being done
    int64_t audit;     // steps, of every so manyth another worker computes a part again; 0: none
    bool across_kinds; // what was lost may be placed on devices of another kind
    pen_option_list spares; // const char *: where workers listen that no device names
} pen_job_recovery;

// A model that is served to requests.
typedef struct pen_job_serve {
    const char *name;        // NULL: that of the model's file
    int64_t max_batch;       // examples of a batch; 0: as many as train.batch
    int64_t small_batch;     // of one that few wait for; 0: none is smaller
    double max_wait_seconds; // of the oldest request, until a batch begins that is not full
    int64_t queue;           // requests that wait, at most
    double timeout_seconds;  // of a request
    uint64_t max_bytes;      // of a request
    int64_t connections;     // to a door, at a time
    const char *token;       // file with what callers must have; NULL: none
} pen_job_serve;

typedef struct pen_job {
    const char *file; // as the user named it
    int64_t version;
    pen_job_model model;
    pen_job_data data;
    pen_job_train train;
    pen_cluster_spec cluster; // `devices` and `links`, or those of `cluster`
    bool has_cluster;         // the key `cluster` was written
    pen_placement_spec placement;
    pen_job_pipeline pipeline;
    pen_job_numerics numerics;
    pen_job_tls tls;
    const char *token_file; // that workers of this host have in common with this job; NULL: none
    const char *costs;      // path of a cost table; NULL: none
    pen_job_evaluation evaluation; // while the training runs
    bool has_evaluation;           // there is one
    pen_job_adapt adapt;
    bool has_adapt;
    pen_job_checkpoint checkpoint;
    pen_job_recovery recovery;
    pen_job_serve serve;
    pen_job_outputs outputs;
    const pen_yaml_node *root;   // that the job was read from
    const char *const *settings; // [setting_count], that changed it: "train.batch=7"
    uint32_t setting_count;
    bool is_text;                    // it is in no file
    const pen_dataset_array *arrays; // [array_count], of the program that opened it
    uint32_t array_count;
    const pen_option_source *source; // for pen_job_blame
} pen_job;

// Where a job comes from.
typedef struct pen_job_origin {
    const char *path; // names it in messages, and paths in it are resolved beside it
    const char *text; // the job itself, in YAML, which outlives it; NULL: `path` is read
    const pen_dataset_array *arrays; // [array_count], for `format: arrays`; they outlive the job
    uint32_t array_count;
    // Values in the place of the job's, as pen_option_assign takes them, in order; they outlive it.
    const char *const *settings; // [setting_count]
    uint32_t setting_count;
    const pen_cluster_task *tasks; // [task_count], for devices `per: task`; they outlive the job
    uint32_t task_count;
    pen_job_tls tls; // where the job has none; it outlives the job
} pen_job_origin;

// The keys of a job file.
extern const pen_option_table pen_job_table;

// How the job's model is to be imported.
pen_import_options pen_job_import_options(const pen_job *job);

// Reads a job file. INVALID_INPUT with position, found and possible; NOT_FOUND, IO (the file or a
// part of it), OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_job_read(const char *path, pen_arena *arena, const pen_job **out_job);

// The same for a job that a program gives.
PEN_NODISCARD pen_status pen_job_open(const pen_job_origin *origin, pen_arena *arena,
                                      const pen_job **out_job);

// Reads a job from memory, opening no file: parts in files of their own are INVALID_INPUT. `path`
// names it in messages, and paths are resolved beside it.
PEN_NODISCARD pen_status pen_job_parse(const char *path, const char *bytes, size_t length,
                                       pen_arena *arena, const pen_job **out_job);

// Gives an error the position at which `*field`, a field within the job, was written:
// pen_job_blame(job, &job->model.file, status).
PEN_NODISCARD pen_status pen_job_blame(const pen_job *job, const void *field, pen_status status);

// What of a dataset an error is about.
typedef enum pen_job_data_part {
    PEN_JOB_DATA_WHOLE,
    PEN_JOB_DATA_INPUTS,
    PEN_JOB_DATA_LABELS,
} pen_job_data_part;

// The same for the dataset that is trained or evaluated on.
PEN_NODISCARD pen_status pen_job_blame_data(const pen_job *job, pen_dataset_part part,
                                            pen_job_data_part what, pen_status status);

// The dataset that is trained or evaluated on: evaluation without one of its own takes what is held
// out of the other.
const pen_job_dataset *pen_job_find_dataset(const pen_job *job, pen_dataset_part part);

// The labels of a dataset that have names, of pen_job_array; none where it has one without.
const pen_option_list *pen_job_dataset_labels(const pen_job_dataset *dataset);

// The options of the dataset to train on, or to evaluate on: `eval`, else what is held out of
// `train`. Borrows the job's memory. NOT_FOUND when the job has none; OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_job_get_dataset(const pen_job *job, pen_dataset_part part,
                                             pen_arena *arena, pen_dataset_options *out_options);

// Of these only what is done to inputs, whichever they are: normalization and shape.
void pen_job_get_conversion(const pen_job *job, pen_dataset_options *out_options);

// Opens that dataset. Errors have a position. As pen_job_get_dataset and pen_dataset_open.
PEN_NODISCARD pen_status pen_job_open_dataset(const pen_job *job, pen_dataset_part part,
                                              pen_arena *arena, pen_dataset **out_dataset);

// Whether, and how, lanes go ahead without each other.
pen_asynchrony pen_job_get_asynchrony(const pen_job *job);
// "async, staleness 3, compensation adaptive, lambda 2"; "" of lanes that wait. Returns out_text.
#define PEN_JOB_CONSISTENCY_BYTES 96
const char *pen_job_format_consistency(const pen_job *job,
                                       char out_text[PEN_JOB_CONSISTENCY_BYTES]);

// The learning rate, where an epoch has `epoch_steps` steps. INVALID_INPUT
PEN_NODISCARD pen_status pen_job_get_learning_rate(const pen_job *job, uint64_t epoch_steps,
                                                   pen_learning_rate_options *out_options);
// What the optimizer keeps an average with.
pen_optimizer_average pen_job_get_average(const pen_job *job, uint64_t epoch_steps);

// Steps of the whole training: epochs, or `steps` when that is less.
uint64_t pen_job_get_step_count(const pen_job *job, uint64_t epoch_steps);

#endif // PEN_SCHEDULER_JOB_JOB_H
