#include "scheduler/train/train_losses.h"

#include <string.h>

#include "base/memory.h"

#define LOSSES_HASH_START 0xcbf29ce484222325u
#define LOSSES_HASH_FACTOR 0x100000001b3u

static double losses_value(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// A step that is done again, after a loss of a worker, must give the same bits: other bits mean
// that some machine computes wrongly. The last losses are kept in a ring.
pen_status pen_train_losses_add(pen_train_losses *losses, uint64_t step, double loss) {
    uint64_t bits;
    memcpy(&bits, &loss, sizeof bits);
    if (losses->bits == NULL) {
        losses->bits = pen_memory_allocate(PEN_TRAIN_LOSSES_KEPT, sizeof *losses->bits);
        if (losses->bits == NULL) return pen_error_out_of_memory();
        losses->first = step;
        losses->end = step;
    }
    uint64_t *place = &losses->bits[step % PEN_TRAIN_LOSSES_KEPT];
    if (step >= losses->first && step < losses->end && *place != bits) {
        return pen_error(PEN_CORRUPT,
                         "the loss of step %llu was %.17g before it was done again, and is %.17g: "
                         "some process or memory is not to be trusted",
                         (unsigned long long)step, losses_value(*place), loss);
    }
    if (step < losses->first || step > losses->end) losses->first = losses->end = step;
    *place = bits;
    if (step >= losses->end) losses->end = step + 1;
    if (losses->end - losses->first > PEN_TRAIN_LOSSES_KEPT) {
        losses->first = losses->end - PEN_TRAIN_LOSSES_KEPT;
    }
    losses->hash = (losses->hash ^ bits) * LOSSES_HASH_FACTOR;
    return PEN_OK;
}

void pen_train_losses_rewind(pen_train_losses *losses, uint64_t step, uint64_t hash) {
    losses->hash = step == 0 ? LOSSES_HASH_START : hash;
}

uint64_t pen_train_losses_hash(const pen_train_losses *losses) {
    return losses->hash;
}

void pen_train_losses_forget(pen_train_losses *losses) {
    losses->first = losses->end;
}

void pen_train_losses_deinit(pen_train_losses *losses) {
    pen_memory_free(losses->bits);
    losses->bits = NULL;
}
