// Links between devices and workers of one process: nothing is encoded, a payload is copied once,
// from the memory that was lent into that which `begin` names. Each transport has a thread, which
// delivers what is for it: messages first, then frames.
#include "base/clock.h"
#include "scheduler/transport/link_hub.h"

extern const pen_transport_kind pen_transport_local;

static void local_post(pen_hub *hub, pen_hub_item *item);
static uint64_t local_now(pen_hub *hub);

static const pen_hub_post local_way = {.post = local_post, .now = local_now};

// One for the process: ports are numbers in it.
static pen_hub local_hub = {
    .lock = {PTHREAD_MUTEX_INITIALIZER}, .way = &local_way, .last_port = 1023};

static uint64_t local_now(pen_hub *hub) {
    (void)hub;
    return (uint64_t)(pen_clock_seconds() * 1e9);
}

static void local_post(pen_hub *hub, pen_hub_item *item) {
    (void)hub;
    pen_hub_end *end = item->target;
    if (item->kind == PEN_HUB_FRAME) {
        pen_hub_queue_add(&end->frames, item);
    } else if (item->kind == PEN_HUB_CONNECT) {
        pen_hub_queue_add(&end->timed, item);
    } else {
        pen_hub_queue_add(&end->control, item);
    }
    pen_condition_signal(&end->changed);
}

// The first attempt to connect that is due, or whose link is no longer wanted. Else *out_due is the
// earliest that will be.
static pen_hub_item *local_take_due(pen_hub_end *end, uint64_t *out_due) {
    pen_hub_item *before = NULL;
    const uint64_t now = end->timed.first != NULL ? local_now(end->hub) : 0;
    *out_due = UINT64_MAX;
    for (pen_hub_item *item = end->timed.first; item != NULL; before = item, item = item->next) {
        if (item->due > now && !item->link->is_down) {
            if (item->due < *out_due) *out_due = item->due;
            continue;
        }
        if (before == NULL) {
            end->timed.first = item->next;
        } else {
            before->next = item->next;
        }
        if (end->timed.last == item) end->timed.last = before;
        return item;
    }
    return NULL;
}

static void local_wait(pen_hub_end *end, uint64_t due) {
    if (due == UINT64_MAX) {
        pen_condition_wait(&end->changed, &end->hub->lock);
        return;
    }
    const uint64_t now = local_now(end->hub);
    const double seconds = due > now ? (double)(due - now) * 1e-9 : 0;
    (void)pen_condition_wait_for(&end->changed, &end->hub->lock, seconds);
}

// The next item; NULL: the transport has stopped.
static pen_hub_item *local_take(pen_hub_end *end) {
    pen_hub_item *item = NULL;
    pen_mutex_lock(&end->hub->lock);
    while (item == NULL) {
        uint64_t due;
        item = pen_hub_queue_take(&end->control);
        if (item == NULL) item = local_take_due(end, &due);
        if (item == NULL) item = pen_hub_queue_take(&end->frames);
        if (item != NULL) break;
        if (end->is_stopping && end->lent_count == 0 && end->links == NULL) break;
        local_wait(end, due);
    }
    pen_mutex_unlock(&end->hub->lock);
    return item;
}

static void local_run(void *context) {
    pen_hub_end *end = context;
    pen_hub_item *item;
    while ((item = local_take(end)) != NULL) {
        pen_hub_deliver(item);
    }
}

// Items are kept for the next ones, until the last transport goes.
static void local_release(pen_hub_end *end) {
    pen_hub_end_destroy(end);
    pen_mutex_lock(&local_hub.lock);
    if (local_hub.end_count == 0) pen_hub_deinit(&local_hub);
    pen_mutex_unlock(&local_hub.lock);
}

static pen_status local_create(const pen_transport_options *options,
                               const pen_transport_events *events, pen_transport **out_transport) {
    pen_hub_end *end;
    PEN_TRY(pen_hub_end_create(&local_hub, &pen_transport_local, options, events, &end));
    const pen_status status = pen_thread_create("links", local_run, end, &end->thread);
    if (status != PEN_OK) {
        local_release(end);
        return status;
    }
    *out_transport = &end->base;
    return PEN_OK;
}

static void local_stop(pen_transport *self) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_hub_close(self);
    pen_mutex_lock(&end->hub->lock);
    end->is_stopping = true;
    pen_condition_signal(&end->changed);
    pen_mutex_unlock(&end->hub->lock);
    pen_thread_join(end->thread);
    end->thread = NULL;
}

static void local_destroy(pen_transport *self) {
    if (self == NULL) return;
    local_stop(self);
    local_release(pen_hub_end_of(self));
}

const pen_transport_kind pen_transport_local = {
    .name = "local",
    .summary = "within this process",
    .create = local_create,
    .introduce = pen_hub_introduce,
    .listen = pen_hub_listen,
    .connect = pen_hub_connect,
    .send_message = pen_hub_send_message,
    .send_frame = pen_hub_send_frame,
    .sum_frame = pen_hub_sum_frame,
    .disconnect = pen_hub_disconnect,
    .counters = pen_hub_counters,
    .close = pen_hub_close,
    .stop = local_stop,
    .destroy = local_destroy,
};
