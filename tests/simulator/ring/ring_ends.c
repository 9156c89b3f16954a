// An end of the link: what the thread of its lanes does, and what its user sends and takes.
#include <inttypes.h>

#include "base/checksum.h"
#include "base/integer.h"
#include "tests/simulator/ring/ring_world.h"

#define END_CALL_STEP_LIMIT 1000u // of one turn of a lane
#define END_MARGIN_BYTE 0xa5

uint8_t world_payload[2 * WORLD_FRAME_BYTES];

static world_end *other_of(const world_end *end) {
    return &ring_world.ends[1 - end->index];
}

// ---- bells: both sockets of an end are one here

void world_end_wake(world_end *end) {
    end->is_asleep = false;
}

void world_sound(int socket) {
    world_end *end = other_of(&ring_world.ends[socket]);
    end->bell_count += 1;
    ring_world.result->bell_count += 1;
    world_tell(ring_world.current, EVENT_BELL, end->bell_count, end->is_asleep);
    world_end_wake(end);
}

// ---- the user

static const uint8_t *payload_of(uint32_t index, uint32_t number) {
    return world_payload + (index * 977 + number * 131) % WORLD_FRAME_BYTES;
}

static pen_status user_begin(void *context, uint32_t peer, const pen_frame *frame,
                             pen_memory_place *out_place) {
    world_end *end = context;
    const world_end *sender = other_of(end);
    world_tell(end, EVENT_BEGIN, frame->sequence, frame->bytes);
    if (peer != sender->index) world_wrong("a frame of peer %" PRIu32, peer);
    if (frame->bytes > WORLD_FRAME_BYTES) {
        return pen_error(PEN_INVALID_INPUT, "a frame of %" PRIu64 " bytes", frame->bytes);
    }
    if (!sender->is_liar &&
        (frame->sequence != end->arrived_count || frame->sequence >= sender->lent_count ||
         frame->bytes != sender->loans[frame->sequence].frame.bytes)) {
        world_wrong("end %" PRIu32 " takes frame %" PRIu64 " of %" PRIu64
                    " bytes as frame %" PRIu32,
                    end->index, frame->sequence, frame->bytes, end->arrived_count);
    }
    end->taken_bytes = frame->bytes;
    memset(end->taken, END_MARGIN_BYTE, WORLD_MARGIN);
    memset(end->taken + WORLD_MARGIN + frame->bytes, END_MARGIN_BYTE, WORLD_MARGIN);
    *out_place = pen_memory_place_at(end->taken + WORLD_MARGIN);
    return PEN_OK;
}

static bool has_margins(const world_end *end) {
    for (uint32_t i = 0; i < WORLD_MARGIN; i++) {
        if (end->taken[i] != END_MARGIN_BYTE) return false;
        if (end->taken[WORLD_MARGIN + end->taken_bytes + i] != END_MARGIN_BYTE) return false;
    }
    return true;
}

// The first chunk whose checksum is another one; their count when none is.
static uint32_t find_difference(const uint8_t *bytes, uint64_t count, const uint32_t *checksums) {
    const uint32_t chunk_count = pen_frame_chunk_count(count);
    for (uint32_t i = 0; i < chunk_count; i++) {
        const uint64_t from = i * PEN_TRANSPORT_CHUNK_BYTES;
        const uint64_t part = pen_min_u64(count - from, PEN_TRANSPORT_CHUNK_BYTES);
        if (pen_checksum(bytes + from, part) != checksums[i]) return i;
    }
    return chunk_count;
}

// Of who lies, frames may be anything; but what counts as compared has the checksums that it says.
static void user_end(void *context, uint32_t peer, const pen_frame *frame,
                     const uint32_t *checksums, bool is_compared) {
    world_end *end = context;
    const world_end *sender = other_of(end);
    const uint8_t *bytes = end->taken + WORLD_MARGIN;
    const uint32_t number = end->arrived_count++;
    world_tell(end, EVENT_ARRIVED, frame->sequence, is_compared);
    ring_world.result->frame_count += 1;
    if (peer != sender->index || frame->bytes != end->taken_bytes) {
        world_wrong("another frame ends than has begun");
    }
    if (!has_margins(end)) world_wrong("frame %" PRIu32 " has bytes beside its memory", number);
    const bool has_sums =
        find_difference(bytes, frame->bytes, checksums) == pen_frame_chunk_count(frame->bytes);
    if (is_compared && frame->bytes != 0 && (!pen_ring_sums_up(frame) || !has_sums)) {
        world_wrong("frame %" PRIu32 " of end %" PRIu32 " counts as compared, and differs", number,
                    sender->index);
    }
    if (sender->is_liar) return;
    if (memcmp(bytes, payload_of(sender->index, number), frame->bytes) != 0 || !has_sums) {
        world_wrong("frame %" PRIu32 " of end %" PRIu32 " has other bytes or checksums", number,
                    sender->index);
    }
    if (pen_ring_sums_up(frame) && !is_compared) {
        world_wrong("frame %" PRIu32 " of end %" PRIu32 " counts as damaged", number,
                    sender->index);
    }
}

static uint32_t number_of(const world_end *end, const pen_ring_loan *loan) {
    return (uint32_t)(loan - end->loans);
}

static void lane_summed(void *context, pen_ring_loan *loan) {
    world_end *end = context;
    const uint32_t number = number_of(end, loan);
    const uint32_t chunk_count = pen_frame_chunk_count(loan->frame.bytes);
    end->summed_count += 1;
    if (memcmp(end->made[number], end->right[number], chunk_count * sizeof(uint32_t)) != 0) {
        world_wrong("end %" PRIu32 " made wrong checksums of frame %" PRIu32, end->index, number);
    }
}

static void lane_sent(void *context, pen_ring_loan *loan) {
    world_end *end = context;
    const uint32_t number = number_of(end, loan);
    world_tell(end, EVENT_SENT, number, loan->frame.bytes);
    if (number != end->sent_count || number >= end->lent_count) {
        world_wrong("end %" PRIu32 " has sent frame %" PRIu32 " as frame %" PRIu32, end->index,
                    number, end->sent_count);
    }
    end->sent_count += 1;
}

// What is told of a failure has a name, and who has done nothing wrong is not accused of it.
static void lane_changed(void *context, uint32_t peer) {
    world_end *end = context;
    const pen_ring_lane *lane = &end->lane;
    const bool is_told =
        peer == 1 - end->index && lane->state == PEN_RING_LANE_BROKEN && lane->failure[0] != '\0';
    const bool is_refusal =
        lane->failure_code == PEN_CORRUPT || lane->failure_code == PEN_INVALID_INPUT;
    world_tell(end, EVENT_FAILS, end->sent_count, end->arrived_count);
    if (!is_told || is_refusal == lane->is_gone) {
        world_wrong("end %" PRIu32 " fails without a name: '%s'", end->index, lane->failure);
    }
    if (!is_refusal) return;
    ring_world.result->refusal_count += 1;
    if (ring_world.fault != RING_FAULT_LIES) {
        world_wrong("end %" PRIu32 " refuses what is right: %s", end->index, lane->failure);
    }
}

// Appends to what the lane has to send, as pen_ring_lane_send does, and wakes the thread.
void world_end_lend(world_end *end) {
    const uint32_t number = end->lent_count++;
    pen_ring_loan *loan = &end->loans[number];
    pen_ring_lane *lane = &end->lane;
    world_tell(end, EVENT_LENT, number, loan->frame.bytes);
    loan->next = NULL;
    *lane->loans_end = loan;
    lane->loans_end = &loan->next;
    atomic_store(&lane->has_loans, true);
    end->has_news = true;
    world_end_wake(end);
}

// ---- preparing

static uint64_t draw_bytes(void) {
    const uint64_t piece = PEN_RING_PIECE_BYTES;
    switch (world_draw(5)) {
    case 0:
        return world_draw(3);
    case 1:
        return world_draw(300);
    case 2: // near a whole number of pieces
        return piece * (1 + world_draw(5)) + world_draw(3) - 1;
    case 3:
        return world_draw((uint32_t)piece * 2);
    default:
        return pen_min_u64(world_draw(WORLD_FRAME_BYTES + 1), WORLD_FRAME_BYTES);
    }
}

static void prepare_loan(world_end *end, uint32_t number) {
    pen_ring_loan *loan = &end->loans[number];
    const uint64_t bytes = draw_bytes();
    *loan = (pen_ring_loan){
        .frame = {.kind = PEN_FRAME_TENSOR, .sequence = number, .bytes = bytes},
        .payload = payload_of(end->index, number),
        .checksums = end->right[number],
    };
    for (uint32_t i = 0; i < pen_frame_chunk_count(bytes); i++) {
        const uint64_t from = i * PEN_TRANSPORT_CHUNK_BYTES;
        end->right[number][i] = pen_checksum(loan->payload + from,
                                             pen_min_u64(bytes - from, PEN_TRANSPORT_CHUNK_BYTES));
    }
    if (!pen_ring_sums_up(&loan->frame) || world_draw(2) == 0) return;
    loan->checksums = loan->unmade = end->made[number];
}

void world_end_prepare(world_end *end, uint32_t frame_limit) {
    const uint32_t index = end->index;
    pen_ring_lane *lane = &end->lane;
    end->loan_count = world_draw(4) == 0 ? 0 : 1 + world_draw(WORLD_FRAME_LIMIT);
    for (uint32_t i = 0; i < end->loan_count; i++)
        prepare_loan(end, i);
    if (frame_limit != 0 && end->loan_count > frame_limit) end->loan_count = frame_limit;
    end->user = (pen_transport_events){.context = end, .begin = user_begin, .end = user_end};
    end->lanes.events = (pen_ring_lane_events){.context = end,
                                               .user = &end->user,
                                               .summed = lane_summed,
                                               .sent = lane_sent,
                                               .changed = lane_changed};
    lane->lanes = &end->lanes;
    lane->peer = 1 - index;
    lane->is_opened = true;
    lane->loans_end = &lane->loans;
    lane->state = PEN_RING_LANE_OPEN;
    lane->out = (lane_half){.socket = (int)index, .memory = ring_world.memory[index][index]};
    lane->in = (lane_half){.socket = (int)index, .memory = ring_world.memory[1 - index][index]};
    pen_ring_init(&lane->out.ring, lane->out.memory);
    pen_ring_init(&lane->in.ring, lane->in.memory);
}

// ---- the thread of its lanes

// What an end knows of the other one's counters is always possible.
static void check_counters(const world_end *end) {
    const pen_ring *out = &end->lane.out.ring, *in = &end->lane.in.ring;
    if (end->lane.state == PEN_RING_LANE_BROKEN) return;
    if (out->other > out->own || out->own - out->other > PEN_RING_BYTES) {
        world_wrong("end %" PRIu32 " has written %" PRIu64 " bytes, and %" PRIu64 " are read",
                    end->index, out->own, out->other);
    }
    if (in->own > in->other || in->other - in->own > PEN_RING_BYTES) {
        world_wrong("end %" PRIu32 " has read %" PRIu64 " bytes of %" PRIu64, end->index, in->own,
                    in->other);
    }
}

void world_end_move(world_end *end, bool *out_has_moved) {
    end->steps_of_call = 0;
    *out_has_moved = lane_move(&end->lane);
    if (end->steps_of_call > END_CALL_STEP_LIMIT) {
        world_wrong("a turn of end %" PRIu32 " took %" PRIu32 " steps", end->index,
                    end->steps_of_call);
    }
    check_counters(end);
}

// Hears all bells, and that the other end is gone.
static void end_hear(world_end *end) {
    end->bell_count = 0;
    if (!end->hears_of_death) return;
    end->hears_of_death = false;
    world_tell(end, EVENT_GONE, end->sent_count, end->arrived_count);
    lane_fail(&end->lane, pen_error(PEN_UNAVAILABLE, "the other end is gone"), true);
}

bool world_end_can_go_on(const world_end *end) {
    return !end->is_dead && !end->is_asleep;
}

// As lanes_run does it: moves what there is, looks for more for a while, and sleeps.
void world_end_run(world_end *end) {
    for (;;) {
        bool has_moved;
        world_step(end);
        end_hear(end);
        end->has_news = false;
        world_end_move(end, &has_moved);
        if (has_moved || world_draw(3) == 0) continue;
        const bool sleeps = lane_sleep(&end->lane);
        world_tell(end, EVENT_SLEEPS, end->bell_count, end->has_news);
        if (!sleeps || end->has_news || end->bell_count != 0 || end->hears_of_death) continue;
        end->is_asleep = true;
        world_leave(end);
    }
}
