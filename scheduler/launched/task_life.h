// The life of a task: one process of several that Slurm, MPI or Kubernetes started with the same
// command.
//
// Each task is a worker for its own devices. The lowest that is alive coordinates as well: it
// drives all workers, its own too, over links. When it is lost, the next takes over.
//
//   WAITING ──nobody coordinates, and no lower task is alive──► COORDINATING
//      │  ▲                                                        │   │
//      │  └────────────── another coordinates ─────────────────────┘   │
//      └──a record of the end──► over ◄──writes the record of the end──┘
//
// A task that is told to end (SIGTERM) leaves: who coordinates finishes its step, keeps a
// checkpoint, and, where all tasks were told, says that it is over, with code 6: started again, it
// goes on.
//
// Lifetime: for the length of pen_task_run. Threads: one; it starts others, which end before it
// returns.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_LIFE_H
#define PEN_SCHEDULER_LAUNCHED_TASK_LIFE_H

#include "scheduler/launched/task_options.h"

// Until the work of all is done. *out_code is the exit code of this task when it returns PEN_OK:
// what another ended with, which has been said.
//   INVALID_INPUT  two tasks are alike; the folder is another user's, or open to others
//   DEADLINE       nobody came to coordinate
//   CANCELLED      it was told to end
//   else           what coordinating ended with; NOT_FOUND, IO: the folder
PEN_NODISCARD pen_status pen_task_run(const pen_task_options *options, int *out_code);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_LIFE_H
