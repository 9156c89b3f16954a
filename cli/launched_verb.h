// `--launched`: a verb that runs in each task of a start by Slurm, MPI or Kubernetes.
//
// One task does the verb's work, over the devices of all; the others serve it
// (scheduler/launched/task_life.h).
#ifndef PEN_CLI_LAUNCHED_VERB_H
#define PEN_CLI_LAUNCHED_VERB_H

#include "cli/command.h"
#include "partition/spec/cluster_spec.h"

// As a verb's options have it.
typedef struct pen_cli_launched {
    bool is_launched;
    int64_t tasks; // 0: not said
} pen_cli_launched;

#define PEN_CLI_LAUNCHED_OPTIONS(type, member)                                                     \
    PEN_CLI_FLAG(0, "launched", type, member.is_launched,                                          \
                 "this is one of the tasks that Slurm, MPI or Kubernetes started: they work "      \
                 "together"),                                                                      \
        PEN_CLI_VALUE(0, "tasks", "N", INTEGER, type, member.tasks,                                \
                      "with --launched: how many tasks there are, where the environment does not " \
                      "say it",                                                                    \
                      PEN_OPTION_RANGE(1, PEN_CLUSTER_DEVICE_LIMIT))

// Does a verb's work. The context says what is known of tasks.
typedef pen_status (*pen_launched_work_fn)(pen_command_context *context, const void *options);

typedef struct pen_launched_verb {
    const char *start;       // of which verb the tasks are: "train"
    const char *job;         // path
    const char *checkpoints; // that the command line says; NULL: as the job says
    bool is_insecure;
    uint64_t memory_bytes;     // that this task may use; 0: what it was granted
    bool is_alone;             // one process does the work, the others only take over from it
    pen_launched_work_fn work; // NULL: a worker alone
} pen_launched_verb;

// Runs the verb, in tasks where it was asked for, else in this process alone. As
// pen_task_run, and what the work returns.
PEN_NODISCARD pen_status pen_launched_verb_run(pen_command_context *context,
                                               const pen_cli_launched *launched,
                                               const pen_launched_verb *verb, const void *options);

#endif // PEN_CLI_LAUNCHED_VERB_H
