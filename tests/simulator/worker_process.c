#include "tests/simulator/worker_process.h"

#include <stdio.h>
#include <string.h>

#include "tests/simulator/checks.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/ghosts.h"
#include "tests/simulator/stuck.h"
#include "tests/simulator/waits.h"

// ---- telling

void worker_tell(worker_process *worker, uint32_t peer, pen_message *message) {
    uint8_t bytes[PEN_MESSAGE_ROOM + 4096];
    process *p = worker->process;
    message->protocol = PEN_PROTOCOL_VERSION;
    message->incarnation = p->incarnation;
    message->generation = worker->member.generation;
    memcpy(message->job, SIMULATION_JOB, sizeof SIMULATION_JOB);
    const size_t length = pen_message_encode(message, bytes, sizeof bytes);
    PEN_ASSERT(length <= sizeof bytes);
    const bool may_wait = message->kind != PEN_MESSAGE_BEAT;
    if (may_wait && process_holds_message(p, peer, bytes, (uint32_t)length)) return;
    link_send_message(p, peer, bytes, (uint32_t)length);
    ghost_follow(p, peer, message);
}

void worker_fail(worker_process *worker, const char *why) {
    pen_message message = {.kind = PEN_MESSAGE_FAIL, .code = PEN_UNAVAILABLE};
    snprintf(message.text, sizeof message.text, "%s", why);
    WORLD_NOTE(worker->process->world, worker->process, why, worker->member.generation, 0, 0);
    worker_tell(worker, 0, &message);
    worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_FAILED});
}

// ---- the member core

void worker_tick_once(worker_process *worker) {
    worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_TICK});
    if (worker->process->is_alive) waits_tick_worker(worker);
}

static void worker_tick(process *p, void *context, uint64_t value) {
    worker_process *worker = context;
    (void)value;
    worker->is_ticking = false;
    if (!worker->member.is_linked) return;
    worker->is_ticking = true;
    world_call_in(p->world, p->world->times.beat / 2, p, worker_tick, worker, 0);
    worker_tick_once(worker);
}

static void worker_left(process *p, void *context, uint64_t value) {
    worker_process *worker = context;
    (void)p;
    (void)value;
    if (worker->run != NULL && worker->run->running_count > 0) return; // its last task calls
    worker->run = NULL;
    worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_LEFT});
}

// That a link is up or down reaches a stuck process late.
static void worker_take_up(process *p, void *context, uint64_t value) {
    (void)value;
    if (context != link_identity(p, 0)) return;
    worker_member(p->worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_UP});
}

static void worker_take_down(process *p, void *context, uint64_t value) {
    (void)context;
    (void)value;
    worker_member(p->worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_DOWN});
}

static void worker_hear_down(worker_process *worker) {
    process *p = worker->process;
    if (process_is_busy(p)) {
        world_work_in(p->world, 0, p, worker_take_down, NULL, 0);
    } else {
        worker_take_down(p, NULL, 0);
    }
}

static void worker_do(worker_process *worker, const pen_member_action *action) {
    process *p = worker->process;
    world *w = p->world;
    pen_message message = {.kind = PEN_MESSAGE_HELLO};
    WORLD_NOTE(w, p, "member acts", action->kind, action->generation, action->worker);
    switch (action->kind) {
    case PEN_MEMBER_ACTION_HELLO:
        memcpy(message.build, "sim", 4);
        memcpy(message.isa, "words", 6);
        worker_tell(worker, 0, &message);
        if (worker->is_ticking) break;
        worker->is_ticking = true;
        world_call_in(w, w->times.beat / 2, p, worker_tick, worker, 0);
        break;
    case PEN_MEMBER_ACTION_PULL:
        message.kind = PEN_MESSAGE_PULL;
        message.frame_kind = PEN_FRAME_BLOB;
        message.byte_count = 8 * SHAPE_WORDS;
        worker_tell(worker, 0, &message);
        break;
    case PEN_MEMBER_ACTION_LOAD:
        worker_run_load(worker, action->generation, action->worker);
        break;
    case PEN_MEMBER_ACTION_LEAVE:
        worker_run_close(worker);
        world_work_in(w, chance_below(&w->chaos, 200 * WORLD_MICROSECOND), p, worker_left, worker,
                      0);
        break;
    case PEN_MEMBER_ACTION_DISCONNECT:
        link_disconnect(p, 0);
        worker_hear_down(worker);
        break;
    case PEN_MEMBER_ACTION_LATE:
        message.kind = PEN_MESSAGE_FAIL;
        message.code = PEN_DEADLINE;
        w->result->late_waits += 1;
        worker_tell(worker, 0, &message);
        break;
    case PEN_MEMBER_ACTION_STUCK: // it ends itself, so that another takes its place
        w->result->late_waits += 1;
        process_crash(p, false);
        break;
    case PEN_MEMBER_ACTION_STOPPED:
        message.kind = PEN_MESSAGE_STOPPED;
        worker_tell(worker, 0, &message);
        break;
    case PEN_MEMBER_ACTION_BEAT:
        message.kind = PEN_MESSAGE_BEAT;
        message.state = worker->member.state;
        worker_tell(worker, 0, &message);
        break;
    }
}

// Events that come while one is dealt with wait.
void worker_member(worker_process *worker, pen_member_event event) {
    event.now = process_now(worker->process);
    PEN_ASSERT(worker->queue_end - worker->queue_first < WORKER_QUEUE);
    worker->queue[worker->queue_end++ % WORKER_QUEUE] = event;
    if (worker->is_stepping) return;
    worker->is_stepping = true;
    while (worker->queue_first < worker->queue_end && worker->process->is_alive) {
        const pen_member_event next = worker->queue[worker->queue_first++ % WORKER_QUEUE];
        pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
        uint32_t count;
        pen_member_core_step(&worker->member, &next, actions, &count);
        for (uint32_t i = 0; i < count; i++) {
            worker_do(worker, &actions[i]);
        }
    }
    worker->is_stepping = false;
}

// ---- links

link_answer worker_accept(process *p, const link_introduction *introduction) {
    worker_process *worker = p->worker;
    bool leaves;
    const pen_member_answer answer =
        pen_member_core_judge(&worker->member, introduction->peer, SIMULATION_JOB,
                              introduction->generation, introduction->incarnation, &leaves);
    WORLD_NOTE(p->world, p, "is called", introduction->peer, answer, introduction->generation);
    if (leaves) {
        pen_member_action actions[PEN_MEMBER_ACTION_LIMIT];
        uint32_t count;
        pen_member_core_supersede(&worker->member, actions, &count);
        for (uint32_t i = 0; i < count; i++) {
            worker_do(worker, &actions[i]);
        }
    }
    switch (answer) {
    case PEN_MEMBER_TAKE:
        if (introduction->peer == 0) {
            worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_CALL,
                                                     .job = SIMULATION_JOB,
                                                     .generation = introduction->generation,
                                                     .incarnation = introduction->incarnation});
        }
        return LINK_TAKE;
    case PEN_MEMBER_BUSY:
    case PEN_MEMBER_NO_RUN:
        return LINK_AGAIN;
    case PEN_MEMBER_SUPERSEDED:
        return LINK_NEVER;
    }
    PEN_NEVER("an answer of a member");
}

void worker_up(process *p, uint32_t peer) {
    worker_process *worker = p->worker;
    WORLD_NOTE(p->world, p, "link is up", peer, 0, 0);
    if (peer == 0) {
        if (process_is_busy(p)) {
            world_work_in(p->world, 0, p, worker_take_up, link_identity(p, 0), 0);
        } else {
            worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_UP});
        }
    } else if (worker->run != NULL) {
        worker_run_check_loaded(worker);
    }
}

void worker_down(process *p, uint32_t peer) {
    worker_process *worker = p->worker;
    WORLD_NOTE(p->world, p, "link is down", peer, 0, 0);
    if (peer == 0) {
        worker_hear_down(worker);
    } else if (worker->run != NULL && !worker->run->is_closed) {
        worker_fail(worker, "lost a worker's link");
    }
}

// ---- messages

void worker_message(process *p, uint32_t peer, const pen_message *message) {
    worker_process *worker = p->worker;
    WORLD_NOTE(p->world, p, pen_message_kind_name(message->kind), peer, message->generation,
               message->round + message->sequence);
    if (peer == 0) {
        worker->heard_count += 1;
        worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_HEARD});
    }
    pen_worker_event event = {.generation = message->generation,
                              .round = message->round,
                              .form = message->form,
                              .channel = message->channel,
                              .sequence = message->sequence,
                              .count = message->count,
                              .updates = message->updates};
    switch (message->kind) {
    case PEN_MESSAGE_ASSIGN:
        worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_ASSIGN,
                                                 .generation = message->generation,
                                                 .incarnation = message->target_incarnation,
                                                 .worker = message->worker});
        return;
    case PEN_MESSAGE_STOP:
        worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_STOP,
                                                 .generation = message->generation});
        return;
    case PEN_MESSAGE_SNAPSHOT:
        if (worker->run != NULL && !worker->run->is_closed &&
            worker->run->memory->generation == message->generation) {
            worker_snapshot(worker, message);
        }
        return;
    case PEN_MESSAGE_START:
        worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_STARTED,
                                                 .generation = message->generation});
        if (worker->run != NULL && worker->run->memory->generation == message->generation) {
            worker->run->is_started = true;
        }
        event.kind = PEN_WORKER_EVENT_START;
        break;
    case PEN_MESSAGE_GO:
        if (worker->member.generation == message->generation) orders_tell(p, message);
        event.kind = PEN_WORKER_EVENT_GO;
        break;
    case PEN_MESSAGE_CREDIT:
        event.kind = PEN_WORKER_EVENT_CREDIT;
        break;
    case PEN_MESSAGE_ROUND:
        event.kind = PEN_WORKER_EVENT_ROUND;
        if (worker->run == NULL || worker->run->memory->generation != message->generation) return;
        worker->run->memory->rounds[message->round % COMPUTING_ROUNDS] =
            (computing_round){.number = message->round,
                              .form = message->form,
                              .count = message->count,
                              .updates = message->updates,
                              .step = (uint32_t)message->step,
                              .first_microbatch = (uint32_t)message->first_microbatch};
        break;
    case PEN_MESSAGE_COMMITTED:
    case PEN_MESSAGE_PING:
    case PEN_MESSAGE_REFUSED:
    case PEN_MESSAGE_FAIL:
        return;
    default:
        world_wrong(p->world, "message", "a worker is sent a message of kind %s",
                    pen_message_kind_name(message->kind));
        return;
    }
    worker_feed(worker, event);
}

// ---- frames

uint64_t *worker_begin(process *p, uint32_t peer, const link_frame *frame, bool *out_is_refused) {
    worker_process *worker = p->worker;
    (void)peer;
    if (frame->kind == PEN_FRAME_BLOB) {
        if (worker->member.state == PEN_MEMBER_PULLING) return worker->description;
        *out_is_refused = true;
        return NULL;
    }
    worker_run *run = worker->run;
    if (run == NULL || run->is_closed || frame->generation != run->memory->generation) {
        *out_is_refused = true; // as runtime/worker does
        return NULL;
    }
    if (frame->kind == PEN_FRAME_TENSOR) return &worker->tensor;
    const pen_worker_event event = {.kind = PEN_WORKER_EVENT_FRAME,
                                    .generation = frame->generation,
                                    .form = frame->form,
                                    .channel = frame->channel,
                                    .sequence = frame->sequence};
    bool is_seen;
    const pen_worker_fault fault = pen_worker_core_check_frame(run->core, &event, &is_seen);
    if (fault != PEN_WORKER_FAULT_NONE) {
        world_wrong(p->world, "I3", "channel %u, frame %" PRIu64 ": %s", frame->channel,
                    frame->sequence, pen_worker_fault_text(fault));
        return NULL;
    }
    if (is_seen) return NULL;
    computing_place *place =
        computing_target(run->memory, frame->form, frame->channel, frame->sequence);
    if (place->is_held) {
        world_wrong(p->world, "I3", "frame %" PRIu64 " of channel %u comes where one is held",
                    frame->sequence, frame->channel);
    }
    place->is_held = true;
    place->is_compared = false;
    place->sequence = frame->sequence;
    place->checksum = frame->checksum;
    return place->words;
}

void worker_end(process *p, uint32_t peer, const link_frame *frame) {
    worker_process *worker = p->worker;
    (void)peer;
    WORLD_NOTE(p->world, p, "frame is here", frame->kind, frame->channel, frame->sequence);
    if (frame->kind == PEN_FRAME_BLOB) {
        if (computing_checksum(worker->description, frame->words) != frame->checksum) {
            worker_fail(worker, "the description was damaged");
            return;
        }
        worker_member(worker, (pen_member_event){.kind = PEN_MEMBER_EVENT_DESCRIBED});
        return;
    }
    worker_run *run = worker->run;
    if (run == NULL || run->is_closed || frame->generation != run->memory->generation) return;
    if (frame->kind == PEN_FRAME_TENSOR) {
        if (computing_checksum(&worker->tensor, 1) != frame->checksum) {
            worker_fail(worker, "a tensor was damaged");
            return;
        }
        run->memory->stages[frame->channel].parameters = worker->tensor;
        run->memory->stages[frame->channel].step = worker->description[0] >> 32;
        PEN_ASSERT(run->missing_tensors > 0 || p->world->sends_first);
        if (run->missing_tensors > 0) run->missing_tensors -= 1;
        pen_message taken = {.kind = PEN_MESSAGE_TAKEN, .sequence = frame->sequence};
        worker_tell(worker, 0, &taken);
        worker_run_check_loaded(worker);
        return;
    }
    worker_feed(worker, (pen_worker_event){.kind = PEN_WORKER_EVENT_FRAME,
                                           .generation = frame->generation,
                                           .form = frame->form,
                                           .channel = frame->channel,
                                           .sequence = frame->sequence});
}

void worker_let_go(process *p, uint64_t token) {
    worker_process *worker = p->worker;
    if (worker->run == NULL) return;
    const uint32_t form = (uint32_t)(token >> 60), channel = (uint32_t)(token >> 48) & 0xfff;
    const uint64_t sequence = token & 0xffffffffffff;
    computing_source(worker->run->memory, form, channel, sequence)->is_held = false;
    worker_feed(worker, (pen_worker_event){.kind = PEN_WORKER_EVENT_LET_GO,
                                           .form = form,
                                           .channel = channel,
                                           .sequence = sequence});
}

// ---- life

void worker_start(process *p) {
    worker_process *worker = WORLD_NEW(p->world, worker_process);
    worker->process = p;
    p->worker = worker;
    const pen_member_options options = {.incarnation = p->incarnation,
                                        .lease = p->world->times.lease,
                                        .beat = p->world->times.beat,
                                        .link = p->world->times.link,
                                        .assign = p->world->times.assign,
                                        .load = p->world->times.load,
                                        .leave = p->world->times.leave};
    pen_member_core_init(&worker->member, &options);
}

void worker_died(process *p) {
    if (p->worker->run != NULL) p->worker->run->is_closed = true;
    world_supervise(p->world, p->host);
}
