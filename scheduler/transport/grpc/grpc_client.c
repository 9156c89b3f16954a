// Calling a peer, again and again until it answers or the time is up; and why a call ended, in
// words for people.
#include <grpc/byte_buffer.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "scheduler/transport/grpc/failure_words.h"
#include "scheduler/transport/grpc/grpc_gate.h"
#include "scheduler/transport/grpc/grpc_link.h"
#include "scheduler/transport/wire_code.h"

#define CLIENT_PAUSE_SECONDS 0.05
#define CLIENT_PAUSE_SECONDS_MOST 1.0
// Of links whose connection broke.
#define CLIENT_RESUME_PAUSE_SECONDS_MOST 0.5
#define CLIENT_RESUME_ATTEMPT_SECONDS 2.0
// A refused connection is retried for as long as was asked: who listens may yet be started. Other
// failures stay as they are: wrong certificates, no such host.
#define CLIENT_ALIKE_LIMIT 5u

static void client_opened(void *owner, bool success) {
    (void)owner;
    (void)success; // when it failed, the call ends, and that says why
}

static bool client_is_ours(const pen_grpc_link *link) {
    for (size_t i = 0; i < link->trailer.count; i++) {
        if (grpc_slice_str_cmp(link->trailer.metadata[i].key, PEN_GRPC_MARK) == 0) return true;
    }
    return false;
}

static void client_ended(void *owner, bool success) {
    pen_grpc_link *link = owner;
    (void)success; // always
    link->is_over = true;
    if (link->state == PEN_GRPC_UP || link->state == PEN_GRPC_CLOSING) {
        const pen_status reason = pen_grpc_client_reason(link);
        if (link->state == PEN_GRPC_UP && client_is_ours(link)) {
            pen_grpc_link_down(link, reason, false);
        } else if (link->state == PEN_GRPC_UP) {
            pen_grpc_link_broke(link, reason);
        } else {
            pen_status_ignore(reason, "the link was closed by us");
        }
    }
}

// Processes of a training that are on one machine show one certificate, which need not be for
// "127.0.0.1". So that name is expected there first, and the address when it was not found.
static grpc_channel *client_open_channel(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_grpc_settings own;
    grpc_channel_credentials *credentials =
        pen_grpc_credentials_of_channels(&transport->credentials);
    const char *address = link->pass.address[0] != '\0' ? link->pass.address : link->address;
    if (!link->expects_own || transport->credentials.own_name[0] == '\0') {
        return grpc_channel_create(address, credentials, &transport->channel_settings.list);
    }
    pen_grpc_settings_expect(&own, &transport->channel_settings, transport->credentials.own_name);
    return grpc_channel_create(address, credentials, &own.list);
}

// One attempt to connect, with a channel of its own, and both batches of a call started at once:
// gRPC answers them as they happen.
void pen_grpc_client_call(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    pen_grpc_link_set_state(link, PEN_GRPC_CALLING);
    link->is_over = link->is_cancelled = false;
    link->attempt_count += 1;
    // a new channel for each attempt: one that failed answers with its old failure for a while
    link->channel = client_open_channel(link);
    link->call =
        grpc_channel_create_call(link->channel, NULL, GRPC_PROPAGATE_DEFAULTS, transport->queue,
                                 grpc_slice_from_static_string(PEN_WIRE_METHOD), NULL,
                                 gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    double deadline = link->give_up_at;
    if (link->session->is_open) {
        deadline = fmin(deadline, pen_clock_seconds() + CLIENT_RESUME_ATTEMPT_SECONDS);
    }
    pen_grpc_link_set_deadline(link, deadline);

    link->ended = (pen_grpc_tag){client_ended, link, link};
    const grpc_op end = {
        .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
        .data.recv_status_on_client = {.trailing_metadata = &link->trailer,
                                       .status = &link->status,
                                       .status_details = &link->status_text},
    };
    pen_grpc_link_batch(link, &end, 1, &link->ended);
    link->opened = (pen_grpc_tag){client_opened, link, link};
    grpc_metadata *shown;
    const size_t shown_count = pen_grpc_pass_metadata(link, &shown);
    const grpc_op open[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = shown_count, .metadata = shown}},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &link->head},
    };
    pen_grpc_link_batch(link, open, 2, &link->opened);
    pen_grpc_send_introduction(link, link->peer);
    pen_grpc_receive_start(link);
}

// ---- why it ended

static void client_status_text(const pen_grpc_link *link, char *out_text, size_t size) {
    size_t count = GRPC_SLICE_LENGTH(link->status_text);
    if (count > size - 1) count = size - 1;
    memcpy(out_text, GRPC_SLICE_START_PTR(link->status_text), count);
    out_text[count] = '\0';
    (void)pen_text_clean(out_text, true);
}

// The failure of a connection, in few words.
static void client_explain(const pen_grpc_link *link, char *out_text, size_t size) {
    char text[PEN_WIRE_TEXT_LIMIT];
    client_status_text(link, text, sizeof text);
    const bool has_tls = pen_grpc_tls_is_used(&link->transport->options.tls);
    const char *words = pen_failure_words(text, has_tls);
    if (words == NULL) {
        snprintf(out_text, size, "%s", text);
        return;
    }
    const bool may_want_tls = !has_tls && link->state != PEN_GRPC_UP &&
                              strstr(text, "onnection refused") == NULL &&
                              strcmp(words, PEN_FAILURE_CLOSED) == 0;
    snprintf(out_text, size, "%s%s", words,
             may_want_tls ? "; it may ask for TLS: give tls: {ca, cert, key}" : "");
}

// Why there is no link, in one sentence, by how far it had come.
pen_status pen_grpc_client_reason(const pen_grpc_link *link) {
    char text[PEN_WIRE_TEXT_LIMIT];
    if (link->state == PEN_GRPC_WAITING && link->session->is_open) {
        return pen_error(PEN_UNAVAILABLE, "%s; it could not be made again within %g s",
                         link->failure, link->transport->options.resume_seconds);
    }
    if (link->state == PEN_GRPC_WAITING) {
        return pen_error(PEN_UNAVAILABLE, "no link to peer %u at %s within %.3g s: %s", link->peer,
                         link->address, link->give_up_at - link->began_at, link->failure);
    }
    if (link->state != PEN_GRPC_UP) {
        return pen_error(pen_wire_code_read((uint32_t)link->status), "no link to peer %u at %s: %s",
                         link->peer, link->address, link->failure);
    }
    if (client_is_ours(link)) {
        client_status_text(link, text, sizeof text);
        return pen_error(link->status == GRPC_STATUS_OK
                             ? PEN_UNAVAILABLE
                             : pen_wire_code_read((uint32_t)link->status),
                         "peer %u closed the link: %s", link->peer, text);
    }
    client_explain(link, text, sizeof text);
    return pen_error(PEN_UNAVAILABLE, "the connection to peer %u at %s broke: %s", link->peer,
                     link->address, text);
}

// ---- attempts

static void client_clean_up(pen_grpc_link *link) {
    grpc_call_unref(link->call);
    grpc_channel_destroy(link->channel);
    link->call = NULL;
    link->channel = NULL;
    grpc_metadata_array_destroy(&link->head);
    grpc_metadata_array_destroy(&link->trailer);
    grpc_metadata_array_init(&link->head);
    grpc_metadata_array_init(&link->trailer);
    grpc_slice_unref(link->status_text);
    link->status_text = grpc_empty_slice();
}

static void client_expect_other(pen_grpc_link *link) {
    link->expects_own = link->is_loopback && !link->expects_own;
}

// Keeps why the attempt failed. False: another one would not help.
static bool client_keep_failure(pen_grpc_link *link) {
    char text[PEN_WIRE_TEXT_LIMIT];
    const bool is_ours = client_is_ours(link);
    if (is_ours) {
        char reason[PEN_WIRE_TEXT_LIMIT - 32];
        client_status_text(link, reason, sizeof reason);
        snprintf(text, sizeof text, "it refuses: %s", reason);
    } else if (link->status == GRPC_STATUS_UNIMPLEMENTED) {
        snprintf(text, sizeof text, "there is another server, not Penstock's");
    } else if (link->is_cancelled) {
        // what failed before stays the reason; a first attempt without an answer has none
        if (link->failure[0] == '\0') {
            snprintf(link->failure, sizeof link->failure, "no answer");
        }
        return false;
    } else {
        client_explain(link, text, sizeof text);
        if (strcmp(text, PEN_FAILURE_OTHER_HOST) == 0) client_expect_other(link);
    }
    link->alike_count = strcmp(text, link->failure) == 0 ? link->alike_count + 1 : 1;
    memcpy(link->failure, text, sizeof text);
    if (is_ours) return link->status == GRPC_STATUS_UNAVAILABLE;
    if (link->status == GRPC_STATUS_UNIMPLEMENTED) return false;
    return strstr(text, "connection refused") != NULL || link->alike_count < CLIENT_ALIKE_LIMIT;
}

static void client_wait(pen_grpc_link *link, double now, double pause_most) {
    const int doublings = (int)(link->attempt_count < 10 ? link->attempt_count : 10) - 1;
    const double pause = fmin(CLIENT_PAUSE_SECONDS * ldexp(1, doublings), pause_most);
    pen_grpc_link_set_deadline(link, fmin(now + pause, link->give_up_at));
}

// A link whose connection broke could not be made again now. Its peer's process is gone when
// nobody listens there any more, or when somebody else does.
static void client_resume_failed(pen_grpc_link *link, double now) {
    char before[PEN_WIRE_TEXT_LIMIT];
    memcpy(before, link->failure, sizeof before);
    link->failure[0] = '\0';
    (void)client_keep_failure(link);
    const bool is_over = client_is_ours(link) || link->status == GRPC_STATUS_UNIMPLEMENTED ||
                         strstr(link->failure, "connection refused") != NULL;
    client_clean_up(link);
    pen_grpc_link_set_state(link, PEN_GRPC_WAITING);
    if (is_over || now >= link->give_up_at) {
        pen_grpc_link_down(link,
                           pen_error(PEN_UNAVAILABLE, "%s; now, after %.1f s: %s", before,
                                     now - link->began_at, link->failure),
                           false);
        return;
    }
    memcpy(link->failure, before, sizeof before);
    client_wait(link, now, CLIENT_RESUME_PAUSE_SECONDS_MOST);
}

void pen_grpc_client_call_again(pen_grpc_link *link) {
    PEN_ASSERT(link->state == PEN_GRPC_BROKEN);
    PEN_ASSERT(link->tag_count == 0);
    client_clean_up(link);
    pen_grpc_link_set_state(link, PEN_GRPC_WAITING);
    pen_grpc_link_set_deadline(link, 0);
}

// Whether it is worth trying again: refusals that will not change end it, the rest waits a little
// and calls again until the deadline.
void pen_grpc_client_attempt_over(pen_grpc_link *link) {
    const double now = pen_clock_seconds();
    if (link->session->is_open) {
        client_resume_failed(link, now);
        return;
    }
    bool is_worth_it = client_keep_failure(link);
    if (client_is_ours(link) && pen_grpc_pass_learn(link)) is_worth_it = true;
    const pen_transport_events *events = &link->transport->events;
    if (events->attempt_failed != NULL) {
        events->attempt_failed(events->context, link->peer, link->failure);
    }
    const bool is_too_late = link->is_cancelled || now >= link->give_up_at;
    if (!is_worth_it && !is_too_late) {
        pen_grpc_link_down(link, pen_grpc_client_reason(link), false);
        return;
    }
    client_clean_up(link);
    pen_grpc_link_set_state(link, PEN_GRPC_WAITING);
    if (is_too_late) {
        pen_grpc_link_down(link, pen_grpc_client_reason(link), false);
        return;
    }
    client_wait(link, now, CLIENT_PAUSE_SECONDS_MOST);
}
