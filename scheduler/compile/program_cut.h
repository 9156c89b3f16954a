// A compiled program cut for the devices of a plan (graph/passes/cut/cut_stages.h): which of its
// values are fed and kept it says itself, all else the plan's stages and their schedule.
#ifndef PEN_SCHEDULER_COMPILE_PROGRAM_CUT_H
#define PEN_SCHEDULER_COMPILE_PROGRAM_CUT_H

#include "graph/passes/cut/cut_stages.h"
#include "partition/plan/plan.h"
#include "scheduler/compile/compile.h"
#include "scheduler/schedule/schedule.h"

typedef struct pen_program_parts {
    const pen_cut *cut;
    const pen_graph *graph;            // that was cut: the program's, or one of several replicas
    const pen_value_id *const *values; // [replicas][values of the program's graph] what each is in
                                       // a replica (graph/passes/cut/replicate.h); NULL: itself
} pen_program_parts;

// Stages whose backward halves `schedule`, of the plan's stages, runs apart have them apart. A
// program without updates is run by the first replica alone. In `arena`; borrows the program. As
// pen_stage_assign, pen_replicate and pen_cut_stages.
PEN_NODISCARD pen_status pen_program_cut(const pen_program *program, const pen_plan *plan,
                                         const pen_schedule *schedule, pen_arena *arena,
                                         pen_program_parts *out_parts);

// The same along any stages: `stage_of_node` [nodes of the program's graph], borrowed.
PEN_NODISCARD pen_status pen_program_cut_stages(const pen_program *program,
                                                const pen_stage_graph *stages,
                                                const pen_schedule *schedule,
                                                const uint32_t *stage_of_node, pen_arena *arena,
                                                const pen_cut **out_cut);

// What a value of the program is in the part of a device of the plan; PEN_VALUE_NONE: nothing.
pen_value_id pen_program_part_value(const pen_program_parts *parts, const pen_plan *plan,
                                    uint32_t device, pen_value_id value);

#endif // PEN_SCHEDULER_COMPILE_PROGRAM_CUT_H
