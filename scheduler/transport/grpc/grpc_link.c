// The states of a link.
//
//   caller:  WAITING --> CALLING --> UP --> CLOSING --> ENDING --> released
//               ^___________|         |_________________^
//               |____BROKEN <---------|
//   called:              CALLING --> UP --> CLOSING --> ENDING --> released
//                           |         |_________________^
//                           |         |--> BROKEN ------^
//                           |___________________________^
//
// A caller whose attempt fails waits for the next one. A link that broke, rather than being
// closed, has no last word to say: it goes straight to ENDING; or, when it may outlive its stream,
// to BROKEN. From there a caller calls again. One that was called waits for that: the link of the
// new call takes its session over, and it goes to ENDING.
#include "scheduler/transport/grpc/grpc_link.h"
#include "scheduler/transport/grpc/grpc_gate.h"

#include <grpc/byte_buffer.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/transport/wire_code.h"

// How long the other end may take to see that a link ends.
#define LINK_CLOSING_SECONDS 1.0

static bool link_may_become(pen_grpc_state from, pen_grpc_state to) {
    switch (from) {
    case PEN_GRPC_WAITING:
        return to == PEN_GRPC_CALLING || to == PEN_GRPC_ENDING;
    case PEN_GRPC_CALLING:
        return to != PEN_GRPC_CALLING;
    case PEN_GRPC_UP:
        return to == PEN_GRPC_BROKEN || to == PEN_GRPC_CLOSING || to == PEN_GRPC_ENDING;
    case PEN_GRPC_BROKEN:
        return to == PEN_GRPC_WAITING || to == PEN_GRPC_ENDING;
    case PEN_GRPC_CLOSING:
        return to == PEN_GRPC_ENDING;
    case PEN_GRPC_ENDING:
        return false;
    }
    PEN_NEVER("a link is in one of its states");
}

void pen_grpc_link_set_state(pen_grpc_link *link, pen_grpc_state state) {
    pen_mutex_lock(&link->transport->lock);
    PEN_ASSERT(link_may_become(link->state, state));
    link->state = state;
    pen_mutex_unlock(&link->transport->lock);
}

void pen_grpc_link_set_deadline(pen_grpc_link *link, double deadline) {
    link->deadline = deadline;
    pen_grpc_io_watch(link->transport, deadline);
}

// A caller waits for its first attempt; a link that was called exists because a call is there.
pen_status pen_grpc_link_create(pen_grpc *transport, bool is_caller, pen_grpc_link **out_link) {
    pen_grpc_link *link = pen_memory_allocate(1, sizeof *link);
    if (link == NULL) return pen_error_out_of_memory();
    pen_status status =
        pen_grpc_session_create(transport->options.resume_seconds > 0, &link->session);
    if (status == PEN_OK && transport->lanes != NULL) {
        status = pen_ring_lane_create(transport->lanes, &link->session->lane);
    }
    if (status != PEN_OK) {
        pen_grpc_session_destroy(link->session);
        pen_memory_free(link);
        return status;
    }
    link->transport = transport;
    link->is_caller = is_caller;
    link->peer = PEN_TRANSPORT_ANY_PEER;
    link->state = is_caller ? PEN_GRPC_WAITING : PEN_GRPC_CALLING;
    link->deadline = link->talk_at = INFINITY;
    link->status_text = grpc_empty_slice();
    grpc_metadata_array_init(&link->head);
    grpc_metadata_array_init(&link->trailer);
    *out_link = link;
    return PEN_OK;
}

void pen_grpc_link_destroy(pen_grpc_link *link) {
    pen_grpc_pass_release(link);
    if (link->call != NULL) grpc_call_unref(link->call);
    if (link->channel != NULL) grpc_channel_destroy(link->channel);
    grpc_metadata_array_destroy(&link->head);
    grpc_metadata_array_destroy(&link->trailer);
    grpc_slice_unref(link->status_text);
    pen_memory_free(link->pieces);
    pen_memory_free(link->scratch);
    pen_grpc_session_destroy(link->session);
    pen_memory_free(link);
}

void pen_grpc_link_adopt(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    link->next = transport->links;
    if (link->next != NULL) link->next->previous = link;
    transport->links = link;
    link->is_adopted = true;
}

static void link_release(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link **at = &transport->dirty;
    while (*at != NULL && *at != link)
        at = &(*at)->dirty_next;
    if (*at == link) *at = link->dirty_next;
    pen_mutex_unlock(&transport->lock);
    pen_grpc_send_drop_letters(link);
    pen_grpc_send_drop_frames(link);
    if (link->previous != NULL) link->previous->next = link->next;
    if (link->next != NULL) link->next->previous = link->previous;
    if (transport->links == link) transport->links = link->next;
    pen_grpc_link_destroy(link);
}

void pen_grpc_link_batch(pen_grpc_link *link, const grpc_op *ops, size_t count, pen_grpc_tag *tag) {
    link->tag_count += 1;
    const grpc_call_error error = grpc_call_start_batch(link->call, ops, count, tag, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
}

static void link_cancel(pen_grpc_link *link) {
    if (link->call == NULL || link->is_over || link->is_cancelled) return;
    link->is_cancelled = true;
    (void)grpc_call_cancel(link->call, NULL); // can only fail for calls that are over
}

void pen_grpc_link_up(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_mutex_lock(&transport->lock);
    link->session->is_open = true;
    pen_mutex_unlock(&transport->lock);
    pen_grpc_link_set_state(link, PEN_GRPC_UP);
    pen_grpc_link_set_deadline(link, INFINITY);
    transport->events.up(transport->events.context, link->peer);
    pen_grpc_ring_open(link);
}

void pen_grpc_link_broke(pen_grpc_link *link, pen_status take_reason) {
    PEN_ASSERT(link->state == PEN_GRPC_UP);
    if (!pen_grpc_session_may_resume(link->session)) {
        pen_grpc_link_down(link, take_reason, false);
        return;
    }
    pen_log(PEN_LOG_DEBUG, "%s", pen_status_message(take_reason));
    snprintf(link->failure, sizeof link->failure, "%s", pen_status_message(take_reason));
    pen_status_ignore(take_reason, "the link goes on over another stream");
    pen_link_suspend(&link->session->core);
    pen_grpc_link_set_state(link, PEN_GRPC_BROKEN);
    link_cancel(link);
    link->talk_at = INFINITY;
    link->attempt_count = link->alike_count = 0;
    link->began_at = pen_clock_seconds();
    link->give_up_at = link->began_at + link->transport->options.resume_seconds;
    pen_grpc_link_set_deadline(link, link->give_up_at);
}

pen_status pen_grpc_link_resumed(pen_grpc_link *link, const pen_link_ack *received) {
    pen_grpc *transport = link->transport;
    const pen_link_verdict verdict =
        pen_link_resume(&link->session->core, pen_grpc_session_now(), received);
    pen_grpc_send_forget_acknowledged(link);
    if (pen_link_is_error(verdict)) {
        return pen_error(PEN_CORRUPT, "peer %u %s", link->peer, pen_link_verdict_text(verdict));
    }
    pen_grpc_link_set_state(link, PEN_GRPC_UP);
    pen_grpc_link_set_deadline(link, INFINITY);
    atomic_fetch_add_explicit(&transport->resumes, 1, memory_order_relaxed);
    pen_log(PEN_LOG_DEBUG, "the link to peer %u at %s goes on", link->peer, link->address);
    return PEN_OK;
}

// Whether the user waits for a word about this link.
static bool link_is_known(const pen_grpc_link *link) {
    switch (link->state) {
    case PEN_GRPC_WAITING:
        return true;
    case PEN_GRPC_CALLING:
        return link->is_caller || link->session->is_open;
    case PEN_GRPC_UP:
    case PEN_GRPC_BROKEN:
        return true;
    case PEN_GRPC_CLOSING:
    case PEN_GRPC_ENDING:
        return false;
    }
    PEN_NEVER("a link is in one of its states");
}

// Whoever notices first says why. The other end is told the reason where the stream still carries
// it, and frames that wait are let go at once.
void pen_grpc_link_down(pen_grpc_link *link, pen_status take_reason, bool is_told) {
    pen_grpc *transport = link->transport;
    const bool is_known = link_is_known(link);
    const bool is_called = link->call != NULL && !link->is_over && link->state != PEN_GRPC_BROKEN;
    link->last_word.code = pen_status_get_code(take_reason);
    snprintf(link->last_word.reason, sizeof link->last_word.reason, "%s",
             pen_status_message(take_reason));
    if (link->state != PEN_GRPC_CLOSING && link->state != PEN_GRPC_ENDING) {
        pen_mutex_lock(&transport->lock);
        if (link->peer < PEN_TRANSPORT_PEER_LIMIT && transport->of_peer[link->peer] == link) {
            transport->of_peer[link->peer] = NULL;
        }
        pen_mutex_unlock(&transport->lock);
        pen_grpc_link_set_state(link, is_told && is_called ? PEN_GRPC_CLOSING : PEN_GRPC_ENDING);
        pen_grpc_link_set_deadline(link, pen_clock_seconds() + LINK_CLOSING_SECONDS);
        pen_grpc_send_drop_frames(link);
    }
    pen_grpc_ring_close(link);
    if (!is_told || !is_called) pen_grpc_send_drop_letters(link);
    if (!is_told) link_cancel(link);
    link->talk_at = INFINITY;
    if (link->session != NULL) link->session->intake.is_receiving = false;
    if (is_known) {
        transport->events.down(transport->events.context, link->peer, take_reason);
    } else {
        pen_status_ignore(take_reason, "nobody knows of this link; the other end is told");
    }
}

void pen_grpc_link_abandon(pen_grpc_link *link) {
    PEN_ASSERT(link->session == NULL);
    pen_grpc_link_set_state(link, PEN_GRPC_ENDING);
    pen_grpc_link_set_deadline(link, INFINITY);
    link->talk_at = INFINITY;
    link_cancel(link);
    pen_grpc_link_go_on(link);
}

// ---- the last word

static void link_last_sent(void *owner, bool success) {
    (void)owner;
    (void)success; // the end of the call tells
}

// The caller says farewell and half-closes, then waits for the status.
static void link_say_farewell(pen_grpc_link *link) {
    uint8_t bytes[PEN_WIRE_HEAD_LIMIT + PEN_WIRE_TEXT_LIMIT];
    const pen_grpc_last_word *word = &link->last_word;
    const size_t count = strlen(word->reason);
    const size_t head_count = pen_wire_write_farewell(word->code, count, bytes);
    memcpy(bytes + head_count, word->reason, count);
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes, head_count + count);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    const grpc_op ops[] = {
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
    };
    pen_grpc_link_batch(link, ops, 2, &link->last_sent);
    grpc_byte_buffer_destroy(buffer);
}

static void link_send_status(pen_grpc_link *link) {
    const pen_grpc_last_word *word = &link->last_word;
    grpc_slice text = grpc_slice_from_copied_string(word->reason);
    link->mark = (grpc_metadata){.key = grpc_slice_from_static_string(PEN_GRPC_MARK),
                                 .value = grpc_slice_from_static_string("1")};
    grpc_op batch = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
    batch.data.send_status_from_server.status = link->is_denied
                                                    ? GRPC_STATUS_PERMISSION_DENIED
                                                    : (grpc_status_code)pen_wire_code(word->code);
    batch.data.send_status_from_server.status_details = &text;
    batch.data.send_status_from_server.trailing_metadata_count = 1;
    batch.data.send_status_from_server.trailing_metadata = &link->mark;
    pen_grpc_link_batch(link, &batch, 1, &link->last_sent);
    grpc_slice_unref(text);
}

static void link_say_last_word(pen_grpc_link *link) {
    pen_grpc_link_set_state(link, PEN_GRPC_ENDING);
    pen_grpc_link_set_deadline(link, pen_clock_seconds() + LINK_CLOSING_SECONDS);
    if (link->is_over || link->is_cancelled) return;
    link->last_sent = (pen_grpc_tag){link_last_sent, link, link};
    if (link->is_caller) {
        link_say_farewell(link);
    } else {
        link_send_status(link);
    }
}

// ---- going on

static bool link_take_unwanted(pen_grpc_link *link) {
    pen_mutex_lock(&link->transport->lock);
    const bool is_unwanted = link->is_unwanted;
    link->is_unwanted = false;
    pen_mutex_unlock(&link->transport->lock);
    return is_unwanted;
}

// When an acknowledgement will have to go alone. While something is sent, it rides on the next.
static void link_plan_talk(pen_grpc_link *link) {
    link->talk_at = INFINITY;
    if (link->state != PEN_GRPC_UP || link->is_sending || link->is_over) return;
    const uint64_t at = pen_link_deadline(&link->session->core);
    if (at == PEN_LINK_NEVER) return;
    link->talk_at = (double)at * 1e-9;
    pen_grpc_io_watch(link->transport, link->talk_at);
}

// The stream that broke is over. Who was called keeps the link without one.
static void link_leave_stream(pen_grpc_link *link) {
    if (link->is_caller) {
        pen_grpc_client_call_again(link);
    } else if (link->call != NULL) {
        grpc_call_unref(link->call);
        link->call = NULL;
    }
}

// What is possible now, after any event: send, talk, close, release. A link is released when gRPC
// holds none of its tags any more.
void pen_grpc_link_go_on(pen_grpc_link *link) {
    if (link_take_unwanted(link)) {
        pen_grpc_link_down(link, pen_error(PEN_CANCELLED, "the link was closed"), true);
    }
    pen_grpc_ring_look(link);
    switch (link->state) {
    case PEN_GRPC_WAITING:
        break;
    case PEN_GRPC_CALLING:
        if (link->is_over && link->tag_count == 0) pen_grpc_client_attempt_over(link);
        break;
    case PEN_GRPC_UP:
        if (!link->is_over) (void)pen_grpc_send_next(link);
        link_plan_talk(link);
        break;
    case PEN_GRPC_BROKEN:
        if (link->is_over && link->tag_count == 0) link_leave_stream(link);
        break;
    case PEN_GRPC_CLOSING:
        if (link->is_over || link->is_cancelled || !pen_grpc_send_next(link)) {
            link_say_last_word(link);
        }
        break;
    case PEN_GRPC_ENDING:
        break;
    }
    if (link->state == PEN_GRPC_ENDING && link->tag_count == 0) link_release(link);
}

// Deadlines by state: the next attempt, an introduction, a broken stream that did not come back, a
// farewell that nobody takes.
void pen_grpc_link_tick(pen_grpc_link *link, double now) {
    if (link->deadline > now) { // an acknowledgement is due
        pen_grpc_link_go_on(link);
        return;
    }
    link->deadline = INFINITY;
    switch (link->state) {
    case PEN_GRPC_WAITING:
        if (now >= link->give_up_at) {
            pen_grpc_link_down(link, pen_grpc_client_reason(link), false);
        } else if (pen_grpc_pass_is_ready(link, now)) {
            pen_grpc_client_call(link);
        }
        break;
    case PEN_GRPC_CALLING:
        if (!link->is_caller) {
            pen_grpc_link_down(
                link, pen_error(PEN_DEADLINE, "no introduction came within 5 seconds"), true);
        } else {
            link_cancel(link); // the attempt ends, and there is no time for another
        }
        break;
    case PEN_GRPC_UP: // gRPC has not said why the other end closed its memory
        link->is_ring_overdue = true;
        break;
    case PEN_GRPC_BROKEN:
        pen_grpc_link_down(link,
                           pen_error(PEN_UNAVAILABLE, "%s; it did not come back within %g s",
                                     link->failure, link->transport->options.resume_seconds),
                           false);
        break;
    case PEN_GRPC_CLOSING:
    case PEN_GRPC_ENDING:
        link_cancel(link);
        break;
    }
    pen_grpc_link_go_on(link);
}

pen_introduction pen_grpc_link_self(pen_grpc *transport, char *out_job) {
    pen_mutex_lock(&transport->lock);
    pen_introduction self = transport->options.self;
    memcpy(out_job, self.job, strlen(self.job) + 1);
    pen_mutex_unlock(&transport->lock);
    self.job = out_job;
    return self;
}
