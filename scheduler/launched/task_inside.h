// The contract of task_life.c, task_lead.c and task_leader.c of this folder.
//
// The inside of a task's life, for its files.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_INSIDE_H
#define PEN_SCHEDULER_LAUNCHED_TASK_INSIDE_H

#include "base/thread.h"
#include "scheduler/launched/task_folder.h"
#include "scheduler/launched/task_options.h"
#include "scheduler/launched/task_seats.h"
#include "scheduler/runtime/worker/worker.h"

// Who coordinates, as seen from here.
typedef struct task_leader {
    bool is_there;
    pen_task_record record;
    double seen_at; // when its beat was last another one
    double asked_at;
    uint32_t refusal_count; // in a row
} task_leader;

typedef struct task_life {
    const pen_task_options *options;
    pen_arena *arena;
    pen_task_folder folder;
    pen_task_watch *watch;
    pen_transport_tls tls;
    pen_worker *worker;
    pen_task_record own;
    double began;
    uint64_t earlier_end; // of the record of an end that was there before; 0: none
    task_leader leader;
    double quiet_since; // since when nobody coordinates
    double own_read_at;
    double told_at; // when this task was told to end; 0: it was not

    // while it coordinates
    pen_thread *beat;
    pen_mutex lock;
    pen_condition changed;
    bool is_done; // guarded by lock
} task_life;

#define LIFE_POLL_SECONDS 0.2
#define LIFE_LOOK_SECONDS 0.05 // between two looks at other tasks that are waited for
#define LIFE_START_SECONDS 2.0 // in which a record without a process may be of an earlier start

// Looks whether the end was recorded; what another task ended with is said. *out_is_over
PEN_NODISCARD pen_status pen_task_read_end(task_life *task, bool *out_is_over, int *out_code);
// Records the end. What goes wrong is said: the others find out by themselves then.
void pen_task_write_end(task_life *task, int code, pen_status status);
// Writes the own record anew.
PEN_NODISCARD pen_status pen_task_publish(task_life *task);

// Finds out whether somebody coordinates and lives (task_leader.c).
PEN_NODISCARD pen_status pen_task_look(task_life *task, bool *out_is_led);
// Nobody does: whether it is this task's turn.
PEN_NODISCARD pen_status pen_task_is_next(task_life *task, bool *out_is_next);
// Whether a living process of this rank, other than this one, is there (`record` is its). It is
// given a moment to end.
bool pen_task_is_alive(const pen_task_record *record);
// Whether a task answers.
bool pen_task_answers(const pen_task_record *record);

// Coordinates (life_lead.c). *out_is_superseded: another does now.
PEN_NODISCARD pen_status pen_task_lead(task_life *task, bool *out_is_superseded);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_INSIDE_H
