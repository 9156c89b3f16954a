// Coordinating, and what is to be done beside it.

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/failpoint.h"
#include "base/system/interrupt.h"
#include "scheduler/launched/task_inside.h"

#define LEAD_BEATS 8          // in a lease
#define LEAD_SAY_SECONDS 5.0  // after which it is said who is waited for
#define LEAD_TOLD_SECONDS 1.0 // for others to say that they were told to end, too

// Signs of life, as long as nobody else has taken over. False: somebody has.
static bool lead_beat(task_life *task, pen_task_record *record) {
    pen_task_record now;
    bool is_there;
    pen_status status =
        pen_task_folder_read(&task->folder, PEN_TASK_FILE_COORDINATOR, &now, &is_there);
    if (status == PEN_OK && is_there && now.incarnation != task->own.incarnation) return false;
    record->beat += 1;
    if (status == PEN_OK) {
        status = pen_task_folder_write(&task->folder, PEN_TASK_FILE_COORDINATOR, record);
    }
    // workers that are served know that this process is alive
    pen_status_ignore(status, "tried again in a moment");
    return true;
}

// Another task cannot go on: what is under way here is waited for by nobody.
static void lead_end_with(task_life *task) {
    bool is_over;
    int code;
    const pen_status status = pen_task_read_end(task, &is_over, &code);
    pen_status_ignore(status, "read again in a moment");
    if (status == PEN_OK && is_over) _exit(code);
}

static void lead_say_told(task_life *task) {
    if (!pen_interrupt_requested() || task->own.is_leaving) return;
    task->own.is_leaving = true;
    pen_status_ignore(pen_task_publish(task), "the others wait for the end instead");
}

// On a thread of its own, so that a long computation looks like life.
static void lead_keep_beating(void *context) {
    task_life *task = context;
    const double pause = task->options->lease_seconds / LEAD_BEATS;
    pen_task_record record = task->own;
    double beat_at = 0;
    bool is_mine = true;
    pen_mutex_lock(&task->lock);
    while (!task->is_done) {
        pen_mutex_unlock(&task->lock);
        if (is_mine && pen_clock_seconds() >= beat_at + pause) {
            is_mine = lead_beat(task, &record);
            beat_at = pen_clock_seconds();
        }
        lead_end_with(task);
        lead_say_told(task);
        pen_mutex_lock(&task->lock);
        if (task->is_done) break;
        (void)pen_condition_wait_for(&task->changed, &task->lock, LIFE_POLL_SECONDS);
    }
    pen_mutex_unlock(&task->lock);
}

static void lead_stop_beating(task_life *task) {
    pen_mutex_lock(&task->lock);
    task->is_done = true;
    pen_condition_broadcast(&task->changed);
    pen_mutex_unlock(&task->lock);
    pen_thread_join(task->beat);
    task->beat = NULL;
}

static pen_status lead_refuse_missing(const task_life *task, uint32_t missing, uint32_t first) {
    return pen_error(
        PEN_UNAVAILABLE,
        "%u of %u tasks, task %u first, have not come within %.0f s "
        "(pipeline.rendezvous_timeout): nothing of them is in %s; is it one folder for "
        "all nodes?",
        missing, task->options->identity->size, first, task->options->wait_seconds,
        task->folder.path);
}

static bool lead_do_all_answer(const pen_task_seats *seats) {
    for (uint32_t r = 0; r < seats->count; r++) {
        if (!pen_task_answers(&seats->records[r])) return false;
    }
    return true;
}

// Waits until all tasks have said where they are, in this start. Who has not when the time is over
// is lost, where the job goes on without.
static pen_status lead_gather(task_life *task, pen_task_seats *seats) {
    const double deadline = task->began + task->options->wait_seconds;
    const double began = pen_clock_seconds();
    bool is_said = false;
    for (;;) {
        uint32_t first = 0;
        pen_task_seats_look(seats);
        const uint32_t missing = pen_task_seats_missing(seats, &first);
        const double now = pen_clock_seconds();
        if (missing == 0 &&
            (now >= task->began + LIFE_START_SECONDS || lead_do_all_answer(seats))) {
            break;
        }
        if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "told to end meanwhile");
        if (now >= deadline && !task->options->goes_without) {
            return lead_refuse_missing(task, missing, first);
        }
        if (now >= deadline) break;
        if (!is_said && now >= began + LEAD_SAY_SECONDS) {
            is_said = true;
            pen_log(PEN_LOG_NOTE, "waiting for %u of %u tasks, task %u first: nothing in %s yet",
                    missing, seats->count, first, task->folder.path);
        }
        pen_clock_pause(LIFE_LOOK_SECONDS);
    }
    (void)PEN_FAILPOINT("task.gathered");
    return PEN_OK;
}

static pen_status lead_work(task_life *task) {
    const pen_task_options *options = task->options;
    pen_task_seats *seats;
    PEN_TRY(pen_task_seats_new(&task->folder, options->identity->size, task->began, task->arena,
                               &seats));
    if (options->needs_all) PEN_TRY(lead_gather(task, seats));
    const pen_task_work work = {.tasks = seats->tasks,
                                .task_count = seats->count,
                                .seats = &seats->of_engine,
                                .tls = task->tls};
    return options->coordinate(options->context, &work);
}

// Whether all tasks that are alive were told to end, so that nobody takes over.
static bool lead_are_all_told(task_life *task) {
    const double deadline = pen_clock_seconds() + LEAD_TOLD_SECONDS;
    bool are_all = false;
    while (!are_all && pen_clock_seconds() < deadline) {
        are_all = true;
        for (uint32_t r = 0; r < task->own.size && are_all; r++) {
            char name[PEN_TASK_FILE_BYTES];
            pen_task_record record;
            bool is_there;
            const pen_status status = pen_task_folder_read(
                &task->folder, pen_task_folder_name(r, name), &record, &is_there);
            const bool is_read = status == PEN_OK && is_there;
            pen_status_ignore(status, "read again");
            are_all =
                r == task->own.rank || !is_read || record.is_leaving || !pen_task_answers(&record);
        }
        if (!are_all) pen_clock_pause(LIFE_LOOK_SECONDS);
    }
    return are_all;
}

// Told to end: the checkpoint is kept by now. With the others, that is the end, which may be gone
// on from; alone, they go on.
static pen_status lead_leave(task_life *task, pen_status take_status) {
    const bool are_all = lead_are_all_told(task);
    if (take_status == PEN_OK) {
        take_status = pen_error(PEN_CANCELLED, "told to end (a signal); %s",
                                are_all ? "started again, it goes on" : "the other tasks go on");
    }
    if (are_all) {
        const int code = task->options->exit_code(task->options->context, take_status);
        pen_task_write_end(task, code, take_status);
    }
    return take_status;
}

static bool lead_is_superseded(task_life *task, pen_status status) {
    pen_task_record now;
    bool is_there;
    if (pen_status_get_code(status) != PEN_CANCELLED || pen_interrupt_requested()) return false;
    const pen_status read =
        pen_task_folder_read(&task->folder, PEN_TASK_FILE_COORDINATOR, &now, &is_there);
    const bool is_other = read == PEN_OK && is_there && now.incarnation != task->own.incarnation;
    pen_status_ignore(read, "then nobody else is known");
    return is_other;
}

// The end is recorded whatever it is, but for being superseded, and for leaving alone: then others
// go on.
pen_status pen_task_lead(task_life *task, bool *out_is_superseded) {
    const pen_task_options *options = task->options;
    pen_task_record record = task->own;
    *out_is_superseded = false;
    PEN_TRY(pen_task_folder_write(&task->folder, PEN_TASK_FILE_COORDINATOR, &record));
    (void)PEN_FAILPOINT("task.coordinates");
    task->is_done = false;
    PEN_TRY(pen_thread_create("task", lead_keep_beating, task, &task->beat));
    pen_status status = lead_work(task);
    lead_stop_beating(task);
    if (lead_is_superseded(task, status)) {
        pen_log(PEN_LOG_WARNING, "another task coordinates now: %s", pen_status_message(status));
        pen_status_ignore(status, "said; this task is a worker from now on");
        *out_is_superseded = true;
        return PEN_OK;
    }
    if (pen_interrupt_requested()) return lead_leave(task, status);
    pen_task_write_end(task, options->exit_code(options->context, status), status);
    return status;
}
