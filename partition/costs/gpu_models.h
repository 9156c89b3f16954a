// What makers state of their GPUs, for plans that nobody has measured anything for.
#ifndef PEN_PARTITION_COSTS_GPU_MODELS_H
#define PEN_PARTITION_COSTS_GPU_MODELS_H

#include <stdint.h>

typedef struct pen_gpu_model {
    const char *words;       // that are in its name: "H100 PCIe"
    double flops;            // float32 operations a second, a fused multiply-add as two
    double memory_bandwidth; // bytes a second
} pen_gpu_model;

// That whose words are all in `name`, as a driver says it ("NVIDIA A100-SXM4-80GB"), whatever their
// case. NULL: none.
const pen_gpu_model *pen_gpu_model_find(const char *name);

uint32_t pen_gpu_model_count(void);
const pen_gpu_model *pen_gpu_model_at(uint32_t index);

#endif // PEN_PARTITION_COSTS_GPU_MODELS_H
