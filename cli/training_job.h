// What the verbs that run a model have in common: the job and where parameters come from.
#ifndef PEN_CLI_TRAINING_JOB_H
#define PEN_CLI_TRAINING_JOB_H

#include "cli/command.h"
#include "partition/plan/plan.h"
#include "scheduler/data/dataset.h"
#include "scheduler/inference/inference.h"
#include "scheduler/job/job.h"
#include "scheduler/runner/runner.h"

// The file that `train` leaves in the job's outputs folder, and the others start from. NULL when
// the job names no folder. Lives in `arena`.
PEN_NODISCARD pen_status pen_job_parameters_path(const pen_job *job, pen_arena *arena,
                                                 const char **out_path);

// Before work begins: whether the file that an option names can be written. A failure is a wrong
// command line.
PEN_NODISCARD pen_status pen_command_check_output(pen_command_context *context, const char *path);

// And whether it is none that the job's model is read from.
PEN_NODISCARD pen_status pen_command_check_model_output(pen_command_context *context,
                                                        const pen_job *job, const char *option,
                                                        const char *path);

// The same for the job's outputs, whose folder is made. Errors have a position.
PEN_NODISCARD pen_status pen_job_prepare_outputs(const pen_job *job, pen_arena *arena);

// The same for a folder that files will be written to.
PEN_NODISCARD pen_status pen_job_check_folder(const char *folder, pen_arena *arena);
// The same for the job's folder of checkpoints and its mirror, with their places in the job; of the
// two one may be away, which costs a warning.
PEN_NODISCARD pen_status pen_job_check_checkpoint_folders(const pen_job *job, pen_arena *arena);

// Whether a file is a plan, and no job: it lists stages. NOT_FOUND, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_command_is_plan(const char *path, pen_arena *arena, bool *out_is_plan);

// What is known of the tasks that devices `per: task` are in.
typedef struct pen_command_tasks {
    const pen_cluster_task *items; // [count]
    uint32_t count;
    pen_job_tls tls;               // where the job has none
    const pen_engine_tasks *seats; // for the engine; NULL: nothing runs in them
} pen_command_tasks;
const pen_engine_tasks *pen_command_seats(const pen_command_context *context);

// Reads a job with what --set says in place of its values, and with the context's tasks.
PEN_NODISCARD pen_status pen_command_open_job(pen_command_context *context, const char *path,
                                              const pen_job **out_job);

// Reads the job at `path` as it was when the plan was made of it.
PEN_NODISCARD pen_status pen_command_open_planned(pen_command_context *context, const char *path,
                                                  const pen_plan *plan, const pen_job **out_job);

// A job, or a plan with the job that it names; *out_plan is NULL for a job. What training accepts.
PEN_NODISCARD pen_status pen_command_read_job(pen_command_context *context, const char *path,
                                              const pen_job **out_job, const pen_plan **out_plan);

// Refuses --set beside what is no job.
PEN_NODISCARD pen_status pen_command_refuse_settings(pen_command_context *context, const char *why);

// Whether a file is a job, and no model of layers, which is YAML too: it names its model.
PEN_NODISCARD pen_status pen_command_is_job(const char *path, pen_arena *arena, bool *out_is_job);

// Tells the user of devices of this process with many more threads than it may use cores; workers
// say for themselves how many theirs may.
PEN_NODISCARD pen_status pen_command_warn_threads(const pen_command_context *context,
                                                  const pen_job *job);

// Tells the user of files that a dataset left out.
void pen_command_warn_skipped(const pen_dataset_info *info);

// The parameters that the other verbs start from: the file given, else the one that training left,
// else NULL, of which the user is warned: the model's own.
PEN_NODISCARD pen_status pen_job_find_parameters(const pen_job *job, const char *given,
                                                 pen_arena *arena, const char **out_path);

// A model with trained parameters and a dataset, to evaluate or predict with.
typedef struct pen_job_session {
    const pen_job *job;
    pen_dataset_part part; // what the dataset is
    pen_dataset *dataset;
    pen_runner *runner;         // to sample with, of one device; else NULL
    pen_inference *inference;   // to evaluate or predict with, on all devices of the job; else NULL
    const char *parameters;     // the file they came from; NULL: the model's own
    const pen_program *program; // of one of its forms
} pen_job_session;

typedef struct pen_session_options {
    const char *job_path;
    const char *parameters; // NULL: those in the outputs folder if there, else the model's own
    const char *output;     // what --output names, which may be none of the model's files; or NULL
    pen_compile_mode mode;  // EVALUATE or PREDICT; where it samples also PREFILL
    bool samples;           // on one device of this process, by a runner, one example at a time
    const char *sampled;    // the output that this is of; NULL: the first
    uint64_t batch_size;    // 0: the job's
    bool insecure;          // without TLS over networks
    bool may_take_training; // without data for evaluation: that of training, for what it is like
} pen_session_options;

// Reads the job, opens its data, compiles, starts the devices, and loads parameters.
PEN_NODISCARD pen_status pen_session_open(pen_command_context *context,
                                          const pen_session_options *options,
                                          pen_job_session *out_session);
// Examples at a time: what was asked for, else the job's; never more than there are.
uint64_t pen_session_batch(const pen_job_session *session, const pen_session_options *options);
// Accepts a session that was never opened (all zero).
void pen_session_close(pen_job_session *session);

#endif // PEN_CLI_TRAINING_JOB_H
