// Checkpoints: workers copy, write, and say what they wrote.

#include "scheduler/runtime/coordinator_link.h"

pen_status pen_coordinator_save(pen_coordinator *coordinator, uint64_t step, const char *folder) {
    (void)step;
    (void)folder;
    coordinator->saved.state = PEN_SAVE_FAILED;
    coordinator->saved.step = step;
    coordinator->saved.failure = "workers cannot save yet";
    return pen_coordinator_await_quiet(coordinator);
}

void pen_coordinator_poll_saved(pen_coordinator *coordinator, pen_coordinator_saved *out_saved) {
    *out_saved = coordinator->saved;
}

pen_status pen_coordinator_await_saved(pen_coordinator *coordinator,
                                       pen_coordinator_saved *out_saved) {
    *out_saved = coordinator->saved;
    return PEN_OK;
}

void pen_coordinator_committed(pen_coordinator *coordinator, uint64_t step) {
    PEN_ASSERT(coordinator->saved.step == step);
    coordinator->saved.state = PEN_SAVE_NONE;
}

void pen_coordinator_give_save_up(pen_coordinator *coordinator, uint64_t step) {
    PEN_ASSERT(coordinator->saved.step == step);
    coordinator->saved.state = PEN_SAVE_NONE;
}
