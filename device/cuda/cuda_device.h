// A GPU of NVIDIA as a device: kernels of our own, and the host's for what has none.
#ifndef PEN_DEVICE_CUDA_CUDA_DEVICE_H
#define PEN_DEVICE_CUDA_CUDA_DEVICE_H

#include "device/device.h"

extern const pen_device_kind pen_cuda_device_kind;

#endif // PEN_DEVICE_CUDA_CUDA_DEVICE_H
