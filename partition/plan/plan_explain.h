// What it would cost to have a node elsewhere.
//
// A node moves with those that must share its device. For every device the whole plan is worked out
// anew with them there: stages, schedule, memory.
//
// Lifetime: in the arena; borrows planner and plan.
#ifndef PEN_PARTITION_PLAN_PLAN_EXPLAIN_H
#define PEN_PARTITION_PLAN_PLAN_EXPLAIN_H

#include "base/format/json_writer.h"
#include "base/text.h"
#include "partition/plan/plan_solution.h"

typedef struct pen_plan_alternative {
    bool is_here;
    const char *why_not;      // NULL: the nodes could be there; else a clause: "pinned to 'a'"
    double node_seconds;      // of what moves, forward and backward of a microbatch
    pen_figure_source source; // of the node's time
    // where something could be worked out (else 0): also of some that are not possible
    double step_seconds;
    double latency_seconds; // of a plan for latency alone
    double load_seconds;    // of the device that has most to do
    double traffic_bytes;   // of a microbatch, all transfers
    uint64_t memory_total;  // on this device
    uint64_t memory_limit;
} pen_plan_alternative;

typedef struct pen_plan_explanation {
    const pen_plan *plan;
    const char *asked; // the name that was given: of the node, or of something that goes with it
    const pen_plan_node *node;
    const char *reason;    // why it is there, worked out anew
    uint32_t member_count; // listed nodes that move together, the node itself too
    const char *const *members;
    const pen_plan_alternative *devices; // [plan's device_count]
    uint32_t here;                       // index in `devices`
} pen_plan_explanation;

// `node` is the name of a node of the plan, or of anything of the model that goes with one: a node
// of the backward pass or an update, a change of layout, a value (with the node that makes it), a
// parameter (with the first that reads it).
//   NOT_FOUND      no such name: near ones are listed
//   INVALID_INPUT  the plan is not of this model or cluster, or breaks its constraints
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_explain(const pen_planner *planner, const pen_plan *plan,
                                          const char *node, pen_arena *arena,
                                          pen_plan_explanation *out_explanation);

void pen_plan_explanation_dump(const pen_plan_explanation *explanation, pen_text *text);
// Writes the keys of an object that the caller began and ends.
void pen_plan_explanation_write_json(const pen_plan_explanation *explanation,
                                     pen_json_writer *json);

#endif // PEN_PARTITION_PLAN_PLAN_EXPLAIN_H
