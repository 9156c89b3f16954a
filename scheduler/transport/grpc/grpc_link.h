// The contract of grpc_*.c among themselves: the parts of the gRPC transport know each other
// through this file.
//
// One thread, the I/O thread, waits at one completion queue, and runs all that follows from what
// it hears: it alone changes a link's state, and calls back. Other threads put what is to be sent
// into a link's queues, under the lock, and ring a bell when the I/O thread waits: an empty batch
// of a call that leads nowhere, which is the cheapest event there is.
//
// Each batch of a link's call has a tag, which is in flight at most once. A link is released when
// its call is over and no tag is in flight.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_LINK_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_LINK_H

#include <grpc/grpc.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "scheduler/transport/grpc/grpc_gate.h"
#include "scheduler/transport/grpc/grpc_session.h"
#include "scheduler/transport/grpc/grpc_settings.h"
#include "scheduler/transport/grpc/grpc_tls.h"
#include "scheduler/transport/grpc/refusals.h"
#include "scheduler/transport/transport.h"
#include "scheduler/transport/wire_format.h"

typedef struct pen_grpc pen_grpc;
typedef struct pen_grpc_link pen_grpc_link;

typedef struct pen_grpc_tag {
    void (*done)(void *owner, bool success); // on the I/O thread
    void *owner;
    pen_grpc_link *link; // whose batch it is, which goes on afterwards; or NULL
} pen_grpc_tag;

// Trailing metadata of each status that we send.
#define PEN_GRPC_WHO_BYTES 448
#define PEN_GRPC_MARK "penstock-version"

typedef enum pen_grpc_state {
    PEN_GRPC_WAITING, // caller: for the time of the next attempt
    PEN_GRPC_CALLING, // for the other's introduction
    PEN_GRPC_UP,
    PEN_GRPC_BROKEN,  // its stream; the caller calls again once that is over, the other one waits
    PEN_GRPC_CLOSING, // no more callbacks; messages in the queue are sent, then the last word
    PEN_GRPC_ENDING,  // for all batches to complete
} pen_grpc_state;

// What a link says when it ends.
typedef struct pen_grpc_last_word {
    pen_status_code code;
    char reason[PEN_WIRE_TEXT_LIMIT];
} pen_grpc_last_word;

struct pen_grpc_link {
    pen_grpc *transport;
    pen_grpc_link *previous, *next; // of all links; I/O thread
    bool is_caller;
    uint32_t peer;                        // PEN_TRANSPORT_ANY_PEER: not introduced yet
    char address[PEN_ADDRESS_TEXT_LIMIT]; // of the other end

    // the I/O thread's
    grpc_channel *channel; // caller
    grpc_call *call;
    pen_grpc_tag opened, sent, received, ended, last_sent;
    uint32_t tag_count;          // in flight
    double deadline;             // of what the state waits for; pen_clock_seconds
    double began_at, give_up_at; // of a caller, before it is up
    uint32_t attempt_count;
    uint32_t alike_count;              // attempts in a row that failed for the same reason
    char failure[PEN_WIRE_TEXT_LIMIT]; // of the last attempt
    char who[PEN_GRPC_WHO_BYTES];      // of who called, for the log: as what, certificate, job
    bool is_over, is_cancelled;        // the call is
    bool is_adopted;                   // one of the transport's links
    bool is_loopback;                  // caller: the address is this machine's
    bool expects_own;                  // the other end is to show this process's own certificate
    bool is_denied;                    // its certificate's name may not do this
    pen_grpc_last_word last_word;
    grpc_metadata mark; // of our status: gRPC makes statuses of its own, which have none
    grpc_metadata_array head, trailer;
    grpc_status_code status;
    grpc_slice status_text;
    int was_cancelled;

    grpc_byte_buffer *incoming;
    pen_wire_piece *pieces; // [piece_limit]
    size_t piece_limit;
    uint8_t *scratch; // [scratch_limit]: messages that came in several pieces
    uint64_t scratch_limit;
    bool is_sending;
    double talk_at;            // when an acknowledgement is due
    bool is_ring_overdue;      // the reason why its memory was closed
    pen_grpc_session *session; // NULL: another link has it
    pen_grpc_pass pass;

    // guarded by the transport's lock; the state is written by the I/O thread alone
    pen_grpc_state state;
    bool is_dirty; // in the list of links with something to do
    bool is_unwanted;
    pen_grpc_link *dirty_next;
};

struct pen_grpc {
    pen_transport transport;
    pen_transport_options options; // `self.job` is ours
    char job[PEN_WIRE_TEXT_LIMIT + 1];
    pen_transport_events events;
    pen_grpc_credentials credentials;
    pen_grpc_gate gate;
    grpc_resource_quota *quota;
    pen_grpc_settings channel_settings, server_settings;
    grpc_completion_queue *queue;
    grpc_channel *nowhere;
    grpc_call *bell;
    pen_grpc_tag bell_tag;
    pen_thread *thread;
    struct pen_grpc_server *server; // NULL: does not listen
    pen_ring_lanes *lanes;          // NULL: all goes over gRPC
    _Atomic uint64_t bytes_sent, bytes_received, frames_sent, frames_received, bytes_copied,
        refusals, resumes, retransmitted;

    pen_mutex refusals_lock;
    pen_refusals refused; // guarded by refusals_lock

    // the I/O thread's
    pen_grpc_link *links;
    double next_deadline;
    bool has_closed; // its links

    // guarded by lock
    pen_mutex lock;
    bool is_waiting; // the I/O thread, for an event
    bool bell_is_rung;
    bool is_closing;
    bool has_new_server;
    pen_grpc_link *dirty;
    pen_grpc_loan *returned, **returned_end; // to be let go
    uint32_t loan_count;                     // with us
    pen_grpc_loan *free_loans;
    pen_grpc_letter *free_letters;
    pen_grpc_link *of_peer[PEN_TRANSPORT_PEER_LIMIT]; // up, or being opened by us
};

// ---- grpc_link.c: the states of a link

// A link in its first state, not yet among the transport's. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_grpc_link_create(pen_grpc *transport, bool is_caller,
                                              pen_grpc_link **out_link);
void pen_grpc_link_adopt(pen_grpc_link *link); // adds it to the I/O thread's links
// Starts a batch. What gRPC does not take is our own mistake.
void pen_grpc_link_batch(pen_grpc_link *link, const grpc_op *ops, size_t count, pen_grpc_tag *tag);
void pen_grpc_link_set_state(pen_grpc_link *link, pen_grpc_state state);
void pen_grpc_link_set_deadline(pen_grpc_link *link, double deadline);
void pen_grpc_link_up(pen_grpc_link *link);
// The stream of a link broke: it ends, or waits for another one. Nobody is told meanwhile.
void pen_grpc_link_broke(pen_grpc_link *link, pen_status take_reason);
// Another stream stands, at whose other end that has come. CORRUPT: it cannot be so.
PEN_NODISCARD pen_status pen_grpc_link_resumed(pen_grpc_link *link, const pen_link_ack *received);
// Ends a link, and says so to the user if the user knows of it. The other end is told the reason
// when `is_told`; else the call is over or broken.
void pen_grpc_link_down(pen_grpc_link *link, pen_status take_reason, bool is_told);
void pen_grpc_link_abandon(pen_grpc_link *link); // whose session another one has
// Whether something more is to be done for a link: sends what waits, says the last word, releases
// the link. Called whenever something has changed. The link may be gone afterwards.
void pen_grpc_link_go_on(pen_grpc_link *link);
void pen_grpc_link_tick(pen_grpc_link *link, double now); // its deadline has come
void pen_grpc_link_destroy(pen_grpc_link *link);

// ---- grpc_client.c: calling

void pen_grpc_client_call(pen_grpc_link *link);         // the first attempt, or another one
void pen_grpc_client_attempt_over(pen_grpc_link *link); // without an introduction
void pen_grpc_client_call_again(pen_grpc_link *link);   // whose stream broke
// An error that says why the call of a link ended, in words for people.
PEN_NODISCARD pen_status pen_grpc_client_reason(const pen_grpc_link *link);

// ---- grpc_server.c: being called

PEN_NODISCARD pen_status pen_grpc_server_listen(pen_grpc *transport, const pen_address *address,
                                                uint16_t *out_port);
// Takes calls, if it does not do so yet; I/O thread.
void pen_grpc_server_begin(pen_grpc *transport);
void pen_grpc_server_shut_down(pen_grpc *transport); // begins it; I/O thread
bool pen_grpc_server_is_down(const pen_grpc *transport);
void pen_grpc_server_destroy(pen_grpc *transport);
// Once the links are gone: ends calls for the health of the server.
void pen_grpc_server_cancel_calls(pen_grpc *transport);
// Decides about an introduction: takes the link up, or goes on with one. An error refuses it.
PEN_NODISCARD pen_status pen_grpc_server_introduce(pen_grpc_link *link,
                                                   const pen_wire_introduction *introduction,
                                                   pen_wire_pieces pieces);
// `who`: as what it called, with which certificate and for which job; "" when that is not known.
void pen_grpc_server_count_refusal(pen_grpc *transport, const char *address, const char *who,
                                   const char *reason);

// ---- grpc_send.c

// Sends the next envelope, if nothing is being sent. True: something is being sent.
bool pen_grpc_send_next(pen_grpc_link *link);
void pen_grpc_send_introduction(pen_grpc_link *link, uint32_t callee);
void pen_grpc_send_drop_frames(pen_grpc_link *link); // those that are kept
void pen_grpc_send_drop_letters(pen_grpc_link *link);
void pen_grpc_send_forget_acknowledged(pen_grpc_link *link);
// Keeps a loan for the next frame. With the lock held.
void pen_grpc_send_pool_loan(pen_grpc_loan *loan);
// Calls let_go for what came back.
void pen_grpc_send_let_go(pen_grpc *transport);
PEN_NODISCARD pen_status pen_grpc_send_queue_message(pen_grpc *transport, uint32_t peer,
                                                     const void *bytes, uint64_t count);
PEN_NODISCARD pen_status pen_grpc_send_queue_frame(pen_grpc *transport, uint32_t peer,
                                                   const pen_ring_loan *lent, uint64_t token);
void pen_grpc_send_free_pools(pen_grpc *transport);

// ---- grpc_ring.c: frames through shared memory

void pen_grpc_ring_set_up(pen_grpc *transport);
// What a link's introduction says of it.
pen_wire_ring pen_grpc_ring_offer(const pen_grpc_link *link, const pen_introduction *self);
// The other end has said where it takes rings. Before the link is up
void pen_grpc_ring_decide(pen_grpc_link *link, const pen_wire_ring *theirs);
void pen_grpc_ring_open(pen_grpc_link *link); // it is up
// Whether it has broken, or was refused. The link may be down afterwards.
void pen_grpc_ring_look(pen_grpc_link *link);
// Nothing comes over it afterwards.
void pen_grpc_ring_close(pen_grpc_link *link);

// ---- grpc_receive.c

void pen_grpc_receive_start(pen_grpc_link *link); // asks for the next envelope

// ---- grpc_io.c: the thread

void pen_grpc_io_run(void *transport);
// Puts a link on the list of those with something to do. Call with the lock held; then, without
// it, pen_grpc_io_wake if this returned true.
PEN_NODISCARD bool pen_grpc_io_mark(pen_grpc_link *link);
PEN_NODISCARD bool pen_grpc_io_needs_bell(pen_grpc *transport); // with the lock held
void pen_grpc_io_wake(pen_grpc *transport);
void pen_grpc_io_watch(pen_grpc *transport, double deadline);

// ---- grpc_log.c: what gRPC itself has to say

void pen_grpc_log_hook(void);
// Connections to `port` that fail before there is a call are this transport's refusals.
void pen_grpc_log_add_server(pen_grpc *transport, uint16_t port);
void pen_grpc_log_remove_server(pen_grpc *transport);

// How the transport introduces itself now; `out_job` [PEN_WIRE_TEXT_LIMIT + 1] has the job's name.
pen_introduction pen_grpc_link_self(pen_grpc *transport, char *out_job);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_LINK_H
