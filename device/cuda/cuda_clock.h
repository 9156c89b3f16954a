// Times by the clock of a GPU: events on its stream, placed on the host's clock.
//
// Events tell only how far they are from each other. So one is the origin: it was recorded while
// the GPU had nothing to do, which is when the host recorded it, but for the microseconds that a
// command takes to get there. Whenever no mark is left unread there is a new origin, so that clocks
// which drift apart stay together, and distances are short.
//
// Threads: as in device/device.h.
#ifndef PEN_DEVICE_CUDA_CUDA_CLOCK_H
#define PEN_DEVICE_CUDA_CUDA_CLOCK_H

#include "device/cuda/cuda_memory.h"

typedef struct pen_cuda_mark {
    pen_cuda_event *event;
    bool is_unread;
} pen_cuda_mark;

typedef struct pen_cuda_clock {
    pen_cuda_event *origin; // NULL: nothing was marked yet
    double origin_seconds;
    pen_cuda_mark *marks; // [limit]
    uint32_t limit;
    uint32_t unread_count;
} pen_cuda_clock;

// As pen_device_kind's members of these names. The first mark of all waits for what was enqueued.
PEN_NODISCARD pen_status pen_cuda_clock_mark(pen_cuda_clock *clock, pen_cuda_memory *memory,
                                             uint32_t mark);
PEN_NODISCARD pen_status pen_cuda_clock_marked(pen_cuda_clock *clock, const pen_cuda_memory *memory,
                                               uint32_t mark, double *out_seconds);
// Before the memory is closed.
void pen_cuda_clock_close(pen_cuda_clock *clock, const pen_cuda_memory *memory);

#endif // PEN_DEVICE_CUDA_CUDA_CLOCK_H
