// The time of a training step under a placement: stages with their costs, judged by a schedule.
//
// A placement's stages (partition/objective/stage_forming.h) cost the sums over their nodes, by
// role: compute · slowness forward, backward for inputs, backward for weights, and once a step for
// updates. What moves between two stages is an edge from the lower to the higher:
//   forward   results of forward nodes that the higher stage reads, each once
//   backward  what the lower stage's backward nodes read of the higher one's nodes, each once
//   seconds   Σ cost · (link + send + receive), where the devices differ
//   handling  the link's latency once; what the devices compute (pen_stage_handling_add), for each
// What flows otherwise (to an update; from a backward node to a higher stage) has no place in a
// schedule, and all that moving it takes counts as work of the reader.
//
// A stage's memory: `fixed_bytes` are Σ bytes and a buffer for each gradient that comes from
// another device, `activation_bytes` Σ bytes_in_flight and what forward nodes of other devices send
// it, `workspace_bytes` the largest of its nodes'. How many microbatches are in flight the schedule
// decides; `microbatches` of the devices do not count here.
//
// A step-time function must keep what every schedule keeps, for the lower bounds to be true: a
// device does one thing at a time, each stage its forward and both halves of its backward for every
// microbatch and its update once, after all of them; forward work waits for the forward work, and
// the transfer, of all edges into the stage, backward work for that of its own forward and of all
// edges with backward bytes out of it.
//
// Lifetime: an evaluator lives in its arena and borrows the problem.
// Threads:  an evaluator belongs to one thread at a time.
#ifndef PEN_PARTITION_OBJECTIVE_STEP_TIME_H
#define PEN_PARTITION_OBJECTIVE_STEP_TIME_H

#include "partition/problem/problem.h"

typedef struct pen_step_time pen_step_time;

// For any problem, also of another objective. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_step_time_new(const pen_problem *problem, pen_arena *arena,
                                           pen_step_time **out_step);

// The stage graph of a placement of all nodes, and the stage of each node ([node_count]; may be
// NULL). Both belong to the evaluator and change with the next call. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_step_time_stages(pen_step_time *step, const uint32_t *device_of_node,
                                              const pen_stage_graph **out_graph,
                                              const uint32_t **out_stage_of_node);

// Calls the problem's step-time function, which must be there. The prediction belongs to the
// evaluator and changes with the next call.
//   DOES_NOT_FIT   the function's: no order of tasks keeps the devices within their memory
//   INTERNAL       the function made no sense
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_step_time_evaluate(pen_step_time *step, const uint32_t *device_of_node,
                                                const pen_step_prediction **out_prediction);

// The second half of pen_step_time_evaluate: of the stages that pen_step_time_stages made last.
PEN_NODISCARD pen_status pen_step_time_simulate(pen_step_time *step,
                                                const pen_step_prediction **out_prediction);

// What the value of the stages that were made last is at least, under any schedule, without
// simulating one: no device begins before what it waits for, and then it does all its work.
double pen_step_time_least(pen_step_time *step);

// The objective's value of the placement that was last evaluated: the step's seconds, or what
// `sparing` of the problem makes of them, which is never less.
double pen_step_time_value(const pen_step_time *step);

// The stages of the placement that was last looked at. They change with the next.
const pen_stage_graph *pen_step_time_graph(const pen_step_time *step);

#endif // PEN_PARTITION_OBJECTIVE_STEP_TIME_H
