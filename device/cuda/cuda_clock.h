// Times by the clock of a GPU: events on its stream, placed on the host's clock.
//
// Events tell only how far they are from each other, as milliseconds of float32: a distance of a
// second is told to a tenth of a microsecond, one of an hour to a quarter of a millisecond. So how
// long something took is the distance of its own two events, and only where it lies is told by
// another event, the origin. That is recorded while the GPU has nothing to do, which is when the
// host records it, but for the microseconds that a command takes to get there.
//
// Whenever times are asked for there is a new origin, for those that are asked for next. So clocks
// that drift apart stay together. If that was long ago, the new one is awaited and used at once,
// though it lies behind what it places.
//
// Threads: as in device/device.h.
#ifndef PEN_DEVICE_CUDA_CUDA_CLOCK_H
#define PEN_DEVICE_CUDA_CUDA_CLOCK_H

#include "device/cuda/cuda_memory.h"

// The step in which events tell distances, by NVIDIA's word.
#define PEN_CUDA_CLOCK_SECONDS 0.5e-6

typedef struct pen_cuda_origin {
    pen_cuda_event *event; // NULL: not made yet
    double seconds;        // when the host recorded it
} pen_cuda_origin;

typedef struct pen_cuda_clock {
    pen_cuda_origin origins[2]; // in turn
    uint32_t newest;
    bool is_placed;         // since the last mark, times were asked for: there is a new origin
    bool is_behind;         // by which marks are placed, not by the one before
    pen_cuda_event **marks; // [limit]; NULL: not made yet
    uint32_t limit;
} pen_cuda_clock;

// As pen_device_kind's members of these names. The first `marked` after seconds without one
// waits for the GPU: microseconds, since all work was awaited.
PEN_NODISCARD pen_status pen_cuda_clock_mark(pen_cuda_clock *clock, const pen_cuda_memory *memory,
                                             uint32_t mark);
PEN_NODISCARD pen_status pen_cuda_clock_marked(pen_cuda_clock *clock, const pen_cuda_memory *memory,
                                               uint32_t from, uint32_t to, pen_span *out_span);
// Before the memory is closed.
void pen_cuda_clock_close(pen_cuda_clock *clock, const pen_cuda_memory *memory);

#endif // PEN_DEVICE_CUDA_CUDA_CLOCK_H
