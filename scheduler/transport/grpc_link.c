// The states of a link.
//
//   caller:  WAITING --> CALLING --> UP --> CLOSING --> ENDING --> released
//               ^___________|           |______________^
//   called:              CALLING --> UP --> CLOSING --> ENDING --> released
//                           |__________________^
//
// A caller whose attempt fails waits for the next one. A link that broke, rather than being
// closed, has no last word to say: it goes straight to ENDING.
#include "scheduler/transport/grpc_link.h"

#include <grpc/byte_buffer.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

// How long the other end may take to see that a link ends.
#define LINK_CLOSING_SECONDS 1.0

static bool link_may_become(pen_grpc_state from, pen_grpc_state to) {
    switch (from) {
    case PEN_GRPC_WAITING:
        return to == PEN_GRPC_CALLING || to == PEN_GRPC_ENDING;
    case PEN_GRPC_CALLING:
        return to != PEN_GRPC_CALLING;
    case PEN_GRPC_UP:
        return to == PEN_GRPC_CLOSING || to == PEN_GRPC_ENDING;
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

pen_status pen_grpc_link_create(pen_grpc *transport, bool is_caller, pen_grpc_link **out_link) {
    pen_grpc_link *link = pen_memory_allocate(1, sizeof *link);
    if (link == NULL) return pen_error_out_of_memory();
    link->transport = transport;
    link->is_caller = is_caller;
    link->peer = PEN_TRANSPORT_ANY_PEER;
    link->state = is_caller ? PEN_GRPC_WAITING : PEN_GRPC_CALLING;
    link->deadline = INFINITY;
    link->letters_end = &link->letters;
    link->loans_end = &link->loans;
    link->status_text = grpc_empty_slice();
    grpc_metadata_array_init(&link->head);
    grpc_metadata_array_init(&link->trailer);
    *out_link = link;
    return PEN_OK;
}

void pen_grpc_link_destroy(pen_grpc_link *link) {
    if (link->call != NULL) grpc_call_unref(link->call);
    if (link->channel != NULL) grpc_channel_destroy(link->channel);
    grpc_metadata_array_destroy(&link->head);
    grpc_metadata_array_destroy(&link->trailer);
    grpc_slice_unref(link->status_text);
    pen_memory_free(link->pieces);
    pen_memory_free(link->scratch);
    pen_memory_free(link->checksums);
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
    pen_grpc_link_set_state(link, PEN_GRPC_UP);
    pen_grpc_link_set_deadline(link, INFINITY);
    transport->events.up(transport->events.context, link->peer);
}

// Whether the user waits for a word about this link.
static bool link_is_known(const pen_grpc_link *link) {
    switch (link->state) {
    case PEN_GRPC_WAITING:
        return true;
    case PEN_GRPC_CALLING:
        return link->is_caller;
    case PEN_GRPC_UP:
        return true;
    case PEN_GRPC_CLOSING:
    case PEN_GRPC_ENDING:
        return false;
    }
    PEN_NEVER("a link is in one of its states");
}

void pen_grpc_link_down(pen_grpc_link *link, pen_status take_reason, bool is_told) {
    pen_grpc *transport = link->transport;
    const bool is_known = link_is_known(link);
    const bool is_called = link->call != NULL && !link->is_over;
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
    if (!is_told || !is_called) pen_grpc_send_drop_letters(link);
    if (!is_told) link_cancel(link);
    link->is_receiving = false;
    if (is_known) {
        transport->events.down(transport->events.context, link->peer, take_reason);
    } else {
        pen_status_ignore(take_reason, "nobody knows of this link; the other end is told");
    }
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
    batch.data.send_status_from_server.status = (grpc_status_code)pen_wire_code(word->code);
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

void pen_grpc_link_go_on(pen_grpc_link *link) {
    if (link_take_unwanted(link)) {
        pen_grpc_link_down(link, pen_error(PEN_CANCELLED, "the link was closed"), true);
    }
    switch (link->state) {
    case PEN_GRPC_WAITING:
        break;
    case PEN_GRPC_CALLING:
        if (link->is_over && link->tag_count == 0) pen_grpc_client_attempt_over(link);
        break;
    case PEN_GRPC_UP:
        if (!link->is_over) (void)pen_grpc_send_next(link);
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

void pen_grpc_link_tick(pen_grpc_link *link, double now) {
    link->deadline = INFINITY;
    switch (link->state) {
    case PEN_GRPC_WAITING:
        if (now >= link->give_up_at) {
            pen_grpc_link_down(link, pen_grpc_client_reason(link), false);
        } else {
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
    case PEN_GRPC_UP:
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
