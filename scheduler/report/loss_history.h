// The losses of a training, for its page: what is trained, and each of several losses by itself.
//
// However many steps there are, at most PEN_LOSS_HISTORY_POINTS points are kept: when there would
// be more, neighbours become their mean. So all steps are in it, each with the same weight.
//
// Lifetime: in the arena it was made in.
// Threads:  one.
#ifndef PEN_SCHEDULER_REPORT_LOSS_HISTORY_H
#define PEN_SCHEDULER_REPORT_LOSS_HISTORY_H

#include <stdint.h>

#include "base/arena.h"
#include "base/format/json_writer.h"
#include "base/status.h"

#define PEN_LOSS_HISTORY_POINTS 1024 // an even number

typedef struct pen_loss_history pen_loss_history;

// `names` [count] are borrowed: of several losses; none where there is one alone. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_loss_history_new(const char *const *names, uint32_t count,
                                              pen_arena *arena, pen_loss_history **out_history);

// Steps come in order. `terms` [count]. Allocates nothing. Of a `history` of NULL nothing is kept.
void pen_loss_history_add(pen_loss_history *history, uint64_t step, double loss,
                          const double *terms);

// "losses": {"first_step": 1, "last_step": 9, "series": [{"name": "loss", "points": [[1, 2.3], …]},
// …]}: the loss that is trained first, each point with the mean of its steps' numbers. Nothing
// where there are no steps, or `history` is NULL.
void pen_loss_history_write(const pen_loss_history *history, pen_json_writer *json);

#endif // PEN_SCHEDULER_REPORT_LOSS_HISTORY_H
