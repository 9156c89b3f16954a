// Matrix products by oneDNN.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_GEMM_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_GEMM_H

#include "base/status.h"
#include "device/cpu/gemm.h"

// On the calling thread alone: its bits do not depend on the team. UNSUPPORTED, OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_onednn_sgemm(const pen_gemm *gemm);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_GEMM_H
