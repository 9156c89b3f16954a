// The links of a cluster while it is made, and what plans ask of them, worked out once.
#ifndef PEN_PARTITION_COSTS_CLUSTER_LINKS_H
#define PEN_PARTITION_COSTS_CLUSTER_LINKS_H

#include "partition/costs/cluster.h"

// Links that may still change. A pair is given another link by its place in link_of_pair; a link
// itself, which other pairs may have, never changes.
typedef struct pen_link_set {
    pen_arena *arena;
    uint32_t device_count;
    uint32_t count;
    uint32_t capacity;
    const pen_cluster_link *links; // [count]
    pen_cluster_link *room;        // [capacity] where they are; NULL: they are another's
    uint32_t *link_of_pair;        // [device_count][device_count], from row to column; 0 at first
} pen_link_set;

// Without links. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_link_set_init(pen_link_set *set, uint32_t device_count,
                                           pen_arena *arena);

// The links of `cluster`, which are borrowed, between `devices` [count] of it: device i is then
// number i. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_link_set_cut(const pen_cluster *cluster, const uint32_t *devices,
                                          uint32_t count, pen_arena *arena, pen_link_set *out_set);

// A new link and its number. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_link_set_add(pen_link_set *set, const pen_cluster_link *link,
                                          uint32_t *out_number);

// Gives a cluster with its devices these links, and its tables. The set is not used again.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cluster_link_up(pen_cluster *cluster, const pen_link_set *set);

// What of a cluster a plan depends on: names, kinds, hosts, and the threads and figures that the
// user stated. Not what was measured or assumed: the same file means the same cluster on every
// machine, and on a busy day.
uint64_t pen_cluster_hash(const pen_cluster *cluster);

#endif // PEN_PARTITION_COSTS_CLUSTER_LINKS_H
