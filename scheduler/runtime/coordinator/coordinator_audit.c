
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/system/interrupt.h"
#include "base/system/machine.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

#define AUDIT_PART_SECONDS 5.0 // and behind the lease, for each part of evidence
#define AUDIT_TICK_SECONDS 0.001

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

// ---- what a worker kept comes here

static void evidence_ask(pen_coordinator *c, uint32_t worker, uint64_t offset) {
    pen_message ask = {
        .kind = PEN_MESSAGE_ASK, .number = PEN_RUN_INQUIRY_EVIDENCE, .offset = offset};
    pen_coordinator_tell(c, worker, &ask);
}

pen_status pen_coordinator_fetch_evidence(pen_coordinator *coordinator, uint32_t worker,
                                          pen_arena *arena) {
    pen_coordinator *c = coordinator;
    uint8_t *bytes;
    PEN_TRY(PEN_NEW(arena, PEN_MESSAGE_PART_LIMIT, &bytes));
    pen_mutex_lock(&c->lock);
    c->evidence = (coordinator_evidence){.worker = worker,
                                         .bytes = bytes,
                                         .limit = PEN_MESSAGE_PART_LIMIT,
                                         .moved_at = pen_clock_seconds()};
    pen_mutex_unlock(&c->lock);
    evidence_ask(c, worker, 0);
    return PEN_OK;
}

// With the lock. Lengths are what the worker says.
static void evidence_add(coordinator_evidence *evidence, const pen_message *part) {
    if (!evidence->has_begun) evidence->byte_count = part->byte_count;
    const uint64_t limit = pen_min_u64(evidence->limit, evidence->byte_count);
    if (part->byte_count != evidence->byte_count || part->bytes_length > limit - evidence->taken ||
        (part->bytes_length == 0 && part->byte_count > 0)) {
        evidence->is_corrupt = true;
        return;
    }
    if (part->bytes_length > 0) {
        memcpy(evidence->bytes + evidence->taken, part->bytes, part->bytes_length);
    }
    evidence->taken += part->bytes_length;
    evidence->has_begun = true;
    evidence->moved_at = pen_clock_seconds();
}

// The next part is asked for at once, unless there is no room for it yet.
void pen_coordinator_take_evidence(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    coordinator_evidence *evidence = &c->evidence;
    bool asks = false;
    pen_mutex_lock(&c->lock);
    if (peer == evidence->worker && message->offset == evidence->taken && !evidence->is_corrupt) {
        evidence_add(evidence, message);
        asks = !evidence->is_corrupt && evidence->taken < evidence->byte_count &&
               evidence->byte_count <= evidence->limit;
        pen_condition_broadcast(&c->changed);
    }
    const uint64_t offset = evidence->taken;
    pen_mutex_unlock(&c->lock);
    if (asks) evidence_ask(c, peer, offset);
}

// Evidence is as large as a worker may be, which this process need not be. It is held twice: as it
// comes, and packed.
static pen_status evidence_check(const pen_coordinator *c, uint32_t worker, uint64_t total,
                                 pen_arena *arena) {
    const uint64_t *needed = c->setup.needed_bytes;
    const uint64_t most =
        ((uint64_t)1 << 16) +
        (needed != NULL && needed[worker] > 0 ? needed[worker] : (uint64_t)1 << 36);
    pen_machine machine;
    if (total > most) {
        return pen_error(PEN_CORRUPT, "%s answers with %llu bytes, at most %llu go",
                         c->spec->workers[worker].name, (unsigned long long)total,
                         (unsigned long long)most);
    }
    PEN_TRY(pen_machine_detect(arena, &machine));
    const uint64_t limit = machine.memory_bytes_allowed, resident = pen_machine_resident();
    const uint64_t left = limit > resident ? limit - resident : 0;
    const uint64_t room = pen_min_u64(machine.memory_bytes_free, left);
    if (limit == 0 || total <= room / 2) return PEN_OK;
    return pen_error(PEN_DOES_NOT_FIT,
                     "the evidence has %llu bytes, twice, and this process may take %llu more",
                     (unsigned long long)total, (unsigned long long)room);
}

// The first part said how much there is: room for all of it, and on.
static pen_status evidence_grow(pen_coordinator *c, uint32_t worker, uint64_t total,
                                pen_arena *arena) {
    coordinator_evidence *evidence = &c->evidence;
    uint8_t *bytes;
    PEN_TRY(evidence_check(c, worker, total, arena));
    PEN_TRY(PEN_NEW(arena, total, &bytes));
    pen_mutex_lock(&c->lock);
    memcpy(bytes, evidence->bytes, evidence->taken);
    evidence->bytes = bytes;
    evidence->limit = total;
    const uint64_t offset = evidence->taken;
    pen_mutex_unlock(&c->lock);
    evidence_ask(c, worker, offset);
    return PEN_OK;
}

// Looks, and makes room where the first part has just said how much comes. A last part counts
// though the link has gone down since.
pen_status pen_coordinator_find_evidence(pen_coordinator *coordinator, pen_arena *arena,
                                         const void **out_bytes, uint64_t *out_count) {
    pen_coordinator *c = coordinator;
    *out_bytes = NULL;
    *out_count = 0;
    pen_mutex_lock(&c->lock);
    const coordinator_evidence evidence = c->evidence;
    const bool is_up = c->workers[evidence.worker].is_up;
    pen_mutex_unlock(&c->lock);
    const char *who = c->spec->workers[evidence.worker].name;
    const double late = evidence.moved_at + c->setup.lease_seconds + AUDIT_PART_SECONDS;
    if (evidence.is_corrupt) {
        return pen_error(PEN_CORRUPT, "%s answers with parts that do not go together", who);
    }
    if (evidence.has_begun && evidence.taken == evidence.byte_count) {
        *out_bytes = evidence.bytes;
        *out_count = evidence.byte_count;
        return PEN_OK;
    }
    if (!is_up || pen_clock_seconds() > late) {
        return pen_error(PEN_UNAVAILABLE, "%s does not answer", who);
    }
    if (!evidence.has_begun || evidence.byte_count <= evidence.limit) return PEN_OK;
    return evidence_grow(c, evidence.worker, evidence.byte_count, arena);
}

// ---- and goes to another

// One part at a time, so that neither end holds more than that of it in its queues.
static void opinion_send(pen_coordinator *c, const coordinator_opinion *opinion) {
    const pen_coordinator_package *package = &opinion->package;
    const uint64_t offset = opinion->sent;
    pen_message message = {
        .kind = PEN_MESSAGE_RECOMPUTE,
        .sequence = opinion->asked,
        .device = package->device,
        .offset = offset,
        .byte_count = package->byte_count,
        .bytes = (const char *)package->bytes + offset,
        .bytes_length = (size_t)pen_min_u64(package->byte_count - offset, PEN_MESSAGE_PART_LIMIT)};
    pen_coordinator_tell(c, opinion->worker, &message);
}

// With the lock, which is not held while a part is sent. What was acknowledged meanwhile is seen
// by who sends.
static void opinion_send_on(pen_coordinator *c) {
    coordinator_opinion *opinion = &c->opinion;
    while (opinion->worker != 0 && !opinion->is_sending && !opinion->is_answered &&
           opinion->taken == opinion->sent && opinion->sent < opinion->package.byte_count) {
        const coordinator_opinion now = *opinion;
        opinion->sent += pen_min_u64(now.package.byte_count - now.sent, PEN_MESSAGE_PART_LIMIT);
        opinion->is_sending = true;
        pen_mutex_unlock(&c->lock);
        opinion_send(c, &now);
        pen_mutex_lock(&c->lock);
        opinion->is_sending = false;
        pen_condition_broadcast(&c->changed);
    }
}

// With the lock: nobody reads the package any longer.
static void opinion_forget(pen_coordinator *c) {
    c->opinion.worker = 0;
    while (c->opinion.is_sending)
        pen_condition_wait(&c->changed, &c->lock);
    c->opinion = (coordinator_opinion){0};
}

void pen_coordinator_recompute(pen_coordinator *coordinator, uint32_t worker, uint32_t asked,
                               const pen_coordinator_package *package) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    opinion_forget(c);
    c->opinion = (coordinator_opinion){.worker = worker, .asked = asked, .package = *package};
    opinion_send_on(c);
    pen_mutex_unlock(&c->lock);
}

// What a worker says of the question that it was asked: how much of the package it has, what it
// came to, or why to nothing.
void pen_coordinator_take_recomputed(pen_coordinator *c, uint32_t peer,
                                     const pen_message *message) {
    coordinator_opinion *opinion = &c->opinion;
    pen_mutex_lock(&c->lock);
    const bool is_ours = opinion->worker != 0 && peer == opinion->worker &&
                         message->sequence == opinion->asked && !opinion->is_answered;
    if (is_ours && message->offset == opinion->sent) opinion->taken = opinion->sent;
    if (is_ours && (message->code != 0 || opinion->taken == opinion->package.byte_count)) {
        opinion->is_answered = true;
        opinion->digest = message->value;
        opinion->is_failed = message->code != 0;
        memcpy(opinion->text, message->text, sizeof opinion->text);
        pen_condition_broadcast(&c->changed);
    }
    opinion_send_on(c);
    pen_mutex_unlock(&c->lock);
}

bool pen_coordinator_find_digest(pen_coordinator *coordinator, uint64_t *out_digest,
                                 bool *out_is_failed, char *out_text, size_t size) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    const bool is_answered = c->opinion.is_answered;
    *out_digest = c->opinion.digest;
    *out_is_failed = c->opinion.is_failed;
    if (is_answered && c->opinion.is_failed) snprintf(out_text, size, "%s", c->opinion.text);
    pen_mutex_unlock(&c->lock);
    return is_answered;
}

// ---- both

void pen_coordinator_forget_audit(pen_coordinator *coordinator) {
    pen_coordinator *c = coordinator;
    pen_mutex_lock(&c->lock);
    c->evidence = (coordinator_evidence){0};
    opinion_forget(c);
    pen_mutex_unlock(&c->lock);
}

void pen_coordinator_await_audit(pen_coordinator *coordinator) {
    pen_coordinator *c = coordinator;
    if (pen_interrupt_take_question()) pen_coordinator_answer_question(c);
    pen_mutex_lock(&c->lock);
    (void)pen_condition_wait_for(&c->changed, &c->lock, AUDIT_TICK_SECONDS);
    pen_mutex_unlock(&c->lock);
}

void pen_coordinator_describe_audit(pen_coordinator *c, char *text, size_t size) {
    text[0] = '\0';
    pen_mutex_lock(&c->lock);
    const coordinator_evidence *evidence = &c->evidence;
    const coordinator_opinion *opinion = &c->opinion;
    if (opinion->worker != 0 && !opinion->is_answered) {
        snprintf(text, size,
                 "an audit waits for %s to compute something again: it was sent %" PRIu64
                 " of %" PRIu64 " bytes",
                 c->spec->workers[opinion->worker].name, opinion->sent,
                 opinion->package.byte_count);
    } else if (evidence->worker != 0) {
        snprintf(text, size,
                 "an audit waits for what %s kept: %" PRIu64 " of %" PRIu64 " bytes are here",
                 c->spec->workers[evidence->worker].name, evidence->taken, evidence->byte_count);
    }
    pen_mutex_unlock(&c->lock);
}
