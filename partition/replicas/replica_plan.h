// Plans of replicas: each planned as if alone, put together with what they exchange.
//
// A replica is planned over its own devices and microbatches (replica_view.h). The plans become
// one: stages are numbered through, devices are those of the whole, owners are chosen and exchange
// over step edges (replica_exchange.h). The whole is simulated and its memory checked; where a
// device is above its limit, its replica is planned again with so much less.
//
// Lifetime: in the arena; plans borrow the texts of the request and of the graph.
// Threads:  one at a time.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_PLAN_H
#define PEN_PARTITION_REPLICAS_REPLICA_PLAN_H

#include "partition/plan/plan_solution.h"

// What plans of one request share. Everything borrowed, but for what it works out.
typedef struct pen_replica_planner {
    const pen_plan_request *request;
    const pen_forward_owners *owners;
    double lower_bound;
} pen_replica_planner;

// Errors of the constraints, as pen_planner_new. UNSUPPORTED: another objective than step time.
PEN_NODISCARD pen_status pen_replica_planner_new(const pen_plan_request *request, pen_arena *arena,
                                                 pen_replica_planner **out_planner);

// Plans one replica of `replica_count`. `reserved` as in pen_replica_view_new. As pen_plan_build.
PEN_NODISCARD pen_status pen_replica_plan_one(const pen_replica_planner *planner,
                                              const pen_plan_replica *replica,
                                              uint32_t replica_count, const uint64_t *reserved,
                                              pen_arena *arena, const pen_plan **out_plan);

// Replicas with a plan of each, which may be of another replica that is alike: as many devices, in
// an order that fits. Borrowed.
typedef struct pen_replica_parts {
    uint32_t replica_count;
    const pen_plan_replica *replicas; // lanes and devices
    const pen_plan *const *plans;     // [replica_count]
    uint32_t owner_count;             // devices of no replica that update; 0: replicas do
    const uint32_t *owners;           // [owner_count] ascending
    const uint32_t *owner; // [nodes of the graph] who updates listed nodes: replicas, or places in
                           // `owners`; NULL: chosen
    uint64_t *excess;      // [devices of the whole] is filled: bytes above the limits; NULL: is not
} pen_replica_parts;

//   DOES_NOT_FIT   names the device and its replica; `excess` says the rest
//   UNSUPPORTED    as pen_replica_exchange_find
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_plan_join(const pen_replica_planner *planner,
                                               const pen_replica_parts *parts, pen_arena *arena,
                                               pen_plan **out_plan);

#endif // PEN_PARTITION_REPLICAS_REPLICA_PLAN_H
