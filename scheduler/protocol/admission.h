// Admission of a run table: the cores of the coordinator and of all workers run it, on a network
// without delay and with tasks that take no time, before it may start.
//
// A device runs its tasks in a fixed order and waits for frames and places; so whether a table
// finishes does not depend on when things happen, and one run says it for all.
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_ADMISSION_H
#define PEN_SCHEDULER_PROTOCOL_ADMISSION_H

#include "base/status.h"
#include "scheduler/protocol/run_table.h"

// How messages call things. Members may be NULL: numbers.
typedef struct pen_admission_names {
    const char *const *devices;         // [device_count]
    const char *const *const *channels; // [form_count][channel_count] the values that they carry
} pen_admission_names;

// Runs rounds of every form: whole ones, one after another, and short ones.
//   INVALID_INPUT  it does not finish; names the circle of devices that wait for each other
//   CORRUPT        what pen_run_table_check says
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_table_admit(const pen_run_table *table,
                                             const pen_admission_names *names);

#endif // PEN_SCHEDULER_PROTOCOL_ADMISSION_H
