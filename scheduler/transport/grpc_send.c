// Queues of messages and frames, and how they become envelopes.
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/transport/grpc_link.h"

// ---- into the queues, by any thread

// The link that takes what is to be sent. With the lock held.
static pen_grpc_link *send_find_link(pen_grpc *transport, uint32_t peer) {
    if (peer >= PEN_TRANSPORT_PEER_LIMIT || transport->is_closing) return NULL;
    pen_grpc_link *link = transport->of_peer[peer];
    return link != NULL && link->state == PEN_GRPC_UP ? link : NULL;
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

pen_status pen_grpc_send_queue_message(pen_grpc *transport, uint32_t peer, const void *bytes,
                                       uint64_t count) {
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    pen_grpc_letter *letter;
    if (count > PEN_TRANSPORT_MESSAGE_LIMIT) {
        return pen_error(PEN_INTERNAL, "a message has %llu bytes, at most %llu are allowed",
                         (unsigned long long)count,
                         (unsigned long long)PEN_TRANSPORT_MESSAGE_LIMIT);
    }
    SEND_TAKE(transport, free_letters, &letter);
    if (letter == NULL) return pen_error_out_of_memory();
    letter->slice = send_slice(pen_wire_write_message(count, head), head, bytes, count);
    letter->next = NULL;

    bool is_sleeping = false;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = send_find_link(transport, peer);
    if (link != NULL) {
        *link->letters_end = letter;
        link->letters_end = &letter->next;
        is_sleeping = pen_grpc_io_mark(link);
    } else {
        grpc_slice_unref(letter->slice);
        letter->next = transport->free_letters;
        transport->free_letters = letter;
    }
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
    return link != NULL ? PEN_OK : send_no_link(peer);
}

pen_status pen_grpc_send_queue_frame(pen_grpc *transport, uint32_t peer,
                                     const pen_grpc_loan *spec) {
    pen_grpc_loan *loan;
    SEND_TAKE(transport, free_loans, &loan);
    if (loan == NULL) return pen_error_out_of_memory();
    loan->next = NULL;
    loan->transport = transport;
    loan->peer = peer;
    loan->frame = spec->frame;
    loan->payload = spec->payload;
    loan->checksums = spec->checksums;
    loan->token = spec->token;
    loan->chunk_next = 0;
    loan->chunk_count = (uint32_t)pen_max_u64(pen_frame_chunk_count(spec->frame.bytes), 1);
    // released, for whichever thread the slices are destroyed on
    atomic_store_explicit(&loan->use_count, loan->chunk_count, memory_order_release);

    bool is_sleeping = false;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = send_find_link(transport, peer);
    if (link != NULL) {
        *link->loans_end = loan;
        link->loans_end = &loan->next;
        transport->loan_count += 1;
        is_sleeping = pen_grpc_io_mark(link);
    } else {
        loan->next = transport->free_loans;
        transport->free_loans = loan;
    }
    pen_mutex_unlock(&transport->lock);
    if (is_sleeping) pen_grpc_io_wake(transport);
    return link != NULL ? PEN_OK : send_no_link(peer);
}

// ---- loans

// The last of its chunks was let go: by whichever thread gRPC released the slice on.
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

static void send_release(pen_grpc_loan *loan, uint32_t count) {
    if (count == 0) return;
    if (atomic_fetch_sub_explicit(&loan->use_count, count, memory_order_acq_rel) == count) {
        send_return_loan(loan);
    }
}

static void send_slice_destroyed(void *loan) {
    send_release(loan, 1);
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
        loan->next = transport->free_loans;
        transport->free_loans = loan;
        pen_mutex_unlock(&transport->lock);
        transport->events.let_go(transport->events.context, peer, token);
    }
}

void pen_grpc_send_drop_frames(pen_grpc_link *link) {
    pen_mutex_lock(&link->transport->lock);
    pen_grpc_loan *loans = link->loans;
    link->loans = NULL;
    link->loans_end = &link->loans;
    pen_mutex_unlock(&link->transport->lock);
    while (loans != NULL) {
        pen_grpc_loan *loan = loans;
        loans = loan->next;
        send_release(loan, loan->chunk_count - loan->chunk_next);
    }
}

void pen_grpc_send_drop_letters(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_mutex_lock(&transport->lock);
    while (link->letters != NULL) {
        pen_grpc_letter *letter = link->letters;
        link->letters = letter->next;
        grpc_slice_unref(letter->slice);
        letter->next = transport->free_letters;
        transport->free_letters = letter;
    }
    link->letters_end = &link->letters;
    pen_mutex_unlock(&transport->lock);
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
    pen_mutex_lock(&link->transport->lock);
    link->is_sending = false;
    pen_mutex_unlock(&link->transport->lock);
}

static void send_slices(pen_grpc_link *link, grpc_slice *slices, size_t count) {
    link->sent = (pen_grpc_tag){send_done, link, link};
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(slices, count);
    for (size_t i = 0; i < count; i++)
        grpc_slice_unref(slices[i]); // the buffer holds them
    grpc_op batch = {.op = GRPC_OP_SEND_MESSAGE};
    batch.data.send_message.send_message = buffer;
    pen_grpc_link_batch(link, &batch, 1, &link->sent);
    grpc_byte_buffer_destroy(buffer); // the call has taken the slices
}

static void send_chunk(pen_grpc_link *link, pen_grpc_loan *loan) {
    pen_grpc *transport = link->transport;
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    const uint32_t chunk = loan->chunk_next++;
    const uint64_t position = chunk * PEN_TRANSPORT_CHUNK_BYTES;
    const uint64_t count = pen_min_u64(loan->frame.bytes - position, PEN_TRANSPORT_CHUNK_BYTES);
    const uint32_t checksum = count == 0 ? 0 : loan->checksums[chunk];
    const size_t head_count =
        pen_wire_write_chunk(chunk == 0 ? &loan->frame : NULL, position, checksum, count, head);
    const bool is_last = loan->chunk_next == loan->chunk_count;
    grpc_slice slices[2] = {grpc_slice_from_copied_buffer((const char *)head, head_count)};
    if (count != 0) {
        slices[1] = grpc_slice_new_with_user_data((void *)(uintptr_t)(loan->payload + position),
                                                  count, send_slice_destroyed, loan);
    }
    atomic_fetch_add_explicit(&transport->bytes_sent, count, memory_order_relaxed);
    if (is_last) atomic_fetch_add_explicit(&transport->frames_sent, 1, memory_order_relaxed);
    send_slices(link, slices, count != 0 ? 2 : 1);
    if (count == 0) send_release(loan, 1);
}

bool pen_grpc_send_next(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_mutex_lock(&transport->lock);
    if (link->is_sending) {
        pen_mutex_unlock(&transport->lock);
        return true;
    }
    pen_grpc_letter *letter = link->letters;
    pen_grpc_loan *loan = letter == NULL ? link->loans : NULL;
    grpc_slice slice;
    if (letter != NULL) {
        link->letters = letter->next;
        if (link->letters == NULL) link->letters_end = &link->letters;
        slice = letter->slice;
        letter->next = transport->free_letters;
        transport->free_letters = letter;
    } else if (loan != NULL && loan->chunk_next + 1 == loan->chunk_count) {
        link->loans = loan->next; // once its last chunk is made, the loan belongs to its slices
        if (link->loans == NULL) link->loans_end = &link->loans;
    }
    link->is_sending = letter != NULL || loan != NULL;
    pen_mutex_unlock(&transport->lock);
    if (letter != NULL) send_slices(link, &slice, 1);
    if (loan != NULL) send_chunk(link, loan);
    return letter != NULL || loan != NULL;
}

void pen_grpc_send_introduction(pen_grpc_link *link, uint32_t callee) {
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    char job[PEN_WIRE_TEXT_LIMIT + 1];
    const pen_introduction copy = pen_grpc_link_self(link->transport, job);
    const pen_introduction *self = &copy;
    const size_t job_count = strlen(self->job);
    const size_t head_count = pen_wire_write_introduction(self, callee, job_count, head);
    grpc_slice slice = send_slice(head_count, head, self->job, job_count);
    pen_mutex_lock(&link->transport->lock);
    PEN_ASSERT(!link->is_sending);
    link->is_sending = true;
    pen_mutex_unlock(&link->transport->lock);
    send_slices(link, &slice, 1);
}
