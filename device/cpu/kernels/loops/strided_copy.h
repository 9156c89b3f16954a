// Copies between two strided views: what transposing, slicing, padding, repeating and joining
// tensors come down to.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_STRIDED_COPY_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_STRIDED_COPY_H

#include <stdint.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/tensor_type.h"

#define STRIDED_RANK_LIMIT (2 * PEN_RANK_LIMIT)

// Element (i0, i1, …) goes from from_start + sum(i * from_stride) to to_start + sum(i * to_stride).
// All in elements. No two elements go to one place.
typedef struct strided_copy {
    uint32_t rank;
    int64_t counts[STRIDED_RANK_LIMIT];
    int64_t from_strides[STRIDED_RANK_LIMIT];
    int64_t to_strides[STRIDED_RANK_LIMIT];
    int64_t from_start;
    int64_t to_start;
    int64_t element_count;
    uint32_t element_bytes; // 1, 2, 4 or 8
    uint32_t tile_dim;      // set by strided_copy_settle
} strided_copy;

// After all fields but the last are set: drops dimensions of 1, joins neighbours that lie behind
// each other, and chooses how to walk. Several levels are compiled, hence the macro.
#define strided_copy_settle PEN_CPU_JOIN(pen_strided_copy_settle, PEN_CPU_LEVEL)
void strided_copy_settle(strided_copy *copy);

// On the team when it is large.
#define strided_copy_run PEN_CPU_JOIN(pen_strided_copy_run, PEN_CPU_LEVEL)
void strided_copy_run(const strided_copy *copy, const void *from, void *to);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_STRIDED_COPY_H
