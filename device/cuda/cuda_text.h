// The text of the kernels, kernels/kernels.ptx, which the Makefile turns into lines of C, and so
// part of the library. This header is the contract of the file that is made so.
#ifndef PEN_DEVICE_CUDA_CUDA_TEXT_H
#define PEN_DEVICE_CUDA_CUDA_TEXT_H

#include <stddef.h>

extern const char *const pen_cuda_text[]; // lines, ended by NULL

#endif // PEN_DEVICE_CUDA_CUDA_TEXT_H
