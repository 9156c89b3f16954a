#include "device/cuda/cuda_clock.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define CLOCK_MARKS 64u     // that there is room for first
#define CLOCK_AGE_SECONDS 4 // of an origin that is still good: distances are finer than events

static const char *const clock_doing = "while its time was taken";

// ---- marks

// Room for marks doubles, and is not given back before the end.
static pen_status clock_make_room(pen_cuda_clock *clock, uint32_t mark) {
    uint32_t limit = clock->limit == 0 ? CLOCK_MARKS : clock->limit;
    if (mark < clock->limit) return PEN_OK;
    while (limit <= mark)
        limit *= 2;
    pen_cuda_event **marks = pen_memory_allocate(limit, sizeof *marks);
    if (marks == NULL) return pen_error_out_of_memory();
    if (clock->limit > 0) memcpy(marks, clock->marks, clock->limit * sizeof *marks);
    pen_memory_free(clock->marks);
    clock->marks = marks;
    clock->limit = limit;
    return PEN_OK;
}

pen_status pen_cuda_clock_mark(pen_cuda_clock *clock, const pen_cuda_memory *memory,
                               uint32_t mark) {
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(clock_make_room(clock, mark));
    if (clock->marks[mark] == NULL) {
        pen_cuda_event *made;
        PEN_TRY(pen_cuda_check(memory, memory->driver->event_create(&made, 0), clock_doing));
        clock->marks[mark] = made;
    }
    clock->is_placed = false;
    return pen_cuda_check(memory, memory->driver->event_record(clock->marks[mark], memory->stream),
                          clock_doing);
}

// ---- when it came to them

// Recorded while the GPU has nothing to do. The host's time comes first: what happens on the GPU is
// told as too early, if anything. So nothing ends later than the host saw its end.
static pen_status clock_set_origin(pen_cuda_origin *origin, const pen_cuda_memory *memory) {
    if (origin->event == NULL) {
        pen_cuda_event *made;
        PEN_TRY(pen_cuda_check(memory, memory->driver->event_create(&made, 0), clock_doing));
        origin->event = made;
    }
    origin->seconds = pen_clock_seconds();
    return pen_cuda_check(memory, memory->driver->event_record(origin->event, memory->stream),
                          clock_doing);
}

// All work was awaited, so that this is a moment for a new origin. The one before it lies before
// all marks that were made since.
static pen_status clock_place(pen_cuda_clock *clock, const pen_cuda_memory *memory) {
    const pen_cuda_origin *last = &clock->origins[clock->newest];
    pen_cuda_origin *next = &clock->origins[1 - clock->newest];
    if (clock->is_placed) return PEN_OK;
    PEN_TRY(clock_set_origin(next, memory));
    clock->is_behind = last->event == NULL || next->seconds - last->seconds > CLOCK_AGE_SECONDS;
    if (clock->is_behind) {
        PEN_TRY(pen_cuda_check(memory, memory->driver->event_wait(next->event), clock_doing));
    }
    clock->newest = 1 - clock->newest;
    clock->is_placed = true;
    return PEN_OK;
}

static pen_status clock_get_distance(const pen_cuda_memory *memory, pen_cuda_event *from,
                                     pen_cuda_event *to, double *out_seconds) {
    float milliseconds = 0;
    PEN_TRY(pen_cuda_check(memory, memory->driver->event_elapsed(&milliseconds, from, to),
                           clock_doing));
    *out_seconds = (double)milliseconds * 1e-3;
    return PEN_OK;
}

// The start by the origin, how long it took without it.
pen_status pen_cuda_clock_marked(pen_cuda_clock *clock, const pen_cuda_memory *memory,
                                 uint32_t from, uint32_t to, pen_span *out_span) {
    PEN_ASSERT(from < clock->limit && clock->marks[from] != NULL);
    PEN_ASSERT(to < clock->limit && clock->marks[to] != NULL);
    double distance;
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(clock_place(clock, memory));
    if (clock->is_behind) {
        const pen_cuda_origin *origin = &clock->origins[clock->newest];
        PEN_TRY(clock_get_distance(memory, clock->marks[from], origin->event, &distance));
        out_span->start_seconds = origin->seconds - distance;
    } else {
        const pen_cuda_origin *origin = &clock->origins[1 - clock->newest];
        PEN_TRY(clock_get_distance(memory, origin->event, clock->marks[from], &distance));
        out_span->start_seconds = origin->seconds + distance;
    }
    return clock_get_distance(memory, clock->marks[from], clock->marks[to], &out_span->seconds);
}

void pen_cuda_clock_close(pen_cuda_clock *clock, const pen_cuda_memory *memory) {
    for (uint32_t i = 0; i < clock->limit; i++) {
        if (clock->marks[i] != NULL) (void)memory->driver->event_destroy(clock->marks[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (clock->origins[i].event == NULL) continue;
        (void)memory->driver->event_destroy(clock->origins[i].event);
    }
    pen_memory_free(clock->marks);
    *clock = (pen_cuda_clock){0};
}
