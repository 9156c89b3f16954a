// Which task of a start this process is, as whoever started it says in the environment.
//
// Threads: one, before the environment is changed.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_IDENTITY_H
#define PEN_SCHEDULER_LAUNCHED_TASK_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_task_identity {
    const char *starter; // "Slurm", "MPI", "Kubernetes", "the environment"
    uint32_t rank;       // below size
    uint32_t size;
    const char *start; // a name that all tasks of this start have, and no other; NULL: not known
    const char *node;  // for messages: "node07"
    bool
        is_in_container; // limits of the process are its own, and not shared by the tasks of a node
} pen_task_identity;

// `size` is what the command line says, 0: nothing. Names what was found and what is possible:
// INVALID_INPUT; NOT_FOUND: nothing in the environment says that this is a task.
PEN_NODISCARD pen_status pen_task_identity_find(uint32_t size, pen_arena *arena,
                                                pen_task_identity *out_identity);

// Whether this looks like one of several tasks: for who did not say --launched. The name of the
// variable that says so; NULL: it does not.
const char *pen_task_identity_hint(void);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_IDENTITY_H
