#include "device/cuda/cuda_queues.h"

#include "base/memory.h"

static pen_cuda_stream *queues_stream(const pen_cuda_memory *memory, pen_queue queue) {
    return queue == PEN_QUEUE_WORK ? memory->stream : memory->beside[queue == PEN_QUEUE_IN ? 0 : 1];
}

pen_status pen_cuda_host_allocate(pen_cuda_memory *memory, uint64_t bytes, void **out_memory) {
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(
        memory, memory->driver->host_allocate(out_memory, (size_t)bytes, PEN_CUDA_HOST_PORTABLE),
        "while pinned memory was taken");
}

void pen_cuda_host_free(pen_cuda_memory *memory, void *host) {
    if (host == NULL) return;
    (void)memory->driver->context_set(memory->context);
    (void)memory->driver->host_free(host);
}

pen_status pen_cuda_fence_reserve(pen_cuda_queues *queues, uint32_t count) {
    const pen_cuda_memory *memory = queues->memory;
    PEN_ASSERT(queues->fences == NULL);
    PEN_TRY(pen_cuda_memory_open_beside(queues->memory));
    queues->fences = pen_memory_allocate(count, sizeof *queues->fences);
    if (queues->fences == NULL) return pen_error_out_of_memory();
    for (; queues->fence_count < count; queues->fence_count++) {
        PEN_TRY(pen_cuda_check(
            memory,
            memory->driver->event_create(&queues->fences[queues->fence_count],
                                         PEN_CUDA_EVENT_BLOCKING | PEN_CUDA_EVENT_NO_TIMING),
            "while an event was made"));
    }
    return PEN_OK;
}

pen_status pen_cuda_copy_in(pen_cuda_memory *memory, pen_operand to, const void *host,
                            uint64_t bytes) {
    pen_cuda_check_range(to, bytes);
    if (bytes == 0) return PEN_OK;
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(memory,
                          memory->driver->write(pen_cuda_address_of(to), host, (size_t)bytes,
                                                queues_stream(memory, PEN_QUEUE_IN)),
                          "while bytes were copied to it");
}

pen_status pen_cuda_copy_out(pen_cuda_memory *memory, pen_operand from, void *host,
                             uint64_t bytes) {
    pen_cuda_check_range(from, bytes);
    if (bytes == 0) return PEN_OK;
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(memory,
                          memory->driver->read(host, pen_cuda_address_of(from), (size_t)bytes,
                                               queues_stream(memory, PEN_QUEUE_OUT)),
                          "while bytes were copied from it");
}

// A GPU reaches its own memory, and that of another if the driver says so. It is no error if it has
// as many peers as it can, or if the driver refuses one that it called possible, as in some virtual
// machines: then copies go by way of the host.
pen_status pen_cuda_reach(pen_cuda_memory *memory, const pen_cuda_memory *other,
                          bool *out_reaches) {
    int can = 0;
    *out_reaches = memory->handle == other->handle;
    if (*out_reaches) return PEN_OK;
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(pen_cuda_check(memory, memory->driver->peer_can(&can, memory->handle, other->handle),
                           "while it was asked for its peers"));
    if (can == 0) return PEN_OK;
    const pen_cuda_result result = memory->driver->peer_enable(other->context, 0);
    if (result == PEN_CUDA_TOO_MANY_PEERS || result == PEN_CUDA_NO_PEER) return PEN_OK;
    if (result != PEN_CUDA_PEER_ENABLED) {
        PEN_TRY(pen_cuda_check(memory, result, "while a peer was made known to it"));
    }
    *out_reaches = true;
    return PEN_OK;
}

// A plan asks, for which no GPU is opened, and perhaps no driver is there.
bool pen_cuda_may_reach(uint32_t gpu, uint32_t other) {
    const pen_cuda_driver *driver;
    int own, peer, can = 0;
    if (gpu == other) return true;
    const pen_status status = pen_cuda_driver_load(&driver);
    if (status != PEN_OK) {
        pen_status_ignore(status, "whoever opens the GPU is told");
        return false;
    }
    if (driver->device(&own, (int)gpu) != 0 || driver->device(&peer, (int)other) != 0) return false;
    return driver->peer_can(&can, own, peer) == 0 && can != 0;
}

pen_status pen_cuda_copy_across(pen_cuda_memory *memory, pen_operand to,
                                const pen_cuda_memory *other, pen_operand from, uint64_t bytes) {
    pen_cuda_check_range(to, bytes);
    pen_cuda_check_range(from, bytes);
    if (bytes == 0) return PEN_OK;
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(memory,
                          memory->driver->copy_peer(
                              pen_cuda_address_of(to), memory->context, pen_cuda_address_of(from),
                              other->context, (size_t)bytes, queues_stream(memory, PEN_QUEUE_IN)),
                          "while bytes were copied from a peer");
}

pen_status pen_cuda_fence_set(const pen_cuda_queues *queues, pen_queue queue, uint32_t fence) {
    const pen_cuda_memory *memory = queues->memory;
    PEN_ASSERT(fence < queues->fence_count);
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(
        memory, memory->driver->event_record(queues->fences[fence], queues_stream(memory, queue)),
        "while an event was recorded");
}

pen_status pen_cuda_fence_pass(const pen_cuda_queues *queues, pen_queue queue,
                               const pen_cuda_queues *of, uint32_t fence) {
    const pen_cuda_memory *memory = queues->memory;
    PEN_ASSERT(fence < of->fence_count);
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(
        memory, memory->driver->event_pass(queues_stream(memory, queue), of->fences[fence], 0),
        "while an event was put before other work");
}

pen_status pen_cuda_fence_wait(const pen_cuda_queues *of, uint32_t fence) {
    PEN_ASSERT(fence < of->fence_count);
    PEN_TRY(pen_cuda_memory_enter(of->memory));
    return pen_cuda_check(of->memory, of->memory->driver->event_wait(of->fences[fence]),
                          "while its copies were awaited");
}

void pen_cuda_queues_close(pen_cuda_queues *queues) {
    for (uint32_t i = 0; i < queues->fence_count; i++)
        (void)queues->memory->driver->event_destroy(queues->fences[i]);
    pen_memory_free(queues->fences);
    queues->fences = NULL;
    queues->fence_count = 0;
}
