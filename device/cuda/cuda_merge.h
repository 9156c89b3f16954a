// Puts the steps of a list together: those of one KERNEL_OF_MANY that need not wait for each other
// become one action, as the updates of all parameters do.
//
// Such a step waits until something must come after it, or the list ends. So it moves back, behind
// what follows it and touches none of its memory; all else stays where it is. No step reads or
// writes another number than it would have: results have the same bits.
//
// Looks are such steps, too. An update waits for all looks before it; a look waits for no update,
// so that looks come before the updates behind which they stand, where they can.
//
// Threads: as in device/device.h.
#ifndef PEN_DEVICE_CUDA_CUDA_MERGE_H
#define PEN_DEVICE_CUDA_CUDA_MERGE_H

#include "device/cuda/cuda_inside.h"

// Memory that a launch reads or writes.
typedef struct cuda_range {
    pen_cuda_address first, end;
    bool is_written;
} cuda_range;

// A launch of the list, or a look, and what it touches.
typedef struct cuda_part {
    const cuda_launch *launch; // NULL: a look
    pen_look *look;
    cuda_range *ranges; // [range_count]
    uint32_t range_count;
} cuda_part;

typedef struct cuda_member cuda_member;
struct cuda_member {
    cuda_member *next;
    const cuda_part *part;
    pen_cuda_step step;
};

// What is enqueued as one.
typedef struct cuda_action {
    const cuda_launch *launch; // NULL: of many, or a look
    bool is_on_host;
    pen_cuda_step step;         // that of many has no addresses yet
    const cuda_member *members; // of many, in order
} cuda_action;

typedef struct cuda_group cuda_group;
typedef struct cuda_merge {
    pen_arena *arena;
    cuda_group *groups;   // that wait, in order
    cuda_action *actions; // [action_count]
    uint32_t action_count;
    bool has_updates; // among the actions
} cuda_merge;

// Begins a merge of a list with so many steps at most.
PEN_NODISCARD pen_status cuda_merge_begin(cuda_merge *merge, pen_arena *arena, uint32_t step_limit);
// What the launch touches; its workspace is at `workspace`.
PEN_NODISCARD pen_status cuda_part_make(const cuda_launch *launch, pen_cuda_address workspace,
                                        pen_arena *arena, cuda_part *out_part);
PEN_NODISCARD pen_status cuda_part_make_look(pen_look *look, pen_arena *arena, cuda_part *out_part);
// Adds the next step of a part; of one that runs on the host, `step` is NULL.
PEN_NODISCARD pen_status cuda_merge_add(cuda_merge *merge, const cuda_part *part,
                                        const pen_cuda_step *step);
// What waits still comes last.
void cuda_merge_end(cuda_merge *merge);

#endif // PEN_DEVICE_CUDA_CUDA_MERGE_H
