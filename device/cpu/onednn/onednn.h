// oneDNN: what all its users here share. dnnl.h is included by onednn_version.h, and nowhere else.
//
// oneDNN runs on the OpenMP team of the calling thread. Primitives remember the thread count they
// were made with, so make them where they run: pen_cpu_request comes with the team set.
//
// Threads: started once, by the first device; afterwards any.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_H

#include "base/status.h"
#include "base/system/kernel_level.h"
#include "device/cpu/onednn/onednn_version.h"

// Limits the instruction set to the level's, and makes the engine, unless that was done.
PEN_NODISCARD pen_status pen_onednn_start(pen_kernel_level level);

// "oneDNN 2.6.3"
const char *pen_onednn_describe(void);

// The one CPU engine and stream of this process. Under OpenMP a stream has no state: work is done
// when the call returns. Started before.
dnnl_engine_t pen_onednn_engine(void);
dnnl_stream_t pen_onednn_stream(void);

// A oneDNN status as ours; `what` says what was tried: "making a convolution". Out of memory is
// OUT_OF_MEMORY, what it does not implement UNSUPPORTED, the rest INTERNAL.
PEN_NODISCARD pen_status pen_onednn_status(dnnl_status_t status, const char *what);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_H
