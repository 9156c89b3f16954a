// Stage graphs for tests of schedules.
#ifndef PEN_TESTS_SUPPORT_STAGE_CHAIN_H
#define PEN_TESTS_SUPPORT_STAGE_CHAIN_H

#include "base/arena.h"
#include "partition/problem/stage_graph.h"

// A chain of equal stages, each on a device of its own. A transfer takes `transfer_seconds` each
// way. Stages have 100 fixed bytes, 10 of workspace and 100 for each microbatch; devices no limit.
const pen_stage_graph *stage_chain(pen_arena *arena, uint32_t stage_count,
                                   uint32_t microbatch_count, double forward_seconds,
                                   double backward_seconds, double transfer_seconds);

// A random one, drawn by `seed`: up to 9 stages on up to 4 devices, of whole, sometimes no,
// seconds; some edges carry no gradient, some stages have no backward pass or no updates; some have
// updates in phases. Devices have no limit.
// The arrays may be changed.
pen_stage_graph *stage_graph_random(pen_arena *arena, uint64_t seed);

// The same with seats, rates of lines, latencies and what devices compute for transfers, and with
// seconds that are no whole numbers: no two things happen at one moment by chance.
pen_stage_graph *stage_graph_priced(pen_arena *arena, uint64_t seed);

#endif // PEN_TESTS_SUPPORT_STAGE_CHAIN_H
