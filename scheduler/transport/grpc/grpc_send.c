// Queues of messages and frames, and how they become envelopes.
#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/transport/grpc/grpc_link.h"

// ---- into the queues, by any thread

// The link that takes what is to be sent. With the lock held.
static pen_grpc_link *send_find_link(pen_grpc *transport, uint32_t peer) {
    if (peer >= PEN_TRANSPORT_PEER_LIMIT || transport->is_closing) return NULL;
    pen_grpc_link *link = transport->of_peer[peer];
    // also without a stream: it may get another one
    return link != NULL && link->session->is_open ? link : NULL;
}

static pen_status send_no_link(uint32_t peer) {
    return pen_error(PEN_UNAVAILABLE, "there is no link to peer %u", peer);
}

static grpc_slice send_slice(size_t head_count, const uint8_t *head, const void *bytes,
                             uint64_t count) {
    grpc_slice slice = grpc_slice_malloc(head_count + count);
    memcpy(GRPC_SLICE_START_PTR(slice), head, head_count);
    if (count != 0) memcpy(GRPC_SLICE_START_PTR(slice) + head_count, bytes, count);
    return slice;
}

// An element of a pool, or a new one.
#define SEND_TAKE(transport, pool, out_element)                                                    \
    do {                                                                                           \
        pen_mutex_lock(&(transport)->lock);                                                        \
        *(out_element) = (transport)->pool;                                                        \
        if (*(out_element) != NULL) (transport)->pool = (*(out_element))->next;                    \
        pen_mutex_unlock(&(transport)->lock);                                                      \
        if (*(out_element) == NULL)                                                                \
            *(out_element) = pen_memory_allocate(1, sizeof **(out_element));                       \
    } while (0)

static void send_pool_letter(pen_grpc *transport, pen_grpc_letter *letter) {
    grpc_slice_unref(letter->slice);
    letter->next = transport->free_letters;
    transport->free_letters = letter;
}

void pen_grpc_send_pool_loan(pen_grpc_loan *loan) {
    loan->next = loan->transport->free_loans;
    loan->transport->free_loans = loan;
}

// Any thread: the bytes are copied into a slice before the lock is taken, and the I/O thread is
// woken only when it sleeps.
pen_status pen_grpc_send_queue_message(pen_grpc *transport, uint32_t peer, const void *bytes,
                                       uint64_t count) {
    pen_grpc_letter *letter;
    if (count > PEN_TRANSPORT_MESSAGE_LIMIT) {
        return pen_error(PEN_INTERNAL, "a message has %llu bytes, at most %llu are allowed",
                         (unsigned long long)count,
                         (unsigned long long)PEN_TRANSPORT_MESSAGE_LIMIT);
    }
    SEND_TAKE(transport, free_letters, &letter);
    if (letter == NULL) return pen_error_out_of_memory();
    letter->item = (pen_link_item){.lane = PEN_LINK_MESSAGES, .bytes = count, .piece_count = 1};
    letter->slice = grpc_slice_from_copied_buffer(bytes, count);
    letter->next = NULL;

    bool is_sleeping = false;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = send_find_link(transport, peer);
    if (link != NULL) {
        *link->session->letters_end = letter;
        link->session->letters_end = &letter->next;
        is_sleeping = pen_grpc_io_mark(link);
    } else {
        send_pool_letter(transport, letter);
    }
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
    return link != NULL ? PEN_OK : send_no_link(peer);
}

// A chunk goes behind its checksum, so that these are made before the first one goes.
static void send_make_checksums(pen_grpc *transport, uint32_t peer, pen_ring_loan *lent,
                                uint64_t token) {
    const pen_transport_events *events = &transport->events;
    pen_checksum_chunks(lent->payload, lent->frame.bytes, lent->unmade);
    lent->unmade = NULL;
    if (events->summed != NULL) events->summed(events->context, peer, token);
}

// Whether frames to `peer` go by shared memory, as it looks now.
static bool send_has_lane(pen_grpc *transport, uint32_t peer) {
    pen_mutex_lock(&transport->lock);
    const pen_grpc_link *link = send_find_link(transport, peer);
    const bool has_lane = link != NULL && link->session->lane != NULL;
    pen_mutex_unlock(&transport->lock);
    return has_lane;
}

// Any thread. The payload is lent until every slice of it was destroyed and the frame acknowledged;
// use_count counts both. Checksums that are not made yet are made by this thread, unless shared
// memory does it while it copies. A frame that cannot go there after all is summed up by the I/O
// thread.
pen_status pen_grpc_send_queue_frame(pen_grpc *transport, uint32_t peer, const pen_ring_loan *lent,
                                     uint64_t token) {
    pen_grpc_loan *loan;
    SEND_TAKE(transport, free_loans, &loan);
    if (loan == NULL) return pen_error_out_of_memory();
    loan->next = NULL;
    loan->transport = transport;
    loan->peer = peer;
    loan->lent = *lent;
    loan->token = token;
    if (lent->unmade != NULL &&
        (!pen_ring_sums_up(&lent->frame) || !send_has_lane(transport, peer))) {
        send_make_checksums(transport, peer, &loan->lent, token);
    }
    loan->item = (pen_link_item){
        .lane = PEN_LINK_FRAMES,
        .bytes = lent->frame.bytes,
        .piece_count = (uint32_t)pen_max_u64(pen_frame_chunk_count(lent->frame.bytes), 1)};
    // released, for whichever thread the slices are destroyed on
    atomic_store_explicit(&loan->use_count, 1, memory_order_release);

    bool is_sleeping = false;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = send_find_link(transport, peer);
    if (link != NULL) {
        pen_ring_lane *lane = link->session->lane;
        transport->loan_count += 1;
        if (lane != NULL) {
            pen_ring_lane_send(lane, &loan->lent);
        } else {
            *link->session->loans_end = loan;
            link->session->loans_end = &loan->next;
            is_sleeping = pen_grpc_io_mark(link);
        }
    } else {
        pen_grpc_send_pool_loan(loan);
    }
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
    return link != NULL ? PEN_OK : send_no_link(peer);
}

// ---- loans

// It is acknowledged, and the last of its chunks was let go: by whichever thread gRPC released the
// slice on.
static void send_return_loan(pen_grpc_loan *loan) {
    pen_grpc *transport = loan->transport;
    pen_mutex_lock(&transport->lock);
    loan->next = NULL;
    *transport->returned_end = loan;
    transport->returned_end = &loan->next;
    const bool is_sleeping = pen_grpc_io_needs_bell(transport);
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
}

static void send_release(void *owner) {
    pen_grpc_loan *loan = owner;
    if (atomic_fetch_sub_explicit(&loan->use_count, 1, memory_order_acq_rel) == 1) {
        send_return_loan(loan);
    }
}

void pen_grpc_send_let_go(pen_grpc *transport) {
    pen_mutex_lock(&transport->lock);
    pen_grpc_loan *loans = transport->returned;
    transport->returned = NULL;
    transport->returned_end = &transport->returned;
    pen_mutex_unlock(&transport->lock);
    while (loans != NULL) {
        pen_grpc_loan *loan = loans;
        loans = loan->next;
        const uint32_t peer = loan->peer;
        const uint64_t token = loan->token;
        pen_mutex_lock(&transport->lock);
        transport->loan_count -= 1;
        pen_grpc_send_pool_loan(loan);
        pen_mutex_unlock(&transport->lock);
        transport->events.let_go(transport->events.context, peer, token);
    }
}

static void send_drop_letters(pen_grpc *transport, pen_grpc_letter *letters) {
    if (letters == NULL) return;
    pen_mutex_lock(&transport->lock);
    while (letters != NULL) {
        pen_grpc_letter *letter = letters;
        letters = letter->next;
        send_pool_letter(transport, letter);
    }
    pen_mutex_unlock(&transport->lock);
}

void pen_grpc_send_forget_acknowledged(pen_grpc_link *link) {
    pen_link_session *core = &link->session->core;
    pen_grpc_letter *letters = NULL;
    pen_link_item *item;
    while ((item = pen_link_release(core)) != NULL) {
        if (item->lane == PEN_LINK_FRAMES) {
            send_release((pen_grpc_loan *)item);
        } else {
            pen_grpc_letter *letter = (pen_grpc_letter *)item;
            letter->next = letters;
            letters = letter;
        }
    }
    send_drop_letters(link->transport, letters);
}

void pen_grpc_send_drop_frames(pen_grpc_link *link) {
    pen_grpc_session *session = link->session;
    if (session == NULL) return;
    pen_mutex_lock(&link->transport->lock);
    pen_grpc_loan *loans = session->loans;
    session->loans = NULL;
    session->loans_end = &session->loans;
    pen_mutex_unlock(&link->transport->lock);
    while (loans != NULL) {
        pen_grpc_loan *loan = loans;
        loans = loan->next;
        send_release(loan);
    }
    if (!session->is_open) return;
    pen_link_drain_lane(&session->core, PEN_LINK_FRAMES);
    pen_grpc_send_forget_acknowledged(link);
}

void pen_grpc_send_drop_letters(pen_grpc_link *link) {
    pen_grpc_session *session = link->session;
    if (session == NULL) return;
    pen_mutex_lock(&link->transport->lock);
    pen_grpc_letter *letters = session->letters;
    session->letters = NULL;
    session->letters_end = &session->letters;
    pen_mutex_unlock(&link->transport->lock);
    send_drop_letters(link->transport, letters);
    if (!session->is_open) return;
    pen_link_drain_lane(&session->core, PEN_LINK_MESSAGES);
    pen_grpc_send_forget_acknowledged(link);
}

void pen_grpc_send_free_pools(pen_grpc *transport) {
    while (transport->free_loans != NULL) {
        pen_grpc_loan *loan = transport->free_loans;
        transport->free_loans = loan->next;
        pen_memory_free(loan);
    }
    while (transport->free_letters != NULL) {
        pen_grpc_letter *letter = transport->free_letters;
        transport->free_letters = letter->next;
        pen_memory_free(letter);
    }
}

// ---- out of the queues, by the I/O thread

static void send_done(void *owner, bool success) {
    pen_grpc_link *link = owner;
    (void)success; // when it failed, the call ends, and that says why
    link->is_sending = false;
}

static void send_slices(pen_grpc_link *link, grpc_slice *slices, size_t count) {
    PEN_ASSERT(!link->is_sending);
    link->is_sending = true;
    link->sent = (pen_grpc_tag){send_done, link, link};
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(slices, count);
    for (size_t i = 0; i < count; i++)
        grpc_slice_unref(slices[i]); // the buffer holds them
    grpc_op batch = {.op = GRPC_OP_SEND_MESSAGE};
    batch.data.send_message.send_message = buffer;
    pen_grpc_link_batch(link, &batch, 1, &link->sent);
    grpc_byte_buffer_destroy(buffer); // the call has taken the slices
}

// An acknowledgement alone is a slice of its own.
static void send_ack(pen_grpc_link *link, const pen_link_head *head) {
    uint8_t bytes[PEN_WIRE_HEAD_LIMIT];
    const size_t count = pen_wire_write_numbers(0, &head->ack, bytes);
    grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes, count);
    send_slices(link, &slice, 1);
}

static void send_letter(pen_grpc_link *link, const pen_grpc_letter *letter,
                        const pen_link_head *head) {
    uint8_t bytes[2 * PEN_WIRE_HEAD_LIMIT];
    size_t count = pen_wire_write_numbers(head->number, &head->ack, bytes);
    count += pen_wire_write_message(letter->item.bytes, bytes + count);
    grpc_slice slices[2] = {grpc_slice_from_copied_buffer((const char *)bytes, count),
                            grpc_slice_ref(letter->slice)};
    send_slices(link, slices, 2);
}

// The head is copied, and the payload lent to gRPC. Checksums that shared memory was to make, and
// did not, are made now.
static void send_chunk(pen_grpc_link *link, pen_grpc_loan *loan, const pen_link_head *head) {
    uint8_t bytes[2 * PEN_WIRE_HEAD_LIMIT];
    const uint32_t chunk = head->piece;
    const uint64_t position = chunk * PEN_TRANSPORT_CHUNK_BYTES;
    const uint64_t count =
        pen_min_u64(loan->lent.frame.bytes - position, PEN_TRANSPORT_CHUNK_BYTES);
    if (loan->lent.unmade != NULL) {
        send_make_checksums(loan->transport, loan->peer, &loan->lent, loan->token);
    }
    const uint32_t checksum = count == 0 ? 0 : loan->lent.checksums[chunk];
    size_t head_count = pen_wire_write_numbers(head->number, &head->ack, bytes);
    head_count += pen_wire_write_chunk(chunk == 0 ? &loan->lent.frame : NULL, position, checksum,
                                       count, bytes + head_count);
    grpc_slice slices[2] = {grpc_slice_from_copied_buffer((const char *)bytes, head_count)};
    if (count != 0) {
        atomic_fetch_add_explicit(&loan->use_count, 1, memory_order_relaxed);
        slices[1] = grpc_slice_new_with_user_data(
            (void *)(uintptr_t)(loan->lent.payload + position), count, send_release, loan);
    }
    send_slices(link, slices, count != 0 ? 2 : 1);
}

// Counts what is sent for the first time apart from what is sent again.
static void send_count(pen_grpc *transport, const pen_link_item *item, const pen_link_head *head,
                       bool is_again) {
    if (is_again) {
        atomic_fetch_add_explicit(&transport->retransmitted, 1, memory_order_relaxed);
        return;
    }
    if (item->lane != PEN_LINK_FRAMES) return;
    const uint64_t position = head->piece * PEN_TRANSPORT_CHUNK_BYTES;
    atomic_fetch_add_explicit(&transport->bytes_sent,
                              pen_min_u64(item->bytes - position, PEN_TRANSPORT_CHUNK_BYTES),
                              memory_order_relaxed);
    if (head->piece + 1 == item->piece_count) {
        atomic_fetch_add_explicit(&transport->frames_sent, 1, memory_order_relaxed);
    }
}

// Hands what callers queued over to the session. False: more is kept than may be.
static bool send_offer(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_grpc_session *session = link->session;
    pen_mutex_lock(&transport->lock);
    pen_grpc_letter *letters = session->letters;
    pen_grpc_loan *loans = session->loans;
    session->letters = NULL;
    session->letters_end = &session->letters;
    session->loans = NULL;
    session->loans_end = &session->loans;
    pen_mutex_unlock(&transport->lock);
    for (; loans != NULL; loans = loans->next) // of frames, as many as are lent are kept
        (void)pen_link_offer(&session->core, &loans->item);
    while (letters != NULL) {
        pen_grpc_letter *next = letters->next;
        if (!pen_link_offer(&session->core, &letters->item)) {
            send_drop_letters(transport, letters);
            return false;
        }
        letters = next;
    }
    return true;
}

// One write at a time, as gRPC wants it. Messages go before frames, between two chunks of one too.
bool pen_grpc_send_next(pen_grpc_link *link) {
    pen_link_session *core = &link->session->core;
    pen_link_item *item;
    pen_link_head head;
    if (link->is_sending) return true;
    if (!link->session->is_open) return false; // nobody could queue anything
    if (!send_offer(link) && link->state == PEN_GRPC_UP) {
        pen_grpc_link_down(link,
                           pen_error(PEN_UNAVAILABLE,
                                     "peer %u at %s does not acknowledge: %" PRIu64
                                     " bytes of messages are kept for it",
                                     link->peer, link->address,
                                     pen_link_kept_bytes(core, PEN_LINK_MESSAGES)),
                           true);
    }
    const uint64_t before = core->retransmitted;
    if (!pen_link_next(core, pen_grpc_session_now(), &item, &head)) return false;
    if (item == NULL) {
        send_ack(link, &head);
        return true;
    }
    send_count(link->transport, item, &head, core->retransmitted != before);
    if (item->lane == PEN_LINK_FRAMES) {
        send_chunk(link, (pen_grpc_loan *)item, &head);
    } else {
        send_letter(link, (const pen_grpc_letter *)item, &head);
    }
    return true;
}

void pen_grpc_send_introduction(pen_grpc_link *link, uint32_t callee) {
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    char job[PEN_WIRE_TEXT_LIMIT + 1];
    const pen_introduction copy = pen_grpc_link_self(link->transport, job);
    const pen_introduction *self = &copy;
    const size_t job_count = strlen(self->job);
    const pen_wire_stream stream = pen_grpc_session_stream(link->session);
    const pen_wire_ring ring = pen_grpc_ring_offer(link, self);
    const size_t head_count =
        pen_wire_write_introduction(self, callee, &stream, &ring, job_count, head);
    grpc_slice slice = send_slice(head_count, head, self->job, job_count);
    send_slices(link, &slice, 1);
}
