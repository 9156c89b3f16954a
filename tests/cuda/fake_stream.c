// Streams of the fake driver, each a thread, and events.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fake_inside.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

void fake_driver_pass(double seconds);

static uint64_t passed_ns; // guarded by fake_lock

void fake_driver_pass(double seconds) {
    (void)pthread_mutex_lock(&fake_lock);
    passed_ns += (uint64_t)(seconds * 1e9);
    (void)pthread_mutex_unlock(&fake_lock);
}

// Holds the lock.
static uint64_t fake_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + passed_ns;
}

#define FAKE_OUT 2u // the role of a device's stream of copies out

static unsigned stream_counts[FAKE_GPUS]; // that there are
static unsigned copies_out[FAKE_GPUS];    // on streams of copies out, that are not done
static _Thread_local bool has_launched;   // this thread

static unsigned stream_copies_out(const pen_cuda_stream *s, const fake_command *c) {
    return c->is_out && s->role == FAKE_OUT ? 1 : 0;
}

void fake_count_launch(const pen_cuda_stream *stream) {
    has_launched = true;
    (void)pthread_mutex_lock(&fake_lock);
    fake_count(&fake_counted.launches, 1);
    if (copies_out[stream->device] > 0) fake_count(&fake_counted.launches_ahead, 1);
    (void)pthread_mutex_unlock(&fake_lock);
}

// Holds the lock.
static void fake_count_wait(void) {
    fake_count(&fake_counted.waits, 1);
    if (!has_launched) fake_count(&fake_counted.waits_beside, 1);
}

static void fake_do(const pen_cuda_stream *s, fake_command *c) {
    const bool is_late =
        (fake_settings.late_role == FAKE_ALL_ROLES || fake_settings.late_role == s->role) &&
        (fake_settings.late_gpu == FAKE_ALL_ROLES || fake_settings.late_gpu == (unsigned)s->device);
    if (fake_settings.late_us > 0 && is_late) (void)usleep(fake_settings.late_us);
    switch (c->kind) {
    case FAKE_COPY:
        memcpy(c->to, c->from, c->bytes);
        break;
    case FAKE_FILL:
        memset(c->to, c->value, c->bytes);
        break;
    case FAKE_KERNEL:
        fake_run_kernel(c);
        break;
    case FAKE_CALL:
        c->call(c->args);
        break;
    case FAKE_EVENT:
        (void)pthread_mutex_lock(&fake_lock);
        if (c->event->reached < c->ticket) c->event->reached = c->ticket;
        c->event->at_ns = c->idle_ns > 0 ? c->idle_ns : fake_now_ns();
        (void)pthread_cond_broadcast(&fake_changed);
        (void)pthread_mutex_unlock(&fake_lock);
        break;
    case FAKE_PASS:
        (void)pthread_mutex_lock(&fake_lock);
        while (c->event->reached < c->ticket)
            (void)pthread_cond_wait(&fake_changed, &fake_lock);
        (void)pthread_mutex_unlock(&fake_lock);
        break;
    }
}

static void *fake_stream_main(void *argument) {
    pen_cuda_stream *s = argument;
    (void)pthread_mutex_lock(&fake_lock);
    while (!s->is_over || s->done < s->queued) {
        if (s->done == s->queued) {
            (void)pthread_cond_wait(&s->given, &fake_lock);
            continue;
        }
        fake_command *c = &s->commands[s->done % FAKE_COMMANDS];
        (void)pthread_mutex_unlock(&fake_lock);
        fake_do(s, c);
        (void)pthread_mutex_lock(&fake_lock);
        s->done += 1;
        copies_out[s->device] -= stream_copies_out(s, c);
        // who waits for a stream waits until it is empty, or for room in a full one
        if (s->done == s->queued || s->queued - s->done == FAKE_COMMANDS - 1) {
            (void)pthread_cond_broadcast(&fake_changed);
        }
    }
    (void)pthread_mutex_unlock(&fake_lock);
    return NULL;
}

pen_cuda_result fake_push(pen_cuda_stream *s, const fake_command *c) {
    if (s == NULL) return FAKE_INVALID; // the device has streams of its own
    if (fake_sticky != 0) return fake_sticky;
    if (s->captured != NULL) return fake_capture(s, c);
    (void)pthread_mutex_lock(&fake_lock);
    while (s->queued - s->done == FAKE_COMMANDS)
        (void)pthread_cond_wait(&fake_changed, &fake_lock);
    fake_command *own = &s->commands[s->queued % FAKE_COMMANDS];
    *own = *c;
    own->idle_ns = s->queued == s->done ? fake_now_ns() : 0;
    s->queued += 1;
    copies_out[s->device] += stream_copies_out(s, c);
    (void)pthread_cond_signal(&s->given);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

// One without a thread.
static void fake_stream_free(pen_cuda_stream *stream) {
    (void)pthread_mutex_lock(&fake_lock);
    stream_counts[stream->device] -= 1;
    (void)pthread_mutex_unlock(&fake_lock);
    (void)pthread_cond_destroy(&stream->given);
    free(stream);
}

pen_cuda_result cuStreamCreate(pen_cuda_stream **stream, unsigned flags) {
    (void)flags;
    if (fake_sticky != 0) return fake_sticky;
    const int device = fake_current_device();
    pen_cuda_stream *s = device < 0 ? NULL : calloc(1, sizeof *s);
    if (s != NULL) {
        (void)pthread_mutex_lock(&fake_lock);
        s->device = device;
        s->role = stream_counts[device]++;
        (void)pthread_mutex_unlock(&fake_lock);
    }
    if (s != NULL) (void)pthread_cond_init(&s->given, NULL);
    if (s == NULL) return PEN_CUDA_OUT_OF_MEMORY;
    if (pthread_create(&s->thread, NULL, fake_stream_main, s) != 0) {
        fake_stream_free(s);
        return PEN_CUDA_OUT_OF_MEMORY;
    }
    fake_count(&fake_counted.blocks, 1);
    *stream = s;
    return 0;
}

pen_cuda_result cuStreamDestroy_v2(pen_cuda_stream *stream) {
    (void)pthread_mutex_lock(&fake_lock);
    stream->is_over = true;
    (void)pthread_cond_signal(&stream->given);
    (void)pthread_mutex_unlock(&fake_lock);
    (void)pthread_join(stream->thread, NULL);
    fake_stream_free(stream);
    fake_count(&fake_counted.blocks, -1);
    return fake_sticky;
}

pen_cuda_result cuStreamSynchronize(pen_cuda_stream *stream) {
    if (fake_capturing != NULL) return fake_refuse_capture();
    (void)pthread_mutex_lock(&fake_lock);
    fake_count_wait();
    while (stream->done < stream->queued)
        (void)pthread_cond_wait(&fake_changed, &fake_lock);
    (void)pthread_mutex_unlock(&fake_lock);
    return fake_sticky;
}

pen_cuda_result cuEventCreate(pen_cuda_event **event, unsigned flags) {
    if (fake_sticky != 0) return fake_sticky;
    *event = calloc(1, sizeof **event);
    if (*event == NULL) return PEN_CUDA_OUT_OF_MEMORY;
    fake_count(&fake_counted.blocks, 1);
    (*event)->is_untimed = (flags & PEN_CUDA_EVENT_NO_TIMING) != 0;
    return 0;
}

pen_cuda_result cuEventDestroy_v2(pen_cuda_event *event) {
    free(event);
    fake_count(&fake_counted.blocks, -1);
    return fake_sticky;
}

// Events of a graph are none that a host could wait for: refused here.
pen_cuda_result cuEventRecord(pen_cuda_event *event, pen_cuda_stream *stream) {
    if (fake_capturing != NULL) return fake_refuse_capture();
    const fake_command c = {.kind = FAKE_EVENT, .event = event, .ticket = event->recorded + 1};
    const pen_cuda_result result = fake_push(stream, &c);
    if (result != 0) return result;
    (void)pthread_mutex_lock(&fake_lock); // another thread may begin to wait for it
    event->recorded += 1;
    event->role = stream->role;
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

// An event that was never recorded is no hindrance. A test may have a wait lost.
pen_cuda_result cuStreamWaitEvent(pen_cuda_stream *stream, pen_cuda_event *event, unsigned flags) {
    if (fake_capturing != NULL) return fake_refuse_capture();
    if (stream == NULL || event == NULL || flags != 0) return FAKE_INVALID;
    (void)pthread_mutex_lock(&fake_lock);
    const fake_command c = {.kind = FAKE_PASS, .event = event, .ticket = event->recorded};
    const unsigned event_role = event->role;
    (void)pthread_mutex_unlock(&fake_lock);
    const bool is_lost =
        fake_settings.lost_stream == stream->role && fake_settings.lost_event == event_role;
    fake_count(&fake_counted.passes, 1);
    return is_lost ? fake_sticky : fake_push(stream, &c);
}

pen_cuda_result cuEventSynchronize(pen_cuda_event *event) {
    if (fake_capturing != NULL) return fake_refuse_capture();
    (void)pthread_mutex_lock(&fake_lock);
    fake_count_wait();
    const uint64_t ticket = event->recorded; // what is recorded later is not awaited
    while (event->reached < ticket)
        (void)pthread_cond_wait(&fake_changed, &fake_lock);
    (void)pthread_mutex_unlock(&fake_lock);
    return fake_sticky;
}

// Milliseconds, in steps of half a microsecond, as a driver counts them, or as was told.
pen_cuda_result cuEventElapsedTime(float *milliseconds, pen_cuda_event *start,
                                   pen_cuda_event *end) {
    if (fake_sticky != 0) return fake_sticky;
    if (start->is_untimed || end->is_untimed) return FAKE_INVALID_HANDLE;
    (void)pthread_mutex_lock(&fake_lock);
    const bool were_recorded = start->recorded > 0 && end->recorded > 0;
    const bool are_reached = start->reached == start->recorded && end->reached == end->recorded;
    const int64_t ns = (int64_t)(end->at_ns - start->at_ns);
    (void)pthread_mutex_unlock(&fake_lock);
    if (!were_recorded) return FAKE_INVALID_HANDLE;
    if (!are_reached) return FAKE_NOT_READY;
    const double tick = fake_settings.tick_ns;
    *milliseconds = (float)(floor((double)ns / tick) * tick * 1e-6);
    return 0;
}
