// Copies of a GPU beside its work: a stream for those in, one for those out, and events that keep
// order between streams, also of different GPUs.
//
// No circle of waits can arise: who passes an event waits for what was enqueued before he did.
//
// Threads: as in device/device.h; events are made once, and then only read by threads of others.
#ifndef PEN_DEVICE_CUDA_CUDA_QUEUES_H
#define PEN_DEVICE_CUDA_CUDA_QUEUES_H

#include "device/cuda/cuda_memory.h"

typedef struct pen_cuda_queues {
    pen_cuda_memory *memory;
    pen_cuda_event **fences; // [fence_count]
    uint32_t fence_count;
} pen_cuda_queues;

// As pen_device_kind's members of these names.
PEN_NODISCARD pen_status pen_cuda_host_allocate(pen_cuda_memory *memory, uint64_t bytes,
                                                void **out_memory);
void pen_cuda_host_free(pen_cuda_memory *memory, void *host);
PEN_NODISCARD pen_status pen_cuda_fence_reserve(pen_cuda_queues *queues, uint32_t count);
PEN_NODISCARD pen_status pen_cuda_copy_in(pen_cuda_memory *memory, pen_operand to, const void *host,
                                          uint64_t bytes);
PEN_NODISCARD pen_status pen_cuda_copy_out(pen_cuda_memory *memory, pen_operand from, void *host,
                                           uint64_t bytes);
bool pen_cuda_may_reach(uint32_t gpu, uint32_t other);
PEN_NODISCARD pen_status pen_cuda_reach(pen_cuda_memory *memory, const pen_cuda_memory *other,
                                        bool *out_reaches);
PEN_NODISCARD pen_status pen_cuda_copy_across(pen_cuda_memory *memory, pen_operand to,
                                              const pen_cuda_memory *other, pen_operand from,
                                              uint64_t bytes);
PEN_NODISCARD pen_status pen_cuda_fence_set(const pen_cuda_queues *queues, pen_queue queue,
                                            uint32_t fence);
PEN_NODISCARD pen_status pen_cuda_fence_pass(const pen_cuda_queues *queues, pen_queue queue,
                                             const pen_cuda_queues *of, uint32_t fence);
PEN_NODISCARD pen_status pen_cuda_fence_wait(const pen_cuda_queues *of, uint32_t fence);
// Before the memory is closed.
void pen_cuda_queues_close(pen_cuda_queues *queues);

#endif // PEN_DEVICE_CUDA_CUDA_QUEUES_H
