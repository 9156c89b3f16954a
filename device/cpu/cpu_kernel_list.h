// Which cpu kernels there are, and which of them runs a node.
#ifndef PEN_DEVICE_CPU_CPU_KERNEL_LIST_H
#define PEN_DEVICE_CPU_CPU_KERNEL_LIST_H

#include "base/system/kernel_level.h"
#include "device/cpu/cpu_kernel.h"

#define PEN_CPU_CANDIDATE_LIMIT 8

// The entries that can do a node, best by rule of thumb first; at most PEN_CPU_CANDIDATE_LIMIT.
uint32_t pen_cpu_candidates(const pen_cpu_request *request,
                            const pen_cpu_kernel *out_entries[PEN_CPU_CANDIDATE_LIMIT]);

// Whether an entry for the op takes its operands in any layout, if they all have the same.
bool pen_cpu_takes_any_layout(pen_kernel_level level, const char *op_name);

// The first of the candidates; what has none gets the reference kernel.
const pen_cpu_kernel *pen_cpu_choose(const pen_cpu_request *request);

// Runs any node in plain layout on its reference kernel. cpu_fallback.c
extern const pen_cpu_kernel pen_cpu_fallback_kernel;

#endif // PEN_DEVICE_CPU_CPU_KERNEL_LIST_H
