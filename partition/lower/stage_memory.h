// What a stage takes in other ways of running it than plainly: with the halves of its backward pass
// apart, or with its forward pass run once more before its backward pass.
//
// Apart, what the weight half reads of gradients is kept for each microbatch between the halves.
// Recomputed, a stage keeps of a microbatch only what it gets from elsewhere; its activations live
// within its backward task, of one microbatch at a time.
#ifndef PEN_PARTITION_LOWER_STAGE_MEMORY_H
#define PEN_PARTITION_LOWER_STAGE_MEMORY_H

#include "partition/lower/memory_model.h"

typedef struct pen_stage_extra {
    uint64_t halved;         // of one microbatch between the halves
    uint64_t received_again; // of one microbatch: what only its forward pass reads of what it gets
} pen_stage_extra;

// out_extra: [stage_count]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_memory_extra(const pen_planned_graph *planned,
                                                const pen_forward_owners *owners,
                                                const pen_stage_split *split, pen_arena *arena,
                                                pen_stage_extra **out_extra);

// What a recomputed stage takes.
pen_stage_memory pen_stage_memory_recomputed(const pen_stage_memory *memory,
                                             const pen_stage_extra *extra);

#endif // PEN_PARTITION_LOWER_STAGE_MEMORY_H
