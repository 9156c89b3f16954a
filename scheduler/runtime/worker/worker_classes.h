// Whether the devices of a run may stand beside each other: those of one kind must identify
// themselves alike, since bits would differ between them.
//
// Threads: that of the run's life.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_CLASSES_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_CLASSES_H

#include "scheduler/runtime/worker/worker_run.h"

// INVALID_INPUT names two devices that do not, and what each lacks, such as a library that did not
// begin.
PEN_NODISCARD pen_status pen_worker_run_check_classes(const pen_worker_run *run);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_CLASSES_H
