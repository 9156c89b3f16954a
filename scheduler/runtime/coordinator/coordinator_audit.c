// Evidence of what a worker computed, and other workers that compute it again.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/system/interrupt.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define AUDIT_TICK_SECONDS 0.05

void pen_coordinator_note(pen_coordinator *coordinator, uint32_t worker, pen_run_note *note) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    (void)pen_coordinator_core_can_begin(c->core, &note->round);
    pen_mutex_unlock(&c->lock);
    pen_message message = {.kind = PEN_MESSAGE_AUDIT,
                           .round = note->round,
                           .device = note->device,
                           .stage = note->stage,
                           .microbatch = note->microbatch};
    pen_coordinator_tell(c, worker, &message);
}

// What a worker says of the question that it was asked: how much of the package it has, what it
// came to, or why to nothing.
void pen_coordinator_take_recomputed(pen_coordinator *c, uint32_t peer,
                                     const pen_message *message) {
    coordinator_audit *audit = &c->audit;
    pen_mutex_lock(&c->lock);
    if (peer == audit->worker && message->sequence == audit->asked && !audit->is_answered) {
        audit->taken = message->offset;
        audit->is_answered = message->code != 0 || message->offset == audit->byte_count;
        audit->digest = message->value;
        audit->is_failed = message->code != 0;
        memcpy(audit->text, message->text, sizeof audit->text);
        pen_condition_broadcast(&c->changed);
    }
    pen_mutex_unlock(&c->lock);
}

// Waits until a worker has all parts so far. False: it answered already, does not, or somebody
// wishes to stop. Questions of how it stands are answered meanwhile.
static bool audit_await_taken(pen_coordinator *c, uint64_t offset, double deadline) {
    const coordinator_audit *audit = &c->audit;
    pen_mutex_lock(&c->lock);
    while (audit->taken < offset && !audit->is_answered && !c->is_failed &&
           !pen_interrupt_wished(c->setup.cancel) && pen_clock_seconds() < deadline) {
        if (pen_interrupt_take_question()) {
            pen_mutex_unlock(&c->lock);
            pen_coordinator_answer_question(c);
            pen_mutex_lock(&c->lock);
            continue;
        }
        (void)pen_condition_wait_for(&c->changed, &c->lock, AUDIT_TICK_SECONDS);
    }
    const bool is_taken = audit->taken == offset && !audit->is_answered && !c->is_failed;
    pen_mutex_unlock(&c->lock);
    return is_taken;
}

// One part at a time, so that neither end holds more than that of it in its queues.
void pen_coordinator_recompute(pen_coordinator *coordinator, uint32_t worker, uint32_t asked,
                               const pen_coordinator_package *package) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    c->audit =
        (coordinator_audit){.worker = worker, .asked = asked, .byte_count = package->byte_count};
    pen_mutex_unlock(&c->lock);
    for (uint64_t offset = 0; offset < package->byte_count;) {
        const uint64_t left = package->byte_count - offset;
        const uint64_t length = left < PEN_MESSAGE_PART_LIMIT ? left : PEN_MESSAGE_PART_LIMIT;
        pen_message message = {.kind = PEN_MESSAGE_RECOMPUTE,
                               .sequence = asked,
                               .device = package->device,
                               .offset = offset,
                               .byte_count = package->byte_count,
                               .bytes = (const char *)package->bytes + offset,
                               .bytes_length = (size_t)length};
        pen_coordinator_tell(c, worker, &message);
        offset += length;
        if (offset == package->byte_count || !audit_await_taken(c, offset, package->deadline))
            return;
    }
}

bool pen_coordinator_find_digest(pen_coordinator *coordinator, uint64_t *out_digest,
                                 bool *out_is_failed, char *out_text, size_t size) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const bool is_answered = c->audit.is_answered;
    *out_digest = c->audit.digest;
    *out_is_failed = c->audit.is_failed;
    if (is_answered && c->audit.is_failed) snprintf(out_text, size, "%s", c->audit.text);
    pen_mutex_unlock(&c->lock);
    return is_answered;
}
