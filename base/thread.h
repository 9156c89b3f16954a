// Threads, locks and conditions, as far as loading data ahead needs them.
//
// A lock is a leaf: no callback runs under it. Locking cannot fail; failures that can only be our
// own mistakes are asserted.
#ifndef PEN_BASE_THREAD_H
#define PEN_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct pen_thread pen_thread;
typedef void (*pen_thread_fn)(void *context);

// Starts a thread that runs `run(context)`. `name` is what debuggers and top show, cut at 15
// bytes. UNAVAILABLE when the system has no thread to give, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_thread_create(const char *name, pen_thread_fn run, void *context,
                                           pen_thread **out_thread);

// Waits until the thread has returned, and releases it. Accepts NULL.
void pen_thread_join(pen_thread *thread);

typedef struct pen_mutex {
    pthread_mutex_t handle;
} pen_mutex;

void pen_mutex_init(pen_mutex *mutex);
void pen_mutex_deinit(pen_mutex *mutex);
void pen_mutex_lock(pen_mutex *mutex);
void pen_mutex_unlock(pen_mutex *mutex);

typedef struct pen_condition {
    pthread_cond_t handle;
} pen_condition;

void pen_condition_init(pen_condition *condition);
void pen_condition_deinit(pen_condition *condition);
// Releases `mutex`, waits, and takes it again. May wake for no reason: test in a loop.
void pen_condition_wait(pen_condition *condition, pen_mutex *mutex);
// The same, for `seconds` at most. False: they are over.
bool pen_condition_wait_for(pen_condition *condition, pen_mutex *mutex, double seconds);
void pen_condition_signal(pen_condition *condition);
void pen_condition_broadcast(pen_condition *condition);

#endif // PEN_BASE_THREAD_H
