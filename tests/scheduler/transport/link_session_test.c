// The session of a link, over packets that are lost, doubled, late, out of order and damaged, and
// over streams that break anywhere: both ends get everything once and in order, and nobody keeps
// anything.
#include "scheduler/transport/link_session.h"

#include "base/planted.h"
#include "base/random.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"

#ifdef PEN_PLANTED_MISTAKES
__attribute__((weak)) const char *pen_planted_mistake = "";
#endif

#define ITEM_LIMIT 60u
#define PACKET_LIMIT 512u
#define TIME_LIMIT (uint64_t)4000000000

typedef struct packet {
    uint64_t due;
    pen_link_head head;
    uint64_t content; // what the item holds; of a piece, with the piece's number
} packet;

// One end, and the way from it to the other one.
typedef struct end {
    pen_link_session session;
    pen_link_item items[PEN_LINK_LANE_COUNT][ITEM_LIMIT];
    uint32_t item_count[PEN_LINK_LANE_COUNT]; // that it sends
    uint32_t offered[PEN_LINK_LANE_COUNT];
    uint32_t released[PEN_LINK_LANE_COUNT];
    packet packets[PACKET_LIMIT]; // under way from here
    uint32_t packet_count;
    uint64_t stream_due;                 // of the last packet of the stream
    uint32_t taken[PEN_LINK_LANE_COUNT]; // of the other end's, whole
    uint32_t pieces;                     // of the other end's frame under way
} end;

typedef struct case_settings {
    bool is_stream;
    uint32_t lost, doubled, damaged; // of 100
    uint64_t latency_most;
    uint32_t cut; // of 1000 steps, a stream breaks in so many
    uint64_t resend_after;
} case_settings;

typedef struct run {
    dice dice;
    case_settings settings;
    end ends[2];
    uint64_t now;
    bool is_suspended;
    const char *failure;
} run;

static uint64_t content_of(uint32_t side, pen_link_lane lane, uint64_t number, uint32_t piece) {
    return pen_random_stream("content", (uint64_t)side << 32 | lane, number << 16 | piece);
}

static bool chance(run *r, uint32_t of_hundred) {
    return dice_between(&r->dice, 1, 100) <= (int64_t)of_hundred;
}

static void run_fail(run *r, const char *why) {
    if (r->failure == NULL) r->failure = why;
}

// ---- the way

static void way_add(run *r, end *from, const packet *p) {
    if (from->packet_count == PACKET_LIMIT)
        return; // lost, which is allowed: streams never come here
    from->packets[from->packet_count] = *p;
    packet *added = &from->packets[from->packet_count++];
    added->due = r->now + (uint64_t)dice_between(&r->dice, 1, (int64_t)r->settings.latency_most);
    if (!r->settings.is_stream) return;
    if (added->due <= from->stream_due) added->due = from->stream_due + 1;
    from->stream_due = added->due;
}

static void way_send(run *r, uint32_t side) {
    end *from = &r->ends[side];
    pen_link_item *item;
    packet p = {0};
    while (from->packet_count + 2 < PACKET_LIMIT &&
           pen_link_next(&from->session, r->now, &item, &p.head)) {
        if (item != NULL) {
            p.content = content_of(side, item->lane, item->number, p.head.piece);
            const uint32_t at = (uint32_t)(item - from->items[item->lane]);
            if (at + 1 != item->number) run_fail(r, "another item than that of the number is sent");
        }
        if (r->settings.is_stream) {
            way_add(r, from, &p);
            continue;
        }
        if (chance(r, r->settings.lost) || chance(r, r->settings.damaged)) continue;
        way_add(r, from, &p);
        if (chance(r, r->settings.doubled)) way_add(r, from, &p);
    }
}

// ---- the ends

static void end_take(run *r, uint32_t side, const packet *p, pen_link_verdict verdict) {
    end *to = &r->ends[side];
    const pen_link_head *head = &p->head;
    const uint32_t piece = head->lane == PEN_LINK_FRAMES ? to->pieces : 0;
    const uint64_t wanted = content_of(1 - side, head->lane, to->taken[head->lane] + 1, piece);
    if (p->content != wanted) run_fail(r, "something came twice, or out of order, or is missing");
    if (head->lane == PEN_LINK_FRAMES) to->pieces += 1;
    if (verdict != PEN_LINK_WHOLE) return;
    to->taken[head->lane] += 1;
    if (head->lane == PEN_LINK_FRAMES) to->pieces = 0;
}

static void end_release(run *r, uint32_t side) {
    end *here = &r->ends[side];
    const end *there = &r->ends[1 - side];
    pen_link_item *item;
    while ((item = pen_link_release(&here->session)) != NULL) {
        if (item != &here->items[item->lane][here->released[item->lane]]) {
            run_fail(r, "items are not released in their order");
        }
        here->released[item->lane] += 1;
        if (here->released[item->lane] > there->taken[item->lane]) {
            run_fail(r, "an item is released that the other end does not have");
        }
    }
}

static void end_receive(run *r, uint32_t side) {
    end *from = &r->ends[1 - side];
    end *to = &r->ends[side];
    for (;;) {
        uint32_t best = from->packet_count;
        for (uint32_t i = 0; i < from->packet_count; i++) {
            if (from->packets[i].due > r->now) continue;
            if (best == from->packet_count || from->packets[i].due < from->packets[best].due)
                best = i;
        }
        if (best == from->packet_count) return;
        const packet p = from->packets[best];
        from->packets[best] = from->packets[--from->packet_count];
        const pen_link_verdict verdict = pen_link_arrived(&to->session, r->now, &p.head);
        if (pen_link_is_error(verdict)) {
            run_fail(r, pen_link_verdict_text(verdict));
            return;
        }
        if (verdict == PEN_LINK_TAKE || verdict == PEN_LINK_WHOLE) end_take(r, side, &p, verdict);
        end_release(r, side);
    }
}

static void end_offer(run *r, uint32_t side) {
    end *here = &r->ends[side];
    const pen_link_lane lane = chance(r, 50) ? PEN_LINK_MESSAGES : PEN_LINK_FRAMES;
    if (here->offered[lane] == here->item_count[lane]) return;
    pen_link_item *item = &here->items[lane][here->offered[lane]];
    *item = (pen_link_item){.lane = lane, .piece_count = 1};
    item->bytes = (uint64_t)dice_between(&r->dice, 0, 1000);
    if (lane == PEN_LINK_FRAMES) item->piece_count = (uint32_t)dice_between(&r->dice, 1, 6);
    if (pen_link_offer(&here->session, item)) here->offered[lane] += 1;
}

// ---- a run

static void run_cut(run *r) {
    if (!r->settings.is_stream) return;
    if (!r->is_suspended) {
        if (dice_between(&r->dice, 1, 1000) > (int64_t)r->settings.cut) return;
        for (uint32_t side = 0; side < 2; side++) {
            pen_link_suspend(&r->ends[side].session);
            r->ends[side].packet_count = 0; // what was under way is gone
            r->ends[side].stream_due = 0;
        }
        r->is_suspended = true;
        return;
    }
    if (!chance(r, 20)) return;
    const pen_link_ack received[2] = {pen_link_received(&r->ends[0].session),
                                      pen_link_received(&r->ends[1].session)};
    for (uint32_t side = 0; side < 2; side++) {
        const pen_link_verdict verdict =
            pen_link_resume(&r->ends[side].session, r->now, &received[1 - side]);
        if (pen_link_is_error(verdict)) run_fail(r, pen_link_verdict_text(verdict));
        end_release(r, side);
    }
    r->is_suspended = false;
}

static bool run_is_done(const run *r) {
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t lane = 0; lane < PEN_LINK_LANE_COUNT; lane++) {
            const end *here = &r->ends[side];
            if (here->released[lane] != here->item_count[lane]) return false;
            if (r->ends[1 - side].taken[lane] != here->item_count[lane]) return false;
        }
    }
    return true;
}

// NULL: all is as it should be.
static const char *run_case(uint64_t seed, const case_settings *settings) {
    static run r;
    r = (run){.dice = {.seed = seed}, .settings = *settings};
    const pen_link_session_options options = {
        .id = {.caller = seed + 1, .callee = seed + 2},
        .is_stream = settings->is_stream,
        .ack_delay = (uint64_t)dice_between(&r.dice, 1, 3000),
        .ack_messages = (uint32_t)dice_between(&r.dice, 1, 20),
        .ack_frames = (uint32_t)dice_between(&r.dice, 1, 8),
        .ack_bytes = (uint64_t)dice_between(&r.dice, 1, 8000),
        .resend_after = settings->resend_after,
        .windows = {(uint32_t)dice_between(&r.dice, 1, 30), (uint32_t)dice_between(&r.dice, 1, 9)},
        .message_bytes_limit = (uint64_t)dice_between(&r.dice, 1000, 20000),
    };
    for (uint32_t side = 0; side < 2; side++) {
        pen_link_init(&r.ends[side].session, &options);
        for (uint32_t lane = 0; lane < PEN_LINK_LANE_COUNT; lane++) {
            r.ends[side].item_count[lane] = (uint32_t)dice_between(&r.dice, 0, ITEM_LIMIT);
        }
    }
    while (!run_is_done(&r) && r.failure == NULL) {
        r.now += (uint64_t)dice_between(&r.dice, 1, 400);
        if (r.now > TIME_LIMIT) return "it does not come to an end";
        for (uint32_t side = 0; side < 2; side++) {
            if (chance(&r, 30)) end_offer(&r, side);
            if (pen_link_deadline(&r.ends[side].session) <= r.now) {
                pen_link_tick(&r.ends[side].session, r.now);
            }
            way_send(&r, side);
            end_receive(&r, side);
            if (r.failure != NULL) break;
        }
        run_cut(&r);
    }
    if (r.failure != NULL) return r.failure;
    for (uint32_t side = 0; side < 2; side++) {
        const pen_link_session *session = &r.ends[side].session;
        if (pen_link_kept_bytes(session, PEN_LINK_MESSAGES) != 0) return "bytes are kept";
        if (!settings->is_stream || settings->cut != 0) continue;
        if (session->retransmitted != 0) return "something is sent again for no reason";
    }
    return NULL;
}

static case_settings settings_of(uint64_t seed) {
    dice d = {.seed = seed ^ 0x5e55};
    case_settings settings = {.latency_most = (uint64_t)dice_between(&d, 1, 5000)};
    settings.is_stream = dice_between(&d, 0, 2) == 0;
    if (settings.is_stream) {
        settings.cut = dice_between(&d, 0, 4) == 0 ? 0 : (uint32_t)dice_between(&d, 1, 60);
        return settings;
    }
    settings.lost = (uint32_t)dice_between(&d, 0, 30);
    settings.doubled = (uint32_t)dice_between(&d, 0, 30);
    settings.damaged = (uint32_t)dice_between(&d, 0, 10);
    settings.resend_after = 20000;
    return settings;
}

static void everything_comes_once_and_in_order(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        const case_settings settings = settings_of(seed);
        const char *failure = run_case(seed, &settings);
        CHECK(failure == NULL, "seed %llu: %s", (unsigned long long)seed, failure);
    }
}

static void planted_mistakes_are_found(void **state) {
    (void)state;
#ifdef PEN_PLANTED_MISTAKES
    const char *const names[] = {"no_retransmit", "no_dedup", "ack_before_whole",
                                 "resume_from_wrong_ack"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pen_planted_mistake = names[i];
        uint64_t seed = 0;
        const char *failure = NULL;
        for (; seed < 200 && failure == NULL; seed++) {
            const case_settings settings = settings_of(seed);
            failure = run_case(seed, &settings);
        }
        CHECK(failure != NULL, "%s is not found", names[i]);
        print_message("%s: seed %llu: %s\n", names[i], (unsigned long long)seed - 1, failure);
    }
    pen_planted_mistake = "";
#else
    skip(); // there are none in this build
#endif
}

// ---- small ones

static const pen_link_session_options plain = {
    .id = {.caller = 7, .callee = 9},
    .is_stream = true,
    .ack_delay = 100,
    .ack_messages = 3,
    .ack_frames = 2,
    .ack_bytes = 1000,
    .windows = {4, 4},
    .message_bytes_limit = 100,
};

static pen_link_head head_of(pen_link_lane lane, uint64_t number, uint32_t piece, uint32_t count) {
    return (pen_link_head){.id = plain.id,
                           .has_content = true,
                           .lane = lane,
                           .number = number,
                           .piece = piece,
                           .piece_count = count};
}

static void acknowledgements_ride_or_go_alone_late(void **state) {
    (void)state;
    pen_link_session session;
    pen_link_item message = {.lane = PEN_LINK_MESSAGES, .piece_count = 1, .bytes = 5}, *item;
    pen_link_head out, in = head_of(PEN_LINK_FRAMES, 1, 0, 1);
    pen_link_init(&session, &plain);
    assert_false(pen_link_next(&session, 0, &item, &out));
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_WHOLE);
    assert_false(pen_link_next(&session, 50, &item, &out));
    assert_int_equal(pen_link_deadline(&session), 100);
    assert_true(pen_link_offer(&session, &message));
    assert_true(pen_link_next(&session, 60, &item, &out));
    assert_ptr_equal(item, &message);
    assert_int_equal(out.ack.lanes[PEN_LINK_FRAMES].number, 1);
    assert_int_equal(pen_link_deadline(&session), PEN_LINK_NEVER);
    in = head_of(PEN_LINK_FRAMES, 2, 0, 1);
    assert_int_equal(pen_link_arrived(&session, 100, &in), PEN_LINK_WHOLE);
    assert_true(pen_link_next(&session, 200, &item, &out)); // late
    assert_null(item);
    in = head_of(PEN_LINK_FRAMES, 3, 0, 1);
    assert_int_equal(pen_link_arrived(&session, 300, &in), PEN_LINK_WHOLE);
    assert_false(pen_link_next(&session, 300, &item, &out));
    in = head_of(PEN_LINK_FRAMES, 4, 0, 1);
    assert_int_equal(pen_link_arrived(&session, 300, &in), PEN_LINK_WHOLE);
    assert_true(pen_link_next(&session, 300, &item, &out)); // two frames: at once
    assert_null(item);
    assert_int_equal(out.ack.lanes[PEN_LINK_FRAMES].number, 4);
    pen_link_drain(&session);
    assert_ptr_equal(pen_link_release(&session), &message);
    assert_null(pen_link_release(&session));
}

static void wrong_acknowledgements_are_told(void **state) {
    (void)state;
    pen_link_session session;
    pen_link_item frame = {.lane = PEN_LINK_FRAMES, .piece_count = 3, .bytes = 5}, *item;
    pen_link_head out, in = {.id = plain.id};
    pen_link_init(&session, &plain);
    in.ack.lanes[PEN_LINK_MESSAGES].number = 1; // nothing was sent
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_BAD_ACK);
    assert_true(pen_link_offer(&session, &frame));
    assert_true(pen_link_next(&session, 0, &item, &out));
    in = (pen_link_head){.id = plain.id, .ack.lanes[PEN_LINK_FRAMES] = {.number = 1}};
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_BAD_ACK); // one piece was
    in.ack.lanes[PEN_LINK_FRAMES] = (pen_link_mark){.pieces = 2};
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_BAD_ACK);
    in.ack.lanes[PEN_LINK_FRAMES] = (pen_link_mark){.pieces = 1};
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_NOTHING);
    assert_null(pen_link_release(&session));
    in.ack.lanes[PEN_LINK_FRAMES] = (pen_link_mark){.pieces = 0}; // a stream takes nothing back
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_BAD_ACK);
    pen_link_suspend(&session);
    const pen_link_ack forgot = {0};
    assert_int_equal(pen_link_resume(&session, 0, &forgot), PEN_LINK_BAD_ACK);
    const pen_link_ack has = {.lanes[PEN_LINK_FRAMES] = {.pieces = 1}};
    assert_int_equal(pen_link_resume(&session, 0, &has), PEN_LINK_NOTHING);
    assert_true(pen_link_next(&session, 0, &item, &out));
    assert_int_equal(out.piece, 1); // goes on where it was
    in.id.callee += 1;
    assert_int_equal(pen_link_arrived(&session, 0, &in), PEN_LINK_STALE);
}

static void wrong_numbers_are_told(void **state) {
    (void)state;
    pen_link_session session;
    pen_link_session_options packets = plain;
    packets.is_stream = false;
    const struct {
        pen_link_head head;
        pen_link_verdict of_stream, of_packets;
    } cases[] = {
        {head_of(PEN_LINK_MESSAGES, 0, 0, 1), PEN_LINK_BAD_NUMBER, PEN_LINK_BAD_NUMBER},
        {head_of(PEN_LINK_MESSAGES, 5, 0, 1), PEN_LINK_BAD_NUMBER, PEN_LINK_BAD_NUMBER},
        {head_of(PEN_LINK_MESSAGES, UINT64_MAX, 0, 1), PEN_LINK_BAD_NUMBER, PEN_LINK_BAD_NUMBER},
        {head_of(PEN_LINK_MESSAGES, 2, 0, 1), PEN_LINK_BAD_NUMBER, PEN_LINK_EARLY},
        {head_of(PEN_LINK_MESSAGES, 1, 0, 2), PEN_LINK_BAD_PIECE, PEN_LINK_BAD_PIECE},
        {head_of(PEN_LINK_FRAMES, 1, 2, 2), PEN_LINK_BAD_PIECE, PEN_LINK_BAD_PIECE},
        {head_of(PEN_LINK_FRAMES, 1, 0, 0), PEN_LINK_BAD_PIECE, PEN_LINK_BAD_PIECE},
        {head_of(PEN_LINK_FRAMES, 1, 1, 3), PEN_LINK_BAD_NUMBER, PEN_LINK_EARLY},
        {head_of(PEN_LINK_FRAMES, 1, 0, 3), PEN_LINK_TAKE, PEN_LINK_TAKE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_link_init(&session, &plain);
        assert_int_equal(pen_link_arrived(&session, 0, &cases[i].head), cases[i].of_stream);
        pen_link_init(&session, &packets);
        assert_int_equal(pen_link_arrived(&session, 0, &cases[i].head), cases[i].of_packets);
    }
    // a frame does not change its mind about its pieces
    const pen_link_head changed = head_of(PEN_LINK_FRAMES, 1, 1, 4);
    assert_int_equal(pen_link_arrived(&session, 0, &changed), PEN_LINK_BAD_PIECE);
}

static void what_is_kept_has_a_limit(void **state) {
    (void)state;
    pen_link_session session;
    pen_link_item items[6], *item;
    pen_link_head out;
    pen_link_init(&session, &plain);
    for (size_t i = 0; i < 6; i++) {
        items[i] = (pen_link_item){.lane = PEN_LINK_MESSAGES, .piece_count = 1, .bytes = 20};
        assert_int_equal(pen_link_offer(&session, &items[i]), i < 5);
    }
    assert_int_equal(pen_link_kept_bytes(&session, PEN_LINK_MESSAGES), 100);
    for (size_t i = 0; i < 4; i++) // the window
        assert_true(pen_link_next(&session, 0, &item, &out));
    assert_false(pen_link_next(&session, 0, &item, &out));
    const pen_link_head ack = {.id = plain.id, .ack.lanes[PEN_LINK_MESSAGES] = {.number = 2}};
    assert_int_equal(pen_link_arrived(&session, 0, &ack), PEN_LINK_NOTHING);
    assert_true(pen_link_next(&session, 0, &item, &out));
    assert_int_equal(item->number, 5);
    assert_ptr_equal(pen_link_release(&session), &items[0]);
    assert_ptr_equal(pen_link_release(&session), &items[1]);
    assert_null(pen_link_release(&session));
    pen_link_drain(&session);
    for (size_t i = 2; i < 5; i++)
        assert_ptr_equal(pen_link_release(&session), &items[i]);
}

PEN_TEST_MAIN(cmocka_unit_test(acknowledgements_ride_or_go_alone_late),
              cmocka_unit_test(wrong_acknowledgements_are_told),
              cmocka_unit_test(wrong_numbers_are_told), cmocka_unit_test(what_is_kept_has_a_limit),
              cmocka_unit_test(planted_mistakes_are_found),
              cmocka_unit_test(everything_comes_once_and_in_order))
