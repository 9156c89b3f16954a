#include "scheduler/transport/grpc/grpc_server.h"
#include "scheduler/transport/grpc/grpc_gate.h"

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/transport/grpc/grpc_audit.h"

#define SERVER_INTRODUCTION_SECONDS 5.0
#define SERVER_LINK_LIMIT (2 * PEN_TRANSPORT_PEER_LIMIT)
#define SERVER_LOOK_SECONDS 1.0

// A stranger takes up to 170 KiB with all the streams that it may open: 53 MiB for all of them. An
// introduction has some 600 bytes, and 10 KiB with the certificates of TLS. Who is known may send
// what a stream looks ahead (grpc_settings.c) between two envelopes.
static const pen_callers_limits server_limits = {
    .callers = SERVER_LINK_LIMIT,
    .callers_of_one = PEN_TRANSPORT_PEER_LIMIT,
    .strangers = 320,
    .strangers_of_one = 256,
    .stranger_bytes = 16 << 10,
    .known_bytes = 64 << 20,
    .streams = 8,
    .stranger_seconds = 2 * SERVER_INTRODUCTION_SECONDS,
};
#define SERVER_ENCRYPTED_STRANGER_BYTES (64u << 10)

// The kinds of refusals are told apart without `who`, or a caller who draws names fills the log.
void pen_grpc_server_count_refusal(pen_grpc *transport, const char *address, const char *who,
                                   const char *reason) {
    uint64_t count;
    atomic_fetch_add_explicit(&transport->refusals, 1, memory_order_relaxed);
    pen_mutex_lock(&transport->refusals_lock);
    const bool is_told = pen_refusals_add(&transport->refused, address, reason, &count);
    pen_mutex_unlock(&transport->refusals_lock);
    if (!is_told) return;
    if (who[0] == '\0') { // who has introduced itself has a line each time
        pen_grpc_audit_add_stranger(transport->options.audit, address, reason, count);
    }
    if (count == 1) {
        pen_log(PEN_LOG_WARNING, "refused a link from %s%s: %s", address, who, reason);
    } else {
        pen_log(PEN_LOG_WARNING, "refused a link from %s%s: %s (%" PRIu64 " times so far)", address,
                who, reason, count);
    }
}

// ---- callers

static void server_refused(void *context, const char *address, const char *reason) {
    pen_grpc_server_count_refusal(context, address, "", reason);
}

// Before the first connection is taken.
static void server_watch(pen_grpc_server *server, uint16_t port) {
    pen_callers_limits limits = server_limits;
    limits.refused = server_refused;
    limits.context = server->transport;
    limits.is_encrypted = pen_grpc_tls_is_used(&server->transport->options.tls);
    if (limits.is_encrypted) limits.stranger_bytes = SERVER_ENCRYPTED_STRANGER_BYTES;
    if (pen_callers_watch(port, &limits)) server->port = port;
}

void pen_grpc_server_tick(pen_grpc *transport, double now) {
    pen_mutex_lock(&transport->lock);
    pen_grpc_server *server = transport->server;
    pen_mutex_unlock(&transport->lock);
    if (server == NULL || server->port == 0) return;
    if (now >= server->look_at) {
        pen_callers_tick(server->port);
        server->look_at = now + SERVER_LOOK_SECONDS;
    }
    pen_grpc_io_watch(transport, server->look_at);
}

// ---- links

static void server_opened(void *owner, bool success) {
    (void)owner;
    (void)success; // when it failed, the call ends
}

static void server_ended(void *owner, bool success) {
    pen_grpc_link *link = owner;
    (void)success; // always
    link->is_over = true;
    if (link->session != NULL) pen_caller_has_ended(link->session->caller);
    if (link->state != PEN_GRPC_CALLING && link->state != PEN_GRPC_UP) return;
    const pen_status reason = pen_error(PEN_UNAVAILABLE, "the connection to peer %u at %s broke",
                                        link->peer, link->address);
    if (link->state == PEN_GRPC_UP) {
        pen_grpc_link_broke(link, reason);
    } else {
        pen_grpc_link_down(link, reason, false);
    }
}

// "ipv4:127.0.0.1:4000" or "ipv6:%5B::1%5D:4000", as people write it.
void pen_grpc_server_get_address(grpc_call *call, char *out_text, size_t size) {
    char *uri = grpc_call_get_peer(call);
    const char *from = strncmp(uri, "ipv", 3) == 0 ? strchr(uri, ':') + 1 : uri;
    size_t count = 0;
    for (; *from != '\0' && count + 1 < size; from++) {
        char letter = *from;
        if (strncmp(from, "%5B", 3) == 0 || strncmp(from, "%5D", 3) == 0) {
            letter = from[2] == 'B' ? '[' : ']';
            from += 2;
        }
        out_text[count++] = letter;
    }
    out_text[count] = '\0';
    gpr_free(uri);
}

// A stranger's call takes a link of a limited number, and a deadline by which it must have
// introduced itself.
static pen_status server_take_link(const pen_grpc_server *server, grpc_call *call,
                                   const char *address, const char *proof) {
    pen_grpc *transport = server->transport;
    uint32_t count = 0;
    for (const pen_grpc_link *at = transport->links; at != NULL; at = at->next)
        count += 1;
    if (count >= SERVER_LINK_LIMIT) {
        return pen_error(PEN_UNAVAILABLE, "there are %u links already", count);
    }
    pen_grpc_link *link;
    PEN_TRY(pen_grpc_link_create(transport, false, &link));
    link->call = call;
    link->session->caller = pen_callers_find(server->port, address);
    snprintf(link->address, sizeof link->address, "%s", address);
    pen_grpc_link_adopt(link);
    pen_grpc_link_set_deadline(link, pen_clock_seconds() + SERVER_INTRODUCTION_SECONDS);

    link->ended = (pen_grpc_tag){server_ended, link, link};
    const grpc_op end = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                         .data.recv_close_on_server.cancelled = &link->was_cancelled};
    pen_grpc_link_batch(link, &end, 1, &link->ended);
    link->opened = (pen_grpc_tag){server_opened, link, link};
    snprintf(link->pass.proof, sizeof link->pass.proof, "%s", proof);
    grpc_metadata *shown;
    const size_t shown_count = pen_grpc_pass_metadata(link, &shown);
    const grpc_op open = {.op = GRPC_OP_SEND_INITIAL_METADATA,
                          .data.send_initial_metadata = {.count = shown_count, .metadata = shown}};
    pen_grpc_link_batch(link, &open, 1, &link->opened);
    pen_grpc_receive_start(link);
    return PEN_OK;
}

// What holds of each stream.
static pen_status server_check(pen_grpc_link *link, const pen_wire_introduction *introduction,
                               const pen_introduction *who) {
    char job[PEN_WIRE_TEXT_LIMIT + 1];
    const pen_introduction self = pen_grpc_link_self(link->transport, job);
    if (introduction->version != PEN_WIRE_VERSION) {
        return pen_error(PEN_UNSUPPORTED, "it speaks version %u of the protocol, not %u",
                         introduction->version, PEN_WIRE_VERSION);
    }
    if (who->peer >= PEN_TRANSPORT_PEER_LIMIT || who->peer == self.peer) {
        return pen_error(PEN_INVALID_INPUT, "it calls itself peer %u", who->peer);
    }
    link->is_denied = true;
    PEN_TRY(pen_grpc_tls_check_role(link->call, &link->transport->options.tls, who->peer));
    PEN_TRY(pen_grpc_tls_check_revoked(&link->transport->credentials, link->call));
    link->is_denied = false;
    return PEN_OK;
}

// Whether the caller looks for whom it has found.
static pen_status server_compare(const pen_introduction *self,
                                 const pen_wire_introduction *introduction,
                                 const pen_introduction *who) {
    if (self->peer != PEN_TRANSPORT_ANY_PEER && introduction->callee != self->peer) {
        return pen_error(PEN_INVALID_INPUT, "here is peer %u, not %u", self->peer,
                         introduction->callee);
    }
    if (self->job[0] != '\0' && who->job[0] != '\0' && strcmp(self->job, who->job) != 0) {
        return pen_error(PEN_INVALID_INPUT, "here is job '%s', not '%s'", self->job, who->job);
    }
    return PEN_OK;
}

// Whether to take a new link. What serves somebody else now may be what is looked for later, so
// one that is misled is asked about, too.
static pen_status server_judge(pen_grpc_link *link, const pen_wire_introduction *introduction,
                               const pen_introduction *who) {
    pen_grpc *transport = link->transport;
    char job[PEN_WIRE_TEXT_LIMIT + 1];
    const pen_introduction self = pen_grpc_link_self(transport, job);
    const pen_status misled = server_compare(&self, introduction, who);
    pen_introduction caller = *who;
    caller.is_misled = misled != PEN_OK;
    const pen_status status =
        transport->events.accept(transport->events.context, &caller, link->address);
    if (status == PEN_OK) return misled;
    pen_status_ignore(misled, "it is refused for another reason");
    return status;
}

// The link that a new stream of `peer` belongs to. NULL: to none that is known.
static pen_grpc_link *server_find_resumed(pen_grpc *transport, uint32_t peer,
                                          const pen_wire_stream *stream) {
    if (stream->session == 0) return NULL;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *old = transport->of_peer[peer];
    pen_mutex_unlock(&transport->lock);
    if (old == NULL || old->is_caller || !pen_grpc_session_may_resume(old->session)) return NULL;
    if (stream->session != old->session->drawn_there) return NULL;
    // a caller that has not got our answer does not know what we drew
    if (stream->resumes != 0 && stream->resumes != old->session->drawn) return NULL;
    return old;
}

// Goes on with an old link over the stream of a new one.
static pen_status server_take_over(pen_grpc_link *link, pen_grpc_link *old,
                                   const pen_wire_stream *stream) {
    pen_grpc *transport = link->transport;
    pen_link_suspend(&old->session->core);
    pen_grpc_session *unused = link->session;
    link->session = old->session;
    link->session->caller = unused->caller;
    link->peer = old->peer;
    old->session = NULL;
    pen_mutex_lock(&transport->lock);
    PEN_ASSERT(transport->of_peer[link->peer] == old);
    transport->of_peer[link->peer] = link;
    link->is_unwanted = old->is_unwanted;
    old->is_unwanted = false;
    pen_mutex_unlock(&transport->lock);
    pen_grpc_session_destroy(unused);
    pen_grpc_link_abandon(old);
    pen_caller_is_known(link->session->caller);
    pen_grpc_send_introduction(link, link->peer);
    return pen_grpc_link_resumed(link, &stream->received);
}

static void server_replace(pen_grpc_link *link, uint32_t peer) {
    pen_grpc *transport = link->transport;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *old = transport->of_peer[peer];
    pen_mutex_unlock(&transport->lock);
    if (old != NULL) {
        pen_grpc_link_down(
            old,
            pen_error(PEN_UNAVAILABLE, "peer %u opened another link, from %s", peer, link->address),
            true);
        pen_grpc_link_go_on(old);
    }
    link->peer = peer;
    pen_mutex_lock(&transport->lock);
    transport->of_peer[peer] = link;
    pen_mutex_unlock(&transport->lock);
}

// A stream goes on with a link that is known, or becomes a new one in place of an older.
static pen_status server_take(pen_grpc_link *link, const pen_wire_introduction *introduction,
                              const pen_introduction *who) {
    const pen_wire_stream *stream = &introduction->stream;
    PEN_TRY(server_check(link, introduction, who));
    pen_grpc_link *old = server_find_resumed(link->transport, who->peer, stream);
    if (old != NULL) return server_take_over(link, old, stream);
    if (stream->resumes != 0) {
        return pen_error(PEN_CANCELLED, "the link that broke is not known here any more");
    }
    PEN_TRY(server_judge(link, introduction, who));
    server_replace(link, who->peer);
    pen_caller_is_known(link->session->caller);
    pen_grpc_send_introduction(link, who->peer);
    pen_grpc_session_open(link->session, false, stream->session);
    pen_grpc_ring_decide(link, &introduction->ring);
    if (link->transport->options.tells_links) {
        pen_log(PEN_LOG_NOTE, "took a link from %s%s", link->address, link->who);
    }
    pen_grpc_link_up(link);
    return PEN_OK;
}

// " (coordinator, certificate for a.example spiffe://b/c, job 'd', generation 1)"
static void server_describe(pen_grpc_link *link, const pen_introduction *who) {
    char role[32] = "coordinator";
    if (who->peer != 0) snprintf(role, sizeof role, "worker %" PRIu32, who->peer);
    snprintf(link->who, sizeof link->who, " (%s, %s%.240s, job '%.100s', generation %" PRIu64 ")",
             role, who->certificate == NULL ? "no certificate" : "certificate for ",
             who->certificate == NULL ? "" : who->certificate, who->job, who->generation);
}

// Whoever says who it is has a line of the log that is kept, whatever comes of it.
pen_status pen_grpc_server_introduce(pen_grpc_link *link, const pen_wire_introduction *introduction,
                                     pen_wire_pieces pieces) {
    char job[PEN_WIRE_TEXT_LIMIT + 1], names[PEN_WIRE_TEXT_LIMIT];
    pen_wire_copy_text(pieces, introduction->job, job, sizeof job);
    const bool has_names = pen_grpc_tls_names(link->call, names, sizeof names);
    const pen_introduction who = {
        .job = job,
        .peer = introduction->peer,
        .generation = introduction->generation,
        .incarnation = introduction->incarnation,
        .level = introduction->level,
        .certificate = has_names ? names : NULL,
    };
    const pen_grpc_audit audit = {.call = link->call,
                                  .address = link->address,
                                  .who = &who,
                                  .is_resumed = introduction->stream.resumes != 0};
    server_describe(link, &who);
    const pen_status status = server_take(link, introduction, &who);
    pen_grpc_audit_add(link->transport->options.audit, &audit, status);
    return status;
}

// ---- the server

static void server_request(pen_grpc_server *server) {
    grpc_call_details_init(&server->details);
    grpc_metadata_array_init(&server->metadata);
    server->call = NULL;
    const grpc_call_error error = grpc_server_request_call(
        server->server, &server->call, &server->details, &server->metadata,
        server->transport->queue, server->transport->queue, &server->requested);
    PEN_ASSERT(error == GRPC_CALL_OK);
}

// A call for a link: what the caller shows is judged before anything is kept for it. What is
// refused is counted and logged with the caller's address.
static void server_call(pen_grpc_server *server, grpc_call *call) {
    char address[PEN_ADDRESS_TEXT_LIMIT], proof[PEN_TOKEN_ANSWER_BYTES];
    pen_grpc_server_get_address(call, address, sizeof address);
    const pen_caller caller = pen_callers_find(server->port, address);
    pen_status status = pen_grpc_gate_judge(server->transport, address, &server->metadata, proof);
    const bool is_stranger = status != PEN_OK;
    if (status == PEN_OK) status = server_take_link(server, call, address, proof);
    if (status == PEN_OK) return;
    pen_grpc_server_count_refusal(server->transport, address, "", pen_status_message(status));
    if (is_stranger) {
        pen_grpc_gate_refuse(caller, call, status);
        return;
    }
    pen_caller_has_ended(caller);
    pen_status_ignore(status, "the caller sees that the call was cancelled");
    (void)grpc_call_cancel(call, NULL);
    grpc_call_unref(call);
}

// Two kinds of calls: health checks, and those that are to be links.
static void server_requested(void *owner, bool success) {
    pen_grpc_server *server = owner;
    if (success && grpc_slice_str_cmp(server->details.method, PEN_WIRE_METHOD) == 0) {
        server_call(server, server->call);
    } else if (success) {
        char address[PEN_ADDRESS_TEXT_LIMIT];
        grpc_slice method = grpc_slice_ref(server->details.method);
        pen_grpc_server_get_address(server->call, address, sizeof address);
        pen_grpc_health_answer(pen_callers_find(server->port, address), server->call, method);
        grpc_slice_unref(method);
    }
    grpc_call_details_destroy(&server->details);
    grpc_metadata_array_destroy(&server->metadata);
    if (success && !server->is_shutting_down) server_request(server);
}

static void server_is_shut_down(void *owner, bool success) {
    pen_grpc_server *server = owner;
    (void)success; // always
    server->is_down = true;
}

// The I/O thread may sleep in a queue that does not know the server yet, so it is woken to look
// again.
pen_status pen_grpc_server_listen(pen_grpc *transport, const pen_address *address,
                                  uint16_t *out_port) {
    pen_grpc_server *server = pen_memory_allocate(1, sizeof *server);
    if (server == NULL) return pen_error_out_of_memory();
    server->transport = transport;
    server->requested = (pen_grpc_tag){.done = server_requested, .owner = server};
    server->shut_down = (pen_grpc_tag){.done = server_is_shut_down, .owner = server};
    server->server = grpc_server_create(&transport->server_settings.list, NULL);
    grpc_server_register_completion_queue(server->server, transport->queue, NULL);
    const int port = grpc_server_add_http2_port(server->server, address->text,
                                                transport->credentials.of_servers);
    const bool is_there = port > 0 && port <= UINT16_MAX;
    if (is_there) server_watch(server, (uint16_t)port);
    // also without a port: a server is destroyed only once it was started and shut down
    grpc_server_start(server->server);
    if (is_there) pen_grpc_log_add_server(transport, (uint16_t)port);
    // calls are taken afterwards: none comes before there are tokens
    const pen_status gate =
        is_there ? pen_grpc_gate_open(transport, address, (uint16_t)port) : PEN_OK;
    pen_mutex_lock(&transport->lock);
    transport->server = server;
    transport->has_new_server = true;
    const bool is_waiting = pen_grpc_io_needs_bell(transport);
    pen_mutex_unlock(&transport->lock);
    if (is_waiting) pen_grpc_io_wake(transport);
    if (!is_there) {
        return pen_address_explain(address, pen_grpc_tls_is_used(&transport->options.tls)
                                                ? "gRPC does not say why; 'tls: cert' and 'tls: "
                                                  "key' may not fit"
                                                : "gRPC does not say why");
    }
    *out_port = (uint16_t)port;
    return gate;
}

void pen_grpc_server_begin(pen_grpc *transport) {
    pen_mutex_lock(&transport->lock);
    pen_grpc_server *server = transport->has_new_server ? transport->server : NULL;
    transport->has_new_server = false;
    pen_mutex_unlock(&transport->lock);
    if (server == NULL) return;
    server_request(server);
    pen_grpc_server_tick(transport, pen_clock_seconds());
}

void pen_grpc_server_shut_down(pen_grpc *transport) {
    pen_grpc_server *server = transport->server;
    if (server == NULL || server->is_shutting_down) return;
    server->is_shutting_down = true;
    grpc_server_shutdown_and_notify(server->server, transport->queue, &server->shut_down);
}

void pen_grpc_server_cancel_calls(pen_grpc *transport) {
    if (transport->server != NULL) grpc_server_cancel_all_calls(transport->server->server);
}

bool pen_grpc_server_is_down(const pen_grpc *transport) {
    return transport->server == NULL || transport->server->is_down;
}

void pen_grpc_server_destroy(pen_grpc *transport) {
    if (transport->server == NULL) return;
    pen_grpc_log_remove_server(transport);
    pen_callers_forget(transport->server->port);
    grpc_server_destroy(transport->server->server);
    pen_memory_free(transport->server);
    transport->server = NULL;
}
