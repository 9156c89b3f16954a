// One end of a link that outlives the streams, or the packets, that carry it: everything that is
// sent arrives once and in order, as long as something gets through.
//
// Pure: no input or output, no threads, no clock (`now` comes with each call, in nanoseconds of any
// one clock), no memory of its own. The gRPC transport runs it over streams that break; the
// simulated network over packets that are lost, doubled, late, out of order.
//
// What is sent goes in two lanes, which overtake each other: messages, and frames, which are cut in
// pieces. Messages and frames are numbered from 1. An item (a message or frame) is lent to the
// session from `offer` until `release` gives it back: once the other end has acknowledged it.
// Acknowledgements are cumulative, ride on everything that is sent, and go alone when nothing else
// does for `ack_delay`, or when much has come since the last one.
//
// How to drive it:
//   send      pen_link_offer puts an item into its lane. Then, as long as the stream takes more,
//             pen_link_next says what goes out: a message, a piece of a frame, or an
//             acknowledgement alone, with a head that the other end must get.
//   receive   pen_link_arrived judges a head. TAKE: the content is the next thing, use it. WHOLE:
//             likewise, and its frame is whole. DUPLICATE, EARLY, STALE: drop the content. Then
//             pen_link_next (there may be something to say) and pen_link_release until it is NULL.
//   time      at pen_link_deadline call pen_link_tick, then pen_link_next.
//   a stream  that breaks: pen_link_suspend. Both ends tell pen_link_received to each other on the
//             next one, and call pen_link_resume with what they are told: exactly what is missing
//             is sent again. A frame that has come in part is gone on with: its receiver keeps the
//             part, and its memory.
//   packets   need no suspend: what is not acknowledged for `resend_after` is sent again (then for
//             twice that, up to 16 times, until something gets through).
//   the end   pen_link_drain gives back all items.
//
// Who judges that two streams belong to one link: both ends draw a number when the link is made
// (pen_link_id); another process, or another link of the same process, has another one.
//
// Errors of the other end, from PEN_LINK_BAD_ACK on, end the link; the session must not be used any
// further then, but for pen_link_drain.
#ifndef PEN_SCHEDULER_TRANSPORT_LINK_SESSION_H
#define PEN_SCHEDULER_TRANSPORT_LINK_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_LINK_NEVER UINT64_MAX

typedef enum pen_link_lane {
    PEN_LINK_MESSAGES,
    PEN_LINK_FRAMES,
    PEN_LINK_LANE_COUNT,
} pen_link_lane;

typedef struct pen_link_id { // what each end drew for this link; never 0
    uint64_t caller;
    uint64_t callee;
} pen_link_id;

// How far a lane is: all items up to `number` whole, and `pieces` of the next.
typedef struct pen_link_mark {
    uint64_t number;
    uint32_t pieces;
} pen_link_mark;

typedef struct pen_link_ack {
    pen_link_mark lanes[PEN_LINK_LANE_COUNT];
} pen_link_ack;

// A message or frame that is kept. The first three are the user's to set.
typedef struct pen_link_item {
    pen_link_lane lane;
    uint64_t bytes;
    uint32_t piece_count; // at least 1; of messages 1
    uint64_t number;      // set by offer
    struct pen_link_item *next;
} pen_link_item;

// What goes with each thing that is sent. Over packets the whole of it must be covered by their
// checksum.
typedef struct pen_link_head {
    pen_link_id id;
    pen_link_ack ack;
    bool has_content; // else it acknowledges alone, and the rest means nothing
    pen_link_lane lane;
    uint64_t number;
    uint32_t piece;
    uint32_t piece_count;
    uint64_t bytes; // of the item
} pen_link_head;

typedef enum pen_link_verdict {
    PEN_LINK_NOTHING,    // it had no content
    PEN_LINK_TAKE,       // a piece of a frame, not the last
    PEN_LINK_WHOLE,      // a message, or the last piece of a frame
    PEN_LINK_DUPLICATE,  // it came before
    PEN_LINK_EARLY,      // something before it is missing; it will come again
    PEN_LINK_STALE,      // of another link
    PEN_LINK_BAD_ACK,    // acknowledges what was never sent, or takes back
    PEN_LINK_BAD_NUMBER, // a number that cannot be: 0, beyond the window, a gap in a stream
    PEN_LINK_BAD_PIECE,  // its frame does not have such a piece
} pen_link_verdict;

static inline bool pen_link_is_error(pen_link_verdict verdict) {
    return verdict >= PEN_LINK_BAD_ACK;
}
// "acknowledges what was never sent"
const char *pen_link_verdict_text(pen_link_verdict verdict);

typedef struct pen_link_session_options {
    pen_link_id id;
    bool is_stream;        // what is sent keeps its order; a gap is an error
    uint64_t ack_delay;    // nanoseconds
    uint32_t ack_messages; // that many since the last acknowledgement are acknowledged at once
    uint32_t ack_frames;   // likewise
    uint64_t ack_bytes;    // likewise; of whole items
    uint64_t resend_after; // nanoseconds; 0: never but after pen_link_resume
    uint32_t windows[PEN_LINK_LANE_COUNT]; // items under way at most; the same at both ends
    uint64_t message_bytes_limit;          // of messages that are kept
} pen_link_session_options;

// One lane of what is sent, and of what is received.
typedef struct pen_link_lane_state {
    pen_link_item *first, **end; // offered, not acknowledged
    pen_link_item *cursor;       // to be sent next; NULL: all is sent
    uint32_t cursor_piece;
    uint64_t offered;       // number of the last item
    uint64_t kept_bytes;    // of the items
    pen_link_mark sent;     // furthest ever
    pen_link_mark acked;    // by the other end
    pen_link_mark received; // by us
    uint32_t receiving;     // pieces that the frame under way has
    uint64_t resend_at;     // PEN_LINK_NEVER
    uint32_t resend_shift;  // times in vain
} pen_link_lane_state;

typedef struct pen_link_session {
    pen_link_session_options options;
    pen_link_lane_state lanes[PEN_LINK_LANE_COUNT];
    bool is_suspended;
    uint64_t ack_at; // when one is due; PEN_LINK_NEVER: nothing to acknowledge
    uint32_t unacked_items[PEN_LINK_LANE_COUNT]; // received since the last one
    uint64_t unacked_bytes;
    pen_link_item *released, **released_end;
    // counted
    uint64_t resumes;
    uint64_t retransmitted; // messages and pieces that were sent again
    uint64_t duplicates;
    uint64_t early;
    uint64_t acks_alone;
} pen_link_session;

// `session` must not be moved afterwards, as long as it keeps items.
void pen_link_init(pen_link_session *session, const pen_link_session_options *options);

// Takes an item. False: more bytes of messages would be kept than the limit; it is not taken.
bool pen_link_offer(pen_link_session *session, pen_link_item *item);

// What is to be sent now. False: nothing. *out_item is NULL for an acknowledgement alone, else the
// piece out_head->piece of the item, which stays kept.
bool pen_link_next(pen_link_session *session, uint64_t now, pen_link_item **out_item,
                   pen_link_head *out_head);

// Judges what came. Acknowledgements of it count also when its content does not.
pen_link_verdict pen_link_arrived(pen_link_session *session, uint64_t now,
                                  const pen_link_head *head);

// The next item that is no longer kept; NULL: none. The items of a lane come in their order.
pen_link_item *pen_link_release(pen_link_session *session);

// When pen_link_tick wants to be called; PEN_LINK_NEVER.
uint64_t pen_link_deadline(const pen_link_session *session);
void pen_link_tick(pen_link_session *session, uint64_t now);

// What has come, for the introduction on the next stream.
pen_link_ack pen_link_received(const pen_link_session *session);

// What the other end has acknowledged.
pen_link_ack pen_link_acked(const pen_link_session *session);

// Nothing is sent until pen_link_resume. Twice is as once.
void pen_link_suspend(pen_link_session *session);

// Goes on with what the other end has not received. NOTHING, or BAD_ACK.
pen_link_verdict pen_link_resume(pen_link_session *session, uint64_t now,
                                 const pen_link_ack *received);

// The link is down for good: all items are released. Afterwards the session only serves release.
void pen_link_drain(pen_link_session *session);
// The link is about to end: what is kept in one lane is released, the other one goes on. The other
// end must not be heard any more.
void pen_link_drain_lane(pen_link_session *session, pen_link_lane lane);

// Bytes and items that are kept in a lane.
uint64_t pen_link_kept_bytes(const pen_link_session *session, pen_link_lane lane);

#endif // PEN_SCHEDULER_TRANSPORT_LINK_SESSION_H
