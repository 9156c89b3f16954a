// Which program is run as a worker of this machine: the installed `penstock`, and never the program
// that uses the library, which would only do its own work once more.
//
// Threads: any; pen_worker_program_use_self before there are others.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_WORKER_PROGRAM_H
#define PEN_SCHEDULER_RUNTIME_RUN_WORKER_PROGRAM_H

#include "base/arena.h"
#include "base/status.h"

#define PEN_WORKER_PROGRAM_VARIABLE "PENSTOCK_WORKER"
// Set for the processes that are started: one that has it is a worker, or should have been.
#define PEN_WORKER_PROGRAM_MARK "PENSTOCK_IS_WORKER"

typedef struct pen_worker_program {
    const char *path;   // what is started
    const char *source; // why this one: "on PATH", "given by PENSTOCK_WORKER"
} pen_worker_program;

// Says that this process is the command `penstock`, which can be its own worker.
void pen_worker_program_use_self(void);

// The first of: `given` (NULL or "": none), the environment's PENSTOCK_WORKER, this program where
// it is the command, `penstock` beside the library or in its neighbour `bin`, `penstock` on PATH.
// What is given is taken or refused; those that are looked for must be programs, and not this one.
//   UNAVAILABLE  there is none, or the one that is given is no program, or this one; or this
//                process was started as a worker itself
PEN_NODISCARD pen_status pen_worker_program_find(const char *given, pen_arena *arena,
                                                 pen_worker_program *out_program);

// The file that this library's code is in: "/usr/lib/libpenstock.so.0", or the command.
PEN_NODISCARD pen_status pen_worker_program_library(pen_arena *arena, const char **out_path);

#endif // PEN_SCHEDULER_RUNTIME_RUN_WORKER_PROGRAM_H
