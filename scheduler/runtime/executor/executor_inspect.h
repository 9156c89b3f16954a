// The contract of executor_inspect.c and executor_guard.c.
//
// Looking at what an executor computes: guards, which stop it before a gradient that is not finite
// is applied, and inspection, which looks at all that every node makes.
//
// Guards look at as little as proves enough. A gradient that is a product of matrices cannot be
// infinite when its factors are finite and their magnitudes far enough from the largest number:
// where the factors are smaller than the product, they are looked at right after the product was
// made, from cache, and the product itself only where that proves nothing. Others are looked at
// before the first update. Where gradients are clipped, their norms are there already. Numbers are
// not changed.
//
// Threads: as in executor.h.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_INSPECT_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_INSPECT_H

#include "scheduler/runtime/executor/executor.h"
#include "scheduler/runtime/executor/finite.h"

// From now on pen_executor_run fails with NOT_FINITE, naming it, before it applies a gradient that
// is not finite: before the first update of a list where gradients are there when the list begins;
// where updates are made as gradients come, before that update, and then also before any, if it
// can, when `stop` (a scalar, the loss; or none) is not finite. Once. A device that runs lists as
// one looks itself, at all of it, without being awaited; then pen_executor_finish fails, and until
// then updates are not applied. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_executor_guard(pen_executor *executor, pen_value_id stop);
bool pen_executor_is_guarded(const pen_executor *executor);
// Whether lists run as one, so that the device looks itself: pen_executor_finish says what it
// found.
bool pen_executor_is_late(const pen_executor *executor);
// Whether the run that failed had made an update before.
bool pen_executor_has_updated(const pen_executor *executor);

// What came of a node in an inspected run.
typedef struct pen_node_inspection {
    bool was_run;
    bool is_bad;   // an output has an element that is not finite, and should not
    uint64_t hash; // of all outputs, but those that replace a parameter or state
} pen_node_inspection;

typedef struct pen_executor_inspection {
    bool is_loss_finite;        // what is infinite in the forward pass is meant to be: masks
    pen_node_inspection *nodes; // [order_count], by position; those that ran are written
    uint32_t bad;               // the first bad node, written; UINT32_MAX: none
    uint64_t *checksums; // [value_count] of what nodes made, as pen_checksum_whole; NULL: not
                         // wanted
} pen_executor_inspection;

// Runs a list node by node, but for updates. Ends after the first bad node.
//   UNSUPPORTED  the device's memory is not the host's
PEN_NODISCARD pen_status pen_executor_inspect(pen_executor *executor, uint32_t list,
                                              uint64_t microbatch, const pen_run_context *run,
                                              pen_executor_inspection *inspection);

// In words, right after an inspected run that ended with the node: what is wrong with its outputs,
// and whether that came from data, parameters, or the node itself. In `arena`.
PEN_NODISCARD pen_status pen_executor_describe_bad(const pen_executor *executor, uint32_t position,
                                                   uint64_t microbatch, pen_arena *arena,
                                                   const char **out_text);
// "conv 'layer1.0.conv1'"
PEN_NODISCARD pen_status pen_executor_describe_node(const pen_executor *executor, uint32_t position,
                                                    pen_arena *arena, const char **out_text);

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_EXECUTOR_INSPECT_H
