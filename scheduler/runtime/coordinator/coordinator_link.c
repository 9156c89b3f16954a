// What the core is told, and what it says in answer.

#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system/failpoint.h"
#include "base/text.h"

void pen_coordinator_tell(pen_coordinator *c, uint32_t worker, pen_message *message) {
    uint8_t room[PEN_MESSAGE_ROOM];
    uint8_t *bytes = room, *heap = NULL;
    const size_t size = PEN_MESSAGE_ROOM + message->bytes_length;
    message->protocol = PEN_PROTOCOL_VERSION;
    message->generation = c->generation;
    message->incarnation = c->incarnation;
    snprintf(message->job, sizeof message->job, "%s", c->setup.job);
    if (size > sizeof room) { // a part of a package
        bytes = heap = pen_memory_allocate(size, 1);
        if (heap == NULL) return; // its deadline ends that
    }
    const size_t length = pen_message_encode(message, bytes, size);
    PEN_ASSERT(length <= size);
    pen_status_ignore(c->transport->kind->send_message(c->transport, worker, bytes, length),
                      "a link that is down is told of by `down`");
    pen_memory_free(heap);
}

// ---- what the core says

static void link_assign(pen_coordinator *c, const pen_coordinator_action *action) {
    pen_message message = {.kind = PEN_MESSAGE_ASSIGN,
                           .worker = action->worker,
                           .target_incarnation = action->incarnation,
                           .plan_hash = c->setup.plan_hash,
                           .byte_count = c->workers[action->worker].blob_bytes,
                           .clock = (uint64_t)(c->setup.lease_seconds * 1e9)};
    pen_coordinator_name_folders(c, &message);
    pen_mutex_lock(&c->lock);
    c->workers[action->worker].is_blob_sent = false;
    pen_mutex_unlock(&c->lock);
    pen_coordinator_tell(c, action->worker, &message);
    if (action->worker == c->table->worker_count) (void)PEN_FAILPOINT("coordinator.assigned");
}

// "device 'a' needs 1.50 GiB of memory, and worker 2 (10.0.0.2:7070) may use 512 MiB"
static void link_format_memory(const pen_coordinator *c, uint32_t worker, char *out_text,
                               size_t size) {
    const pen_coordinator_identity *identity = &c->workers[worker].identity;
    char needed[PEN_QUANTITY_TEXT_BYTES], has[PEN_QUANTITY_TEXT_BYTES];
    char names[PEN_MESSAGE_TEXT_BYTES / 2] = "";
    uint32_t count = 0;
    size_t used = 0;
    for (uint32_t d = 0; d < c->table->device_count; d++) {
        if (c->table->forms[0].devices[d].worker != worker) continue;
        count += 1;
        const int more = snprintf(names + used, sizeof names - used, "%s'%.100s'",
                                  used == 0 ? "" : ", ", c->spec->devices[d].name);
        if (more > 0 && (size_t)more < sizeof names - used) used += (size_t)more;
    }
    snprintf(out_text, size, "%s %s need%s %s of memory with %s process, and %s may use %s",
             count == 1 ? "device" : "devices", names, count == 1 ? "s" : "",
             pen_bytes_format(identity->needed_bytes, needed), count == 1 ? "its" : "their",
             c->spec->workers[worker].name, pen_bytes_format(identity->memory_bytes, has));
}

void pen_coordinator_turn_away(pen_coordinator *c, uint32_t worker, uint32_t refusal,
                               pen_status take_status) {
    pen_message message = {.kind = PEN_MESSAGE_REFUSED, .code = refusal};
    snprintf(message.text, sizeof message.text, "%s", pen_status_message(take_status));
    pen_coordinator_tell(c, worker, &message);
    pen_mutex_lock(&c->lock);
    c->workers[worker].is_refused = true;
    c->workers[worker].failure = pen_status_join(c->workers[worker].failure, take_status);
    pen_mutex_unlock(&c->lock);
    pen_coordinator_end_run(c, PEN_COORDINATOR_REASON_FAILED, worker);
}

static void link_refuse(pen_coordinator *c, const pen_coordinator_action *action) {
    coordinator_worker *worker = &c->workers[action->worker];
    const bool is_memory = action->refusal == PEN_REFUSAL_MEMORY;
    char text[PEN_MESSAGE_TEXT_BYTES];
    if (is_memory) {
        link_format_memory(c, action->worker, text, sizeof text);
    } else {
        pen_coordinator_refusal_format(c->core, action->worker, action->refusal, &worker->identity,
                                       text, sizeof text);
    }
    pen_coordinator_turn_away(c, action->worker, (uint32_t)action->refusal,
                              pen_error(is_memory ? PEN_DOES_NOT_FIT : PEN_CANCELLED, "%s", text));
}

static void link_announce(pen_coordinator *c, const pen_coordinator_action *action) {
    const pen_coordinator_round *round = &c->announced[action->round % COORDINATOR_ROUNDS].round;
    pen_message message = {.kind = PEN_MESSAGE_ROUND,
                           .round = action->round,
                           .form = action->form,
                           .count = action->count,
                           .updates = action->updates,
                           .continues = round->continues,
                           .step = round->step,
                           .update = round->update,
                           .first_microbatch = round->first_microbatch,
                           .epoch = round->epoch,
                           .first_example = round->first_example,
                           .step_microbatches = round->step_microbatches};
    memcpy(&message.value, &round->loss_weight, sizeof message.value);
    memcpy(&message.learning_rate, &round->learning_rate, sizeof message.learning_rate);
    memcpy(&message.unscale, &round->unscale, sizeof message.unscale);
    pen_coordinator_tell(c, action->worker, &message);
}

// Inputs are lent to the transport where the batch has them, with checksums that were made when the
// round was announced. The batch is held until all of it was let go.
static void link_feed(pen_coordinator *c, const pen_coordinator_action *action) {
    const pen_run_channel *channel = &c->table->forms[action->form].channels[action->channel];
    const pen_run_spec_channel *spec = &c->spec->forms[action->form].channels[action->channel];
    coordinator_announced *announced = &c->announced[action->round % COORDINATOR_ROUNDS];
    const uint32_t chunks = pen_frame_chunk_count(channel->bytes);
    const uint32_t token =
        c->first_frame[action->form][action->channel] + action->microbatch % channel->copies;
    const pen_frame frame = {.kind = PEN_FRAME_VALUE,
                             .generation = c->generation,
                             .incarnation = c->incarnation,
                             .step = action->round,
                             .form = action->form,
                             .microbatch = action->microbatch,
                             .channel = action->channel,
                             .layout = spec->layout,
                             .type = spec->type,
                             .sequence = action->sequence,
                             .bytes = channel->bytes};
    c->frames[token] =
        (coordinator_frame){action->form, action->channel, action->sequence, action->round};
    const pen_memory_place place =
        pen_memory_place_add(pen_memory_place_at(announced->feeds[action->channel]),
                             action->microbatch * channel->bytes);
    const uint32_t *checksums = announced->checksums + announced->first_check[action->channel] +
                                (size_t)(action->microbatch - channel->first_microbatch) * chunks;
    pen_mutex_lock(&c->lock);
    announced->lent_count += 1;
    pen_mutex_unlock(&c->lock);
    const pen_status status = c->transport->kind->send_frame(c->transport, channel->target_worker,
                                                             &frame, place, checksums, token);
    if (status == PEN_OK) return;
    pen_mutex_lock(&c->lock);
    announced->lent_count -= 1;
    pen_mutex_unlock(&c->lock);
    pen_status_ignore(status, "a link that is down is told of by `down`");
}

static void link_snapshot(pen_coordinator *c, const pen_coordinator_action *action) {
    pen_message message = {.kind = PEN_MESSAGE_SNAPSHOT,
                           .step = action->step,
                           .sequence = action->sequence,
                           .worker = action->worker};
    pen_coordinator_name_store(c, action->worker, &message);
    pen_coordinator_tell(c, action->worker, &message);
}

// What the core says, as messages. Actions that only this process needs to know were noted under
// the lock already.
static void link_carry_out(pen_coordinator *c, const pen_coordinator_action *action) {
    pen_message message = {0};
    switch (action->kind) {
    case PEN_COORDINATOR_ACTION_REFUSE:
        link_refuse(c, action);
        return;
    case PEN_COORDINATOR_ACTION_ASSIGN:
        link_assign(c, action);
        return;
    case PEN_COORDINATOR_ACTION_START:
        message.kind = PEN_MESSAGE_START;
        break;
    case PEN_COORDINATOR_ACTION_ROUND:
        link_announce(c, action);
        return;
    case PEN_COORDINATOR_ACTION_GO:
        message.kind = PEN_MESSAGE_GO;
        message.round = action->round;
        message.order = action->order;
        break;
    case PEN_COORDINATOR_ACTION_FEED:
        link_feed(c, action);
        return;
    case PEN_COORDINATOR_ACTION_SNAPSHOT:
        link_snapshot(c, action);
        return;
    case PEN_COORDINATOR_ACTION_COMMITTED:
        message.kind = PEN_MESSAGE_COMMITTED;
        message.step = action->step;
        break;
    case PEN_COORDINATOR_ACTION_STOP:
        message.kind = PEN_MESSAGE_STOP;
        break;
    case PEN_COORDINATOR_ACTION_RUNNING: // noted before
    case PEN_COORDINATOR_ACTION_LOSSES:
    case PEN_COORDINATOR_ACTION_NOT_FINITE:
    case PEN_COORDINATOR_ACTION_ROUND_DONE:
    case PEN_COORDINATOR_ACTION_FENCE:
    case PEN_COORDINATOR_ACTION_SNAPPED:
    case PEN_COORDINATOR_ACTION_PUBLISH:
    case PEN_COORDINATOR_ACTION_SAVE_FAILED:
    case PEN_COORDINATOR_ACTION_FAIL:
        return;
    }
    pen_coordinator_tell(c, action->worker, &message);
    if (action->kind == PEN_COORDINATOR_ACTION_GO && action->worker == c->table->worker_count) {
        (void)PEN_FAILPOINT("coordinator.gone");
    }
}

// What the caller's thread waits for. Holds the lock. False: nothing of that kind.
static bool link_note(pen_coordinator *c, const pen_coordinator_action *action) {
    switch (action->kind) {
    case PEN_COORDINATOR_ACTION_RUNNING:
        c->is_running = true;
        return true;
    case PEN_COORDINATOR_ACTION_LOSSES:
        c->losses_end = action->round + 1;
        return true;
    case PEN_COORDINATOR_ACTION_GO:
        c->go_end = action->round + 1;
        c->announced[action->round % COORDINATOR_ROUNDS].order = action->order;
        return true;
    case PEN_COORDINATOR_ACTION_NOT_FINITE:
        c->is_not_finite = true;
        return true;
    case PEN_COORDINATOR_ACTION_ROUND_DONE:
        c->figures_round[action->round % COORDINATOR_ROUNDS] = action->round;
        return true;
    case PEN_COORDINATOR_ACTION_FENCE:
        c->wants_fence = true;
        return true;
    case PEN_COORDINATOR_ACTION_SNAPPED:
        c->save.has_snapped = true;
        return true;
    case PEN_COORDINATOR_ACTION_PUBLISH:
        pen_coordinator_note_durable(c);
        return true;
    case PEN_COORDINATOR_ACTION_SAVE_FAILED:
        pen_coordinator_note_save_failed(c);
        return true;
    case PEN_COORDINATOR_ACTION_FAIL:
        if (c->is_failed) return true;
        c->is_failed = true;
        c->reason = action->reason;
        c->failed_worker = action->worker;
        return true;
    case PEN_COORDINATOR_ACTION_REFUSE:
    case PEN_COORDINATOR_ACTION_ASSIGN:
    case PEN_COORDINATOR_ACTION_START:
    case PEN_COORDINATOR_ACTION_ROUND:
    case PEN_COORDINATOR_ACTION_FEED:
    case PEN_COORDINATOR_ACTION_COMMITTED:
    case PEN_COORDINATOR_ACTION_STOP:
        break;
    case PEN_COORDINATOR_ACTION_SNAPSHOT:
        c->save.number = action->sequence;
        break;
    }
    return false;
}

// What shows that something moves: not that time passes, nor that somebody is there.
static bool link_is_movement(pen_coordinator_event_kind kind) {
    return kind != PEN_COORDINATOR_EVENT_TICK && kind != PEN_COORDINATOR_EVENT_HEARD;
}

// How long nothing moved, which is seen by who wants to stop. Holds the lock.
static void link_note_movement(pen_coordinator *c, const pen_coordinator_event *event) {
    const double now = pen_clock_seconds();
    const bool is_hold = event->kind == PEN_COORDINATOR_EVENT_OWED && event->worker == 0;
    if (!link_is_movement(event->kind) || is_hold) return;
    if (!pen_coordinator_core_is_quiet(c->core)) {
        c->longest_still = fmax(c->longest_still, now - c->moved_at);
    }
    c->moved_at = now;
}

// Events come from several threads. One at a time steps the core and carries out what it said, so
// that messages leave in the order of the core's actions; the lock is not held while they are sent.
void pen_coordinator_step(pen_coordinator *c, const pen_coordinator_event *event) {
    uint32_t count = 0;
    bool is_noted = false;
    pen_coordinator_event now = *event;
    pen_mutex_lock(&c->lock);
    c->stepper_count += 1;
    while (c->is_stepping) { // what was said before is not carried out yet
        pen_condition_wait(&c->stepped, &c->lock);
    }
    c->stepper_count -= 1;
    c->is_stepping = true;
    now.now = (uint64_t)(pen_clock_seconds() * 1e9);
    const bool is_recorded = link_is_movement(event->kind);
    link_note_movement(c, event);
    if (is_recorded) pen_flight_record_coordinator(c->recorder, &now);
    pen_coordinator_core_step(c->core, &now, c->actions, &count);
    if (!is_recorded && count > 0) pen_flight_record_coordinator(c->recorder, &now);
    if (is_recorded || count > 0) pen_flight_add_coordinator(c->recorder, c->actions, count);
    for (uint32_t i = 0; i < count; i++) {
        if (link_note(c, &c->actions[i])) is_noted = true;
    }
    if (is_noted) pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i < count; i++) {
        link_carry_out(c, &c->actions[i]);
    }
    pen_mutex_lock(&c->lock);
    c->is_stepping = false;
    if (c->stepper_count > 0) pen_condition_signal(&c->stepped);
    pen_mutex_unlock(&c->lock);
}

void pen_coordinator_note_pieces(pen_coordinator *c, uint32_t worker, uint32_t asked,
                                 uint32_t there) {
    const pen_coordinator_event event = {
        .kind = PEN_COORDINATOR_EVENT_OWED, .worker = worker, .count = asked, .sequence = there};
    pen_coordinator_step(c, &event);
}

void pen_coordinator_end_run(pen_coordinator *c, pen_coordinator_reason reason, uint32_t worker) {
    pen_mutex_lock(&c->lock);
    if (!c->is_failed) {
        c->is_failed = true;
        c->reason = reason;
        c->failed_worker = worker;
    }
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
}
