// Operators that have no kernel on the GPU: they run on the cpu device's kernels, inside the cuda
// device. Operands are copied to pinned memory and results back. They compute in float32, whatever
// the device's precision.
//
// Pinned memory is shared by all launches: they run one after the other. It comes in chunks, each
// at least twice as large as the one before, since launches keep the addresses that they were bound
// to.
#ifndef PEN_DEVICE_CUDA_CUDA_HOST_H
#define PEN_DEVICE_CUDA_CUDA_HOST_H

#include "device/cuda/cuda_memory.h"

typedef struct pen_cuda_chunk pen_cuda_chunk;

typedef struct pen_cuda_host {
    pen_cuda_memory *memory;
    pen_device *cpu;
    pen_cuda_chunk *chunks; // the largest first
} pen_cuda_host;

typedef struct pen_cuda_host_launch pen_cuda_host_launch;

typedef struct pen_cuda_host_node {
    const pen_graph *graph;
    const pen_node *node;
    const pen_kernel *kernel; // of the cpu device
} pen_cuda_host_node;

// The memory outlives it; `options` are the cuda device's.
PEN_NODISCARD pen_status pen_cuda_host_open(const pen_device_options *options,
                                            pen_cuda_memory *memory, pen_cuda_host *out_host);
void pen_cuda_host_close(pen_cuda_host *host);

// Bytes of pinned memory that it takes where these nodes are bound, in their order; 0: all of them
// have kernels on the GPU. Operands that share a place are counted each. As the cpu's prepare.
PEN_NODISCARD pen_status pen_cuda_host_measure(const pen_cuda_host *host, const pen_graph *graph,
                                               const pen_node_id *order, uint32_t order_count,
                                               uint64_t *out_bytes);
// Binds a node to operands on the GPU.
PEN_NODISCARD pen_status pen_cuda_host_bind(pen_cuda_host *host, const pen_cuda_host_node *node,
                                            const pen_binding *binding, pen_arena *arena,
                                            pen_cuda_host_launch **out_launch);
// A word of the GPU, and room for it in pinned memory.
typedef struct pen_cuda_flag {
    pen_cuda_address device;
    uint32_t *here;
} pen_cuda_flag;
// Waits for work before it; what it writes back is enqueued. An update of parameters does nothing
// where the flag is raised.
PEN_NODISCARD pen_status pen_cuda_host_run(pen_cuda_host *host, const pen_cuda_host_launch *launch,
                                           const pen_cuda_flag *flag, const pen_run_context *run);

#endif // PEN_DEVICE_CUDA_CUDA_HOST_H
