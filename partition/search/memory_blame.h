// Why a problem does not fit, and packings that look for room and nothing else.
#ifndef PEN_PARTITION_SEARCH_MEMORY_BLAME_H
#define PEN_PARTITION_SEARCH_MEMORY_BLAME_H

#include "partition/problem/problem.h"

// Packs all groups into the devices that may run them, so that the device that is most over its
// memory is as little over as can be found: largest first, then moves and swaps. Neither an order
// of devices nor how many are used is looked at. Returns in *out_excess by how many bytes that
// device is over, at most 0 when all fit; INFINITY when a group can run on none of them, and the
// packing is not complete then. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_memory_pack(const pen_problem *problem, pen_arena *arena,
                                         uint32_t *device_of_group, double *out_excess);

// An error that says why nothing fits: a proof where there is one (all nodes need more than all
// devices have, or those pinned to one device more than it has), else the placement that exceeds
// memory least, the device and the nodes that stand in the way. `what` comes first in the message.
//   DOES_NOT_FIT   always, but
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_memory_blame(const pen_problem *problem, const char *what,
                                          pen_arena *arena);

#endif // PEN_PARTITION_SEARCH_MEMORY_BLAME_H
