// The I/O thread: waits for what happens, and lets links go on.
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/transport/grpc/grpc_server.h"

// How long gRPC may keep memory that is lent to it after all of its calls are over.
#define IO_LOAN_SECONDS 15.0

bool pen_grpc_io_needs_bell(pen_grpc *transport) {
    if (!transport->is_waiting || transport->bell_is_rung) return false;
    transport->bell_is_rung = true;
    return true;
}

bool pen_grpc_io_mark(pen_grpc_link *link) {
    pen_grpc *transport = link->transport;
    if (!link->is_dirty) {
        link->is_dirty = true;
        link->dirty_next = transport->dirty;
        transport->dirty = link;
    }
    return pen_grpc_io_needs_bell(transport);
}

void pen_grpc_io_wake(pen_grpc *transport) {
    const grpc_call_error error =
        grpc_call_start_batch(transport->bell, NULL, 0, &transport->bell_tag, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
}

void pen_grpc_io_watch(pen_grpc *transport, double deadline) {
    transport->next_deadline = fmin(transport->next_deadline, deadline);
}

static pen_grpc_link *io_take_dirty(pen_grpc *transport) {
    pen_mutex_lock(&transport->lock);
    pen_grpc_link *link = transport->dirty;
    if (link != NULL) {
        transport->dirty = link->dirty_next;
        link->is_dirty = false;
    }
    pen_mutex_unlock(&transport->lock);
    return link;
}

static void io_serve_dirty(pen_grpc *transport) {
    pen_grpc_link *link;
    while ((link = io_take_dirty(transport)) != NULL) {
        if (!link->is_adopted) {
            pen_grpc_link_adopt(link);
            pen_grpc_link_set_deadline(link, 0); // calls at once
        } else {
            pen_grpc_link_go_on(link);
        }
    }
}

static void io_tick(pen_grpc *transport) {
    const double now = pen_clock_seconds();
    if (now < transport->next_deadline) return;
    transport->next_deadline = INFINITY;
    for (pen_grpc_link *link = transport->links, *next; link != NULL; link = next) {
        next = link->next;
        if (fmin(link->deadline, link->talk_at) <= now) {
            pen_grpc_link_tick(link, now); // releases no link but this one
        } else {
            pen_grpc_io_watch(transport, fmin(link->deadline, link->talk_at));
        }
    }
    pen_grpc_server_tick(transport, now);
}

static void io_close(pen_grpc *transport) {
    pen_mutex_lock(&transport->lock);
    const bool is_due = transport->is_closing && !transport->has_closed;
    pen_mutex_unlock(&transport->lock);
    if (!is_due) return;
    transport->has_closed = true;
    // a link that was asked for just before is there by now, and none comes after it
    io_serve_dirty(transport);
    pen_grpc_server_shut_down(transport);
    for (pen_grpc_link *link = transport->links, *next; link != NULL; link = next) {
        next = link->next;
        if (link->state != PEN_GRPC_CLOSING && link->state != PEN_GRPC_ENDING) {
            pen_grpc_link_down(link, pen_error(PEN_CANCELLED, "the link was closed"), true);
        }
        pen_grpc_link_go_on(link);
    }
}

// Whether there is nothing to be done before the next event. Then the thread counts as waiting.
static bool io_begin_to_wait(pen_grpc *transport) {
    pen_mutex_lock(&transport->lock);
    const bool is_idle = transport->dirty == NULL && transport->returned == NULL &&
                         !transport->has_new_server &&
                         transport->is_closing == transport->has_closed;
    transport->is_waiting = is_idle;
    pen_mutex_unlock(&transport->lock);
    return is_idle;
}

static gpr_timespec io_time(double seconds) {
    if (isinf(seconds)) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    const double left = fmax(seconds - pen_clock_seconds(), 0);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos((int64_t)(left * 1e9) + 100000, GPR_TIMESPAN));
}

static void io_wait(pen_grpc *transport, double until) {
    const grpc_event event = grpc_completion_queue_next(
        transport->queue, io_time(fmin(until, transport->next_deadline)), NULL);
    pen_mutex_lock(&transport->lock);
    transport->is_waiting = false;
    if (event.type == GRPC_OP_COMPLETE && event.tag == &transport->bell_tag) {
        transport->bell_is_rung = false;
    }
    pen_mutex_unlock(&transport->lock);
    if (event.type != GRPC_OP_COMPLETE || event.tag == &transport->bell_tag) return;
    pen_grpc_tag *tag = event.tag;
    pen_grpc_link *link = tag->link;
    if (link != NULL) link->tag_count -= 1;
    tag->done(tag->owner, event.success != 0);
    if (link != NULL) pen_grpc_link_go_on(link);
}

static bool io_has_links(pen_grpc *transport) {
    return !transport->has_closed || transport->links != NULL;
}

static bool io_has_server(pen_grpc *transport) {
    return !pen_grpc_server_is_down(transport);
}

static bool io_has_loans(pen_grpc *transport) {
    pen_mutex_lock(&transport->lock);
    const bool has_some = transport->loan_count != 0;
    pen_mutex_unlock(&transport->lock);
    return has_some;
}

// Serves all that there is to do, and events, as long as there is what `has` says. False: that is
// still so at the time `until`.
static bool io_run_while(pen_grpc *transport, bool (*has)(pen_grpc *transport), double until) {
    for (;;) {
        io_serve_dirty(transport);
        pen_grpc_server_begin(transport);
        io_close(transport);
        io_tick(transport);
        pen_grpc_send_let_go(transport);
        if (!has(transport)) return true;
        if (pen_clock_seconds() >= until) return false;
        if (io_begin_to_wait(transport)) io_wait(transport, until);
    }
}

void pen_grpc_io_run(void *context) {
    pen_grpc *transport = context;
    (void)io_run_while(transport, io_has_links, INFINITY);
    pen_grpc_server_cancel_calls(transport);
    (void)io_run_while(transport, io_has_server, INFINITY);
    pen_grpc_server_destroy(transport);
    // calls are over, but what they sent may still lie in the buffer of a connection
    if (!io_run_while(transport, io_has_loans, pen_clock_seconds() + IO_LOAN_SECONDS)) {
        pen_log(PEN_LOG_ERROR, "gRPC keeps memory of tensors");
    }
}
