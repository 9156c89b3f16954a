#include "base/thread.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/memory.h"

#define THREAD_NAME_BYTES 16 // what the kernel keeps, with the ending 0

struct pen_thread {
    pthread_t handle;
    pen_thread_fn run;
    void *context;
};

static void *thread_main(void *argument) {
    const pen_thread *thread = argument;
    thread->run(thread->context);
    return NULL;
}

pen_status pen_thread_create(const char *name, pen_thread_fn run, void *context,
                             pen_thread **out_thread) {
    pen_thread *thread = pen_memory_allocate(1, sizeof *thread);
    if (thread == NULL) return pen_error_out_of_memory();
    thread->run = run;
    thread->context = context;
    if (pthread_create(&thread->handle, NULL, thread_main, thread) != 0) {
        pen_memory_free(thread);
        return pen_error(PEN_UNAVAILABLE, "the system refuses to start the thread '%s'", name);
    }
    char short_name[THREAD_NAME_BYTES];
    snprintf(short_name, sizeof short_name, "%s", name);
    (void)pthread_setname_np(thread->handle, short_name); // only for the eye
    *out_thread = thread;
    return PEN_OK;
}

void pen_thread_join(pen_thread *thread) {
    if (thread == NULL) return;
    PEN_ASSERT(pthread_join(thread->handle, NULL) == 0);
    pen_memory_free(thread);
}

void pen_mutex_init(pen_mutex *mutex) {
    PEN_ASSERT(pthread_mutex_init(&mutex->handle, NULL) == 0);
}

void pen_mutex_deinit(pen_mutex *mutex) {
    PEN_ASSERT(pthread_mutex_destroy(&mutex->handle) == 0);
}

void pen_mutex_lock(pen_mutex *mutex) {
    PEN_ASSERT(pthread_mutex_lock(&mutex->handle) == 0);
}

void pen_mutex_unlock(pen_mutex *mutex) {
    PEN_ASSERT(pthread_mutex_unlock(&mutex->handle) == 0);
}

void pen_condition_init(pen_condition *condition) {
    pthread_condattr_t attributes;
    PEN_ASSERT(pthread_condattr_init(&attributes) == 0);
    PEN_ASSERT(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    PEN_ASSERT(pthread_cond_init(&condition->handle, &attributes) == 0);
    PEN_ASSERT(pthread_condattr_destroy(&attributes) == 0);
}

void pen_condition_deinit(pen_condition *condition) {
    PEN_ASSERT(pthread_cond_destroy(&condition->handle) == 0);
}

void pen_condition_wait(pen_condition *condition, pen_mutex *mutex) {
    PEN_ASSERT(pthread_cond_wait(&condition->handle, &mutex->handle) == 0);
}

bool pen_condition_wait_for(pen_condition *condition, pen_mutex *mutex, double seconds) {
    struct timespec until;
    PEN_ASSERT(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    const double whole = floor(seconds);
    until.tv_sec += (time_t)whole;
    until.tv_nsec += (long)((seconds - whole) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec += 1;
    }
    const int code = pthread_cond_timedwait(&condition->handle, &mutex->handle, &until);
    PEN_ASSERT(code == 0 || code == ETIMEDOUT);
    return code == 0;
}

void pen_condition_signal(pen_condition *condition) {
    PEN_ASSERT(pthread_cond_signal(&condition->handle) == 0);
}

void pen_condition_broadcast(pen_condition *condition) {
    PEN_ASSERT(pthread_cond_broadcast(&condition->handle) == 0);
}
