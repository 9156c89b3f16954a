// The driver of NVIDIA's GPUs, libcuda.so.1, which is loaded when the first device is opened. Types
// are our own, so that no header of NVIDIA's is needed; they are those of cuda.h, with which a test
// compares them where it is.
//
// Threads: any.
#ifndef PEN_DEVICE_CUDA_CUDA_DRIVER_H
#define PEN_DEVICE_CUDA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef unsigned pen_cuda_result; // CUresult: 0 is success
typedef unsigned long long pen_cuda_address;
typedef struct CUctx_st pen_cuda_context;
typedef struct CUstream_st pen_cuda_stream;
typedef struct CUevent_st pen_cuda_event;
typedef struct CUmod_st pen_cuda_module;
typedef struct CUfunc_st pen_cuda_function;
typedef struct CUgraph_st pen_cuda_graph;
typedef struct CUgraphExec_st pen_cuda_graph_exec;

// Results that mean something to us.
#define PEN_CUDA_OUT_OF_MEMORY 2u
#define PEN_CUDA_NO_DEVICE 100u
#define PEN_CUDA_NO_PEER 217u // though it was said to be one
#define PEN_CUDA_PEER_ENABLED 704u
#define PEN_CUDA_TOO_MANY_PEERS 711u
// Attributes of a GPU.
#define PEN_CUDA_PROCESSORS 16u
#define PEN_CUDA_MAJOR 75u
#define PEN_CUDA_MINOR 76u
// Flags.
#define PEN_CUDA_STREAM_NON_BLOCKING 1u
#define PEN_CUDA_EVENT_BLOCKING 1u // who waits for it sleeps, and does not look again and again
#define PEN_CUDA_EVENT_NO_TIMING 2u
#define PEN_CUDA_CAPTURE_THREAD_LOCAL 1u
#define PEN_CUDA_HOST_PORTABLE 1u

// Functions by our name, theirs, and their parameters.
// clang-format off
#define PEN_CUDA_FUNCTIONS(X)                                                                      \
    X(init, cuInit, (unsigned flags))                                                              \
    X(driver_version, cuDriverGetVersion, (int *version))                                          \
    X(device_count, cuDeviceGetCount, (int *count))                                                \
    X(device, cuDeviceGet, (int *device, int ordinal))                                             \
    X(device_name, cuDeviceGetName, (char *name, int bytes, int device))                           \
    X(device_attribute, cuDeviceGetAttribute, (int *value, unsigned attribute, int device))        \
    X(device_bytes, cuDeviceTotalMem_v2, (size_t *bytes, int device))                              \
    X(context_retain, cuDevicePrimaryCtxRetain, (pen_cuda_context **context, int device))          \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                 \
    X(context_set, cuCtxSetCurrent, (pen_cuda_context *context))                                   \
    X(peer_can, cuDeviceCanAccessPeer, (int *can, int device, int peer))                           \
    X(peer_enable, cuCtxEnablePeerAccess, (pen_cuda_context *peer, unsigned flags))                \
    X(allocate, cuMemAlloc_v2, (pen_cuda_address *address, size_t bytes))                          \
    X(free, cuMemFree_v2, (pen_cuda_address address))                                              \
    X(host_allocate, cuMemHostAlloc, (void **host, size_t bytes, unsigned flags))                  \
    X(host_free, cuMemFreeHost, (void *host))                                                      \
    X(write, cuMemcpyHtoDAsync_v2,                                                                 \
      (pen_cuda_address to, const void *from, size_t bytes, pen_cuda_stream *stream))              \
    X(read, cuMemcpyDtoHAsync_v2,                                                                  \
      (void *to, pen_cuda_address from, size_t bytes, pen_cuda_stream *stream))                    \
    X(copy_peer, cuMemcpyPeerAsync,                                                                \
      (pen_cuda_address to, pen_cuda_context *to_context, pen_cuda_address from,                   \
       pen_cuda_context *from_context, size_t bytes, pen_cuda_stream *stream))                     \
    X(fill, cuMemsetD8Async,                                                                       \
      (pen_cuda_address to, unsigned char value, size_t bytes, pen_cuda_stream *stream))           \
    X(stream_create, cuStreamCreate, (pen_cuda_stream **stream, unsigned flags))                   \
    X(stream_destroy, cuStreamDestroy_v2, (pen_cuda_stream *stream))                               \
    X(stream_wait, cuStreamSynchronize, (pen_cuda_stream *stream))                                 \
    X(event_create, cuEventCreate, (pen_cuda_event **event, unsigned flags))                       \
    X(event_destroy, cuEventDestroy_v2, (pen_cuda_event *event))                                   \
    X(event_record, cuEventRecord, (pen_cuda_event *event, pen_cuda_stream *stream))               \
    X(event_wait, cuEventSynchronize, (pen_cuda_event *event))                                     \
    X(event_pass, cuStreamWaitEvent,                                                               \
      (pen_cuda_stream *stream, pen_cuda_event *event, unsigned flags))                            \
    X(event_elapsed, cuEventElapsedTime,                                                           \
      (float *milliseconds, pen_cuda_event *start, pen_cuda_event *end))                           \
    X(module_load, cuModuleLoadData, (pen_cuda_module **module, const void *image))                \
    X(module_unload, cuModuleUnload, (pen_cuda_module *module))                                    \
    X(module_function, cuModuleGetFunction,                                                        \
      (pen_cuda_function **function, pen_cuda_module *module, const char *name))                   \
    X(launch, cuLaunchKernel,                                                                      \
      (pen_cuda_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,             \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       pen_cuda_stream *stream, void **arguments, void **extra))                                   \
    X(capture_begin, cuStreamBeginCapture_v2, (pen_cuda_stream *stream, unsigned mode))            \
    X(capture_end, cuStreamEndCapture, (pen_cuda_stream *stream, pen_cuda_graph **graph))          \
    X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
      (pen_cuda_graph_exec **exec, pen_cuda_graph *graph, unsigned long long flags))               \
    X(graph_launch, cuGraphLaunch, (pen_cuda_graph_exec *exec, pen_cuda_stream *stream))           \
    X(graph_exec_destroy, cuGraphExecDestroy, (pen_cuda_graph_exec *exec))                         \
    X(graph_destroy, cuGraphDestroy, (pen_cuda_graph *graph))                                      \
    X(error_name, cuGetErrorName, (pen_cuda_result error, const char **name))
// clang-format on

#define PEN_CUDA_MEMBER(name, symbol, parameters) pen_cuda_result(*name) parameters;
typedef struct pen_cuda_driver {
    PEN_CUDA_FUNCTIONS(PEN_CUDA_MEMBER)
} pen_cuda_driver;

// Loads the driver and begins with it, once in a process.
//   UNSUPPORTED  there is none, it is too old, or it has no GPU; says which
PEN_NODISCARD pen_status pen_cuda_driver_load(const pen_cuda_driver **out_driver);

// "CUDA_ERROR_ILLEGAL_ADDRESS"; never NULL.
const char *pen_cuda_error_name(const pen_cuda_driver *driver, pen_cuda_result error);

// One GPU of this machine.
typedef struct pen_cuda_gpu {
    char name[128];
    int major, minor; // compute capability
    int processors;
    int driver; // the version of CUDA that it knows: 13000 is 13.0
    uint64_t memory_bytes;
} pen_cuda_gpu;

// Whether its compute capability is below 7.5, as that of a V100, 7.0. What NVIDIA makes for CUDA
// 13 has no kernels for such a GPU: a library loads there, and then its handle or its work fails.
bool pen_cuda_gpu_is_old(const pen_cuda_gpu *gpu);

// GPUs that there are; those of CUDA_VISIBLE_DEVICES, where that is set. UNSUPPORTED
PEN_NODISCARD pen_status pen_cuda_gpu_count(uint32_t *out_count);
// UNSUPPORTED: as above, or there are not so many; says how many there are.
PEN_NODISCARD pen_status pen_cuda_gpu_describe(uint32_t index, pen_cuda_gpu *out_gpu);

#endif // PEN_DEVICE_CUDA_CUDA_DRIVER_H
