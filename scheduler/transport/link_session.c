#include "scheduler/transport/link_session.h"

#include <string.h>

#include "base/integer.h"
#include "base/planted.h"
#include "base/status.h"

#define LINK_RESEND_SHIFT_LIMIT 4u

// What is wrong with a piece, for the error that ends the link.
const char *pen_link_verdict_text(pen_link_verdict verdict) {
    switch (verdict) {
    case PEN_LINK_NOTHING:
        return "has no content";
    case PEN_LINK_TAKE:
        return "is the next piece";
    case PEN_LINK_WHOLE:
        return "is whole";
    case PEN_LINK_DUPLICATE:
        return "came before";
    case PEN_LINK_EARLY:
        return "came before what it follows";
    case PEN_LINK_STALE:
        return "belongs to another link";
    case PEN_LINK_BAD_ACK:
        return "acknowledges what was never sent, or takes an acknowledgement back";
    case PEN_LINK_BAD_NUMBER:
        return "has a number that is not its turn";
    case PEN_LINK_BAD_PIECE:
        return "is a piece that its frame does not have";
    }
    PEN_NEVER("a verdict is one of those");
}

// ---- marks

static int link_compare(pen_link_mark a, pen_link_mark b) {
    if (a.number != b.number) return a.number < b.number ? -1 : 1;
    return a.pieces < b.pieces ? -1 : a.pieces > b.pieces;
}

// The mark behind a piece of an item.
static pen_link_mark link_mark_after(uint64_t number, uint32_t piece, uint32_t piece_count) {
    PEN_ASSERT(number >= 1);
    PEN_ASSERT(piece < piece_count);
    if (piece + 1 == piece_count) return (pen_link_mark){.number = number};
    return (pen_link_mark){.number = number - 1, .pieces = piece + 1};
}

static void link_check(const pen_link_session *session) {
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        const pen_link_lane_state *lane = &session->lanes[i];
        PEN_ASSERT(link_compare(lane->acked, lane->sent) <= 0);
        PEN_ASSERT(lane->sent.number <= lane->offered);
        PEN_ASSERT(lane->first == NULL || lane->first->number == lane->acked.number + 1);
        PEN_ASSERT((lane->first == NULL) == (lane->acked.number == lane->offered));
        PEN_ASSERT(lane->cursor == NULL || lane->cursor->number > lane->acked.number);
        PEN_ASSERT(lane->cursor == NULL || lane->cursor_piece < lane->cursor->piece_count);
    }
}

// ---- life

void pen_link_init(pen_link_session *session, const pen_link_session_options *options) {
    PEN_ASSERT(options->windows[PEN_LINK_MESSAGES] != 0);
    PEN_ASSERT(options->windows[PEN_LINK_FRAMES] != 0);
    PEN_ASSERT(options->ack_messages != 0 && options->ack_frames != 0);
    *session = (pen_link_session){.options = *options, .ack_at = PEN_LINK_NEVER};
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        session->lanes[i].end = &session->lanes[i].first;
        session->lanes[i].resend_at = PEN_LINK_NEVER;
    }
    session->released_end = &session->released;
}

static void link_release_first(pen_link_session *session, pen_link_lane_state *lane) {
    pen_link_item *item = lane->first;
    PEN_ASSERT(item != NULL);
    PEN_ASSERT(lane->kept_bytes >= item->bytes);
    lane->first = item->next;
    if (lane->first == NULL) lane->end = &lane->first;
    lane->kept_bytes -= item->bytes;
    item->next = NULL;
    *session->released_end = item;
    session->released_end = &item->next;
}

pen_link_item *pen_link_release(pen_link_session *session) {
    pen_link_item *item = session->released;
    if (item == NULL) return NULL;
    PEN_ASSERT(item->number != 0);
    session->released = item->next;
    if (session->released == NULL) session->released_end = &session->released;
    item->next = NULL;
    return item;
}

void pen_link_drain_lane(pen_link_session *session, pen_link_lane which) {
    PEN_ASSERT(which < PEN_LINK_LANE_COUNT);
    pen_link_lane_state *lane = &session->lanes[which];
    lane->cursor = NULL;
    lane->resend_at = PEN_LINK_NEVER;
    while (lane->first != NULL)
        link_release_first(session, lane);
    lane->acked = lane->sent = (pen_link_mark){.number = lane->offered};
    PEN_ASSERT(lane->kept_bytes == 0);
}

void pen_link_drain(pen_link_session *session) {
    session->is_suspended = true;
    session->ack_at = PEN_LINK_NEVER;
    pen_link_drain_lane(session, PEN_LINK_MESSAGES);
    pen_link_drain_lane(session, PEN_LINK_FRAMES);
}

// ---- sending

// Messages are kept until they are acknowledged, so their bytes are bounded; frames are bounded by
// the protocol's credit.
bool pen_link_offer(pen_link_session *session, pen_link_item *item) {
    PEN_ASSERT(item->lane < PEN_LINK_LANE_COUNT);
    PEN_ASSERT(item->piece_count >= 1);
    PEN_ASSERT(item->lane == PEN_LINK_FRAMES || item->piece_count == 1);
    pen_link_lane_state *lane = &session->lanes[item->lane];
    if (item->lane == PEN_LINK_MESSAGES &&
        item->bytes > session->options.message_bytes_limit - lane->kept_bytes) {
        return false;
    }
    item->number = ++lane->offered;
    item->next = NULL;
    *lane->end = item;
    lane->end = &item->next;
    lane->kept_bytes += item->bytes;
    if (lane->cursor == NULL) {
        lane->cursor = item;
        lane->cursor_piece = 0;
    }
    link_check(session);
    return true;
}

pen_link_ack pen_link_received(const pen_link_session *session) {
    pen_link_ack ack;
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++)
        ack.lanes[i] = session->lanes[i].received;
    return ack;
}

pen_link_ack pen_link_acked(const pen_link_session *session) {
    pen_link_ack ack;
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++)
        ack.lanes[i] = session->lanes[i].acked;
    return ack;
}

static void link_acknowledge(pen_link_session *session, pen_link_head *out_head) {
    out_head->ack = pen_link_received(session);
    session->ack_at = PEN_LINK_NEVER;
    session->unacked_bytes = 0;
    memset(session->unacked_items, 0, sizeof session->unacked_items);
}

static void link_arm(const pen_link_session *session, pen_link_lane_state *lane, uint64_t now) {
    PEN_ASSERT(lane->resend_shift <= LINK_RESEND_SHIFT_LIMIT);
    if (session->options.resend_after == 0) return;
    const bool is_under_way = link_compare(lane->acked, lane->sent) < 0;
    lane->resend_at =
        is_under_way ? now + (session->options.resend_after << lane->resend_shift) : PEN_LINK_NEVER;
}

// Sends the piece at a lane's cursor, if the window has room.
static bool link_send(pen_link_session *session, pen_link_lane which, uint64_t now,
                      pen_link_item **out_item, pen_link_head *out_head) {
    pen_link_lane_state *lane = &session->lanes[which];
    pen_link_item *item = lane->cursor;
    if (item == NULL) return false;
    PEN_ASSERT(item->number > lane->acked.number);
    if (item->number - lane->acked.number > session->options.windows[which]) return false;
    *out_item = item;
    *out_head = (pen_link_head){.id = session->options.id,
                                .has_content = true,
                                .lane = which,
                                .number = item->number,
                                .piece = lane->cursor_piece,
                                .piece_count = item->piece_count,
                                .bytes = item->bytes};
    const pen_link_mark after =
        link_mark_after(item->number, lane->cursor_piece, item->piece_count);
    if (link_compare(after, lane->sent) > 0) {
        lane->sent = after;
    } else {
        session->retransmitted += 1;
    }
    lane->cursor_piece += 1;
    if (lane->cursor_piece == item->piece_count) {
        lane->cursor = item->next;
        lane->cursor_piece = 0;
    }
    link_arm(session, lane, now);
    return true;
}

bool pen_link_next(pen_link_session *session, uint64_t now, pen_link_item **out_item,
                   pen_link_head *out_head) {
    if (session->is_suspended) return false;
    link_check(session);
    if (link_send(session, PEN_LINK_MESSAGES, now, out_item, out_head) ||
        link_send(session, PEN_LINK_FRAMES, now, out_item, out_head)) {
        link_acknowledge(session, out_head);
        return true;
    }
    if (session->ack_at > now) return false;
    PEN_ASSERT(session->ack_at != PEN_LINK_NEVER);
    *out_item = NULL;
    *out_head = (pen_link_head){.id = session->options.id};
    link_acknowledge(session, out_head);
    session->acks_alone += 1;
    return true;
}

// Lets a lane go on from what is acknowledged.
static void link_rewind(pen_link_lane_state *lane) {
    PEN_ASSERT(lane->first == NULL || lane->first->number == lane->acked.number + 1);
    lane->cursor = lane->first;
    lane->cursor_piece = lane->acked.pieces;
    PEN_ASSERT(lane->cursor == NULL || lane->cursor_piece < lane->cursor->piece_count);
}

// ---- being acknowledged

// Whether a mark can be: an item's pieces are fewer than it has.
static bool link_is_possible(const pen_link_lane_state *lane, pen_link_mark mark) {
    if (link_compare(mark, lane->sent) > 0) return false;
    if (mark.pieces == 0) return true;
    if (mark.number < lane->acked.number) return true; // an old one, which says nothing
    const pen_link_item *item = lane->first;
    while (item != NULL && item->number <= mark.number)
        item = item->next;
    return item != NULL && mark.pieces < item->piece_count;
}

static void link_acked(pen_link_session *session, pen_link_lane_state *lane, pen_link_mark mark,
                       uint64_t now) {
    PEN_ASSERT(link_compare(mark, lane->acked) > 0);
    PEN_ASSERT(link_compare(mark, lane->sent) <= 0);
    lane->acked = mark;
    while (lane->first != NULL && lane->first->number <= mark.number) {
        if (lane->cursor == lane->first) { // it was to be sent again
            lane->cursor = lane->first->next;
            lane->cursor_piece = 0;
        }
        link_release_first(session, lane);
    }
    if (lane->cursor != NULL && lane->cursor == lane->first && lane->cursor_piece < mark.pieces) {
        lane->cursor_piece = mark.pieces;
    }
    lane->resend_shift = 0;
    link_arm(session, lane, now);
}

// False: the other end acknowledges what cannot be.
static bool link_take_ack(pen_link_session *session, const pen_link_ack *ack, bool may_be_old,
                          uint64_t now) {
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        const pen_link_lane_state *lane = &session->lanes[i];
        if (!link_is_possible(lane, ack->lanes[i])) return false;
        if (!may_be_old && link_compare(ack->lanes[i], lane->acked) < 0) return false;
    }
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        pen_link_lane_state *lane = &session->lanes[i];
        if (link_compare(ack->lanes[i], lane->acked) > 0) {
            link_acked(session, lane, ack->lanes[i], now);
        }
    }
    link_check(session);
    return true;
}

// ---- receiving

static void link_owe_ack(pen_link_session *session, uint64_t at) {
    PEN_ASSERT(at != PEN_LINK_NEVER);
    session->ack_at = pen_min_u64(session->ack_at, at);
}

// Something new came: when is it acknowledged?
static void link_count(pen_link_session *session, const pen_link_head *head, bool is_whole,
                       uint64_t now) {
    const pen_link_session_options *options = &session->options;
    // over a stream nobody waits for word of parts
    if (!is_whole && options->is_stream) return;
    if (is_whole) {
        session->unacked_items[head->lane] += 1;
        session->unacked_bytes += pen_min_u64(head->bytes, UINT64_MAX - session->unacked_bytes);
    }
    const bool is_due = session->unacked_items[PEN_LINK_MESSAGES] >= options->ack_messages ||
                        session->unacked_items[PEN_LINK_FRAMES] >= options->ack_frames ||
                        session->unacked_bytes >= options->ack_bytes;
    link_owe_ack(session, is_due ? now : now + options->ack_delay);
}

// What comes next is taken, what came before is acknowledged again and dropped, and what comes too
// early is dropped on packets and an error on a stream.
static pen_link_verdict link_take_content(pen_link_session *session, uint64_t now,
                                          const pen_link_head *head) {
    pen_link_lane_state *lane = &session->lanes[head->lane];
    if (head->number == 0) return PEN_LINK_BAD_NUMBER;
    if (head->number > lane->received.number &&
        head->number - lane->received.number > session->options.windows[head->lane]) {
        return PEN_LINK_BAD_NUMBER;
    }
    if (head->piece >= head->piece_count) return PEN_LINK_BAD_PIECE;
    if (head->lane == PEN_LINK_MESSAGES && head->piece_count != 1) return PEN_LINK_BAD_PIECE;
    const pen_link_mark before = {.number = head->number - 1, .pieces = head->piece};
    const int order = link_compare(before, lane->received);
    if (order != 0 && session->options.is_stream) return PEN_LINK_BAD_NUMBER;
    if (order > 0) {
        session->early += 1;
        link_owe_ack(session, now);
        return PEN_LINK_EARLY;
    }
    if (order < 0 && !PEN_PLANTED(no_dedup)) {
        session->duplicates += 1;
        link_owe_ack(session, now); // what we said of it may be lost
        return PEN_LINK_DUPLICATE;
    }
    if (head->piece != 0 && head->piece_count != lane->receiving) return PEN_LINK_BAD_PIECE;
    lane->receiving = head->piece_count;
    pen_link_mark after = link_mark_after(head->number, head->piece, head->piece_count);
    const bool is_whole = after.pieces == 0;
    if (PEN_PLANTED(ack_before_whole)) after = (pen_link_mark){.number = head->number};
    if (order == 0) lane->received = after;
    link_count(session, head, is_whole, now);
    return is_whole ? PEN_LINK_WHOLE : PEN_LINK_TAKE;
}

pen_link_verdict pen_link_arrived(pen_link_session *session, uint64_t now,
                                  const pen_link_head *head) {
    const pen_link_id *id = &session->options.id;
    if (head->id.caller != id->caller || head->id.callee != id->callee) return PEN_LINK_STALE;
    if (!link_take_ack(session, &head->ack, !session->options.is_stream, now)) {
        return PEN_LINK_BAD_ACK;
    }
    if (!head->has_content) return PEN_LINK_NOTHING;
    PEN_ASSERT(head->lane < PEN_LINK_LANE_COUNT);
    return link_take_content(session, now, head);
}

// ---- time

uint64_t pen_link_deadline(const pen_link_session *session) {
    if (session->is_suspended) return PEN_LINK_NEVER;
    uint64_t at = session->ack_at;
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++)
        at = pen_min_u64(at, session->lanes[i].resend_at);
    return at;
}

void pen_link_tick(pen_link_session *session, uint64_t now) {
    if (session->is_suspended) return;
    link_check(session);
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        pen_link_lane_state *lane = &session->lanes[i];
        if (lane->resend_at > now) continue;
        PEN_ASSERT(link_compare(lane->acked, lane->sent) < 0);
        if (lane->resend_shift < LINK_RESEND_SHIFT_LIMIT) lane->resend_shift += 1;
        if (!PEN_PLANTED(no_retransmit)) link_rewind(lane);
        link_arm(session, lane, now);
    }
}

// ---- another stream

void pen_link_suspend(pen_link_session *session) {
    link_check(session);
    session->is_suspended = true;
}

// The other end told in its introduction what it has: sending begins again behind that, and nothing
// is sent twice to the reader.
pen_link_verdict pen_link_resume(pen_link_session *session, uint64_t now,
                                 const pen_link_ack *received) {
    PEN_ASSERT(session->is_suspended);
    if (!link_take_ack(session, received, false, now)) return PEN_LINK_BAD_ACK;
    session->is_suspended = false;
    session->resumes += 1;
    // what has come was told with our introduction
    session->ack_at = PEN_LINK_NEVER;
    session->unacked_bytes = 0;
    memset(session->unacked_items, 0, sizeof session->unacked_items);
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        pen_link_lane_state *lane = &session->lanes[i];
        if (!PEN_PLANTED(resume_from_wrong_ack)) link_rewind(lane);
        lane->resend_shift = 0;
        lane->resend_at = PEN_LINK_NEVER;
        link_arm(session, lane, now);
    }
    link_check(session);
    return PEN_LINK_NOTHING;
}

uint64_t pen_link_kept_bytes(const pen_link_session *session, pen_link_lane lane) {
    PEN_ASSERT(lane < PEN_LINK_LANE_COUNT);
    return session->lanes[lane].kept_bytes;
}
