// Whether anything fits at all: a search for some right placement, whatever its value.
//
// Packing largest first and cutting lines into segments fail where memory is tight. For small
// problems this search answers truly, and says so.
#ifndef PEN_PARTITION_SEARCH_FITTING_H
#define PEN_PARTITION_SEARCH_FITTING_H

#include "partition/problem/problem.h"

typedef struct pen_fitting {
    bool is_found;    // device_of_group is a right placement
    bool is_complete; // not found means that there is none
} pen_fitting;

// Depth first, at most `visit_limit` steps; `device_of_group` [group_count] is only written when
// something is found. Equal arguments give equal answers. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_fitting_find(const pen_problem *problem, uint64_t visit_limit,
                                          pen_arena *arena, uint32_t *device_of_group,
                                          pen_fitting *out_fitting);

#endif // PEN_PARTITION_SEARCH_FITTING_H
