// The finish time of one sample under a placement.
//
// The nodes of a device form pieces: two nodes are in one piece when the most times that a path to
// them leaves the device (and comes back) are equal. A piece waits for all its inputs, reads them,
// computes, and writes what others read, uninterrupted:
//     Σ transfer of foreign nodes it reads · receive + Σ compute · slowness
//   + Σ transfer of its nodes that others read · send
// Pieces of one device run one after another, in that order. On a parallel device every node is a
// piece of its own, pays no transfer, and waits for nothing but its inputs. Should pieces wait for
// each other in a circle, the number of times that a path changes device takes the place of the
// number above; that never blocks. Links cost cost · link[from][to] on the side of the reader.
//
// Lifetime: an evaluator lives in its arena and borrows the problem.
// Threads:  an evaluator belongs to one thread at a time.
#ifndef PEN_PARTITION_OBJECTIVE_LATENCY_H
#define PEN_PARTITION_OBJECTIVE_LATENCY_H

#include "partition/problem/problem.h"

typedef struct pen_latency pen_latency;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_latency_new(const pen_problem *problem, pen_arena *arena,
                                         pen_latency **out_latency);

// The finish time of the last node. Also the sum of all pieces' times, which a search may use to
// tell placements of equal latency apart; out_total may be NULL.
double pen_latency_evaluate(pen_latency *latency, const uint32_t *device_of_node,
                            double *out_total);

#endif // PEN_PARTITION_OBJECTIVE_LATENCY_H
