// Groups that change their devices together: one move of a search that anneals placements.
//
// Many good placements differ in whole stretches of a line or in clusters that hang together; no
// sequence of good moves of single groups leads from one to the other. A region is filled by one of
// the functions below, each group once with the device it goes to; what it does to the objective is
// the search's business, and so is moving the groups.
//
// Lifetime: lives as long as its search, whose placement and generator it borrows.
// Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_SEARCH_REGION_H
#define PEN_PARTITION_SEARCH_REGION_H

#include "base/random.h"
#include "partition/problem/problem.h"

#define PEN_REGION_LIMIT 256 // groups of a region

// Which groups are neighbours.
typedef enum pen_region_ties {
    PEN_REGION_OUTPUTS, // who makes what one reads, who reads what one makes, who reads the same
    PEN_REGION_OWNERS,  // the same but for the last
    PEN_REGION_EDGES,   // who comes directly before or after
} pen_region_ties;

typedef struct pen_region {
    const pen_problem *problem;
    const uint32_t *line;            // [group_count]
    uint32_t *line_at;               // [group_count] position of each group there
    const uint32_t *device_of_group; // [group_count] the placement at hand
    pen_random_sequence *random;
    pen_region_ties ties;
    double *rank; // [device_count] place of each device in their order, where contiguous

    uint32_t count;
    uint32_t group[PEN_REGION_LIMIT];
    uint32_t home[PEN_REGION_LIMIT]; // where it comes from
    uint32_t goal[PEN_REGION_LIMIT]; // where it goes
    uint64_t *mark;                  // [group_count] number of the region that it was last in
    uint64_t mark_last;
} pen_region;

// `line` has every group once: neighbours in it are likely to move together. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_region_init(pen_region *region, const pen_problem *problem,
                                         const uint32_t *line, const uint32_t *device_of_group,
                                         pen_random_sequence *random, pen_arena *arena);

// Empties the region.
static inline void pen_region_clear(pen_region *region) {
    region->count = 0;
    region->mark_last += 1;
}

// Adds a group. False, and nothing is added, when it is there or the region is full.
static inline bool pen_region_add(pen_region *region, uint32_t group, uint32_t goal) {
    if (region->count == PEN_REGION_LIMIT || region->mark[group] == region->mark_last) return false;
    region->mark[group] = region->mark_last;
    region->group[region->count] = group;
    region->home[region->count] = region->device_of_group[group];
    region->goal[region->count++] = goal;
    return true;
}

// A number below `limit`.
static inline uint32_t pen_region_below(pen_region *region, uint32_t limit) {
    return pen_random_next_below(region->random, limit);
}

// A group that is tied to `group`, or itself.
uint32_t pen_region_neighbour(pen_region *region, uint32_t group);

// The device of a neighbour, three times of four; else any.
uint32_t pen_region_device(pen_region *region, uint32_t group);

// Each of the following adds groups of one device, from `group` on, with the goal `device`:
// those that hang together, at most `size` in the region,
void pen_region_add_cluster(pen_region *region, uint32_t group, uint32_t device, uint32_t size);
// or those that follow each other on the line, up or down, at most `size` in the region and with at
// most `passed_limit` groups of other devices between them.
void pen_region_add_stretch(pen_region *region, uint32_t group, uint32_t device, uint32_t size,
                            uint32_t passed_limit);

// Adds `group` and all that must come along to `device` for the order of devices to stay. False
// when that is more than `limit`, at most PEN_REGION_LIMIT.
bool pen_region_close(pen_region *region, uint32_t group, uint32_t device, uint32_t limit);

// Ranks the devices by the placement at hand. False when they have no order.
bool pen_region_rank(pen_region *region);

// Ranks the devices ([device_count]), each another number, so that every forward edge leads to an
// equal or larger one. False, and ranks without meaning, when the devices have no such order.
bool pen_rank_devices(const pen_problem *problem, const uint32_t *device_of_group,
                      double *out_rank);

#endif // PEN_PARTITION_SEARCH_REGION_H
