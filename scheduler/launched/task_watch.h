// Whether the folder of a start answers. A network folder that hangs holds whoever asks it, so a
// thread of its own looks, and ends the process: others find out by themselves.
//
// Threads: any; create and destroy by one.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_WATCH_H
#define PEN_SCHEDULER_LAUNCHED_TASK_WATCH_H

#include "base/status.h"

typedef struct pen_task_watch pen_task_watch;

// Where the folder at `path`, which outlives it, does not answer for `seconds`, an error is logged,
// and the process ends with `code`. OUT_OF_MEMORY; UNAVAILABLE: no thread
PEN_NODISCARD pen_status pen_task_watch_create(const char *path, double seconds, int code,
                                               pen_task_watch **out_watch);
// Around each question. NULL: nobody looks.
void pen_task_watch_ask(pen_task_watch *watch);
void pen_task_watch_answer(pen_task_watch *watch);
// Accepts NULL.
void pen_task_watch_destroy(pen_task_watch *watch);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_WATCH_H
