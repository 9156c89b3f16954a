// One placement of a graph, worked out exactly: stages, transfers, memory of each device under the
// schedule, step time.
//
// A planner is what all solutions of one request share. The step-time function says how many
// microbatches are in flight; the memory model says what they take; where that exceeds a device,
// the solution says by how much.
//
// Lifetime: in the arena they were made with; a planner borrows the request.
// Threads:  one at a time.
#ifndef PEN_PARTITION_PLAN_PLAN_SOLUTION_H
#define PEN_PARTITION_PLAN_PLAN_SOLUTION_H

#include "partition/lower/graph_problem.h"
#include "partition/lower/stage_costs.h"
#include "partition/lower/stage_split.h"
#include "partition/plan/plan.h"
#include "partition/strategies/placement_spec.h"

// Everything borrowed.
typedef struct pen_plan_request {
    const pen_planned_graph *planned;
    const pen_cluster *cluster;
    const pen_cost_model *costs;
    const pen_placement_spec *placement;
    double cut_seconds;    // after which the clock ends a search that is late with the work of its
                           // time limit; 0: as long as that
    uint32_t thread_count; // that search, at least 1
    pen_step_time_fn step_time; // of `schedule`
    const void *step_time_context;
    pen_recompute recompute;
    pen_exchange exchange; // of replicas
    const pen_plan *line;  // a plan of the same job, of a line of devices: searches for other
                           // placements have it in place of one of their own; NULL: none
    bool is_final;         // no other schedule is looked for afterwards: of steps that are alike
                           // (PEN_PLAN_ALIKE) one that sends less is taken

    // what is written into the plan
    const char *schedule; // "1f1b"
    pen_kernel_level level;
    pen_precision precision;
    uint32_t lanes;              // that the microbatches form; 0 is 1
    const char *job;             // paths; NULL: none
    const char *const *settings; // [setting_count] of the job
    uint32_t setting_count;
    const char *model;
    const char *cost_table;
    uint64_t microbatch_size; // examples
    uint64_t process_bytes;   // 0: not known
} pen_plan_request;

typedef struct pen_planner {
    const pen_plan_request *request;
    const pen_forward_owners *owners;
    pen_graph_constraints constraints;
    double *bytes_limit;        // [device_count]
    double *no_limit;           // [device_count] INFINITY
    uint32_t *one_microbatch;   // [device_count] 1
    pen_stage_forming *forming; // on the graph's problem without limits
    const uint32_t *line;       // [node_count of problems] where the request's is; NULL: none
    bool is_recomputing;        // problems are lowered as if all stages were recomputed
    bool is_finer;              // stages are given, and cut finer than their placement's would be
} pen_planner;

typedef struct pen_plan_solution {
    const uint32_t *device_of_node; // [node_count] of the graph
    pen_stage_split split;
    pen_stage_transfers transfers;
    const pen_stage_memory *stage_memory;   // [stage_count], as they are run
    const pen_device_memory *device_memory; // [device_count]
    pen_stage_graph stages;
    pen_step_prediction prediction;
    bool fits;             // every device within its limit
    uint32_t worst_device; // the one that is most above its limit, or fullest
} pen_plan_solution;

// What of the weighted problem differs from one use to the next. Borrowed.
typedef struct pen_planner_wish {
    pen_objective objective;
    bool is_contiguous;
    bool counts_devices;          // the request's bounds of the devices used hold
    const double *bytes_limit;    // [device_count]: the planner's, or others
    const uint32_t *microbatches; // [device_count] in flight
} pen_planner_wish;

// Errors of the constraints (partition/lower/graph_constraints.h). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_planner_new(const pen_plan_request *request, pen_arena *arena,
                                         pen_planner **out_planner);

// The request's graph as a weighted problem. Pass the result to pen_problem_build. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_planner_lower(const pen_planner *planner, const pen_planner_wish *wish,
                                           pen_arena *arena, pen_problem_given *out_given);

// `device_of_node` [node_count of the graph] is borrowed; nodes of one colour are on one device.
// Too much memory is no error but says so in `fits`. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_solve(const pen_planner *planner, const uint32_t *device_of_node,
                                        pen_arena *arena, pen_plan_solution *out_solution);

// The same for stages that are given: of forward nodes; renumbered (pen_stage_split_order). Those
// with a node in `is_recomputed` [node_count] (NULL: none) are recomputed, whatever is asked for.
//   INVALID_INPUT  stages that wait for each other
PEN_NODISCARD pen_status pen_plan_solve_stages(const pen_planner *planner,
                                               const pen_stage_split *split,
                                               const bool *is_recomputed, pen_arena *arena,
                                               pen_plan_solution *out_solution);

#endif // PEN_PARTITION_PLAN_PLAN_SOLUTION_H
