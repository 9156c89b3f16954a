// The runs of a sweep, each a process of this command: some at once, in order.
//
// A run ends with whoever started it: children hear SIGTERM when this process is gone, and keep a
// checkpoint then, as when it is asked to stop.
//
// Threads: one.
#ifndef PEN_CLI_SWEEP_CREW_H
#define PEN_CLI_SWEEP_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_sweep_work {
    const char *name;       // in messages
    const char *messages;   // file that gets what the run says on both outputs
    char *const *arguments; // of the command, ended by NULL; the first is its name
    int code;               // its exit code, when it has ended; 128 and more: a signal's
    bool is_ended;
} pen_sweep_work;

// Runs all, `parallel` at once, and says when one begins and ends. Returns when all have ended;
// after the wish to stop, when those that ran have. IO: none can be started
PEN_NODISCARD pen_status pen_sweep_crew_run(pen_sweep_work *works, uint32_t count,
                                            uint32_t parallel);

#endif // PEN_CLI_SWEEP_CREW_H
