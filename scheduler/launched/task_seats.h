// What tasks say of themselves, for who coordinates: where they are, and what they may use.
//
// Lifetime: in the arena it was made with.
// Threads:  one.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_SEATS_H
#define PEN_SCHEDULER_LAUNCHED_TASK_SEATS_H

#include "scheduler/engine/engine.h"
#include "scheduler/launched/task_folder.h"

typedef struct pen_task_seats {
    const pen_task_folder *folder;
    pen_arena *arena;
    uint32_t count;
    pen_task_record *records; // [count]; incarnation 0: not there yet
    pen_cluster_task *tasks;  // [count]
    double looked_at;
    pen_engine_tasks of_engine;
} pen_task_seats;

// `waited_since`: seconds of the clock. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_task_seats_new(const pen_task_folder *folder, uint32_t count,
                                            double waited_since, pen_arena *arena,
                                            pen_task_seats **out_seats);
// Reads the records, at most a few times a second.
void pen_task_seats_look(pen_task_seats *seats);
// How many tasks have not said anything yet; *out_first is the first of them.
uint32_t pen_task_seats_missing(const pen_task_seats *seats, uint32_t *out_first);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_SEATS_H
