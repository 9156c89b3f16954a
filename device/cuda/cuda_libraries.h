// NVIDIA's libraries as an open GPU uses them: which there are, which begin, and the workspace that
// they share. Whether one is used is decided here, when the GPU is opened, and nowhere else: what
// is not used has no handle, is not in the device's class, and its work is that of own kernels.
//
// Threads: functions of open ones as in device/device.h.
#ifndef PEN_DEVICE_CUDA_CUDA_LIBRARIES_H
#define PEN_DEVICE_CUDA_CUDA_LIBRARIES_H

#include "base/arena.h"
#include "base/libraries.h"
#include "device/cuda/cublas.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/cudnn.h"

typedef struct pen_cuda_libraries {
    pen_libraries wanted;
    pen_cuda_memory *memory;
    pen_cuda_address workspace; // of both, since their work is on one stream, one after the other
    pen_cublas cublas;
    pen_cudnn cudnn;
    const char *lacks; // of each that is found and does not begin, a line that says why; NULL: none
} pen_cuda_libraries;

// Opens those that are found. The workspace counts as memory of the device, also where none is
// found, so that plans need not know it. With PEN_LIBRARIES_AUTO, one that does not begin is not
// used, as one that is not found; `lacks` says so, and lives in the arena. What was opened before
// an error is released by pen_cuda_libraries_close.
//   DOES_NOT_FIT   the workspace, in the device's memory
//   UNSUPPORTED    PEN_LIBRARIES_REQUIRED: one is not found, or not for this machine
//   OUT_OF_MEMORY, INTERNAL  the workspace; PEN_LIBRARIES_REQUIRED: one does not begin, and which
//                            status it names
PEN_NODISCARD pen_status pen_cuda_libraries_open(pen_cuda_memory *memory, pen_libraries wanted,
                                                 pen_arena *arena, pen_cuda_libraries *libraries);
void pen_cuda_libraries_close(pen_cuda_libraries *libraries);

// Bytes of the device's memory that they take, used or not.
uint64_t pen_cuda_libraries_bytes(pen_libraries wanted);

// ", cuBLAS 12.4.5, cuDNN 9.5.1", part of the device's class; nothing of what is not used.
PEN_NODISCARD pen_status pen_cuda_libraries_name(const pen_cuda_libraries *libraries,
                                                 pen_arena *arena, const char **out_text);

// A library as a GPU would use it.
typedef struct pen_cuda_trial {
    bool is_found; // and for this machine
    bool begins;
    int numbers[3];      // its version, where it is found
    const char *trouble; // why it is not found, or does not begin; NULL: it does. In the arena
} pen_cuda_trial;

// Looks for both, and where one is found, opens the GPU, begins with them, and closes all again.
// That a GPU cannot be opened is trouble of what was found.
//   UNSUPPORTED  there is no such GPU
PEN_NODISCARD pen_status pen_cuda_libraries_try(uint32_t gpu, pen_arena *arena,
                                                pen_cuda_trial *out_cublas,
                                                pen_cuda_trial *out_cudnn);

#endif // PEN_DEVICE_CUDA_CUDA_LIBRARIES_H
