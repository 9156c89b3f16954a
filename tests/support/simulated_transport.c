#include "tests/support/simulated_transport.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/random.h"
#include "scheduler/transport/link_hub.h"

struct pen_simulated_network {
    pen_hub hub; // first
    pen_simulated_options options;
    uint64_t now;
    uint64_t drawn; // random numbers
    uint64_t order; // of the next item
    pen_hub_item *heap;
};

// ---- what is under way: a skew heap by time, then order

static bool simulated_is_before(const pen_hub_item *a, const pen_hub_item *b) {
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static pen_hub_item *simulated_merge(pen_hub_item *a, pen_hub_item *b) {
    pen_hub_item *root = NULL;
    pen_hub_item **at = &root;
    while (a != NULL && b != NULL) {
        if (simulated_is_before(b, a)) {
            pen_hub_item *swapped = a;
            a = b;
            b = swapped;
        }
        *at = a;
        pen_hub_item *rest = a->other;
        a->other = a->next;
        at = &a->next;
        a = rest;
    }
    *at = a != NULL ? a : b;
    return root;
}

static void simulated_push(pen_simulated_network *network, pen_hub_item *item) {
    item->next = NULL;
    item->other = NULL;
    network->heap = simulated_merge(network->heap, item);
}

static pen_hub_item *simulated_pop(pen_simulated_network *network) {
    pen_hub_item *item = network->heap;
    if (item == NULL) return NULL;
    network->heap = simulated_merge(item->next, item->other);
    item->next = NULL;
    item->other = NULL;
    return item;
}

// ---- when it is due

static uint64_t simulated_latency(pen_simulated_network *network) {
    const pen_simulated_options *options = &network->options;
    const pen_random_key key = {options->seed, pen_random_stream("simulated network", 0, 0)};
    return options->latency_min +
           pen_random_below(key, network->drawn++, options->latency_max - options->latency_min + 1);
}

// Messages and frames have lanes of their own, and each lane keeps its order, as a stream does;
// frames also wait for the link's rate.
static uint64_t simulated_due(pen_simulated_network *network, pen_hub_item *item) {
    pen_hub_link *link = item->link;
    const uint32_t side = item->side;
    const uint64_t soon = network->now + simulated_latency(network);
    uint64_t *lanes = link->lane_due[side];
    switch (item->kind) {
    case PEN_HUB_CONNECT:
        return pen_max_u64(item->due, network->now);
    case PEN_HUB_ASK:
    case PEN_HUB_REFUSED:
    case PEN_HUB_LET_GO:
        return soon;
    case PEN_HUB_UP:
        lanes[0] = lanes[1] = soon;
        return soon;
    case PEN_HUB_MESSAGE:
    case PEN_HUB_DOWN: // after what was said before
        lanes[0] = pen_max_u64(lanes[0], soon);
        return lanes[0];
    case PEN_HUB_FRAME: {
        const double rate = network->options.bytes_per_second;
        const uint64_t taken = rate > 0 ? (uint64_t)((double)item->frame.bytes / rate * 1e9) : 0;
        link->busy_until[side] = pen_max_u64(link->busy_until[side], network->now) + taken;
        lanes[1] = pen_max_u64(lanes[1], link->busy_until[side] + (soon - network->now));
        return lanes[1];
    }
    case PEN_HUB_TIMER:
        break;
    }
    PEN_NEVER("timers are not posted");
}

static void simulated_post(pen_hub *hub, pen_hub_item *item) {
    pen_simulated_network *network = (pen_simulated_network *)hub;
    item->due = simulated_due(network, item);
    item->order = network->order++;
    simulated_push(network, item);
}

static uint64_t simulated_now(pen_hub *hub) {
    return ((pen_simulated_network *)hub)->now;
}

static const pen_hub_post simulated_way = {.post = simulated_post, .now = simulated_now};

// ---- the network

pen_status pen_simulated_network_create(const pen_simulated_options *options,
                                        pen_simulated_network **out_network) {
    PEN_ASSERT(options->latency_min <= options->latency_max);
    pen_simulated_network *network = pen_memory_allocate(1, sizeof *network);
    if (network == NULL) return pen_error_out_of_memory();
    pen_mutex_init(&network->hub.lock);
    network->hub.way = &simulated_way;
    network->hub.last_port = 1023;
    network->options = *options;
    *out_network = network;
    return PEN_OK;
}

void pen_simulated_network_destroy(pen_simulated_network *network) {
    if (network == NULL) return;
    PEN_ASSERT(network->hub.end_count == 0);
    pen_hub_item *item;
    while ((item = simulated_pop(network)) != NULL) { // timers alone are left
        PEN_ASSERT(item->kind == PEN_HUB_TIMER);
        pen_hub_item_give(&network->hub, item);
    }
    pen_hub_deinit(&network->hub);
    pen_mutex_deinit(&network->hub.lock);
    pen_memory_free(network);
}

bool pen_simulated_network_step(pen_simulated_network *network) {
    pen_hub_item *item = simulated_pop(network);
    if (item == NULL) return false;
    network->now = pen_max_u64(network->now, item->due);
    if (item->kind != PEN_HUB_TIMER) {
        pen_hub_deliver(item);
        return true;
    }
    void (*call)(void *context) = item->call;
    void *context = item->context;
    pen_hub_item_give(&network->hub, item);
    call(context);
    return true;
}

uint64_t pen_simulated_network_now(pen_simulated_network *network) {
    return network->now;
}

pen_status pen_simulated_network_call_in(pen_simulated_network *network, uint64_t delay,
                                         void (*call)(void *context), void *context) {
    pen_hub_item *item = pen_hub_item_take(&network->hub);
    if (item == NULL) return pen_error_out_of_memory();
    item->kind = PEN_HUB_TIMER;
    item->due = network->now + delay;
    item->order = network->order++;
    item->call = call;
    item->context = context;
    simulated_push(network, item);
    return PEN_OK;
}

// ---- the transport

static pen_status simulated_create(const pen_transport_options *options,
                                   const pen_transport_events *events,
                                   pen_transport **out_transport) {
    if (options->network == NULL) {
        return pen_error(PEN_INVALID_INPUT, "a simulated transport needs a network");
    }
    pen_hub_end *end;
    PEN_TRY(pen_hub_end_create(&options->network->hub, &pen_transport_simulated, options, events,
                               &end));
    *out_transport = &end->base;
    return PEN_OK;
}

// Whether stopping an end needs an item delivered: it is for it, or has memory of it.
static bool simulated_concerns(const pen_hub_item *item, const pen_hub_end *end) {
    if (item->kind == PEN_HUB_TIMER) return false;
    return item->target == end ||
           (item->kind == PEN_HUB_FRAME && item->link->ends[1 - item->side] == end);
}

// Delivers at once all that concerns the end; its links are down.
static void simulated_stop(pen_transport *self) {
    pen_hub_end *end = pen_hub_end_of(self);
    pen_simulated_network *network = end->options.network;
    pen_hub_close(self);
    for (bool is_left = true; is_left;) {
        pen_hub_queue concerned = {0}, others = {0};
        pen_hub_item *item;
        while ((item = simulated_pop(network)) != NULL) {
            pen_hub_queue_add(simulated_concerns(item, end) ? &concerned : &others, item);
        }
        while ((item = pen_hub_queue_take(&others)) != NULL) {
            simulated_push(network, item);
        }
        is_left = concerned.first != NULL;
        while ((item = pen_hub_queue_take(&concerned)) != NULL) {
            item->next = NULL;
            pen_hub_deliver(item);
        }
    }
}

static void simulated_destroy(pen_transport *self) {
    if (self == NULL) return;
    simulated_stop(self);
    pen_hub_end_destroy(pen_hub_end_of(self));
}

const pen_transport_kind pen_transport_simulated = {
    .name = "simulated",
    .summary = "within one thread, in virtual time",
    .create = simulated_create,
    .introduce = pen_hub_introduce,
    .listen = pen_hub_listen,
    .connect = pen_hub_connect,
    .send_message = pen_hub_send_message,
    .send_frame = pen_hub_send_frame,
    .sum_frame = pen_hub_sum_frame,
    .disconnect = pen_hub_disconnect,
    .counters = pen_hub_counters,
    .close = pen_hub_close,
    .stop = simulated_stop,
    .destroy = simulated_destroy,
};
