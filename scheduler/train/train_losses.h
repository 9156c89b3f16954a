// The losses of a training's steps, so that a step that is done again is seen to be the same: to
// the last bit, whatever devices it was done on.
//
// Keeps the last PEN_TRAIN_LOSSES_KEPT; and a hash of all of them, which goes into checkpoints.
//
// Threads: one.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_LOSSES_H
#define PEN_SCHEDULER_TRAIN_TRAIN_LOSSES_H

#include <stdint.h>

#include "base/status.h"

#define PEN_TRAIN_LOSSES_KEPT 16384u

typedef struct pen_train_losses {
    uint64_t *bits; // [PEN_TRAIN_LOSSES_KEPT] that of step s at s mod it; NULL: none yet
    uint64_t first; // the oldest step that is kept
    uint64_t end;   // behind the last
    uint64_t hash;  // of those of the steps done
} pen_train_losses;

// The loss of the step that follows those done. CORRUPT: it was another before. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_train_losses_add(pen_train_losses *losses, uint64_t step, double loss);
// Goes back to where `step` steps were done, with their hash; losses behind it stay known. 0, 0: to
// the beginning.
void pen_train_losses_rewind(pen_train_losses *losses, uint64_t step, uint64_t hash);
// Steps that are done again may have other losses than before.
void pen_train_losses_forget(pen_train_losses *losses);
uint64_t pen_train_losses_hash(const pen_train_losses *losses);
void pen_train_losses_deinit(pen_train_losses *losses);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_LOSSES_H
