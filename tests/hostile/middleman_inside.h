// Within this folder: what a middleman is, and what its files give each other.
#ifndef PEN_TESTS_HOSTILE_MIDDLEMAN_INSIDE_H
#define PEN_TESTS_HOSTILE_MIDDLEMAN_INSIDE_H

#include "base/thread.h"
#include "tests/hostile/middleman.h"
#include "tests/support/chance.h"

// A frame on its way through the inner transport, whose token is its address.
typedef struct middleman_loan {
    struct middleman *middleman;
    bool is_lent; // by who sends, who hears when it is let go
    uint64_t token;
    uint8_t *copy;       // of the payload, else it is the sender's; free
    uint32_t *checksums; // likewise
} middleman_loan;

// What waits to be sent.
typedef struct middleman_held {
    struct middleman_held *next;
    double due;
    uint32_t peer;
    bool is_queued; // what follows on its lane waits for it
    uint8_t *bytes; // a message, [count]
    uint64_t count;
    middleman_loan *loan; // a frame
    pen_frame frame;
    pen_memory_place payload;
    const uint32_t *checksums;
} middleman_held;

// What is queued on the two lanes to a peer.
typedef struct middleman_lanes {
    uint32_t queued[2]; // messages, frames
    double free_at[2];
} middleman_lanes;

#define MIDDLEMAN_PEERS 8u // that lanes are kept of
#define MIDDLEMAN_KEPT 16u // messages that may be sent once more

typedef struct middleman {
    pen_transport base;
    pen_transport *inner;
    pen_transport_events events; // of who created it
    pen_thread *thread;          // sends what was held
    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    chance chance;
    middleman_held *held; // by time
    middleman_lanes lanes[MIDDLEMAN_PEERS];
    bool is_stopping;
    uint8_t *kept[MIDDLEMAN_KEPT];
    uint64_t kept_counts[MIDDLEMAN_KEPT];
} middleman;

// ---- middleman.c

extern middleman_plan middleman_the_plan;

// Whether to do something to this kind of message now, and what. `c` is the caller's alone.
bool middleman_decides(chance *c, uint32_t kind, middleman_deed *out_deed);
// For middleman_tell.
void middleman_note(middleman_deed deed, uint32_t kind, uint32_t peer, const char *detail);
void middleman_let_go(middleman_loan *loan); // frees it, and tells who lent

// ---- middleman_held.c

// Keeps it until it is due; takes what it points to. The caller holds the lock.
void middleman_hold(middleman *m, const middleman_held *item);
void middleman_run(void *context); // the thread: sends what is due, all at the end
void middleman_send_frame(middleman *m, uint32_t peer, const pen_frame *frame,
                          pen_memory_place payload, const uint32_t *checksums,
                          middleman_loan *loan);

// ---- middleman_change.c

// Changes a message: out_bytes [limit]. Returns its length.
uint64_t middleman_change_message(chance *c, const void *bytes, uint64_t count, uint8_t *out_bytes,
                                  uint64_t limit);
// The same of an envelope of links over gRPC.
uint64_t middleman_change_envelope(chance *c, const void *bytes, uint64_t count, uint8_t *out_bytes,
                                   uint64_t limit);
// Changes the head, and with it the length.
void middleman_change_frame(chance *c, pen_frame *frame);
void middleman_change_payload(chance *c, uint8_t *bytes, uint64_t count);
void middleman_change_introduction(chance *c, pen_introduction *who);

#endif // PEN_TESTS_HOSTILE_MIDDLEMAN_INSIDE_H
