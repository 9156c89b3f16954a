#include "scheduler/protocol/flight_outcome.h"

#include "base/hash.h"
#include "scheduler/protocol/flight_wire.h"

static uint64_t flight_finish(uint64_t digest) {
    return digest == 0 ? 1 : digest;
}

uint64_t pen_flight_worker_outcome(pen_worker_fault fault, const pen_worker_action *actions,
                                   uint32_t action_count) {
    uint64_t digest = flight_mix(PEN_HASH_START, (uint64_t)fault);
    for (uint32_t i = 0; i < action_count; i++) {
        const pen_worker_action *action = &actions[i];
        digest = flight_mix(digest, (uint64_t)action->kind << 32 | action->form);
        digest = flight_mix(digest, action->generation);
        digest = flight_mix(digest, action->round);
        digest = flight_mix(digest, action->sequence);
        digest = flight_mix(digest, (uint64_t)action->channel << 32 | action->device);
        digest = flight_mix(digest, action->task);
    }
    return flight_finish(digest);
}

uint64_t pen_flight_coordinator_outcome(const pen_coordinator_action *actions,
                                        uint32_t action_count) {
    uint64_t digest = PEN_HASH_START;
    for (uint32_t i = 0; i < action_count; i++) {
        const pen_coordinator_action *action = &actions[i];
        digest = flight_mix(digest, (uint64_t)action->kind << 32 | action->worker);
        digest = flight_mix(digest, action->incarnation);
        digest = flight_mix(digest, action->generation);
        digest = flight_mix(digest, action->round);
        digest = flight_mix(digest, action->sequence);
        digest = flight_mix(digest, action->step);
        digest = flight_mix(digest, action->order);
        digest = flight_mix(digest, (uint64_t)action->form << 32 | action->count);
        digest = flight_mix(digest, (uint64_t)action->channel << 32 | action->microbatch);
        digest = flight_mix(digest, (uint64_t)action->stage << 32 | (uint64_t)action->updates);
        digest = flight_mix(digest, (uint64_t)action->refusal << 32 | (uint64_t)action->reason);
    }
    return flight_finish(digest);
}
