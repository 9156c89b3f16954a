// A generation of a coordinator: what its core wants, and what workers tell it.

#include <stdlib.h>
#include <string.h>

#include "scheduler/store/commit_record.h"
#include "tests/simulator/checks.h"
#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/ghosts.h"
#include "tests/simulator/stuck.h"
#include "tests/simulator/worker_process.h"

void coordinator_tell(coordinator_process *c, uint32_t peer, pen_message *message) {
    uint8_t bytes[PEN_MESSAGE_ROOM];
    process *p = c->process;
    message->protocol = PEN_PROTOCOL_VERSION;
    message->incarnation = p->incarnation;
    message->generation = c->run->generation;
    memcpy(message->job, SIMULATION_JOB, sizeof SIMULATION_JOB);
    const size_t length = pen_message_encode(message, bytes, sizeof bytes);
    PEN_ASSERT(length <= sizeof bytes);
    const bool may_wait = message->kind != PEN_MESSAGE_PING;
    if (may_wait && process_holds_message(p, peer, bytes, (uint32_t)length)) return;
    link_send_message(p, peer, bytes, (uint32_t)length);
    ghost_follow(p, peer, message);
}

// ---- feeding

void coordinator_run_new_feeds(coordinator_process *c, coordinator_run *run) {
    world *w = c->process->world;
    for (uint32_t f = 0; f < 2; f++) {
        const pen_run_form *form = &run->table->table->forms[f];
        run->feeds[f] = world_allocate(w, form->channel_count, sizeof *run->feeds[f]);
        for (uint32_t i = 0; i < form->channel_count; i++) {
            if (form->channels[i].source_worker != 0) continue;
            const uint32_t slots = pen_run_slots(form, &form->channels[i]);
            const uint32_t copies = form->channels[i].copies;
            run->feeds[f][i].copies = copies < slots ? copies : slots;
            run->feeds[f][i].source =
                world_allocate(w, run->feeds[f][i].copies, sizeof *run->feeds[f][i].source);
        }
    }
}

static computing_place *coordinator_place(const coordinator_run *run, uint32_t form_number,
                                          uint32_t channel, uint64_t sequence) {
    const pen_run_form *form = &run->table->table->forms[form_number];
    const computing_channel *feed = &run->feeds[form_number][channel];
    const uint64_t slot = sequence % pen_run_slots(form, &form->channels[channel]);
    return &feed->source[slot % feed->copies];
}

static void coordinator_send_feed(coordinator_process *c, const pen_coordinator_action *action) {
    coordinator_run *run = c->run;
    const pen_run_channel *channel =
        &run->table->table->forms[action->form].channels[action->channel];
    const coordinator_round_of *round = coordinator_find_round_of(run, action->round);
    computing_place *place =
        coordinator_place(run, action->form, action->channel, action->sequence);
    if (place->is_held) {
        world_wrong(c->process->world, "I3", "channel %u is fed where memory is still lent",
                    action->channel);
    }
    const uint64_t value =
        shape_expect(c->process->world->shape,
                     (shape_content)run->table->contents[action->form][action->channel],
                     run->table->numbers[action->form][action->channel], round->step,
                     round->first_microbatch + (channel->is_per_step ? 0 : action->microbatch),
                     round->is_evaluation);
    computing_fill(place, value, (uint32_t)(channel->bytes / 8), action->sequence);
    place->is_held = true;
    const link_frame frame = {.kind = PEN_FRAME_VALUE,
                              .generation = run->generation,
                              .incarnation = c->process->incarnation,
                              .form = action->form,
                              .channel = action->channel,
                              .sequence = action->sequence,
                              .checksum = place->checksum,
                              .words = (uint32_t)(channel->bytes / 8)};
    link_send_frame(c->process, action->worker, &frame, place->words,
                    frame_token(action->form, action->channel, action->sequence));
}

#define COORDINATOR_TOKEN_PIECE UINT64_MAX // of a blob or tensor

void coordinator_let_go(process *p, uint64_t token) {
    coordinator_run *run = p->coordinator->run;
    if (run == NULL || token == COORDINATOR_TOKEN_PIECE) return;
    const uint32_t form = (uint32_t)(token >> 60), channel = (uint32_t)(token >> 48) & 0xfff;
    const uint64_t sequence = token & 0xffffffffffff;
    coordinator_place(run, form, channel, sequence)->is_held = false;
    coordinator_feed_event(p->coordinator,
                           (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LET_GO,
                                                   .form = form,
                                                   .channel = channel,
                                                   .sequence = sequence});
}

static void coordinator_send_piece(coordinator_process *c, uint32_t peer, const pen_message *pull) {
    const coordinator_run *run = c->run;
    const bool is_blob = pull->frame_kind == PEN_FRAME_BLOB;
    if (!is_blob && pull->number >= c->process->world->shape->stage_count) return;
    const uint64_t *words = is_blob ? run->description : &run->parameters[pull->number];
    link_frame frame = {.kind = pull->frame_kind,
                        .generation = run->generation,
                        .incarnation = c->process->incarnation,
                        .channel = pull->number,
                        .sequence = pull->sequence,
                        .words = is_blob ? SHAPE_WORDS : 1};
    frame.checksum = computing_checksum(words, frame.words);
    link_send_frame(c->process, peer, &frame, words, COORDINATOR_TOKEN_PIECE);
}

// ---- what the core wants

static void coordinator_fail_generation(coordinator_process *c,
                                        const pen_coordinator_action *action) {
    world *w = c->process->world;
    WORLD_NOTE(w, c->process, "generation fails", c->run->generation, action->reason,
               action->worker);
    if (action->reason == PEN_COORDINATOR_REASON_SUPERSEDED) {
        coordinator_exit(c, "is superseded");
        return;
    }
    switch (action->reason) { // nobody breaks the protocol here
    case PEN_COORDINATOR_REASON_LOSS:
    case PEN_COORDINATOR_REASON_CREDIT:
    case PEN_COORDINATOR_REASON_ROUND:
    case PEN_COORDINATOR_REASON_SAVE:
        world_wrong(w, "I4", "worker %u: %s", action->worker,
                    pen_coordinator_reason_text(action->reason));
        return;
    default:
        break;
    }
    c->run->is_over = true;
}

static void coordinator_tell_round(coordinator_process *c, const pen_coordinator_action *action) {
    const coordinator_round_of *round = coordinator_find_round_of(c->run, action->round);
    pen_message message = {.kind = PEN_MESSAGE_ROUND,
                           .round = action->round,
                           .form = action->form,
                           .count = action->count,
                           .updates = action->updates,
                           .continues = round->part == 1,
                           .step = round->step,
                           .first_microbatch = round->first_microbatch};
    coordinator_tell(c, action->worker, &message);
}

// Work of a generation, which may be over when a stuck process comes to it.
static void coordinator_work(coordinator_process *c, world_call call, uint64_t value) {
    process *p = c->process;
    if (process_is_busy(p)) {
        world_work_in(p->world, 0, p, call, c->run, value);
    } else {
        call(p, c->run, value);
    }
}

static void coordinator_do_fence(process *p, void *context, uint64_t value) {
    coordinator_process *c = p->coordinator;
    coordinator_run *run = context;
    (void)value;
    if (c->run != run || run->is_over) return;
    pen_status_code code = coordinator_append_fence(c, run->generation);
    if (!c->process->is_alive || c->process->disk->has_crashed) return;
    if (code == PEN_CODE_OK) {
        run->is_fenced = true;
        if (!coordinator_load(c, run)) code = PEN_IO;
    }
    coordinator_feed_event(
        c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_FENCED, .code = (uint32_t)code});
}

static void coordinator_do_publish(process *p, void *context, uint64_t step) {
    coordinator_process *c = p->coordinator;
    coordinator_run *run = context;
    if (c->run != run || run->is_over) return;
    const pen_status_code code = coordinator_publish(c, step);
    if (!p->is_alive || p->disk->has_crashed) return;
    coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_PUBLISHED,
                                                      .step = step,
                                                      .code = (uint32_t)code});
    if (c->run != run) return;
    run->begins_anew = code == PEN_CODE_OK && !run->is_final && coordinator_takes_back(c);
}

// Parameters of all stages to the workers that have them, before the first round.
static void coordinator_do_send(process *p, void *context, uint64_t value) {
    coordinator_process *c = p->coordinator;
    coordinator_run *run = context;
    const shape_table *table = run->table;
    (void)value;
    for (uint32_t s = 0; s < p->world->shape->stage_count; s++) {
        if (c->run != run || run->is_over) return;
        const uint32_t worker = table->table->forms[0].devices[table->device_of_stage[s]].worker;
        const pen_message pull = {.frame_kind = PEN_FRAME_TENSOR, .number = s, .sequence = s};
        run->owed[worker] |= (uint64_t)1 << s;
        coordinator_send_piece(c, worker, &pull);
        coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_OWED,
                                                          .worker = worker,
                                                          .count = 1});
    }
}

static void coordinator_take_piece(coordinator_process *c, uint32_t peer, uint64_t stage) {
    coordinator_run *run = c->run;
    if (stage >= SHAPE_STAGES || (run->owed[peer] >> stage & 1) == 0) return;
    run->owed[peer] &= ~((uint64_t)1 << stage);
    coordinator_feed_event(
        c,
        (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_OWED, .worker = peer, .sequence = 1});
}

// Those of its actions that are not messages alone.
static void coordinator_do_other(coordinator_process *c, const pen_coordinator_action *action) {
    world *w = c->process->world;
    switch (action->kind) {
    case PEN_COORDINATOR_ACTION_FEED:
        coordinator_send_feed(c, action);
        return;
    case PEN_COORDINATOR_ACTION_LOSSES:
        coordinator_take_losses(c, action->round);
        return;
    case PEN_COORDINATOR_ACTION_NOT_FINITE:
        w->checks->has_ended_not_finite = true;
        return;
    case PEN_COORDINATOR_ACTION_ROUND_DONE:
        coordinator_take_round_done(c, action->round);
        return;
    case PEN_COORDINATOR_ACTION_FENCE:
        coordinator_work(c, coordinator_do_fence, 0);
        return;
    case PEN_COORDINATOR_ACTION_PUBLISH:
        coordinator_work(c, coordinator_do_publish, action->step);
        return;
    case PEN_COORDINATOR_ACTION_RUNNING:
        if (w->sends_first) coordinator_work(c, coordinator_do_send, 0);
        return;
    case PEN_COORDINATOR_ACTION_SAVE_FAILED:
        w->result->failed_saves += 1;
        if (action->step == w->shape->step_count) c->run->saved_step = c->run->done_step - 1;
        return;
    case PEN_COORDINATOR_ACTION_FAIL:
        coordinator_fail_generation(c, action);
        return;
    default:
        return;
    }
}

static void coordinator_do(coordinator_process *c, const pen_coordinator_action *action) {
    pen_message message = {.round = action->round, .worker = action->worker, .step = action->step};
    WORLD_NOTE(c->process->world, c->process, "coordinator acts", action->kind, action->worker,
               action->round + action->step);
    switch (action->kind) {
    case PEN_COORDINATOR_ACTION_ASSIGN:
        check_assigned(c->process, c->run->generation);
        message.kind = PEN_MESSAGE_ASSIGN;
        message.target_incarnation = action->incarnation;
        message.plan_hash = c->run->table->hash;
        message.byte_count = 8 * SHAPE_WORDS;
        break;
    case PEN_COORDINATOR_ACTION_START:
        message.kind = PEN_MESSAGE_START;
        break;
    case PEN_COORDINATOR_ACTION_GO:
        orders_say(c, action);
        message.kind = PEN_MESSAGE_GO;
        message.order = action->order;
        break;
    case PEN_COORDINATOR_ACTION_SNAPSHOT:
        message.kind = PEN_MESSAGE_SNAPSHOT;
        message.sequence = action->sequence;
        break;
    case PEN_COORDINATOR_ACTION_COMMITTED:
        check_committed(c->process, action->step);
        message.kind = PEN_MESSAGE_COMMITTED;
        break;
    case PEN_COORDINATOR_ACTION_STOP:
        message.kind = PEN_MESSAGE_STOP;
        break;
    case PEN_COORDINATOR_ACTION_REFUSE:
        message.kind = PEN_MESSAGE_REFUSED;
        message.code = action->refusal;
        break;
    case PEN_COORDINATOR_ACTION_ROUND:
        coordinator_tell_round(c, action);
        return;
    default:
        coordinator_do_other(c, action);
        return;
    }
    coordinator_tell(c, action->worker, &message);
}

static void coordinator_go_on(process *p, void *context, uint64_t value) {
    coordinator_process *c = p->coordinator;
    const coordinator_run *run = context;
    (void)value;
    if (c->run != run) return; // it did already
    if (run->is_over) {
        coordinator_recover(c);
    } else if (run->begins_anew) {
        coordinator_begin_generation(c);
    }
}

// Events that come while one is dealt with wait. A generation that is over is recovered from when
// nothing waits.
void coordinator_feed_event(coordinator_process *c, pen_coordinator_event event) {
    coordinator_run *run = c->run;
    if (run == NULL || run->is_closed) return;
    event.now = process_now(c->process);
    PEN_ASSERT(run->queue_end - run->queue_first < COORDINATOR_QUEUE);
    run->queue[run->queue_end++ % COORDINATOR_QUEUE] = event;
    if (run->is_stepping) return;
    run->is_stepping = true;
    while (run->queue_first < run->queue_end && c->run == run && c->process->is_alive) {
        const pen_coordinator_event next = run->queue[run->queue_first++ % COORDINATOR_QUEUE];
        uint32_t count;
        pen_coordinator_core_step(run->core, &next, run->actions, &count);
        for (uint32_t i = 0; i < count; i++) {
            const pen_coordinator_action action = run->actions[i];
            coordinator_do(c, &action);
            if (c->run != run || !c->process->is_alive || c->process->disk->has_crashed) return;
        }
        if (!run->is_over) coordinator_train(c);
    }
    run->is_stepping = false;
    if (c->run != run) return;
    if (run->is_over || run->begins_anew) coordinator_work(c, coordinator_go_on, 0);
}

// ---- what workers tell

static void coordinator_take_shard(coordinator_process *c, uint32_t peer,
                                   const pen_message *message) {
    coordinator_run *run = c->run;
    if (message->code != 0) return;
    const pen_status status = pen_shard_summary_decode(
        message->bytes, message->bytes_length, c->process->world->arena, &run->summaries[peer]);
    if (status != PEN_OK) {
        world_wrong(c->process->world, "message", "a summary of a shard: %s",
                    pen_status_message(status));
        pen_status_ignore(status, "said");
        return;
    }
    run->has_summary[peer] = true;
}

static void coordinator_greet(coordinator_process *c, uint32_t peer, const pen_message *message) {
    pen_coordinator_identity *identity = &c->run->identities[peer];
    identity->protocol = message->protocol;
    memcpy(identity->build, message->build, sizeof identity->build);
    memcpy(identity->isa, message->isa, sizeof identity->isa);
    c->run->incarnations[peer] = message->incarnation;
    coordinator_feed_event(c, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_HELLO,
                                                      .worker = peer,
                                                      .incarnation = message->incarnation,
                                                      .identity = identity});
}

// What shows that a wait gets on (waits.h).
static void coordinator_count(coordinator_run *run, uint32_t peer, const pen_message *message) {
    const pen_message_kind kind = message->kind;
    if (message->incarnation == run->incarnations[peer]) run->heard_count[peer] += 1;
    if (kind == PEN_MESSAGE_SHARD) run->shard_count += 1;
    if (kind == PEN_MESSAGE_LOSS || kind == PEN_MESSAGE_GRADIENT ||
        kind == PEN_MESSAGE_ROUND_DONE) {
        run->report_count += 1;
    }
}

void coordinator_message(process *p, uint32_t peer, const pen_message *message) {
    coordinator_process *c = p->coordinator;
    WORLD_NOTE(p->world, p, pen_message_kind_name(message->kind), peer, message->generation,
               message->round + message->sequence);
    if (c->run == NULL) return;
    pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_HEARD,
                                   .worker = peer,
                                   .incarnation = message->incarnation,
                                   .generation = message->generation,
                                   .round = message->round,
                                   .sequence = message->sequence,
                                   .step = message->step,
                                   .form = message->form,
                                   .channel = message->channel,
                                   .microbatch = message->microbatch,
                                   .stage = message->stage,
                                   .code = message->code,
                                   .loss = {.value = message->value,
                                            .correct_count = message->correct_count,
                                            .target_count = message->target_count}};
    const bool is_its_own = message->generation == c->run->generation &&
                            message->incarnation == c->run->incarnations[peer];
    coordinator_count(c->run, peer, message);
    switch (message->kind) {
    case PEN_MESSAGE_HELLO:
        coordinator_greet(c, peer, message);
        return;
    case PEN_MESSAGE_READY:
        event.kind = PEN_COORDINATOR_EVENT_READY;
        break;
    case PEN_MESSAGE_LOSS:
        event.kind = PEN_COORDINATOR_EVENT_LOSS;
        break;
    case PEN_MESSAGE_GRADIENT:
        if (is_its_own) orders_hear(c, message);
        event.kind = PEN_COORDINATOR_EVENT_GRADIENT;
        break;
    case PEN_MESSAGE_ROUND_DONE:
        event.kind = PEN_COORDINATOR_EVENT_ROUND_DONE;
        break;
    case PEN_MESSAGE_CREDIT:
        event.kind = PEN_COORDINATOR_EVENT_CREDIT;
        break;
    case PEN_MESSAGE_SNAPPED:
        event.kind = PEN_COORDINATOR_EVENT_SNAPPED;
        break;
    case PEN_MESSAGE_SHARD:
        event.kind = PEN_COORDINATOR_EVENT_SHARD;
        if (is_its_own) coordinator_take_shard(c, peer, message);
        break;
    case PEN_MESSAGE_FAIL:
        event.kind = PEN_COORDINATOR_EVENT_FAILED;
        break;
    case PEN_MESSAGE_PULL:
        if (is_its_own) coordinator_send_piece(c, peer, message);
        break;
    case PEN_MESSAGE_STOPPED:
        if (is_its_own) c->run->has_stopped[peer] = true;
        break;
    case PEN_MESSAGE_TAKEN:
        if (is_its_own) coordinator_take_piece(c, peer, message->sequence);
        break;
    case PEN_MESSAGE_BEAT:
        break;
    default:
        world_wrong(p->world, "message", "a coordinator is sent a message of kind %s",
                    pen_message_kind_name(message->kind));
        return;
    }
    coordinator_feed_event(c, event);
}
