#include "scheduler/transport/link_hub.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

// ---- items

void pen_hub_queue_add(pen_hub_queue *queue, pen_hub_item *item) {
    item->next = NULL;
    if (queue->last == NULL) {
        queue->first = item;
    } else {
        queue->last->next = item;
    }
    queue->last = item;
}

pen_hub_item *pen_hub_queue_take(pen_hub_queue *queue) {
    pen_hub_item *item = queue->first;
    if (item == NULL) return NULL;
    queue->first = item->next;
    if (queue->first == NULL) queue->last = NULL;
    return item;
}

pen_hub_item *pen_hub_item_take(pen_hub *hub) {
    pen_hub_item *item = hub->spare;
    if (item == NULL) return pen_memory_allocate(1, sizeof *item);
    hub->spare = item->next;
    item->next = NULL;
    return item;
}

void pen_hub_item_give(pen_hub *hub, pen_hub_item *item) {
    pen_memory_free(item->bytes);
    item->bytes = NULL;
    item->link = NULL;
    item->target = NULL;
    item->next = hub->spare;
    hub->spare = item;
}

void pen_hub_deinit(pen_hub *hub) {
    while (hub->spare != NULL) {
        pen_hub_item *item = hub->spare;
        hub->spare = item->next;
        pen_memory_free(item);
    }
}

void pen_hub_post_to(pen_hub_link *link, uint32_t side, pen_hub_item_kind kind,
                     pen_hub_item *item) {
    PEN_ASSERT(link->ends[side] != NULL);
    PEN_ASSERT(item->link == NULL || item->link == link);
    if (item->link == NULL) link->reference_count += 1;
    item->kind = kind;
    item->link = link;
    item->side = side;
    item->target = link->ends[side];
    link->hub->way->post(link->hub, item);
}

// ---- links

void pen_hub_link_unref(pen_hub_link *link) {
    PEN_ASSERT(link->reference_count > 0);
    link->reference_count -= 1;
    if (link->reference_count > 0) return;
    pen_memory_free(link);
}

pen_hub_link *pen_hub_find_link(const pen_hub_end *end, uint32_t peer, uint32_t *out_side) {
    for (pen_hub_link *link = end->links; link != NULL; link = link->next[*out_side]) {
        *out_side = link->ends[0] == end ? 0 : 1;
        if (link->peers[*out_side] == peer) return link;
    }
    return NULL;
}

void pen_hub_forget(pen_hub_link *link, uint32_t side) {
    pen_hub_end *end = link->ends[side];
    for (pen_hub_link **at = &end->links; *at != NULL;) {
        pen_hub_link *here = *at;
        const uint32_t here_side = here->ends[0] == end ? 0 : 1;
        if (here != link) {
            at = &here->next[here_side];
            continue;
        }
        *at = here->next[here_side];
        pen_hub_link_unref(link);
        return;
    }
}

void pen_hub_take_down(pen_hub_link *link, pen_status take_reasons[2]) {
    const bool was_down = link->is_down;
    link->is_down = true;
    for (uint32_t side = 0; side < 2; side++) {
        if (was_down || link->ends[side] == NULL || link->has_ended[side]) {
            pen_status_ignore(take_reasons[side], "nobody hears of it");
            continue;
        }
        link->has_ended[side] = true;
        link->farewells[side].status = take_reasons[side];
        pen_hub_post_to(link, side, PEN_HUB_DOWN, &link->farewells[side]);
    }
}

// The end at `side` wants no more of a link.
static void hub_leave(pen_hub_link *link, uint32_t side) {
    if (link->is_down) return;
    pen_status reasons[2];
    reasons[side] = pen_error(PEN_CANCELLED, "the link was closed");
    reasons[1 - side] =
        link->ends[1 - side] == NULL
            ? PEN_OK
            : pen_error(PEN_UNAVAILABLE, "peer %" PRIu32 " closed the link", link->peers[1 - side]);
    pen_hub_take_down(link, reasons);
}

// ---- the tables' functions

static pen_status hub_copy_job(pen_hub_end *end, const pen_introduction *who) {
    const char *job = who->job != NULL ? who->job : "";
    if (strlen(job) >= sizeof end->job) {
        return pen_error(PEN_INVALID_INPUT, "the job's name has more than %u bytes",
                         PEN_HUB_JOB_BYTES - 1);
    }
    memcpy(end->job, job, strlen(job) + 1);
    end->options.self = *who;
    end->options.self.job = end->job;
    return PEN_OK;
}

// The job's name is copied: an end may outlive what it was made with.
pen_status pen_hub_end_create(pen_hub *hub, const pen_transport_kind *kind,
                              const pen_transport_options *options,
                              const pen_transport_events *events, pen_hub_end **out_end) {
    pen_hub_end *end = pen_memory_allocate(1, sizeof *end);
    if (end == NULL) return pen_error_out_of_memory();
    end->base.kind = kind;
    end->hub = hub;
    end->options = *options;
    end->events = *events;
    const pen_status status = hub_copy_job(end, &options->self);
    if (status != PEN_OK) {
        pen_memory_free(end);
        return status;
    }
    pen_condition_init(&end->changed);
    pen_mutex_lock(&hub->lock);
    end->next = hub->ends;
    hub->ends = end;
    hub->end_count += 1;
    pen_mutex_unlock(&hub->lock);
    *out_end = end;
    return PEN_OK;
}

void pen_hub_end_destroy(pen_hub_end *end) {
    pen_hub *hub = end->hub;
    pen_mutex_lock(&hub->lock);
    PEN_ASSERT(end->links == NULL);
    PEN_ASSERT(end->lent_count == 0);
    pen_hub_end **at = &hub->ends;
    while (*at != end) {
        at = &(*at)->next;
    }
    *at = end->next;
    hub->end_count -= 1;
    pen_mutex_unlock(&hub->lock);
    pen_condition_deinit(&end->changed);
    pen_memory_free(end);
}

pen_status pen_hub_introduce(pen_transport *self, const pen_introduction *who) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_mutex_lock(&end->hub->lock);
    const pen_status status = hub_copy_job(end, who);
    pen_mutex_unlock(&end->hub->lock);
    return status;
}

static pen_hub_end *hub_find_listener(const pen_hub *hub, uint16_t port) {
    for (pen_hub_end *end = hub->ends; end != NULL; end = end->next) {
        if (end->port == port && !end->is_closing) return end;
    }
    return NULL;
}

// Port 0 takes a free one, as sockets do; addresses mean nothing inside a process but their ports.
pen_status pen_hub_listen(pen_transport *self, const char *address, uint16_t *out_port) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_hub *hub = end->hub;
    pen_address where;
    PEN_TRY(pen_address_read(address, &where));
    pen_status status = PEN_OK;
    pen_mutex_lock(&hub->lock);
    if (end->port != 0 || end->is_closing) {
        status = pen_error(PEN_INTERNAL, "a transport listens once, before it closes");
    } else if (where.port != 0 && hub_find_listener(hub, where.port) != NULL) {
        status = pen_error(PEN_IO, "cannot listen at %s: the address is taken", where.text);
    } else {
        uint16_t port = where.port;
        while (port == 0 || (where.port == 0 && hub_find_listener(hub, port) != NULL)) {
            port = ++hub->last_port;
        }
        end->port = port;
        *out_port = port;
    }
    pen_mutex_unlock(&hub->lock);
    return status;
}

static pen_status hub_add_caller(pen_hub_end *end, pen_hub_link *link) {
    uint32_t side = 0;
    if (end->is_closing) return pen_error(PEN_CANCELLED, "the transport is closed");
    if (pen_hub_find_link(end, link->peers[0], &side) != NULL) {
        return pen_error(PEN_INVALID_INPUT, "there is a link to peer %" PRIu32 " already",
                         link->peers[0]);
    }
    link->began_at = end->hub->way->now(end->hub);
    link->give_up_at += link->began_at;
    link->next[0] = end->links;
    end->links = link;
    pen_hub_post_to(link, 0, PEN_HUB_CONNECT, &link->handshake);
    return PEN_OK;
}

// Each side of a link holds a reference: it goes when both have let it go.
pen_status pen_hub_connect(pen_transport *self, uint32_t peer, const char *address,
                           double deadline_seconds) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_address where;
    PEN_TRY(pen_address_read(address, &where));
    if (peer >= PEN_TRANSPORT_PEER_LIMIT) {
        return pen_error(PEN_INTERNAL, "peer %" PRIu32 ": there are %u at most", peer,
                         PEN_TRANSPORT_PEER_LIMIT);
    }
    if (where.port == 0) {
        return pen_error(PEN_INVALID_INPUT, "address '%s': links go to a port above 0", where.text);
    }
    pen_hub_link *link = pen_memory_allocate(1, sizeof *link);
    if (link == NULL) return pen_error_out_of_memory();
    link->hub = end->hub;
    link->ends[0] = end;
    link->peers[0] = peer;
    link->port = where.port;
    link->reference_count = 1;
    link->give_up_at = (uint64_t)(deadline_seconds * 1e9);
    snprintf(link->address, sizeof link->address, "%s", where.text);
    snprintf(link->failure, sizeof link->failure, "no answer");
    pen_mutex_lock(&end->hub->lock);
    const pen_status status = hub_add_caller(end, link);
    if (status != PEN_OK) pen_hub_link_unref(link);
    pen_mutex_unlock(&end->hub->lock);
    return status;
}

// With the lock held. The link to a peer over which can be sent.
static pen_hub_link *hub_find_open_link(const pen_hub_end *end, uint32_t peer, uint32_t *out_side) {
    pen_hub_link *link = pen_hub_find_link(end, peer, out_side);
    return link == NULL || !link->is_up || link->is_down ? NULL : link;
}

static pen_status hub_post_message(pen_hub_end *end, uint32_t peer, const void *bytes,
                                   uint64_t count) {
    uint32_t side = 0;
    pen_hub_link *link = hub_find_open_link(end, peer, &side);
    if (link == NULL) return pen_error(PEN_UNAVAILABLE, "there is no link to peer %" PRIu32, peer);
    pen_hub_item *item = pen_hub_item_take(end->hub);
    if (item == NULL) return pen_error_out_of_memory();
    if (count > PEN_HUB_INLINE_BYTES) {
        item->bytes = pen_memory_allocate(count, 1);
        if (item->bytes == NULL) {
            pen_hub_item_give(end->hub, item);
            return pen_error_out_of_memory();
        }
    }
    if (count > 0) memcpy(item->bytes != NULL ? item->bytes : item->room, bytes, count);
    item->count = count;
    pen_hub_post_to(link, 1 - side, PEN_HUB_MESSAGE, item);
    return PEN_OK;
}

pen_status pen_hub_send_message(pen_transport *self, uint32_t peer, const void *bytes,
                                uint64_t count) {
    pen_hub_end *end = pen_hub_end_of(self);
    if (count > PEN_TRANSPORT_MESSAGE_LIMIT) {
        return pen_error(PEN_INTERNAL,
                         "a message has %" PRIu64 " bytes, at most %" PRIu64 " are allowed", count,
                         PEN_TRANSPORT_MESSAGE_LIMIT);
    }
    pen_mutex_lock(&end->hub->lock);
    const pen_status status = hub_post_message(end, peer, bytes, count);
    pen_mutex_unlock(&end->hub->lock);
    return status;
}

// Lends the payload: it is copied when it is delivered, and let go after that.
pen_status pen_hub_send_frame(pen_transport *self, uint32_t peer, const pen_frame *frame,
                              pen_memory_place payload, const uint32_t *checksums, uint64_t token) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_status status = PEN_OK;
    uint32_t side = 0;
    void *bytes;
    PEN_TRY(pen_memory_place_reach(payload, &bytes));
    pen_mutex_lock(&end->hub->lock);
    pen_hub_link *link = hub_find_open_link(end, peer, &side);
    pen_hub_item *item = link == NULL ? NULL : pen_hub_item_take(end->hub);
    if (link == NULL) {
        status = pen_error(PEN_UNAVAILABLE, "there is no link to peer %" PRIu32, peer);
    } else if (item == NULL) {
        status = pen_error_out_of_memory();
    } else {
        item->frame = *frame;
        item->payload = bytes;
        item->checksums = checksums;
        item->token = token;
        end->lent_count += 1;
        end->counters.frames_sent += 1;
        end->counters.bytes_sent += frame->bytes;
        pen_hub_post_to(link, 1 - side, PEN_HUB_FRAME, item);
    }
    pen_mutex_unlock(&end->hub->lock);
    return status;
}

// Memory goes from thread to thread without a copy on this side: the thread that sends sums up.
pen_status pen_hub_sum_frame(pen_transport *self, uint32_t peer, const pen_frame *frame,
                             pen_memory_place payload, uint32_t *checksums, uint64_t token) {
    const pen_transport_events *events = &pen_hub_end_of(self)->events;
    void *bytes;
    PEN_TRY(pen_memory_place_reach(payload, &bytes));
    pen_checksum_chunks(bytes, frame->bytes, checksums);
    if (events->summed != NULL) events->summed(events->context, peer, token);
    return pen_hub_send_frame(self, peer, frame, payload, checksums, token);
}

void pen_hub_disconnect(pen_transport *self, uint32_t peer) {
    pen_hub_end *end = pen_hub_end_of(self);
    uint32_t side = 0;
    pen_mutex_lock(&end->hub->lock);
    pen_hub_link *link = pen_hub_find_link(end, peer, &side);
    if (link != NULL) hub_leave(link, side);
    pen_mutex_unlock(&end->hub->lock);
}

pen_transport_counters pen_hub_counters(const pen_transport *self) {
    const pen_hub_end *end = (const pen_hub_end *)self;
    pen_mutex_lock(&end->hub->lock);
    const pen_transport_counters counters = end->counters;
    pen_mutex_unlock(&end->hub->lock);
    return counters;
}

void pen_hub_close(pen_transport *self) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_mutex_lock(&end->hub->lock);
    end->is_closing = true;
    end->port = 0;
    pen_hub_link *next;
    for (pen_hub_link *link = end->links; link != NULL; link = next) {
        const uint32_t side = link->ends[0] == end ? 0 : 1;
        next = link->next[side];
        hub_leave(link, side);
    }
    pen_mutex_unlock(&end->hub->lock);
}
