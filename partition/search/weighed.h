// What a search found out of placements that it weighed: it often comes to the same one again, and
// need not form its stages and simulate its step anew.
//
// There is room for so many placements, each in the place that its devices lead to, where a later
// one drives it out. Placements are compared group by group, so nothing is taken for another.
//
// Lifetime: in the arena it was made with. Threads: belongs to one thread at a time.
#ifndef PEN_PARTITION_SEARCH_WEIGHED_H
#define PEN_PARTITION_SEARCH_WEIGHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// What is known of a placement. All zero: nothing.
typedef struct pen_weighed_value {
    uint32_t *device_of_group; // [group_count] the placement
    double least;              // its value is not below this
    double value;              // where it is known
    uint32_t stage_count;
    bool is_formed; // `least` and `stage_count` are known
    bool is_known;  // the value is
    bool fits;      // a schedule does, where the value is known
} pen_weighed_value;

typedef struct pen_weighed {
    uint32_t group_count;
    uint32_t place_mask;
    pen_weighed_value *values; // by place
    pen_arena *arena;
} pen_weighed;

// Room for placements of so many groups, of which about `wanted_count` will be weighed.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_weighed_init(pen_weighed *weighed, uint32_t group_count,
                                          uint64_t wanted_count, pen_arena *arena);

// What is known of a placement of all groups, to be filled in where it is not. Good until the next
// call. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_weighed_find(pen_weighed *weighed, const uint32_t *device_of_group,
                                          pen_weighed_value **out_value);

#endif // PEN_PARTITION_SEARCH_WEIGHED_H
