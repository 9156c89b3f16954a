// Random run tables for tests of the protocol: a random graph of stages, a schedule of it by one of
// the generators, random workers and places.
#ifndef PEN_TESTS_SUPPORT_RANDOM_RUN_TABLE_H
#define PEN_TESTS_SUPPORT_RANDOM_RUN_TABLE_H

#include "base/arena.h"
#include "scheduler/protocol/run_table.h"

// Form 0 trains, form 1 runs the forward tasks alone. With `is_roomy` each channel has a place for
// every microbatch, so that the schedule's order can finish; else random ones, and it may not.
pen_run_table *random_run_table(pen_arena *arena, uint64_t seed, bool is_roomy);

// The same from a chain of `stage_count` stages, each on a device and worker of its own.
pen_run_table *chain_run_table(pen_arena *arena, uint32_t stage_count, uint32_t microbatch_count,
                               uint32_t places);

#endif // PEN_TESTS_SUPPORT_RANDOM_RUN_TABLE_H
