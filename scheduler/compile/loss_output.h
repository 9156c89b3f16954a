// Which output of a model the loss is taken of: whether it is likely what the job means.
#ifndef PEN_SCHEDULER_COMPILE_LOSS_OUTPUT_H
#define PEN_SCHEDULER_COMPILE_LOSS_OUTPUT_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/import/import.h"
#include "graph/passes/gradient/attach_loss.h"

typedef struct pen_loss_output {
    const pen_model *model;
    const pen_graph *graph; // as compiled so far, before the loss
    pen_value_id output;    // that was chosen
    bool is_named;          // by the job; else it is the first
    pen_loss_kind loss;
} pen_loss_output;

#define PEN_LOSS_OUTPUT_WARNINGS 2u

// Refuses the first of outputs that are mere guesses. Writes what is likely not meant:
// [PEN_LOSS_OUTPUT_WARNINGS] texts in `arena`.
//   INVALID_INPUT  neither the model nor the job says which of several outputs is meant
PEN_NODISCARD pen_status pen_loss_output_check(const pen_loss_output *chosen, pen_arena *arena,
                                               const char **out_warnings, uint32_t *out_count);

#endif // PEN_SCHEDULER_COMPILE_LOSS_OUTPUT_H
