// Audits of a pipeline: what the audit's core says is done here (scheduler/audit/audit_core.h).
// Every Nth step a worker keeps what it computed of a stage and microbatch; when the round is done
// that comes here, and goes to another worker, which computes it again while training goes on.
//
// Who has room is settled when the pipeline is placed (audit_room.h); whoever is asked looks
// itself, too, and may decline.
//
// Lifetime: of a placement. Threads: that of the engine.
#ifndef PEN_SCHEDULER_ENGINE_PIPELINE_AUDIT_H
#define PEN_SCHEDULER_ENGINE_PIPELINE_AUDIT_H

#include "scheduler/engine/pipeline_state.h"

// Says once where audits are wanted and nobody has room. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pipeline_prepare_audit(pipeline_engine *p);
void pen_pipeline_release_audit(pipeline_engine *p);
// What was begun is over with the generation.
void pen_pipeline_forget_audit(pipeline_engine *p);

// Right before a round of form 0 with `count` microbatches: where one is due, the answer to the
// audit before is waited for, but not for long, and the next begins; but not while an audit or the
// round of the one before is under way.
//   NOT_FINITE  a worker computed wrongly; by name
PEN_NODISCARD pen_status pen_pipeline_begin_audit(pipeline_engine *p, uint64_t step,
                                                  uint32_t count);
#define PEN_PIPELINE_AUDIT_WHOLE 1e9 // seconds: to its end
// Goes on with the audit under way, and waits up to so many seconds for its end; 0: as far as it
// comes without waiting. It ends by itself, at its deadlines. As above
PEN_NODISCARD pen_status pen_pipeline_advance_audit(pipeline_engine *p, double seconds);

#endif // PEN_SCHEDULER_ENGINE_PIPELINE_AUDIT_H
