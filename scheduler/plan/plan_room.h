// The memory that placements are searched in: of each device what a plan may use, less what its
// stages cannot have, since the device takes it for itself or plans of it took more than was
// thought. So what a search chooses is not refused when it is looked at closely.
//
// Lifetime: in the arena it was made with; borrows the cluster.
// Threads:  one.
#ifndef PEN_SCHEDULER_PLAN_PLAN_ROOM_H
#define PEN_SCHEDULER_PLAN_PLAN_ROOM_H

#include "scheduler/plan/plan_model.h"

// How often a placement is searched again with what the last one lacked.
#define PEN_PLAN_ROOM_ROUNDS 4u

typedef struct pen_plan_room {
    pen_cluster cluster;         // with `own_bytes`
    pen_cluster_device *devices; // [device_count] the cluster's
    uint64_t *missing;           // [device_count] bytes that plans lacked since the last learning
} pen_plan_room;

// What devices of these kinds take for themselves. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_room_new(const pen_plan_model *model, const pen_cluster *cluster,
                                           pen_arena *arena, pen_plan_room **out_room);

// Takes what was missing from the stages, too. Returns whether anything was.
bool pen_plan_room_learn(pen_plan_room *room);

#endif // PEN_SCHEDULER_PLAN_PLAN_ROOM_H
