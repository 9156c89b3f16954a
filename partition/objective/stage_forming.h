// The stages that a placement makes: which nodes run as a unit, and in which order.
//
// Where the devices, linked as the forward nodes on them are, have an order, each has one stage.
// Devices that wait for each other in a circle are cut by levels: a node's level is the most times
// that a path to it, within the circle, changes device, and a loop's the highest of its nodes; a
// device has a stage for each level there.
// So edges between forward nodes always lead to the same stage or a higher one.
//
// A backward node or an update goes with the forward nodes of its group, with the last of their
// stages; one that has none with the last stage of its device. A device without forward nodes has
// one stage, behind all others.
//
// Lifetime: a former lives in its arena and borrows the problem.
// Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_OBJECTIVE_STAGE_FORMING_H
#define PEN_PARTITION_OBJECTIVE_STAGE_FORMING_H

#include "partition/problem/problem.h"

typedef struct pen_stage_forming {
    const pen_problem *problem;
    pen_arena *scratch;
    uint32_t stage_count;
    uint32_t *stage_of_node;   // [node_count]
    uint32_t *device_of_stage; // [node_count], of stages
    uint32_t *stage_first; // [node_count + 1]: the nodes of stage s are nodes[stage_first[s]] …
    uint32_t *nodes;       // [node_count] by stage, ascending in each

    uint32_t forward_count;   // forward nodes:
    uint32_t *forward;        // [forward_count] ascending,
    pen_problem_lists after;  // and which of them read the i-th
    uint32_t *forward_order;  // [forward_count] topological,
    pen_problem_lists before; // and which of them the i-th reads
    uint32_t *other;          // [node_count - forward_count] all others, ascending

    uint32_t *level;         // [node_count] scratch
    uint32_t *loop_level;    // [node_count + 1] scratch, of loops; NULL: there are none
    uint32_t *rank;          // [node_count] scratch
    uint32_t *sorted;        // [node_count] scratch
    uint32_t *stage_anchor;  // [group_count] scratch
    uint32_t *stage_last;    // [device_count] last stage of a device
    pen_problem_edge *edges; // [edges of the problem] scratch
} pen_stage_forming;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_forming_new(const pen_problem *problem, pen_arena *arena,
                                               pen_stage_forming **out_forming);

// Forms the stages of a placement of all nodes; what the last call formed is gone. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_forming_run(pen_stage_forming *forming,
                                               const uint32_t *device_of_node);

#endif // PEN_PARTITION_OBJECTIVE_STAGE_FORMING_H
