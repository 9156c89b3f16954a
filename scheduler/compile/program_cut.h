// A compiled program cut for the devices of a plan (graph/passes/cut/cut_stages.h): which of its
// values are fed and kept it says itself, all else the plan's stages and their schedule.
#ifndef PEN_SCHEDULER_COMPILE_PROGRAM_CUT_H
#define PEN_SCHEDULER_COMPILE_PROGRAM_CUT_H

#include "graph/passes/cut/cut_stages.h"
#include "scheduler/compile/compile.h"
#include "scheduler/schedule/schedule.h"

// `stage_of_node` [nodes of the program's graph]. Stages whose backward halves `schedule` runs
// apart have them apart. In `arena`; borrows the program and `stage_of_node`. As pen_cut_stages.
PEN_NODISCARD pen_status pen_program_cut(const pen_program *program, const pen_stage_graph *stages,
                                         const pen_schedule *schedule,
                                         const uint32_t *stage_of_node, pen_arena *arena,
                                         const pen_cut **out_cut);

#endif // PEN_SCHEDULER_COMPILE_PROGRAM_CUT_H
