// Why a step came out wrong: it is computed again, and every node's outputs are looked at. The same
// bits again are the numbers' fault, and the first node with one that is not finite is named; other
// bits are the hardware's.
//
// Threads: one.
#ifndef PEN_SCHEDULER_ENGINE_DIAGNOSE_STEP_H
#define PEN_SCHEDULER_ENGINE_DIAGNOSE_STEP_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/runtime/executor/executor_inspect.h"

// A step that can be computed again. A part is a microbatch, or, behind them, what follows all of
// them without changing anything (norms of gradients).
typedef struct pen_diagnosed_step {
    uint64_t step;
    const char *device; // "device 'a'", for people: who computed it, and computes it again
    const char *first;  // who computed it first, where that is another; NULL: device
    uint32_t part_count;
    uint32_t loss_count;  // parts, from the first, whose loss is known
    const double *losses; // [loss_count] as they came out first; 0: not known either
    uint32_t node_limit;  // positions in the longest order of all parts
    void *context;
    // Computes a part again, up to the first bad node. *out_loss: of parts with a loss, when no
    // node is bad.
    PEN_NODISCARD pen_status (*run)(void *context, uint32_t part, pen_node_inspection *nodes,
                                    uint32_t *out_bad, double *out_loss);
    // Right after `run`, as pen_executor_describe_bad and _node.
    PEN_NODISCARD pen_status (*describe_bad)(void *context, uint32_t part, uint32_t position,
                                             pen_arena *arena, const char **out_text);
    PEN_NODISCARD pen_status (*describe_node)(void *context, uint32_t part, uint32_t position,
                                              pen_arena *arena, const char **out_text);
    // Right after two runs that agree with each other and not with the first: who made other bits
    // first, and of what: "device 'a'", "value 'x'". *out_who NULL: not known. NULL member: never.
    PEN_NODISCARD pen_status (*find_odd)(void *context, uint32_t part, pen_arena *arena,
                                         const char **out_who, const char **out_what);
} pen_diagnosed_step;

// Never PEN_OK.
//   NOT_FINITE   the numbers: names the node, what is wrong and where that came from
//   UNAVAILABLE  the same thing was computed differently: the hardware
PEN_NODISCARD pen_status pen_diagnose_step(const pen_diagnosed_step *step);

#endif // PEN_SCHEDULER_ENGINE_DIAGNOSE_STEP_H
