// What comes to a coordinator from the transport: links, frames, messages.

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/build.h"
#include "base/system/machine.h"
#include "device/device.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "scheduler/runtime/coordinator/coordinator_shards.h"
#include "scheduler/runtime/run/peer_code.h"
#include "scheduler/runtime/run/run_wire.h"
#include "scheduler/runtime/worker/worker.h"

// A sign of life of a worker.
static void link_hear(pen_coordinator *c, uint32_t peer, uint64_t incarnation) {
    const pen_coordinator_event event = {
        .kind = PEN_COORDINATOR_EVENT_HEARD, .worker = peer, .incarnation = incarnation};
    pen_coordinator_step(c, &event);
}

// ---- links

static void link_up(void *context, uint32_t peer) {
    pen_coordinator *c = context;
    pen_mutex_lock(&c->lock);
    c->workers[peer].is_up = true;
    c->workers[peer].was_up = true;
    c->workers[peer].is_lost = false;
    c->workers[peer].trouble[0] = '\0';
    if (!c->is_failed) {
        pen_status_ignore(c->workers[peer].failure, "of a link before this one");
        c->workers[peer].failure = PEN_OK;
        c->workers[peer].has_said = false;
        c->workers[peer].is_unjust = false;
    }
    pen_mutex_unlock(&c->lock);
}

static void link_attempt_failed(void *context, uint32_t peer, const char *why) {
    pen_coordinator *c = context;
    pen_mutex_lock(&c->lock);
    snprintf(c->workers[peer].trouble, sizeof c->workers[peer].trouble, "%s", why);
    pen_mutex_unlock(&c->lock);
}

// A worker that serves a higher generation of this job says so in these words (worker_link.c).
static bool link_is_superseded(pen_status reason) {
    return pen_status_get_code(reason) == PEN_CANCELLED &&
           strstr(pen_status_message(reason), PEN_WORKER_SUPERSEDED) != NULL;
}

// A worker that left a run that failed refuses the frames that are still on their way to it.
static bool link_has_left(const pen_coordinator *c, pen_status reason) {
    return c->is_failed && strstr(pen_status_message(reason), PEN_WORKER_LEFT) != NULL;
}

// Whether calling again may help.
static bool link_may_return(const pen_coordinator *c, pen_status reason, bool was_up) {
    const pen_coordinator_state state = pen_coordinator_core_state(c->core);
    if (state != PEN_COORDINATOR_RECRUIT && state != PEN_COORDINATOR_FENCE) return false;
    return was_up || pen_status_get_code(reason) == PEN_UNAVAILABLE;
}

// A link is down. Whether the worker is lost, left on purpose, or may come back is read from the
// reason and from what is going on.
void pen_coordinator_lose(pen_coordinator *c, uint32_t peer, pen_status take_reason) {
    coordinator_worker *worker = &c->workers[peer];
    pen_mutex_lock(&c->lock);
    const bool is_superseded = link_is_superseded(take_reason);
    pen_flight_record_note(c->recorder, pen_status_message(take_reason));
    worker->wants_link = link_may_return(c, take_reason, worker->is_up);
    if (!worker->is_up && worker->trouble[0] == '\0') { // its answer was not to be trusted
        snprintf(worker->trouble, sizeof worker->trouble, "%s", pen_status_message(take_reason));
    }
    worker->is_up = false;
    worker->is_lost = !link_has_left(c, take_reason);
    pen_coordinator_end_arrivals(c, peer);
    pen_condition_broadcast(&c->changed);
    const bool is_closed = c->is_closed;
    if (is_closed) {
        pen_status_ignore(take_reason, "the run is over");
    } else {
        worker->failure = pen_status_join(worker->failure, take_reason);
    }
    pen_mutex_unlock(&c->lock);
    if (is_closed) return;
    if (is_superseded) pen_coordinator_end_run(c, PEN_COORDINATOR_REASON_SUPERSEDED, peer);
    const pen_coordinator_event event = {
        .kind = PEN_COORDINATOR_EVENT_LOST, .worker = peer, .incarnation = worker->incarnation};
    pen_coordinator_step(c, &event);
}

static void link_down(void *context, uint32_t peer, pen_status take_reason) {
    pen_coordinator_lose(context, peer, take_reason);
}

static pen_status link_accept(void *context, const pen_introduction *introduction,
                              const char *address) {
    (void)context;
    (void)address;
    return pen_error(PEN_INVALID_INPUT, "worker %u opened a link to the coordinator",
                     introduction->peer);
}

// ---- frames

static pen_status link_begin(void *context, uint32_t peer, const pen_frame *frame,
                             pen_memory_place *out_place) {
    link_hear(context, peer, frame->incarnation);
    return pen_coordinator_begin_piece(context, peer, frame, out_place);
}

static void link_end(void *context, uint32_t peer, const pen_frame *frame,
                     const uint32_t *checksums, bool is_compared) {
    pen_coordinator *c = context;
    (void)is_compared; // these are few
    link_hear(c, peer, frame->incarnation);
    pen_coordinator_end_piece(c, frame, checksums);
}

static void link_let_go(void *context, uint32_t peer, uint64_t token) {
    pen_coordinator *c = context;
    (void)peer;
    if (token >= COORDINATOR_BLOB_TOKEN) return; // it lives as long as the run
    if (token >= COORDINATOR_PIECE_TOKEN) {
        pen_coordinator_let_piece_go(c, token - COORDINATOR_PIECE_TOKEN);
        return;
    }
    const coordinator_frame *frame = &c->frames[token];
    pen_mutex_lock(&c->lock);
    c->announced[frame->round % COORDINATOR_ROUNDS].lent_count -= 1;
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_LET_GO,
                                         .form = frame->form,
                                         .channel = frame->channel,
                                         .sequence = frame->sequence};
    pen_coordinator_step(c, &event);
}

static void link_send_blob(pen_coordinator *c, uint32_t peer, const pen_message *pull) {
    coordinator_worker *worker = &c->workers[peer];
    const pen_frame frame = {.kind = PEN_FRAME_BLOB,
                             .generation = c->generation,
                             .incarnation = c->incarnation,
                             .sequence = pull->sequence,
                             .bytes = worker->blob_bytes};
    if (worker->blob == NULL || pull->frame_kind != PEN_FRAME_BLOB) return;
    pen_mutex_lock(&c->lock);
    const bool is_repeated = worker->is_blob_sent;
    worker->is_blob_sent = true;
    pen_mutex_unlock(&c->lock);
    if (is_repeated) return;
    pen_status_ignore(c->transport->kind->send_frame(
                          c->transport, peer, &frame, pen_memory_place_at(worker->blob),
                          worker->blob_checksums, COORDINATOR_BLOB_TOKEN),
                      "a link that is down is told of by `down`");
}

// ---- messages

// Devices that a worker has too few cores for compute slowly, and nothing else says why.
static void link_warn_threads(const pen_coordinator *c, uint32_t peer, uint32_t cores) {
    for (uint32_t d = 0; d < c->table->device_count; d++) {
        if (c->table->forms[0].devices[d].worker != peer) continue;
        pen_machine_warn_threads(c->spec->devices[d].name, c->spec->devices[d].thread_count,
                                 c->spec->workers[peer].name, cores);
    }
}

// What the worker runs and may use is kept for the core to judge, beside what the plan takes there.
// That it writes anywhere is judged here.
static void link_on_hello(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    coordinator_worker *worker = &c->workers[peer];
    pen_mutex_lock(&c->lock);
    worker->incarnation = message->incarnation;
    worker->identity = (pen_coordinator_identity){.protocol = message->protocol,
                                                  .device_count = message->device_count,
                                                  .plan_hash = message->plan_hash,
                                                  .memory_bytes = message->memory_bytes};
    if (c->setup.needed_bytes != NULL) {
        worker->identity.needed_bytes = c->setup.needed_bytes[peer];
    }
    snprintf(worker->identity.build, sizeof worker->identity.build, "%s", message->build);
    snprintf(worker->identity.isa, sizeof worker->identity.isa, "%s", message->isa);
    memcpy(worker->store, message->text, sizeof worker->store);
    // one of another build is refused for that
    const bool is_alike = strcmp(message->build, pen_build_name()) == 0;
    const pen_status status = is_alike ? pen_coordinator_check_store(c, peer) : PEN_OK;
    pen_mutex_unlock(&c->lock);
    if (status != PEN_OK) {
        pen_coordinator_turn_away(c, peer, PEN_REFUSAL_NONE, status);
        return;
    }
    link_warn_threads(c, peer, message->count);
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_HELLO,
                                         .worker = peer,
                                         .incarnation = message->incarnation,
                                         .identity = &worker->identity};
    pen_coordinator_step(c, &event);
}

// Devices of one kind must be alike, wherever they are: those of the worker that was ready first
// count.
static pen_status link_check_identity(pen_coordinator *c, uint32_t peer,
                                      const pen_message *message) {
    bool is_alike = true;
    if (message->text[0] == '\0') return PEN_OK;
    pen_mutex_lock(&c->lock);
    const uint32_t first = c->identity_worker;
    if (first == 0) {
        memcpy(c->identity, message->text, sizeof c->identity);
        c->identity_worker = peer;
    } else {
        is_alike = strcmp(c->identity, message->text) == 0;
    }
    pen_mutex_unlock(&c->lock);
    if (is_alike) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "worker %u has '%.200s', worker %u has '%.200s': " PEN_DEVICE_UNLIKE, first,
                     c->identity, peer, message->text);
}

void pen_coordinator_get_identity(pen_coordinator *coordinator, char *out_text) {
    pen_mutex_lock(&coordinator->lock);
    memcpy(out_text, coordinator->identity, sizeof coordinator->identity);
    pen_mutex_unlock(&coordinator->lock);
}

// False: it does not see where it is to write, or its devices are unlike others, and it is turned
// away.
static bool link_on_ready(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    pen_mutex_lock(&c->lock);
    const bool is_its_own = message->incarnation == c->workers[peer].incarnation;
    pen_mutex_unlock(&c->lock);
    if (!is_its_own) return true; // which the core passes over
    if (message->bytes_length > 0) {
        pen_coordinator_tell_lacks(c, peer, message->bytes, message->bytes_length);
    }
    pen_status status = pen_coordinator_take_seen(c, peer, message->number);
    if (status == PEN_OK) status = link_check_identity(c, peer, message);
    if (status == PEN_OK) return true;
    pen_coordinator_turn_away(c, peer, PEN_REFUSAL_NONE, status);
    return false;
}

// Figures of a round can be read when all workers have told theirs (link_note).
static pen_status link_on_round_done(pen_coordinator *c, const pen_message *message) {
    const uint64_t slot = message->round % COORDINATOR_ROUNDS;
    uint32_t count;
    PEN_TRY(pen_round_figures_count(message->bytes_length, &count));
    pen_mutex_lock(&c->lock);
    c->figures_round[slot] = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const pen_round_figures figures = pen_round_figures_decode(message->bytes, i);
        if (figures.device < c->table->device_count) c->figures[slot][figures.device] = figures;
    }
    pen_mutex_unlock(&c->lock);
    return PEN_OK;
}

// Whether a worker may end with this code: its process can have come to it by itself. That somebody
// asked to stop is seen here and not there. So is what is wrong with the user's input, but for
// data: a worker that reads them by itself finds it when it opens them, others when a node computes
// with them, such as an index that a table does not have. With the lock.
bool pen_coordinator_may_fail_with(const pen_coordinator *c, uint32_t peer, uint32_t code) {
    const bool is_own = peer == c->setup.local_worker; // runs in this process
    if (pen_peer_code_is_plain(code)) return true;
    switch (code) {
    case PEN_NO_STORAGE: // it writes shards
        return true;
    case PEN_DOES_NOT_FIT: // found when it loads, or measures
        return is_own || !c->is_running || c->spec->survey != PEN_RUN_SURVEY_NONE;
    case PEN_NOT_FINITE: // found when it computes
        return is_own || c->is_running;
    case PEN_INVALID_INPUT:
        if (c->is_running && c->spec->survey == PEN_RUN_SURVEY_NONE) return true;
        return is_own || c->spec->data != NULL;
    case PEN_NOT_FOUND:
        return is_own || c->spec->data != NULL;
    case PEN_CANCELLED:
        return is_own;
    default: // a number from outside
        return false;
    }
}

// The code becomes ours only where the worker may give it, since what starts us again, or does not,
// goes by it; else the worker is lost.
// With the lock.
static pen_status_code link_judge_code(pen_coordinator *c, uint32_t peer, uint32_t code) {
    const bool may_be = pen_coordinator_may_fail_with(c, peer, code);
    c->workers[peer].is_unjust = !may_be;
    return may_be ? (pen_status_code)code : PEN_UNAVAILABLE;
}

pen_status pen_coordinator_add_unjust(pen_status status, uint32_t code) {
    if (code > PEN_CODE_OK && code <= PEN_NO_STORAGE) {
        return pen_status_add_context(status, "it says '%s', which is not for a worker to say",
                                      pen_status_code_name((pen_status_code)code));
    }
    return pen_status_add_context(status, "it says code %u, which means nothing", code);
}

// What a worker says before it has introduced itself, or of another incarnation, is not heard, as
// the core does not hear it.
static void link_on_failure(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    coordinator_worker *worker = &c->workers[peer];
    pen_mutex_lock(&c->lock);
    const bool is_heard = message->incarnation == worker->incarnation &&
                          pen_coordinator_core_is_present(c->core, peer);
    const pen_status_code code = is_heard ? link_judge_code(c, peer, message->code) : PEN_CODE_OK;
    pen_mutex_unlock(&c->lock);
    if (!is_heard) return;
    const char *text =
        strncmp(message->text, "error: ", 7) == 0 ? message->text + 7 : message->text;
    const size_t line = strcspn(text, "\n");
    pen_status status = pen_error(code, "%.*s", (int)line, text);
    if (worker->is_unjust) status = pen_coordinator_add_unjust(status, message->code);
    for (text += line; *text != '\0';) {
        text += strspn(text, "\n ");
        const size_t length = strcspn(text, "\n");
        if (length > 0) status = pen_status_add_context(status, "%.*s", (int)length, text);
        text += length;
    }
    pen_mutex_lock(&c->lock);
    worker->failure = pen_status_join(status, worker->failure);
    worker->has_said = true;
    pen_mutex_unlock(&c->lock);
}

// Shards and evidence are asked for beside other questions, of which there is one at a time.
static void link_on_part(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    if (message->number == PEN_RUN_INQUIRY_SHARD) {
        pen_coordinator_take_shard_part(c, peer, message);
        return;
    }
    if (message->number == PEN_RUN_INQUIRY_EVIDENCE) {
        pen_coordinator_take_evidence(c, peer, message);
        return;
    }
    pen_mutex_lock(&c->lock);
    if (peer == c->asked_worker && message->number == c->asked_what &&
        message->offset == c->asked_offset && message->bytes_length <= PEN_MESSAGE_PART_LIMIT &&
        !c->is_answered) {
        if (message->bytes_length > 0) memcpy(c->part, message->bytes, message->bytes_length);
        c->part_length = message->bytes_length;
        c->part_total = message->byte_count;
        c->is_answered = true;
    }
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
}

static void link_on_pong(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    pen_mutex_lock(&c->lock);
    c->workers[peer].ponged = pen_max_u64(c->workers[peer].ponged, message->sequence);
    if (message->sequence == c->ping_sequence) {
        c->pong_here = message->clock_here;
        c->is_ponged = true;
    }
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
}

static void link_on_stopped(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    pen_mutex_lock(&c->lock);
    if (!c->workers[peer].is_stopped) {
        c->workers[peer].is_stopped = true;
        c->workers[peer].computes = message->number != 0;
        memcpy(c->workers[peer].waits, message->text, sizeof message->text);
    }
    pen_condition_broadcast(&c->changed);
    pen_mutex_unlock(&c->lock);
}

// An event of the core's, for messages that are one.
static void link_tell_core(pen_coordinator *c, uint32_t peer, pen_coordinator_event_kind kind,
                           const pen_message *message) {
    const pen_coordinator_event event = {
        .kind = kind,
        .worker = peer,
        .incarnation = message->incarnation,
        .generation = message->generation,
        .round = message->round,
        .sequence = message->sequence,
        .step = message->step,
        .code = message->code,
        .form = message->form,
        .channel = message->channel,
        .microbatch = message->microbatch,
        .stage = message->stage,
        .loss = {message->value, message->correct_count, message->target_count}};
    pen_coordinator_step(c, &event);
}

static void link_on_beat(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    const pen_coordinator_event event = {.kind = message->clock > 0 ? PEN_COORDINATOR_EVENT_COMPUTES
                                                                    : PEN_COORDINATOR_EVENT_HEARD,
                                         .worker = peer,
                                         .incarnation = message->incarnation,
                                         .sequence = message->clock};
    pen_coordinator_step(c, &event);
}

// The losses one by one go past the core, which judges their sum; they are here before it counts
// the report.
static void link_take_terms(pen_coordinator *c, const pen_message *message) {
    coordinator_announced *announced = &c->announced[message->round % COORDINATOR_ROUNDS];
    pen_mutex_lock(&c->lock);
    const bool is_known =
        announced->number == message->round && message->microbatch < c->microbatch_limit;
    for (uint32_t i = 0; is_known && i < message->term_count; i++) {
        if ((message->made >> i & 1) == 0) continue;
        memcpy(&announced->terms[(size_t)message->microbatch * PEN_TERMS_LIMIT + i],
               &message->terms[i], sizeof message->terms[i]);
    }
    pen_mutex_unlock(&c->lock);
}

// Messages that are an event of the core; false: it is none.
static bool link_take_event(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    pen_coordinator_event_kind kind = PEN_COORDINATOR_EVENT_HEARD;
    switch (message->kind) {
    case PEN_MESSAGE_READY:
        kind = PEN_COORDINATOR_EVENT_READY;
        break;
    case PEN_MESSAGE_LOSS:
        link_take_terms(c, message);
        kind = PEN_COORDINATOR_EVENT_LOSS;
        break;
    case PEN_MESSAGE_SEEN:
        pen_coordinator_take_value(c, message);
        break;
    case PEN_MESSAGE_GRADIENT:
        kind = PEN_COORDINATOR_EVENT_GRADIENT;
        break;
    case PEN_MESSAGE_ROUND_DONE:
        kind = PEN_COORDINATOR_EVENT_ROUND_DONE;
        break;
    case PEN_MESSAGE_CREDIT:
        kind = PEN_COORDINATOR_EVENT_CREDIT;
        break;
    case PEN_MESSAGE_FAIL:
        kind = PEN_COORDINATOR_EVENT_FAILED;
        break;
    case PEN_MESSAGE_SNAPPED:
        kind = PEN_COORDINATOR_EVENT_SNAPPED;
        break;
    case PEN_MESSAGE_SHARD:
        kind = PEN_COORDINATOR_EVENT_SHARD;
        break;
    case PEN_MESSAGE_TAKEN:
    case PEN_MESSAGE_PART:
    case PEN_MESSAGE_PONG:
    case PEN_MESSAGE_PULL:
    case PEN_MESSAGE_STOPPED:
    case PEN_MESSAGE_SURVEYED:
    case PEN_MESSAGE_RECOMPUTED:
        break; // a sign of life
    case PEN_MESSAGE_HELLO:
    case PEN_MESSAGE_BEAT:
    case PEN_MESSAGE_REFUSED: // no worker sends these; nothing depends on them
    case PEN_MESSAGE_ASSIGN:
    case PEN_MESSAGE_START:
    case PEN_MESSAGE_ROUND:
    case PEN_MESSAGE_GO:
    case PEN_MESSAGE_OFFER:
    case PEN_MESSAGE_ASK:
    case PEN_MESSAGE_PING:
    case PEN_MESSAGE_STOP:
    case PEN_MESSAGE_SNAPSHOT:
    case PEN_MESSAGE_COMMITTED:
    case PEN_MESSAGE_SURVEY:
    case PEN_MESSAGE_AUDIT:
    case PEN_MESSAGE_RECOMPUTE:
        return false;
    }
    link_tell_core(c, peer, kind, message);
    return true;
}

// What does not belong to this generation is dropped here, before anything looks at it. HELLO is
// the exception: by it a worker says which generation it is in.
static pen_status link_take(pen_coordinator *c, uint32_t peer, const pen_message *message) {
    pen_message shard;
    if (message->generation != c->generation && message->kind != PEN_MESSAGE_HELLO) {
        return PEN_OK; // of another run
    }
    if (message->kind == PEN_MESSAGE_HELLO) link_on_hello(c, peer, message);
    if (message->kind == PEN_MESSAGE_BEAT) link_on_beat(c, peer, message);
    if (message->kind == PEN_MESSAGE_FAIL) link_on_failure(c, peer, message);
    if (message->kind == PEN_MESSAGE_ROUND_DONE) PEN_TRY(link_on_round_done(c, message));
    if (message->kind == PEN_MESSAGE_SHARD) {
        shard = *message;
        pen_coordinator_read_shard(c, peer, message, &shard.code);
        message = &shard;
    }
    if (message->kind == PEN_MESSAGE_READY && !link_on_ready(c, peer, message)) return PEN_OK;
    if (!link_take_event(c, peer, message)) return PEN_OK;
    if (message->kind == PEN_MESSAGE_TAKEN) pen_coordinator_take_piece(c, peer, message->sequence);
    if (message->kind == PEN_MESSAGE_PART) link_on_part(c, peer, message);
    if (message->kind == PEN_MESSAGE_PONG) link_on_pong(c, peer, message);
    if (message->kind == PEN_MESSAGE_PULL) link_send_blob(c, peer, message);
    if (message->kind == PEN_MESSAGE_STOPPED) link_on_stopped(c, peer, message);
    if (message->kind == PEN_MESSAGE_SURVEYED) pen_coordinator_take_survey(c, peer, message);
    if (message->kind == PEN_MESSAGE_RECOMPUTED) pen_coordinator_take_recomputed(c, peer, message);
    return PEN_OK;
}

static void link_message(void *context, uint32_t peer, const void *bytes, uint64_t count) {
    pen_coordinator *c = context;
    pen_message message;
    if (peer == 0 || peer > c->table->worker_count) return;
    pen_status status = pen_message_decode(bytes, (size_t)count, &message);
    if (status == PEN_OK) status = link_take(c, peer, &message);
    if (status == PEN_OK) return;
    pen_mutex_lock(&c->lock);
    c->workers[peer].failure = pen_status_join(status, c->workers[peer].failure);
    pen_mutex_unlock(&c->lock);
    const pen_coordinator_event event = {.kind = PEN_COORDINATOR_EVENT_FAILED,
                                         .worker = peer,
                                         .incarnation = c->workers[peer].incarnation};
    pen_coordinator_step(c, &event);
}

pen_transport_events pen_coordinator_events(pen_coordinator *c) {
    return (pen_transport_events){.context = c,
                                  .accept = link_accept,
                                  .up = link_up,
                                  .down = link_down,
                                  .attempt_failed = link_attempt_failed,
                                  .message = link_message,
                                  .begin = link_begin,
                                  .end = link_end,
                                  .let_go = link_let_go};
}
