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
    uint64_t *missing;           // [device_count] bytes that the last plan lacked
    uint32_t round;              // 0: the first search
    double limit_seconds;        // of all rounds
    double end_seconds;          // of them, on pen_clock_seconds
} pen_plan_room;

// What devices of these kinds take for themselves. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_room_new(const pen_plan_model *model, const pen_cluster *cluster,
                                           pen_arena *arena, pen_plan_room **out_room);

// The first search begins; all rounds together have so many seconds.
void pen_plan_room_begin(pen_plan_room *room, double limit_seconds);
// Before a placement is searched, of which nothing is missing yet: seconds after which the clock
// ends that. A search of the first round leaves a tenth of the limit for what it may lack; what is
// left then, the other rounds share. What a search does before the clock ends it does not follow
// from this.
double pen_plan_room_cut(pen_plan_room *room);
// Before a schedule is searched: of its own limit what it may take. It is all in the first round,
// later what is left of both limits.
double pen_plan_room_schedule_cut(const pen_plan_room *room, double limit_seconds);

// Takes what was missing from the stages, too. Returns whether anything was.
bool pen_plan_room_learn(pen_plan_room *room);

#endif // PEN_SCHEDULER_PLAN_PLAN_ROOM_H
