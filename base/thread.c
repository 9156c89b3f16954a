#include "base/thread.h"

#include <stdio.h>

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
    PEN_ASSERT(pthread_cond_init(&condition->handle, NULL) == 0);
}

void pen_condition_deinit(pen_condition *condition) {
    PEN_ASSERT(pthread_cond_destroy(&condition->handle) == 0);
}

void pen_condition_wait(pen_condition *condition, pen_mutex *mutex) {
    PEN_ASSERT(pthread_cond_wait(&condition->handle, &mutex->handle) == 0);
}

void pen_condition_signal(pen_condition *condition) {
    PEN_ASSERT(pthread_cond_signal(&condition->handle) == 0);
}

void pen_condition_broadcast(pen_condition *condition) {
    PEN_ASSERT(pthread_cond_broadcast(&condition->handle) == 0);
}
