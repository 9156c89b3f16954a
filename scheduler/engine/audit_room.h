// Who could compute again what another worker does (scheduler/audit/audit_core.h): a worker whose
// devices have by the plan twice as much memory left as the other's device takes, once for what
// comes and once for what computes. Who computed it first needs it once, for what it keeps. What a
// GPU does is computed again by nobody.
//
// Lifetime: what is made is in the arena. Threads: pure.
#ifndef PEN_SCHEDULER_ENGINE_AUDIT_ROOM_H
#define PEN_SCHEDULER_ENGINE_AUDIT_ROOM_H

#include "partition/plan/plan.h"
#include "scheduler/runtime/run/run_workers.h"

// *out_has_room: [device_count][worker count + 1]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_audit_room_find(const pen_plan *plan, const pen_cluster *cluster,
                                             const pen_run_workers *workers, pen_arena *arena,
                                             const bool **out_has_room);

// "every 1000 steps, of all devices", "off: no worker has …"; NULL: there are no two workers.
PEN_NODISCARD pen_status pen_audit_room_describe(const pen_plan *plan, const pen_cluster *cluster,
                                                 uint64_t every, pen_arena *arena,
                                                 const char **out_text);

#endif // PEN_SCHEDULER_ENGINE_AUDIT_ROOM_H
