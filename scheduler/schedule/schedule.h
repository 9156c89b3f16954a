// The contract of this folder: generators, one a file, listed in schedule_list.c.
//
// A schedule is data: for each device, the order in which it runs its tasks.
//
// A task is a stage's work of one kind for one microbatch, or for one phase of the updates. Each
// stage has a forward task for every microbatch; if it has a backward pass, for every microbatch a
// backward task, or for every microbatch its two halves (not if it is recomputed); and if it has
// updates, an update task of every phase. A stage's updates come after all else of that
// stage, in the order of phases.
//
// Who waits for what:
//   forward          for the forward tasks of the stages that feed it
//   backward,        for its own forward task, and for the backward or backward_input tasks of the
//   backward_input   stages that send it gradients
//   backward_weight  for its own backward_input
//   update           for all forward tasks of all stages, whose losses must be finite; of phase 0
//   for
//                    all the backward and backward_weight tasks of its stage; of a higher phase for
//                    its stage's update of the phase below, and those of the stages that send it
//                    values once a step
//
// Stages, devices and microbatches count from 0, in messages too.
//
// Lifetime: a schedule lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/task.h"
#include "partition/problem/stage_graph.h"

typedef struct pen_schedule {
    uint32_t device_count;
    uint32_t task_count;
    uint32_t *first_task; // [device_count + 1], device d runs tasks first_task[d] up to, without,
    pen_task *tasks;      // first_task[d + 1], in this order; [task_count]
} pen_schedule;

typedef struct pen_schedule_generator {
    const char *name;    // as in a job and on the command line: "1f1b"
    const char *summary; // one line of --help

    // A schedule of `graph` that passes the check. Pure: equal graphs give equal schedules.
    //   INVALID_INPUT  the stage graph contradicts itself
    //   DOES_NOT_FIT   this generator knows no order that keeps to the devices' memory
    //   OUT_OF_MEMORY
    PEN_NODISCARD pen_status (*generate)(const pen_stage_graph *graph, pen_arena *arena,
                                         const pen_schedule **out_schedule);
} pen_schedule_generator;

// The generators, ended by NULL, in the order of --help.
extern const pen_schedule_generator *const pen_schedule_generators[];

// Finds a generator by name. NOT_FOUND lists the names there are. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_generator_find(const char *name, pen_arena *arena,
                                                     const pen_schedule_generator **out_generator);

// What a task takes. The task's stage is one of the graph's.
double pen_task_seconds(const pen_stage_graph *graph, pen_task task);

// Which stages' backward halves are tasks of their own: out_halved [stage_count].
void pen_schedule_find_halved(const pen_schedule *schedule, uint32_t stage_count, bool *out_halved);

// Room for any task's text: "backward of stage 3, microbatch 17".
#define PEN_TASK_TEXT_BYTES 80
const char *pen_task_format(pen_task task, char out_text[PEN_TASK_TEXT_BYTES]);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_H
