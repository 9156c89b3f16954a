// Processes of this system, for finding out whether one that left a record is still alive.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_SYSTEM_H
#define PEN_SCHEDULER_LAUNCHED_TASK_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/launched/task_record.h"

// A name of the system as it runs now, in which numbers of processes are unlike: of its start and
// its namespace of processes.
void pen_task_system_name(char out_name[PEN_TASK_NODE_BYTES]);
// When a process was started, in ticks of the system; 0: there is none, or it has ended.
uint64_t pen_task_system_began(uint64_t process);
// Whether the process that was started then is alive.
bool pen_task_system_has(uint64_t process, uint64_t began);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_SYSTEM_H
