#include "scheduler/launched/task_watch.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

#define WATCH_LOOK_SECONDS 0.25

struct pen_task_watch {
    const char *path;
    double seconds;
    int code;
    pen_thread *thread;
    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    uint32_t asked_count; // and not answered
    double since;         // the last answer, or the question behind it
    bool is_over;
};

static void watch_run(void *context) {
    pen_task_watch *watch = context;
    pen_mutex_lock(&watch->lock);
    while (!watch->is_over) {
        (void)pen_condition_wait_for(&watch->changed, &watch->lock, WATCH_LOOK_SECONDS);
        if (watch->is_over || watch->asked_count == 0) continue;
        if (pen_clock_seconds() < watch->since + watch->seconds) continue;
        pen_log(PEN_LOG_ERROR,
                "the folder '%s' has not answered for %.4g s: does the file system work that all "
                "tasks share?",
                watch->path, watch->seconds);
        _exit(watch->code);
    }
    pen_mutex_unlock(&watch->lock);
}

pen_status pen_task_watch_create(const char *path, double seconds, int code,
                                 pen_task_watch **out_watch) {
    pen_task_watch *watch = pen_memory_allocate(1, sizeof *watch);
    if (watch == NULL) return pen_error_out_of_memory();
    watch->path = path;
    watch->seconds = seconds;
    watch->code = code;
    pen_mutex_init(&watch->lock);
    pen_condition_init(&watch->changed);
    const pen_status status = pen_thread_create("task-watch", watch_run, watch, &watch->thread);
    if (status != PEN_OK) {
        pen_task_watch_destroy(watch);
        return status;
    }
    *out_watch = watch;
    return PEN_OK;
}

void pen_task_watch_ask(pen_task_watch *watch) {
    if (watch == NULL) return;
    pen_mutex_lock(&watch->lock);
    if (watch->asked_count++ == 0) watch->since = pen_clock_seconds();
    pen_mutex_unlock(&watch->lock);
}

void pen_task_watch_answer(pen_task_watch *watch) {
    if (watch == NULL) return;
    pen_mutex_lock(&watch->lock);
    watch->asked_count -= 1;
    watch->since = pen_clock_seconds();
    pen_mutex_unlock(&watch->lock);
}

void pen_task_watch_destroy(pen_task_watch *watch) {
    if (watch == NULL) return;
    pen_mutex_lock(&watch->lock);
    watch->is_over = true;
    pen_condition_signal(&watch->changed);
    pen_mutex_unlock(&watch->lock);
    pen_thread_join(watch->thread);
    pen_condition_deinit(&watch->changed);
    pen_mutex_deinit(&watch->lock);
    pen_memory_free(watch);
}
