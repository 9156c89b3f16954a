// What a task is told by whoever calls, and what the one that coordinates gets to work with.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_OPTIONS_H
#define PEN_SCHEDULER_LAUNCHED_TASK_OPTIONS_H

#include "scheduler/engine/engine.h"
#include "scheduler/launched/task_identity.h"
#include "scheduler/transport/transport.h"

// What who coordinates works with. Lent for the call.
typedef struct pen_task_work {
    const pen_cluster_task *tasks; // [task_count], as known when it began
    uint32_t task_count;
    const pen_engine_tasks *seats; // for the engine
    pen_transport_tls tls;         // all NULL: none
} pen_task_work;

typedef struct pen_task_options {
    const pen_task_identity *identity;
    const char *checkpoints; // folder that all tasks see
    const char *mirror;      // second folder of checkpoints; NULL: none
    const char *verb;        // starts of different verbs do not mix
    pen_transport_tls tls;   // all NULL: one is made, unless it is insecure
    bool is_insecure;
    const char *token_file; // as the job has it; NULL: none
    uint64_t memory_bytes;  // that this task may use, if less than it was granted; 0: that
    bool is_worker;         // this task never coordinates
    bool needs_all;         // tasks are waited for before it begins
    bool goes_without;      // those that do not come are lost, and no error
    double wait_seconds;    // for all tasks to come
    double lease_seconds;   // without a sign of life of who coordinates
    // Does the work of all, on the caller's thread.
    pen_status (*coordinate)(void *context, const pen_task_work *work);
    // The exit code that what coordinate returned stands for.
    int (*exit_code)(void *context, pen_status status);
    void *context;
} pen_task_options;

#endif // PEN_SCHEDULER_LAUNCHED_TASK_OPTIONS_H
