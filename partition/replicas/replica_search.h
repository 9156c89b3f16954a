// Which devices form which replica, and how many lanes each has.
//
// Devices are put in the order of their hosts and divided into as many runs as there are replicas,
// equal ones and such of equal speed; lanes go by speed, each replica has one at least. Then
// devices and lanes move between replicas while the simulated step falls. `auto` does so for
// numbers of replicas that divide devices or lanes (of few devices: for all), plans the best again
// with more time, and takes the best of them and of no replicas: it is never worse than the best of
// what it began with, equal replicas among them.
//
// Replicas that are alike (devices, links and number of microbatches) are planned once. The number
// of plans that are tried is limited, not the time: the result does not depend on the machine.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_SEARCH_H
#define PEN_PARTITION_REPLICAS_REPLICA_SEARCH_H

#include "partition/plan/plan_solution.h"

// Of a request with more than one lane and placement->replicas other than 1, or with owners
// (placement->owners), which no replica runs on; with them, there may be one replica.
//   INVALID_INPUT  more replicas than lanes or devices; as pen_plan_build
//   DOES_NOT_FIT   says why the last that was tried does not
//   UNSUPPORTED    as pen_replica_planner_new
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_search(const pen_plan_request *request, pen_arena *arena,
                                            pen_plan **out_plan);

#endif // PEN_PARTITION_REPLICAS_REPLICA_SEARCH_H
