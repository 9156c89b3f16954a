// The contract of link_hub.c and link_hub_deliver.c with transports inside one process.
//
// Where transports of one process meet: links, and what is under way on them. For the local
// transport (a thread an end, no delay) and the simulated one (virtual time, no threads), which
// differ only in who delivers what is posted, and when.
//
// What is under way is an item, which belongs to one end, who delivers it: calls back, or posts the
// item that follows. Items of one link, direction and lane (messages, frames) keep their order.
// Items that must not fail to be made (a link's own, and `let go` of a frame) are part of the link,
// or are the frame's, turned round.
//
// Threads: all functions take the hub's lock; no callback runs under it.
#ifndef PEN_SCHEDULER_TRANSPORT_LINK_HUB_H
#define PEN_SCHEDULER_TRANSPORT_LINK_HUB_H

#include "base/thread.h"
#include "scheduler/transport/grpc/address.h"
#include "scheduler/transport/transport.h"

#define PEN_HUB_INLINE_BYTES 256 // of messages that need no memory of their own
#define PEN_HUB_JOB_BYTES 256

typedef enum pen_hub_item_kind {
    PEN_HUB_CONNECT, // to the caller: try to find who listens
    PEN_HUB_ASK,     // to the listener: take the link?
    PEN_HUB_REFUSED, // to the caller, with a status
    PEN_HUB_UP,      // to the caller
    PEN_HUB_DOWN,    // to either, with a status
    PEN_HUB_MESSAGE,
    PEN_HUB_FRAME,
    PEN_HUB_LET_GO,
    PEN_HUB_TIMER, // of the simulated network
} pen_hub_item_kind;

typedef struct pen_hub_item {
    struct pen_hub_item *next;
    struct pen_hub_item *other; // of the simulated network's heap
    pen_hub_item_kind kind;
    uint64_t due;   // nanoseconds
    uint64_t order; // among those that are due at once
    struct pen_hub_end *target;
    struct pen_hub_link *link;
    uint32_t side; // of the link, where the target is
    pen_status status;
    uint64_t count; // bytes of a message
    void *bytes;    // its own memory, NULL: inline
    char room[PEN_HUB_INLINE_BYTES];
    pen_frame frame;
    const void *payload;
    const uint32_t *checksums;
    uint64_t token;
    void (*call)(void *context); // TIMER
    void *context;
} pen_hub_item;

typedef struct pen_hub_link {
    struct pen_hub *hub;
    struct pen_hub_end *ends[2]; // who called, who listens; NULL: not yet, or no longer
    uint32_t peers[2];           // what each end calls the other
    struct pen_hub_link *next[2];
    uint32_t reference_count; // ends that list it, and items
    bool is_up;               // the listener has taken it
    bool is_down;
    bool has_ended[2]; // DOWN was posted
    bool is_told[2];   // `down` was called
    char address[PEN_ADDRESS_TEXT_LIMIT];
    uint16_t port;
    uint64_t began_at;
    uint64_t give_up_at;
    char failure[256];
    uint64_t lane_due[2][2];   // [side of the target][messages, frames]: of the last item
    uint64_t busy_until[2];    // [side of the target] with frames
    pen_hub_item handshake;    // CONNECT, ASK, REFUSED, UP
    pen_hub_item farewells[2]; // DOWN
} pen_hub_link;

typedef struct pen_hub_queue {
    pen_hub_item *first;
    pen_hub_item *last;
} pen_hub_queue;

typedef struct pen_hub_end {
    pen_transport base;
    struct pen_hub *hub;
    struct pen_hub_end *next;
    pen_transport_options options;
    char job[PEN_HUB_JOB_BYTES];
    pen_transport_events events;
    // guarded by the hub's lock
    uint16_t port;
    bool is_closing;
    pen_hub_link *links;
    uint64_t lent_count; // frames sent and not let go
    pen_transport_counters counters;
    // of the local transport
    bool is_stopping;
    pen_hub_queue control, frames, timed;
    pen_condition changed;
    pen_thread *thread;
} pen_hub_end;

// How items get to whom they are for. Called with the lock held.
typedef struct pen_hub_post {
    void (*post)(struct pen_hub *hub, pen_hub_item *item);
    uint64_t (*now)(struct pen_hub *hub); // nanoseconds
} pen_hub_post;

typedef struct pen_hub {
    pen_mutex lock;
    const pen_hub_post *way;
    pen_hub_end *ends;
    uint32_t end_count;
    uint16_t last_port;
    pen_hub_item *spare; // items to be used again
} pen_hub;

// ---- of both transports' tables

PEN_NODISCARD pen_status pen_hub_end_create(pen_hub *hub, const pen_transport_kind *kind,
                                            const pen_transport_options *options,
                                            const pen_transport_events *events,
                                            pen_hub_end **out_end);
void pen_hub_end_destroy(pen_hub_end *end); // stopped
PEN_NODISCARD pen_status pen_hub_introduce(pen_transport *self, const pen_introduction *who);
PEN_NODISCARD pen_status pen_hub_listen(pen_transport *self, const char *address,
                                        uint16_t *out_port);
PEN_NODISCARD pen_status pen_hub_connect(pen_transport *self, uint32_t peer, const char *address,
                                         double deadline_seconds);
PEN_NODISCARD pen_status pen_hub_send_message(pen_transport *self, uint32_t peer, const void *bytes,
                                              uint64_t count);
PEN_NODISCARD pen_status pen_hub_sum_frame(pen_transport *self, uint32_t peer,
                                           const pen_frame *frame, pen_memory_place payload,
                                           uint32_t *checksums, uint64_t token);
PEN_NODISCARD pen_status pen_hub_send_frame(pen_transport *self, uint32_t peer,
                                            const pen_frame *frame, pen_memory_place payload,
                                            const uint32_t *checksums, uint64_t token);
void pen_hub_disconnect(pen_transport *self, uint32_t peer);
pen_transport_counters pen_hub_counters(const pen_transport *self);
void pen_hub_close(pen_transport *self);

// ---- within the hub

static inline pen_hub_end *pen_hub_end_of(pen_transport *transport) {
    return (pen_hub_end *)transport;
}

// All with the lock held.
void pen_hub_queue_add(pen_hub_queue *queue, pen_hub_item *item);
pen_hub_item *pen_hub_queue_take(pen_hub_queue *queue); // NULL: empty
pen_hub_item *pen_hub_item_take(pen_hub *hub);          // a spare or new one; NULL: no memory
void pen_hub_item_give(pen_hub *hub, pen_hub_item *item);
// Posts an item of a link to one of its ends. The item holds the link.
void pen_hub_post_to(pen_hub_link *link, uint32_t side, pen_hub_item_kind kind, pen_hub_item *item);
void pen_hub_link_unref(pen_hub_link *link);
// Takes a link down: both ends will hear of it, why in `take_reasons` (by side; of an end that does
// not hear of it, dropped).
void pen_hub_take_down(pen_hub_link *link, pen_status take_reasons[2]);
void pen_hub_forget(pen_hub_link *link, uint32_t side); // the end no longer lists it
// The newest link of an end to a peer, NULL: none. *out_side is the end's.
pen_hub_link *pen_hub_find_link(const pen_hub_end *end, uint32_t peer, uint32_t *out_side);

// Delivers an item, which was taken from its queue. Without the lock.
void pen_hub_deliver(pen_hub_item *item);

// Frees the spare items.
void pen_hub_deinit(pen_hub *hub);

#endif // PEN_SCHEDULER_TRANSPORT_LINK_HUB_H
