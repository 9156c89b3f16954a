#include "device/cuda/cuda_clock.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define CLOCK_MARKS 64u // that there is room for first

static const char *const clock_doing = "while its time was taken";

// The host's time comes first: what happens on the GPU is told as too early, if anything. So
// nothing ends later than the host saw its end.
static pen_status clock_set_origin(pen_cuda_clock *clock, const pen_cuda_memory *memory) {
    clock->origin_seconds = pen_clock_seconds();
    return pen_cuda_check(memory, memory->driver->event_record(clock->origin, memory->stream),
                          clock_doing);
}

static pen_status clock_begin(pen_cuda_clock *clock, pen_cuda_memory *memory) {
    pen_cuda_event *origin;
    PEN_TRY(pen_cuda_check(memory, memory->driver->event_create(&origin, 0), clock_doing));
    clock->origin = origin;
    PEN_TRY(pen_cuda_memory_wait(memory));
    return clock_set_origin(clock, memory);
}

// Room for marks doubles, and is not given back before the end.
static pen_status clock_make_room(pen_cuda_clock *clock, uint32_t mark) {
    uint32_t limit = clock->limit == 0 ? CLOCK_MARKS : clock->limit;
    if (mark < clock->limit) return PEN_OK;
    while (limit <= mark)
        limit *= 2;
    pen_cuda_mark *marks = pen_memory_allocate(limit, sizeof *marks);
    if (marks == NULL) return pen_error_out_of_memory();
    if (clock->limit > 0) memcpy(marks, clock->marks, clock->limit * sizeof *marks);
    pen_memory_free(clock->marks);
    clock->marks = marks;
    clock->limit = limit;
    return PEN_OK;
}

pen_status pen_cuda_clock_mark(pen_cuda_clock *clock, pen_cuda_memory *memory, uint32_t index) {
    PEN_TRY(pen_cuda_memory_enter(memory));
    if (clock->origin == NULL) PEN_TRY(clock_begin(clock, memory));
    PEN_TRY(clock_make_room(clock, index));
    pen_cuda_mark *mark = &clock->marks[index];
    if (mark->event == NULL) {
        PEN_TRY(pen_cuda_check(memory, memory->driver->event_create(&mark->event, 0), clock_doing));
    }
    PEN_TRY(pen_cuda_check(memory, memory->driver->event_record(mark->event, memory->stream),
                           clock_doing));
    if (!mark->is_unread) clock->unread_count += 1;
    mark->is_unread = true;
    return PEN_OK;
}

// When the last mark is read, all work was awaited: the origin is set anew.
pen_status pen_cuda_clock_marked(pen_cuda_clock *clock, const pen_cuda_memory *memory,
                                 uint32_t index, double *out_seconds) {
    float milliseconds;
    PEN_ASSERT(index < clock->limit && clock->marks[index].is_unread);
    pen_cuda_mark *mark = &clock->marks[index];
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(pen_cuda_check(memory,
                           memory->driver->event_elapsed(&milliseconds, clock->origin, mark->event),
                           clock_doing));
    *out_seconds = clock->origin_seconds + (double)milliseconds * 1e-3;
    mark->is_unread = false;
    clock->unread_count -= 1;
    return clock->unread_count > 0 ? PEN_OK : clock_set_origin(clock, memory);
}

void pen_cuda_clock_close(pen_cuda_clock *clock, const pen_cuda_memory *memory) {
    for (uint32_t i = 0; i < clock->limit; i++) {
        if (clock->marks[i].event == NULL) continue;
        (void)memory->driver->event_destroy(clock->marks[i].event);
    }
    if (clock->origin != NULL) (void)memory->driver->event_destroy(clock->origin);
    pen_memory_free(clock->marks);
    *clock = (pen_cuda_clock){0};
}
