#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "scheduler/transport/link_hub.h"

#define HUB_RETRY_NANOSECONDS 10000000u

// ---- opening

// With the lock held. Tries again, or gives up.
static void hub_try_again(pen_hub_link *link, const char *failure) {
    const uint64_t now = link->hub->way->now(link->hub);
    snprintf(link->failure, sizeof link->failure, "%s", failure);
    if (now < link->give_up_at) {
        link->handshake.due = pen_min_u64(now + HUB_RETRY_NANOSECONDS, link->give_up_at);
        pen_hub_post_to(link, 0, PEN_HUB_CONNECT, &link->handshake);
        return;
    }
    pen_status reasons[2] = {
        pen_error(PEN_UNAVAILABLE, "no link to peer %" PRIu32 " at %s within %.3g s: %s",
                  link->peers[0], link->address, (double)(link->give_up_at - link->began_at) * 1e-9,
                  link->failure),
        PEN_OK};
    pen_hub_take_down(link, reasons);
}

// Posted items keep their hold on the link; the last one drops it.
static void hub_drop_handshake(pen_hub_link *link) {
    link->handshake.link = NULL;
    pen_hub_link_unref(link);
}

static void hub_deliver_connect(pen_hub_link *link) {
    pen_hub *hub = link->hub;
    pen_mutex_lock(&hub->lock);
    pen_hub_end *listener = NULL;
    for (pen_hub_end *end = hub->ends; end != NULL; end = end->next) {
        if (end->port == link->port && !end->is_closing) listener = end;
    }
    if (link->is_down) {
        hub_drop_handshake(link);
    } else if (listener == NULL) {
        hub_try_again(link, "connection refused");
        if (link->is_down) hub_drop_handshake(link);
    } else {
        link->ends[1] = listener;
        pen_hub_post_to(link, 1, PEN_HUB_ASK, &link->handshake);
        link->ends[1] = NULL; // until it is taken
    }
    pen_mutex_unlock(&hub->lock);
}

// Whether the caller looks for whom it has found.
static pen_status hub_compare(const pen_hub_link *link, const pen_introduction *who,
                              const pen_introduction *self) {
    if (self->peer != PEN_TRANSPORT_ANY_PEER && link->peers[0] != self->peer) {
        return pen_error(PEN_INVALID_INPUT, "here is peer %" PRIu32 ", not %" PRIu32, self->peer,
                         link->peers[0]);
    }
    if (self->job[0] != '\0' && who->job[0] != '\0' && strcmp(self->job, who->job) != 0) {
        return pen_error(PEN_INVALID_INPUT, "here is job '%s', not '%s'", self->job, who->job);
    }
    return PEN_OK;
}

// Whether the listener takes a link; `who` has texts of the caller's copied into `job`. What serves
// somebody else now may be what is looked for later, so one that is misled is asked about, too.
static pen_status hub_judge(pen_hub_end *listener, const pen_hub_link *link, pen_introduction *who,
                            const pen_introduction *self) {
    if (who->peer >= PEN_TRANSPORT_PEER_LIMIT || who->peer == self->peer) {
        return pen_error(PEN_INVALID_INPUT, "it calls itself peer %" PRIu32, who->peer);
    }
    const pen_status misled = hub_compare(link, who, self);
    who->is_misled = misled != PEN_OK;
    const pen_status status = listener->events.accept(listener->events.context, who, link->address);
    if (status == PEN_OK) return misled;
    pen_status_ignore(misled, "it is refused for another reason");
    return status;
}

// The listener's older links to the same peer go down first, also those of whose end it would have
// heard later.
static void hub_replace(pen_hub_end *listener, uint32_t peer) {
    pen_hub *hub = listener->hub;
    while (true) {
        uint32_t side = 0;
        pen_mutex_lock(&hub->lock);
        pen_hub_link *old = pen_hub_find_link(listener, peer, &side);
        if (old == NULL) {
            pen_mutex_unlock(&hub->lock);
            return;
        }
        pen_status status = old->farewells[side].status;
        old->farewells[side].status = PEN_OK;
        if (!old->has_ended[side]) {
            old->has_ended[side] = true;
            pen_status reasons[2] = {PEN_OK, PEN_OK};
            reasons[1 - side] = pen_error(PEN_UNAVAILABLE, "peer %" PRIu32 " has a newer link",
                                          old->peers[1 - side]);
            pen_hub_take_down(old, reasons);
            status = pen_error(PEN_UNAVAILABLE, "peer %" PRIu32 " opened another link", peer);
        }
        old->is_told[side] = true;
        pen_hub_forget(old, side);
        pen_mutex_unlock(&hub->lock);
        listener->events.down(listener->events.context, peer, status);
    }
}

static void hub_refuse(pen_hub_end *listener, pen_hub_link *link, pen_status status) {
    pen_mutex_lock(&listener->hub->lock);
    listener->counters.refusals += 1;
    if (link->is_down) {
        pen_status_ignore(status, "the caller has given up");
        hub_drop_handshake(link);
    } else {
        link->handshake.status = status;
        pen_hub_post_to(link, 0, PEN_HUB_REFUSED, &link->handshake);
    }
    pen_mutex_unlock(&listener->hub->lock);
}

// Callbacks run without the lock, so what is read under it is read again after them: the link may
// be down, or the listener closing.
static void hub_deliver_ask(pen_hub_end *listener, pen_hub_link *link) {
    pen_hub *hub = listener->hub;
    char job[PEN_HUB_JOB_BYTES], own_job[PEN_HUB_JOB_BYTES];
    pen_mutex_lock(&hub->lock);
    const bool is_over = link->is_down;
    pen_introduction who = {0}, self = listener->options.self;
    if (!is_over) {
        who = link->ends[0]->options.self;
        memcpy(job, link->ends[0]->job, sizeof job);
    }
    memcpy(own_job, listener->job, sizeof own_job);
    const bool is_closing = listener->is_closing;
    if (is_over) hub_drop_handshake(link);
    pen_mutex_unlock(&hub->lock);
    if (is_over) return;
    who.job = job;
    who.certificate = NULL;
    self.job = own_job;
    const pen_status status = is_closing ? pen_error(PEN_UNAVAILABLE, "it is closing")
                                         : hub_judge(listener, link, &who, &self);
    if (status != PEN_OK) {
        hub_refuse(listener, link, status);
        return;
    }
    hub_replace(listener, who.peer);
    pen_mutex_lock(&hub->lock);
    const bool is_taken = !link->is_down && !listener->is_closing;
    if (is_taken) {
        link->ends[1] = listener;
        link->peers[1] = who.peer;
        link->next[1] = listener->links;
        listener->links = link;
        link->reference_count += 1;
        link->is_up = true;
        pen_hub_post_to(link, 0, PEN_HUB_UP, &link->handshake);
    } else if (link->is_down) {
        hub_drop_handshake(link);
    } else {
        hub_try_again(link, "it is closing");
        if (link->is_down) hub_drop_handshake(link);
    }
    pen_mutex_unlock(&hub->lock);
    if (is_taken) {
        listener->events.up(listener->events.context, who.peer);
    } else {
        listener->events.down(listener->events.context, who.peer,
                              pen_error(PEN_UNAVAILABLE, "the link ended when it was taken"));
    }
}

// One that is not available yet is called again until the deadline; any other refusal is final.
static void hub_deliver_refused(pen_hub_link *link, pen_status status) {
    char failure[256];
    snprintf(failure, sizeof failure, "it refuses: %s", pen_status_message(status));
    pen_mutex_lock(&link->hub->lock);
    if (link->is_down) {
        hub_drop_handshake(link);
    } else if (pen_status_get_code(status) == PEN_UNAVAILABLE) {
        hub_try_again(link, failure);
        if (link->is_down) hub_drop_handshake(link);
    } else {
        pen_status reasons[2] = {pen_error(pen_status_get_code(status),
                                           "no link to peer %" PRIu32 " at %s: %s", link->peers[0],
                                           link->address, failure),
                                 PEN_OK};
        pen_hub_take_down(link, reasons);
        hub_drop_handshake(link);
    }
    pen_mutex_unlock(&link->hub->lock);
    pen_status_ignore(status, "told in other words");
}

// ---- what is sent

static void hub_deliver_message(pen_hub_item *item) {
    pen_hub_end *end = item->target;
    pen_hub_link *link = item->link;
    pen_hub *hub = end->hub;
    if (!link->is_told[item->side]) {
        end->events.message(end->events.context, link->peers[item->side],
                            item->bytes != NULL ? item->bytes : item->room, item->count);
    }
    pen_mutex_lock(&hub->lock);
    pen_hub_item_give(hub, item);
    pen_hub_link_unref(link);
    pen_mutex_unlock(&hub->lock);
}

// A frame that the target does not want: both ends hear why.
static void hub_refuse_frame(pen_hub_link *link, uint32_t side, pen_status status) {
    pen_status reasons[2];
    reasons[1 - side] =
        pen_error(pen_status_get_code(status), "peer %" PRIu32 " closed the link: %s",
                  link->peers[1 - side], pen_status_message(status));
    reasons[side] = status;
    pen_mutex_lock(&link->hub->lock);
    pen_hub_take_down(link, reasons);
    pen_mutex_unlock(&link->hub->lock);
}

// The receiver says where the bytes go; after they were copied the sender gets its memory back,
// also when they were not taken.
static void hub_deliver_frame(pen_hub_item *item) {
    pen_hub_end *end = item->target;
    pen_hub_link *link = item->link;
    const uint32_t side = item->side;
    const pen_frame *frame = &item->frame;
    pen_memory_place place = pen_memory_place_at(NULL);
    void *memory = NULL;
    pen_mutex_lock(&end->hub->lock);
    bool is_taken = !link->is_down;
    pen_mutex_unlock(&end->hub->lock);
    if (is_taken) {
        pen_status status =
            end->events.begin(end->events.context, link->peers[side], frame, &place);
        if (status == PEN_OK) status = pen_memory_place_reach(place, &memory);
        is_taken = status == PEN_OK;
        if (!is_taken) hub_refuse_frame(link, side, status);
    }
    if (is_taken) {
        if (frame->bytes > 0) memcpy(memory, item->payload, frame->bytes);
        end->events.end(end->events.context, link->peers[side], frame, item->checksums, false);
    }
    pen_mutex_lock(&end->hub->lock);
    if (is_taken) {
        end->counters.frames_received += 1;
        end->counters.bytes_received += frame->bytes;
        end->counters.bytes_copied += frame->bytes;
    }
    pen_hub_post_to(link, 1 - side, PEN_HUB_LET_GO, item);
    pen_mutex_unlock(&end->hub->lock);
}

static void hub_deliver_let_go(pen_hub_item *item) {
    pen_hub_end *end = item->target;
    pen_hub_link *link = item->link;
    pen_hub *hub = end->hub;
    end->events.let_go(end->events.context, link->peers[item->side], item->token);
    pen_mutex_lock(&hub->lock);
    PEN_ASSERT(end->lent_count > 0);
    end->lent_count -= 1;
    pen_hub_item_give(hub, item);
    pen_hub_link_unref(link);
    pen_mutex_unlock(&hub->lock);
}

static void hub_deliver_down(pen_hub_item *item) {
    pen_hub_end *end = item->target;
    pen_hub_link *link = item->link;
    pen_hub *hub = end->hub;
    const uint32_t peer = link->peers[item->side];
    pen_status status = item->status;
    item->status = PEN_OK;
    pen_mutex_lock(&hub->lock);
    const bool is_told = link->is_told[item->side];
    link->is_told[item->side] = true;
    if (!is_told) pen_hub_forget(link, item->side); // so that `down` may connect again
    item->link = NULL;
    pen_hub_link_unref(link);
    pen_mutex_unlock(&hub->lock);
    if (!is_told) end->events.down(end->events.context, peer, status);
}

// The one place that calls back, for real and for simulated time.
void pen_hub_deliver(pen_hub_item *item) {
    pen_hub_end *end = item->target;
    pen_hub_link *link = item->link;
    const pen_status status = item->status;
    switch (item->kind) {
    case PEN_HUB_CONNECT:
        hub_deliver_connect(link);
        break;
    case PEN_HUB_ASK:
        hub_deliver_ask(end, link);
        break;
    case PEN_HUB_REFUSED:
        item->status = PEN_OK;
        hub_deliver_refused(link, status);
        break;
    case PEN_HUB_UP: {
        pen_mutex_lock(&end->hub->lock);
        const uint32_t peer = link->peers[0];
        pen_mutex_unlock(&end->hub->lock);
        end->events.up(end->events.context, peer);
        pen_mutex_lock(&end->hub->lock);
        hub_drop_handshake(link);
        pen_mutex_unlock(&end->hub->lock);
        break;
    }
    case PEN_HUB_DOWN:
        hub_deliver_down(item);
        break;
    case PEN_HUB_MESSAGE:
        hub_deliver_message(item);
        break;
    case PEN_HUB_FRAME:
        hub_deliver_frame(item);
        break;
    case PEN_HUB_LET_GO:
        hub_deliver_let_go(item);
        break;
    case PEN_HUB_TIMER:
        PEN_NEVER("a timer belongs to the simulated network");
    }
}
