// The cpu device: the host's memory and cores, vectorised kernels, OpenBLAS and oneDNN.
//
// Work is done inside enqueue, by the calling thread and its OpenMP team; OpenBLAS and oneDNN run
// on the same team. Buffers are mapped on huge pages, touched once when made, and kept until
// destroyed: fresh memory is the dearest thing there is on this class of machine.
#ifndef PEN_DEVICE_CPU_CPU_DEVICE_H
#define PEN_DEVICE_CPU_CPU_DEVICE_H

#include "device/device.h"

extern const pen_device_kind pen_cpu_device_kind;

// For the first lines of main, before any thread: freed memory stays with the process instead of
// going back to the system, so that it need not be faulted in again; one level of OpenMP teams.
void pen_cpu_process_init(void);

#endif // PEN_DEVICE_CPU_CPU_DEVICE_H
