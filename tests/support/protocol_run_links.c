#include "tests/support/protocol_run_state.h"

void run_digest(protocol_runner *r, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t words[] = {pen_simulated_network_now(r->network), a, b, c};
    for (uint32_t i = 0; i < 4; i++) {
        r->result->digest = (r->result->digest ^ words[i]) * 0x9e3779b97f4a7c15u;
        r->result->digest ^= r->result->digest >> 29;
    }
}

uint64_t run_word(uint32_t form, uint32_t channel, uint64_t sequence) {
    return (uint64_t)form << 56 | (uint64_t)(channel + 1) << 40 | sequence;
}

uint32_t run_place(const pen_run_form *form, uint32_t channel, uint64_t sequence, uint32_t places) {
    return (uint32_t)(sequence % pen_run_slots(form, &form->channels[channel])) % places;
}

// ---- messages

void run_send(run_peer *from, uint32_t to, pen_message message) {
    protocol_runner *r = from->runner;
    uint8_t bytes[PEN_MESSAGE_ROOM];
    message.protocol = PEN_PROTOCOL_VERSION;
    message.generation = RUN_GENERATION;
    message.incarnation = from->number + 1;
    const size_t length = pen_message_encode(&message, bytes, sizeof bytes);
    const bool is_repeated = r->options->repeats && dice_between(&r->d, 0, 9) == 0;
    for (uint32_t i = 0; i < (is_repeated ? 2 : 1); i++) {
        const pen_status status = r->kind->send_message(from->transport, to, bytes, length);
        if (status != PEN_OK) RUN_WRONG(r, "no message: %s", pen_status_message(status));
        pen_status_ignore(status, "judged");
    }
}

static void run_take_worker_message(run_peer *peer, const pen_message *m) {
    pen_worker_event event = {.generation = m->generation,
                              .round = m->round,
                              .form = m->form,
                              .count = m->count,
                              .updates = m->updates,
                              .channel = m->channel,
                              .sequence = m->sequence};
    if (m->kind == PEN_MESSAGE_ASSIGN) {
        event.kind = PEN_WORKER_EVENT_ASSIGN;
    } else if (m->kind == PEN_MESSAGE_START) {
        event.kind = PEN_WORKER_EVENT_START;
    } else if (m->kind == PEN_MESSAGE_ROUND) {
        event.kind = PEN_WORKER_EVENT_ROUND;
    } else if (m->kind == PEN_MESSAGE_GO) {
        event.kind = PEN_WORKER_EVENT_GO;
    } else if (m->kind == PEN_MESSAGE_CREDIT) {
        event.kind = PEN_WORKER_EVENT_CREDIT;
    } else if (m->kind == PEN_MESSAGE_STOP) {
        event.kind = PEN_WORKER_EVENT_STOP;
    } else {
        RUN_WRONG(peer->runner, "worker %u was told %s", peer->number,
                  pen_message_kind_name(m->kind));
        return;
    }
    run_worker_event(peer, event);
}

static void run_take_coordinator_message(protocol_runner *r, uint32_t from, const pen_message *m) {
    const pen_coordinator_identity identity = {.protocol = m->protocol};
    pen_coordinator_event event = {.worker = from,
                                   .incarnation = m->incarnation,
                                   .generation = m->generation,
                                   .round = m->round,
                                   .form = m->form,
                                   .channel = m->channel,
                                   .sequence = m->sequence,
                                   .microbatch = m->microbatch,
                                   .stage = m->stage,
                                   .loss = {.value = m->value},
                                   .identity = &identity};
    if (m->kind == PEN_MESSAGE_HELLO) {
        event.kind = PEN_COORDINATOR_EVENT_HELLO;
    } else if (m->kind == PEN_MESSAGE_READY) {
        event.kind = PEN_COORDINATOR_EVENT_READY;
    } else if (m->kind == PEN_MESSAGE_LOSS) {
        event.kind = PEN_COORDINATOR_EVENT_LOSS;
    } else if (m->kind == PEN_MESSAGE_GRADIENT) {
        event.kind = PEN_COORDINATOR_EVENT_GRADIENT;
    } else if (m->kind == PEN_MESSAGE_ROUND_DONE) {
        event.kind = PEN_COORDINATOR_EVENT_ROUND_DONE;
    } else if (m->kind == PEN_MESSAGE_CREDIT) {
        event.kind = PEN_COORDINATOR_EVENT_CREDIT;
    } else {
        RUN_WRONG(r, "the coordinator was told %s", pen_message_kind_name(m->kind));
        return;
    }
    run_coordinator_event(r, event);
}

// ---- what transports call back

static pen_status run_accept(void *context, const pen_introduction *who, const char *address) {
    (void)context;
    (void)who;
    (void)address;
    return PEN_OK;
}

static void run_up(void *context, uint32_t peer) {
    (void)peer;
    ((run_peer *)context)->up_count += 1;
}

static void run_down(void *context, uint32_t peer, pen_status take_reason) {
    run_peer *self = context;
    if (!self->runner->is_over) RUN_WRONG(self->runner, "link to %u down", peer);
    pen_status_ignore(take_reason, "expected at the end alone");
}

static void run_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    run_peer *self = context;
    pen_message message;
    CHECK_OK(pen_message_decode(bytes, count, &message));
    run_digest(self->runner, message.kind, peer, self->number);
    if (self->number == 0) {
        run_take_coordinator_message(self->runner, peer, &message);
    } else {
        run_take_worker_message(self, &message);
    }
}

static pen_worker_event run_frame_event(const pen_frame *frame) {
    return (pen_worker_event){.kind = PEN_WORKER_EVENT_FRAME,
                              .generation = frame->generation,
                              .form = frame->form,
                              .channel = frame->channel,
                              .sequence = frame->sequence};
}

static pen_status run_begin(void *context, uint32_t peer, const pen_frame *frame,
                            pen_memory_place *out_place) {
    run_peer *self = context;
    protocol_runner *r = self->runner;
    const pen_worker_event event = run_frame_event(frame);
    bool is_seen;
    const pen_worker_fault fault = pen_worker_core_check_frame(self->core, &event, &is_seen);
    if (fault != PEN_WORKER_FAULT_NONE || is_seen) {
        RUN_WRONG(r, "worker %u refuses frame %" PRIu64 " of channel %u from %u: %s", self->number,
                  frame->sequence, frame->channel, peer, pen_worker_fault_text(fault));
        return pen_error(PEN_CORRUPT, "refused");
    }
    const pen_run_form *form = &r->table->forms[frame->form];
    const uint32_t place =
        run_place(form, frame->channel, frame->sequence, form->channels[frame->channel].capacity);
    *out_place = pen_memory_place_at(&r->channels[frame->form][frame->channel].target[place]);
    return PEN_OK;
}

static void run_end(void *context, uint32_t peer, const pen_frame *frame, const uint32_t *checksums,
                    bool is_compared) {
    run_peer *self = context;
    (void)checksums;
    (void)is_compared;
    run_digest(self->runner, frame->channel, frame->sequence, peer);
    run_worker_event(self, run_frame_event(frame));
}

static void run_let_go(void *context, uint32_t peer, uint64_t token) {
    run_peer *self = context;
    protocol_runner *r = self->runner;
    (void)peer;
    const uint32_t form = (uint32_t)(token >> 56);
    const uint32_t channel = (uint32_t)(token >> 40 & 0xffff) - 1;
    const uint64_t sequence = token & (((uint64_t)1 << 40) - 1);
    const pen_run_form *in = &r->table->forms[form];
    const uint32_t place = run_place(in, channel, sequence, in->channels[channel].copies);
    run_channel *ends = &r->channels[form][channel];
    if (!ends->is_lent[place] || ends->source[place] != token) {
        RUN_WRONG(r, "channel %u was let go of what was not lent", channel);
    }
    ends->is_lent[place] = false;
    if (self->number == 0) {
        run_coordinator_event(r, (pen_coordinator_event){.kind = PEN_COORDINATOR_EVENT_LET_GO,
                                                         .form = form,
                                                         .channel = channel,
                                                         .sequence = sequence});
    } else {
        run_worker_event(self, (pen_worker_event){.kind = PEN_WORKER_EVENT_LET_GO,
                                                  .form = form,
                                                  .channel = channel,
                                                  .sequence = sequence});
    }
}

// ---- frames

void run_send_frame(run_peer *from, uint32_t form_number, uint32_t channel, uint64_t sequence) {
    protocol_runner *r = from->runner;
    const pen_run_form *form = &r->table->forms[form_number];
    run_channel *ends = &r->channels[form_number][channel];
    const uint32_t place = run_place(form, channel, sequence, form->channels[channel].copies);
    const uint64_t word = run_word(form_number, channel, sequence);
    static const uint32_t checksum = 0;
    if (ends->source[place] != word || ends->is_lent[place]) {
        RUN_WRONG(r, "channel %u: frame %" PRIu64 " is not in its place to be sent", channel,
                  sequence);
    }
    ends->is_lent[place] = true;
    const pen_frame frame = {.kind = PEN_FRAME_VALUE,
                             .generation = RUN_GENERATION,
                             .form = form_number,
                             .channel = channel,
                             .sequence = sequence,
                             .bytes = sizeof word};
    const pen_status status =
        r->kind->send_frame(from->transport, form->channels[channel].target_worker, &frame,
                            pen_memory_place_at(&ends->source[place]), &checksum, word);
    if (status != PEN_OK) RUN_WRONG(r, "no frame: %s", pen_status_message(status));
    pen_status_ignore(status, "judged");
}

void run_make(protocol_runner *r, uint32_t form_number, uint32_t channel, uint64_t sequence) {
    const pen_run_form *form = &r->table->forms[form_number];
    run_channel *ends = &r->channels[form_number][channel];
    const uint32_t place = run_place(form, channel, sequence, form->channels[channel].copies);
    if (ends->is_lent[place]) {
        RUN_WRONG(r, "channel %u: frame %" PRIu64 " is made where memory is lent", channel,
                  sequence);
    }
    ends->source[place] = run_word(form_number, channel, sequence);
}

void run_check_inputs(protocol_runner *r, const run_device *device, const char *when) {
    const pen_run_form *form = &r->table->forms[device->task_form];
    const pen_run_task *task = &form->tasks[device->task];
    for (uint32_t i = task->receive_first; i < task->receive_end; i++) {
        const uint32_t channel = form->refs[i];
        const uint64_t sequence = pen_run_sequence(form, &form->channels[channel],
                                                   device->task_round, task->task.microbatch);
        const uint32_t place = run_place(form, channel, sequence, form->channels[channel].capacity);
        if (r->channels[device->task_form][channel].target[place] ==
            run_word(device->task_form, channel, sequence)) {
            continue;
        }
        RUN_WRONG(r, "device %u, round %" PRIu64 ", task %u: channel %u lacks frame %" PRIu64 " %s",
                  device->number, device->task_round, device->task, channel, sequence, when);
    }
}

const pen_transport_events run_transport_events = {.accept = run_accept,
                                                   .up = run_up,
                                                   .down = run_down,
                                                   .message = run_message,
                                                   .begin = run_begin,
                                                   .end = run_end,
                                                   .let_go = run_let_go};
