// Problems that stand in for another one: for searches that know only loads, or only some devices.
// Groups, nodes and edges are shared; groups have the same numbers.
//
// Lifetime: a stand-in lives in the arena it was made with, and borrows what it stands for.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_SEARCH_REDUCED_PROBLEM_H
#define PEN_PARTITION_SEARCH_REDUCED_PROBLEM_H

#include "partition/problem/problem.h"

// Throughput and latency stand for themselves. Step time becomes throughput, as
// pen_problem_as_throughput has it. Traffic becomes latency on devices that compute for nothing and
// pay for what they receive: the sum of a chain of segments is its traffic. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_reduced_problem_new(const pen_problem *problem, pen_arena *arena,
                                                 const pen_problem **out_problem);

// The problem on `count` of its devices alone, in the order given; no more of them than that may be
// used. Groups must not be pinned to others. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_reduced_problem_on(const pen_problem *problem, const uint32_t *devices,
                                                uint32_t count, pen_arena *arena,
                                                const pen_problem **out_problem);

// How devices are chosen when not all may be used.
typedef enum pen_device_taste {
    PEN_DEVICE_TASTE_FAST,     // least time for all nodes
    PEN_DEVICE_TASTE_LARGE,    // most memory, then fast
    PEN_DEVICE_TASTE_BALANCED, // least time for each byte of memory
    PEN_DEVICE_TASTE_COUNT,
} pen_device_taste;

// The `count` devices to use first ([count], ascending): those that groups are pinned to, then by
// taste. False when more are pinned to. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_reduced_problem_choose(const pen_problem *problem, uint32_t count,
                                                    pen_device_taste taste, pen_arena *arena,
                                                    uint32_t *out_devices, bool *out_is_possible);

// The different choices that there are: fills out_devices [PEN_DEVICE_TASTE_COUNT][count]. None
// when more are pinned to. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_reduced_problem_choices(const pen_problem *problem, uint32_t count,
                                                     pen_arena *arena, uint32_t *out_devices,
                                                     uint32_t *out_choice_count);

#endif // PEN_PARTITION_SEARCH_REDUCED_PROBLEM_H
