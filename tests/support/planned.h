// Plans of the reference models within a test.
#ifndef PEN_TESTS_SUPPORT_PLANNED_H
#define PEN_TESTS_SUPPORT_PLANNED_H

#include "scheduler/plan/plan_job.h"

extern const char *const planned_models[]; // names in tests/reference, ended by NULL

// Four unequal devices with room for all, and stated rates and links: figures that are the same on
// every machine.
#define PLANNED_FOUR_DEVICES                                                                       \
    "devices:\n"                                                                                   \
    "  - {name: a, memory: 64MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"              \
    "  - {name: b, memory: 32MiB, threads: 1, flops: 40G, memory_bandwidth: 8GB/s}\n"              \
    "  - {name: c, memory: 16MiB, threads: 1, flops: 10G, memory_bandwidth: 8GB/s}\n"              \
    "  - {name: d, memory: 64MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}\n"              \
    "links:\n"                                                                                     \
    "  - {between: [\"[a-z]\", \"[a-z]\"], bandwidth: 2GB/s, latency: 20us}\n"
#define PLANNED_ONE_DEVICE "devices: [{name: a, threads: 2, memory: 1GiB}]\n"

// A job on a reference model: one step of Adam over 12 examples, then `rest`. Fails the test on
// error, as all here does.
const pen_job *planned_reference(pen_arena *arena, const char *model, uint32_t microbatches,
                                 const char *rest);
// The same with lanes.
const pen_job *planned_lanes(pen_arena *arena, const char *model, uint32_t microbatches,
                             uint32_t lanes, const char *rest);
// A job on the tiny model (tests/support/tiny_model.h), which uses a weight twice.
const pen_job *planned_tiny(pen_arena *arena, uint32_t microbatches, const char *rest);

pen_plan_job *planned_start(const pen_job *job);
pen_plan *planned_place(pen_plan_job *plan_job, pen_arena *arena);
// The request under 1f1b, and its planner.
const pen_plan_request *planned_request(pen_plan_job *plan_job);
pen_planner *planned_planner(pen_plan_job *plan_job, pen_arena *arena);

// A listed node by name.
uint32_t planned_node(const pen_planner *planner, const char *name);

#endif // PEN_TESTS_SUPPORT_PLANNED_H
