// What a job says of replicas, against its devices and lanes.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_SPEC_H
#define PEN_PARTITION_REPLICAS_REPLICA_SPEC_H

#include <stdbool.h>

#include "partition/costs/cluster.h"
#include "partition/strategies/placement_spec.h"

// Whether devices own parameters and run no replica (placement.owners names them).
bool pen_replicas_have_owners(const pen_placement_spec *placement);

// Whether a step of `lane_count` lanes may be planned as replicas: several, or with owners.
bool pen_replicas_are_asked(const pen_placement_spec *placement, uint32_t lane_count);

// Those devices, ascending, each once; none where the replicas own. *out_field is the entry of an
// error. [*out_count]
//   NOT_FOUND      an owner that is no device: near names are listed
//   INVALID_INPUT  a pattern that is none; `replicas` beside names
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replicas_find_owners(const pen_placement_spec *placement,
                                                  const pen_cluster *cluster, pen_arena *arena,
                                                  const uint32_t **out_owners, uint32_t *out_count,
                                                  const void **out_field);

// Whether placement.replicas and placement.owners can be of `cluster` and a step of `lane_count`
// lanes; *out_field is the one that cannot.
//   INVALID_INPUT  more replicas than lanes or devices: how many there may be; owners that leave no
//                  device for a replica, or to which something is pinned
//   NOT_FOUND      as pen_replicas_find_owners
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replicas_check_spec(const pen_placement_spec *placement,
                                                 const pen_cluster *cluster, uint32_t lane_count,
                                                 pen_arena *arena, const void **out_field);

#endif // PEN_PARTITION_REPLICAS_REPLICA_SPEC_H
