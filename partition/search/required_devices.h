// Using more devices than a placement does, where as many must be used.
#ifndef PEN_PARTITION_SEARCH_REQUIRED_DEVICES_H
#define PEN_PARTITION_SEARCH_REQUIRED_DEVICES_H

#include "partition/problem/problem.h"

// Moves single groups to empty devices until `devices_used_minimum` devices are used: of a right
// placement, those whose results and inputs cost least to move. A contiguous one stays so, since
// only groups that nothing on their device waits for, or that wait for nothing there, are taken.
//   DOES_NOT_FIT   no such groups are left
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_use_required_devices(const pen_problem *problem, pen_arena *arena,
                                                  uint32_t *device_of_group);

#endif // PEN_PARTITION_SEARCH_REQUIRED_DEVICES_H
