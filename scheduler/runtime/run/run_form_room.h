// Whether a form's channels have places enough: its tasks gone through in no time, frames moved at
// once.
//
// Threads: any.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_FORM_ROOM_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_FORM_ROOM_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/protocol/run_table.h"

// Goes through one round. *out_is_stuck: some task can never start; then is_blocked
// [channel_count] says which channels' places such tasks wait for, else it is all false.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_form_find_blocked(const pen_run_form *form, uint32_t device_count,
                                                   pen_arena *arena, bool *is_blocked,
                                                   bool *out_is_stuck);

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_FORM_ROOM_H
