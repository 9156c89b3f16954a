// Runs graphs for several microbatches and steps on the reference kernels, all values kept: whole
// graphs, or parts of one that hand values over, in any order that the data allow. Knows nothing of
// how a graph was cut but what the cut says.
#ifndef PEN_TESTS_SUPPORT_PART_MACHINE_H
#define PEN_TESTS_SUPPORT_PART_MACHINE_H

#include "device/reference/reference_kernel.h"
#include "graph/passes/cut/cut_stages.h"
#include "tests/support/random_case.h"

typedef struct machine {
    const pen_graph *graph;
    pen_arena *arena;
    uint32_t microbatch_count;
    void **data; // [value_count][microbatch_count]; the same for all where there is one
} machine;

// Memory for all values; parameters and states start with their data.
machine machine_make(const pen_graph *graph, uint32_t microbatch_count, pen_arena *arena);
// Gives parameters and states that came without contents those that `from` has by their names.
void machine_fill(machine *m, const machine *from);
void *machine_data(const machine *m, pen_value_id value, uint32_t microbatch);
// Runs nodes for a microbatch; what replaces a persistent value is copied there at once.
void machine_run(machine *m, const pen_node_id *nodes, uint32_t count, uint32_t microbatch,
                 uint64_t step);

// Runs a step of all parts, tasks in an order drawn from `dice`. `whole` has what is fed: inputs
// by the names of channels, scalars by name. Fails the test when no task can run before all have.
void machine_run_parts(machine *parts, const pen_cut *cut, const machine *whole, random_case *dice,
                       uint64_t step);

#endif // PEN_TESTS_SUPPORT_PART_MACHINE_H
