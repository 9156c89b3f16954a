// What the verbs that train or serve do about signals, and where they leave dumps of their flight
// recorders.
//
// Dumps go to `flight` in the folder of checkpoints, else to $TMPDIR/penstock-flight-PID; the
// environment variable PENSTOCK_FLIGHT names another folder. Processes that are started from now on
// get it, so that theirs lie beside. Nothing is written before something fails, or SIGUSR1 comes.
//
// Threads: one, before others are started.
#ifndef PEN_CLI_SIGNALS_H
#define PEN_CLI_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// `checkpoints` is the folder of checkpoints; NULL: none. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_signals_prepare_flight(const char *checkpoints, pen_arena *arena);

// For a training, from its first step on: the first Ctrl-C or SIGTERM asks it to end after the step
// under way, the second ends the process at once. `is_kept`: there will be a checkpoint then.
void pen_signals_prepare_training(bool is_kept);

// Says after which step a training of one process stands, when somebody has asked (SIGUSR1). One
// that waits for others says more by itself (scheduler/runtime/coordinator/coordinator_question.c).
void pen_signals_answer(uint64_t step);

// Leaves dumps because of an error that is the run's, and not the user's; says where.
void pen_signals_dump(pen_status status);

#endif // PEN_CLI_SIGNALS_H
