#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "scheduler/protocol/coordinator_state.h"

// Said after the name of the worker that is to blame.
const char *pen_coordinator_reason_text(pen_coordinator_reason reason) {
    switch (reason) {
    case PEN_COORDINATOR_REASON_NONE:
        return "nothing is wrong";
    case PEN_COORDINATOR_REASON_MISSING:
        return "it did not come before the deadline";
    case PEN_COORDINATOR_REASON_LOST:
        return "its link is down";
    case PEN_COORDINATOR_REASON_FAILED:
        return "it cannot go on";
    case PEN_COORDINATOR_REASON_LOSS:
        return "it gave a loss twice, differently, or a loss or gradient of no microbatch";
    case PEN_COORDINATOR_REASON_CREDIT:
        return "it gave a credit for what was not sent";
    case PEN_COORDINATOR_REASON_ROUND:
        return "it ended a round that it was not given";
    case PEN_COORDINATOR_REASON_SAVE:
        return "it speaks of a save that it was not told of";
    case PEN_COORDINATOR_REASON_LEASE:
        return "nothing was heard of it";
    case PEN_COORDINATOR_REASON_PROGRESS:
        return "the rounds under way do not get on";
    case PEN_COORDINATOR_REASON_LOAD:
        return "it did not get ready in time";
    case PEN_COORDINATOR_REASON_WRITE:
        return "it did not write its part of a checkpoint in time";
    case PEN_COORDINATOR_REASON_SUPERSEDED:
        return "superseded by a higher generation";
    case PEN_COORDINATOR_REASON_STORE:
        return "the commit log could not be written";
    case PEN_COORDINATOR_REASON_PIECE:
        return "it did not take or give a tensor in time";
    }
    PEN_NEVER("a reason of the coordinator");
}

// Both sides of what differs, so that the user sees which of the two is to be changed.
void pen_coordinator_refusal_format(const pen_coordinator_core *core, uint32_t worker,
                                    pen_coordinator_refusal refusal,
                                    const pen_coordinator_identity *identity, char *out_text,
                                    size_t size) {
    const pen_coordinator_identity *self = &core->options.self;
    const int limit = PEN_COORDINATOR_NAME_BYTES;
    char needed[PEN_QUANTITY_TEXT_BYTES], has[PEN_QUANTITY_TEXT_BYTES];
    switch (refusal) {
    case PEN_REFUSAL_NONE:
        snprintf(out_text, size, "worker %" PRIu32 " is taken", worker);
        break;
    case PEN_REFUSAL_WORKER:
        snprintf(out_text, size, "there is no worker %" PRIu32 ", only 1 to %" PRIu32, worker,
                 core->table->worker_count);
        break;
    case PEN_REFUSAL_PROTOCOL:
        snprintf(out_text, size,
                 "worker %" PRIu32 " speaks protocol version %" PRIu32 ", the coordinator %" PRIu32,
                 worker, identity->protocol, self->protocol);
        break;
    case PEN_REFUSAL_BUILD:
        snprintf(out_text, size, "worker %" PRIu32 " runs build '%.*s', the coordinator '%.*s'",
                 worker, limit, identity->build, limit, self->build);
        break;
    case PEN_REFUSAL_ISA:
        snprintf(out_text, size,
                 "worker %" PRIu32 " computes with '%.*s', the coordinator with '%.*s': results "
                 "would differ in their last bits; numerics.level of the job names a level that "
                 "all have",
                 worker, limit, identity->isa, limit, self->isa);
        break;
    case PEN_REFUSAL_PLAN:
        snprintf(out_text, size,
                 "worker %" PRIu32 " has plan %016" PRIx64 ", the coordinator %016" PRIx64, worker,
                 identity->plan_hash, self->plan_hash);
        break;
    case PEN_REFUSAL_DEVICES:
        snprintf(out_text, size,
                 "worker %" PRIu32 " can run %" PRIu32 " devices, the plan needs more", worker,
                 identity->device_count);
        break;
    case PEN_REFUSAL_MEMORY:
        snprintf(out_text, size,
                 "the plan needs %s of memory on worker %" PRIu32 ", which may use %s",
                 pen_bytes_format(identity->needed_bytes, needed), worker,
                 pen_bytes_format(identity->memory_bytes, has));
        break;
    case PEN_REFUSAL_TAKEN:
        snprintf(out_text, size, "another process is worker %" PRIu32, worker);
        break;
    }
}
