// Kinds of devices: their numbers differ in the last bits, so that nodes stay with the kind that
// they began on, and what bits depend on is told.
//
// Threads: that of the engine.
#ifndef PEN_SCHEDULER_ENGINE_PIPELINE_KINDS_H
#define PEN_SCHEDULER_ENGINE_PIPELINE_KINDS_H

#include "scheduler/engine/pipeline_state.h"

typedef struct pipeline_kept {
    const pen_constraint_keep *entries; // [count] of the nodes of the plan
    uint32_t count;
    bool holds; // for the placement that is made next
} pipeline_kept;

// Whether what a device of the plan takes is none of its process's memory: a GPU's.
bool pen_pipeline_has_own_memory(const pipeline_engine *p, uint64_t device);
// Notes of which kind each node's device is, before anybody is given up. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pipeline_note_kinds(pipeline_engine *p);
// A kind that nodes began on, and of which no device takes part. NULL: there is none.
const char *pen_pipeline_find_gone_kind(const pipeline_engine *p);
// Why nodes would have to go to devices of another kind.
typedef struct pipeline_crossing {
    const char *why;    // who is lost; "": it is not said
    const char *gone;   // kind of which no device is left; NULL: those that are do not suffice
    pen_status failure; // then; borrowed
} pipeline_crossing;
// Whether they may, with a warning. UNAVAILABLE: the job does not allow it
PEN_NODISCARD pen_status pen_pipeline_cross_kinds(const pipeline_engine *p,
                                                  const pipeline_crossing *crossing);
// As the engine's arithmetic.
PEN_NODISCARD pen_status pen_pipeline_arithmetic(pen_engine *engine, pen_arena *arena,
                                                 const char **out_text);

#endif // PEN_SCHEDULER_ENGINE_PIPELINE_KINDS_H
