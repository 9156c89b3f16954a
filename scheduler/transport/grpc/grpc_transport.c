// The transport over gRPC's C core: what callers see of it. See grpc_link.h for how it works.
#include <grpc/grpc_security.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system/called.h"
#include "scheduler/transport/grpc/grpc_gate.h"
#include "scheduler/transport/grpc/grpc_link.h"

// Of the memory that gRPC may take for what it receives, and for handshakes. Nothing of ours comes
// near; it bounds what a flood of connections can take.
#define TRANSPORT_QUOTA_BYTES ((size_t)1 << 30)
// Of who was called, before it has said who it is: some 600 bytes, and 10 KiB of certificates.
#define TRANSPORT_CALLED_BYTES (64u << 10)

static pen_grpc *transport_of(const pen_transport *transport) {
    return (pen_grpc *)(uintptr_t)transport;
}

// In the order in which gRPC lets go: calls, channels, the queue; lanes before what they call back.
static void transport_release(pen_grpc *transport) {
    if (transport->bell != NULL) grpc_call_unref(transport->bell);
    if (transport->nowhere != NULL) grpc_channel_destroy(transport->nowhere);
    pen_grpc_credentials_destroy(&transport->credentials);
    if (transport->queue != NULL) {
        grpc_completion_queue_shutdown(transport->queue);
        grpc_event event;
        do {
            event = grpc_completion_queue_next(transport->queue,
                                               gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        } while (event.type != GRPC_QUEUE_SHUTDOWN);
        grpc_completion_queue_destroy(transport->queue);
    }
    pen_ring_lanes_destroy(transport->lanes);
    if (transport->quota != NULL) grpc_resource_quota_unref(transport->quota);
    grpc_shutdown_blocking();
    pen_grpc_send_free_pools(transport);
    pen_grpc_gate_deinit(&transport->gate);
    pen_mutex_deinit(&transport->lock);
    pen_mutex_deinit(&transport->refusals_lock);
    pen_memory_free(transport);
}

static pen_status transport_set_up(pen_grpc *transport) {
    PEN_TRY(pen_grpc_gate_init(&transport->gate, transport->options.token_file));
    PEN_TRY(pen_grpc_credentials_create(&transport->options.tls, &transport->credentials));
    transport->quota = grpc_resource_quota_create("penstock");
    grpc_resource_quota_resize(transport->quota, TRANSPORT_QUOTA_BYTES);
    pen_grpc_settings_fill(&transport->channel_settings, false, transport->quota);
    pen_grpc_settings_fill(&transport->server_settings, true, transport->quota);
    transport->queue = grpc_completion_queue_create_for_next(NULL);
    transport->nowhere =
        grpc_lame_client_channel_create("nowhere", GRPC_STATUS_UNAVAILABLE, "leads nowhere");
    transport->bell = grpc_channel_create_call(
        transport->nowhere, NULL, GRPC_PROPAGATE_DEFAULTS, transport->queue,
        grpc_slice_from_static_string("/nowhere"), NULL, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    pen_grpc_ring_set_up(transport);
    return pen_thread_create("penstock-io", pen_grpc_io_run, transport, &transport->thread);
}

// gRPC is initialised with the first transport; the log is hooked before, so that handshakes that
// fail are seen.
static pen_status transport_create(const pen_transport_options *options,
                                   const pen_transport_events *events,
                                   pen_transport **out_transport) {
    extern const pen_transport_kind pen_transport_grpc;
    const char *job = options->self.job != NULL ? options->self.job : "";
    if (strlen(job) > PEN_WIRE_TEXT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the job's name has more than %u bytes",
                         PEN_WIRE_TEXT_LIMIT);
    }
    pen_grpc *transport = pen_memory_allocate(1, sizeof *transport);
    if (transport == NULL) return pen_error_out_of_memory();
    transport->transport.kind = &pen_transport_grpc;
    transport->options = *options;
    memcpy(transport->job, job, strlen(job) + 1);
    transport->options.self.job = transport->job;
    transport->events = *events;
    transport->next_deadline = INFINITY;
    transport->returned_end = &transport->returned;
    pen_mutex_init(&transport->lock);
    pen_mutex_init(&transport->refusals_lock);
    pen_grpc_log_hook();
    pen_called_watch(TRANSPORT_CALLED_BYTES);
    grpc_init();
    const pen_status status = transport_set_up(transport);
    if (status != PEN_OK) {
        transport_release(transport);
        return status;
    }
    *out_transport = &transport->transport;
    return PEN_OK;
}

static pen_status transport_introduce(pen_transport *self, const pen_introduction *introduction) {
    pen_grpc *transport = transport_of(self);
    const char *job = introduction->job != NULL ? introduction->job : "";
    if (strlen(job) > PEN_WIRE_TEXT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the job's name has more than %u bytes",
                         PEN_WIRE_TEXT_LIMIT);
    }
    pen_mutex_lock(&transport->lock);
    transport->options.self = *introduction;
    memcpy(transport->job, job, strlen(job) + 1);
    transport->options.self.job = transport->job;
    pen_mutex_unlock(&transport->lock);
    return PEN_OK;
}

static pen_status transport_listen(pen_transport *self, const char *address, uint16_t *out_port) {
    pen_grpc *transport = transport_of(self);
    pen_address where;
    PEN_TRY(pen_address_read(address, &where));
    PEN_TRY(pen_grpc_tls_check_address(&transport->options, &where));
    pen_mutex_lock(&transport->lock);
    const bool is_possible = transport->server == NULL && !transport->is_closing;
    pen_mutex_unlock(&transport->lock);
    if (!is_possible) return pen_error(PEN_INTERNAL, "a transport listens once, before it closes");
    return pen_grpc_server_listen(transport, &where, out_port);
}

static pen_status transport_add_caller(pen_grpc *transport, pen_grpc_link *link) {
    bool is_waiting = false, is_free = false;
    pen_mutex_lock(&transport->lock);
    const bool is_closing = transport->is_closing;
    if (!is_closing) is_free = transport->of_peer[link->peer] == NULL;
    if (is_free) {
        transport->of_peer[link->peer] = link;
        is_waiting = pen_grpc_io_mark(link);
    }
    pen_mutex_unlock(&transport->lock);
    if (is_waiting) pen_grpc_io_wake(transport);
    if (is_closing) return pen_error(PEN_CANCELLED, "the transport is closed");
    if (is_free) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "there is a link to peer %u already", link->peer);
}

// Returns at once: that the link is up, or why not, comes as an event.
static pen_status transport_connect(pen_transport *self, uint32_t peer, const char *address,
                                    double deadline_seconds) {
    pen_grpc *transport = transport_of(self);
    pen_address where;
    pen_grpc_link *link;
    PEN_TRY(pen_address_read(address, &where));
    PEN_TRY(pen_grpc_tls_check_address(&transport->options, &where));
    if (peer >= PEN_TRANSPORT_PEER_LIMIT) {
        return pen_error(PEN_INTERNAL, "peer %u: there are %u at most", peer,
                         PEN_TRANSPORT_PEER_LIMIT);
    }
    if (where.port == 0) {
        return pen_error(PEN_INVALID_INPUT, "address '%s': links go to a port above 0", where.text);
    }
    PEN_TRY(pen_grpc_link_create(transport, true, &link));
    link->peer = peer;
    memcpy(link->address, where.text, sizeof where.text);
    link->is_loopback = link->expects_own = pen_address_is_loopback(&where);
    link->began_at = pen_clock_seconds();
    link->give_up_at = link->began_at + deadline_seconds;
    pen_grpc_pass_init(link, &where);
    const pen_status status = transport_add_caller(transport, link);
    if (status != PEN_OK) pen_grpc_link_destroy(link);
    return status;
}

static pen_status transport_send_message(pen_transport *self, uint32_t peer, const void *bytes,
                                         uint64_t count) {
    return pen_grpc_send_queue_message(transport_of(self), peer, bytes, count);
}

static pen_status transport_send_frame(pen_transport *self, uint32_t peer, const pen_frame *frame,
                                       pen_memory_place payload, const uint32_t *checksums,
                                       uint64_t token) {
    void *bytes;
    PEN_TRY(pen_memory_place_reach(payload, &bytes));
    const pen_ring_loan lent = {.frame = *frame, .payload = bytes, .checksums = checksums};
    return pen_grpc_send_queue_frame(transport_of(self), peer, &lent, token);
}

static pen_status transport_sum_frame(pen_transport *self, uint32_t peer, const pen_frame *frame,
                                      pen_memory_place payload, uint32_t *checksums,
                                      uint64_t token) {
    void *bytes;
    PEN_TRY(pen_memory_place_reach(payload, &bytes));
    const pen_ring_loan lent = {
        .frame = *frame, .payload = bytes, .checksums = checksums, .unmade = checksums};
    return pen_grpc_send_queue_frame(transport_of(self), peer, &lent, token);
}

static void transport_disconnect(pen_transport *self, uint32_t peer) {
    pen_grpc *transport = transport_of(self);
    bool is_waiting = false;
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = peer < PEN_TRANSPORT_PEER_LIMIT ? transport->of_peer[peer] : NULL;
    if (link != NULL) {
        link->is_unwanted = true;
        is_waiting = pen_grpc_io_mark(link);
    }
    pen_mutex_unlock(&transport->lock);
    if (is_waiting) pen_grpc_io_wake(transport);
}

static pen_transport_counters transport_counters(const pen_transport *self) {
    const pen_grpc *transport = transport_of(self);
    pen_transport_counters counters = {
        .bytes_sent = atomic_load_explicit(&transport->bytes_sent, memory_order_relaxed),
        .bytes_received = atomic_load_explicit(&transport->bytes_received, memory_order_relaxed),
        .frames_sent = atomic_load_explicit(&transport->frames_sent, memory_order_relaxed),
        .frames_received = atomic_load_explicit(&transport->frames_received, memory_order_relaxed),
        .bytes_copied = atomic_load_explicit(&transport->bytes_copied, memory_order_relaxed),
        .refusals = atomic_load_explicit(&transport->refusals, memory_order_relaxed),
        .resumes = atomic_load_explicit(&transport->resumes, memory_order_relaxed),
        .retransmitted = atomic_load_explicit(&transport->retransmitted, memory_order_relaxed),
    };
    if (transport->lanes != NULL) pen_ring_lanes_count(transport->lanes, &counters);
    return counters;
}

static void transport_close(pen_transport *self) {
    pen_grpc *transport = transport_of(self);
    pen_mutex_lock(&transport->lock);
    const bool is_waiting = !transport->is_closing && pen_grpc_io_needs_bell(transport);
    transport->is_closing = true;
    pen_mutex_unlock(&transport->lock);
    if (is_waiting) pen_grpc_io_wake(transport);
}

static void transport_stop(pen_transport *self) {
    pen_grpc *transport = transport_of(self);
    transport_close(self);
    pen_thread_join(transport->thread);
    transport->thread = NULL;
}

static void transport_destroy(pen_transport *self) {
    if (self == NULL) return;
    transport_stop(self);
    transport_release(transport_of(self));
}

const pen_transport_kind pen_transport_grpc = {
    .name = "grpc",
    .summary = "over gRPC, between processes and machines",
    .create = transport_create,
    .introduce = transport_introduce,
    .listen = transport_listen,
    .connect = transport_connect,
    .send_message = transport_send_message,
    .send_frame = transport_send_frame,
    .sum_frame = transport_sum_frame,
    .disconnect = transport_disconnect,
    .counters = transport_counters,
    .close = transport_close,
    .stop = transport_stop,
    .destroy = transport_destroy,
};
