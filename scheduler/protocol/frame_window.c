#include "scheduler/protocol/frame_window.h"

#include <string.h>

#include "base/integer.h"
#include "base/planted.h"

// The place of microbatch `first` + sequence mod slots.
static uint32_t window_place(uint64_t sequence, uint32_t slots, uint32_t first, uint32_t places) {
    PEN_ASSERT(slots > 0);
    PEN_ASSERT(places > 0 && places <= slots);
    return (first + (uint32_t)(sequence % slots)) % places;
}

pen_status pen_frame_source_init(pen_frame_source *source, const pen_run_form *form,
                                 const pen_run_channel *channel, pen_arena *arena) {
    PEN_ASSERT(channel->capacity > 0);
    PEN_ASSERT(channel->copies > 0);
    *source = (pen_frame_source){.slots = pen_run_slots(form, channel),
                                 .first = channel->is_per_step ? 0 : channel->first_microbatch};
    source->copies = (uint32_t)pen_min_u64(channel->copies, source->slots);
    source->capacity = (uint32_t)pen_min_u64(channel->capacity, source->slots);
    PEN_TRY(PEN_NEW(arena, source->copies, &source->made));
    PEN_TRY(PEN_NEW(arena, source->copies, &source->outbox));
    return PEN_NEW(arena, source->capacity, &source->sent);
}

void pen_frame_source_reset(pen_frame_source *source) {
    PEN_ASSERT(source->copies > 0);
    PEN_ASSERT(source->capacity > 0);
    memset(source->made, 0, source->copies * sizeof *source->made);
    memset(source->sent, 0, source->capacity * sizeof *source->sent);
    source->outbox_first = 0;
    source->outbox_count = 0;
    source->made_end = 0;
    source->sent_end = 0;
    source->consumed = 0;
    source->let_count = 0;
}

bool pen_frame_source_has_place(const pen_frame_source *source, uint64_t sequence) {
    PEN_ASSERT(sequence >= source->made_end);
    PEN_ASSERT(source->outbox_count <= source->copies);
    return source->made[window_place(sequence, source->slots, source->first, source->copies)] == 0;
}

void pen_frame_source_make(pen_frame_source *source, uint64_t sequence) {
    PEN_ASSERT(pen_frame_source_has_place(source, sequence));
    PEN_ASSERT(source->outbox_count < source->copies);
    source->made[window_place(sequence, source->slots, source->first, source->copies)] =
        sequence + 1;
    source->made_end = sequence + 1;
    const uint32_t end = (source->outbox_first + source->outbox_count) % source->copies;
    source->outbox[end] = sequence;
    source->outbox_count += 1;
}

bool pen_frame_source_take(pen_frame_source *source, uint64_t *out_sequence) {
    PEN_ASSERT(source->consumed <= source->sent_end);
    PEN_ASSERT(source->sent_end <= source->made_end);
    if (source->outbox_count == 0) return false;
    const uint64_t sequence = source->outbox[source->outbox_first];
    uint64_t *last =
        &source->sent[window_place(sequence, source->slots, source->first, source->capacity)];
    if (*last > source->consumed && !PEN_PLANTED(credit_overrun)) return false;
    *last = sequence + 1;
    source->outbox_first = (source->outbox_first + 1) % source->copies;
    source->outbox_count -= 1;
    source->sent_end = sequence + 1;
    source->let_count += 1;
    *out_sequence = sequence;
    return true;
}

bool pen_frame_source_can_send(const pen_frame_source *source, uint64_t sequence) {
    PEN_ASSERT(source->consumed <= source->sent_end);
    PEN_ASSERT(sequence >= source->sent_end);
    if (source->outbox_count > 0 || !pen_frame_source_has_place(source, sequence)) return false;
    const uint32_t place = window_place(sequence, source->slots, source->first, source->capacity);
    return source->sent[place] <= source->consumed;
}

bool pen_frame_source_credit(pen_frame_source *source, uint64_t sequence) {
    PEN_ASSERT(source->consumed <= source->sent_end);
    PEN_ASSERT(source->sent_end <= source->made_end);
    if (sequence > source->sent_end) return false;
    source->consumed = pen_max_u64(source->consumed, sequence);
    return true;
}

bool pen_frame_source_let_go(pen_frame_source *source, uint64_t sequence) {
    PEN_ASSERT(source->let_count <= source->copies);
    PEN_ASSERT(source->sent_end <= source->made_end);
    uint64_t *made =
        &source->made[window_place(sequence, source->slots, source->first, source->copies)];
    if (*made != sequence + 1 || sequence >= source->sent_end) return false;
    PEN_ASSERT(source->let_count > 0);
    *made = 0;
    source->let_count -= 1;
    return true;
}

pen_status pen_frame_target_init(pen_frame_target *target, const pen_run_form *form,
                                 const pen_run_channel *channel, pen_arena *arena) {
    PEN_ASSERT(channel->capacity > 0);
    PEN_ASSERT(form->microbatch_count > 0);
    *target = (pen_frame_target){.slots = pen_run_slots(form, channel),
                                 .first = channel->is_per_step ? 0 : channel->first_microbatch};
    target->capacity = (uint32_t)pen_min_u64(channel->capacity, target->slots);
    return PEN_NEW(arena, target->capacity, &target->held);
}

void pen_frame_target_reset(pen_frame_target *target) {
    PEN_ASSERT(target->capacity > 0);
    PEN_ASSERT(target->held != NULL);
    memset(target->held, 0, target->capacity * sizeof *target->held);
    target->received_end = 0;
    target->consumed = 0;
}

pen_frame_check pen_frame_target_check(const pen_frame_target *target, uint64_t sequence) {
    PEN_ASSERT(target->consumed <= target->received_end);
    PEN_ASSERT(target->slots > 0);
    if (sequence < target->received_end) return PEN_FRAME_SEEN;
    if (sequence >= PEN_RUN_SEQUENCE_LIMIT) return PEN_FRAME_REFUSED;
    // frames of a round come without a gap; the rest of the one before may have been skipped
    if (sequence != target->received_end && sequence % target->slots != 0) return PEN_FRAME_REFUSED;
    const uint32_t place = window_place(sequence, target->slots, target->first, target->capacity);
    return target->held[place] == 0 ? PEN_FRAME_FITS : PEN_FRAME_REFUSED;
}

void pen_frame_target_put(pen_frame_target *target, uint64_t sequence) {
    uint64_t *held =
        &target->held[window_place(sequence, target->slots, target->first, target->capacity)];
    PEN_ASSERT(*held == 0);
    PEN_ASSERT(sequence >= target->received_end);
    *held = sequence + 1;
    target->received_end = sequence + 1;
}

bool pen_frame_target_has(const pen_frame_target *target, uint64_t sequence) {
    PEN_ASSERT(target->consumed <= target->received_end);
    PEN_ASSERT(sequence >= target->consumed);
    const uint32_t place = window_place(sequence, target->slots, target->first, target->capacity);
    return target->held[place] == sequence + 1;
}

void pen_frame_target_release(pen_frame_target *target, uint64_t sequence) {
    uint64_t *held =
        &target->held[window_place(sequence, target->slots, target->first, target->capacity)];
    PEN_ASSERT(*held == sequence + 1);
    PEN_ASSERT(sequence >= target->consumed);
    *held = 0;
    target->consumed = sequence + 1;
}

bool pen_frame_target_release_below(pen_frame_target *target, uint64_t sequence) {
    PEN_ASSERT(target->consumed <= target->received_end);
    PEN_ASSERT(target->capacity > 0);
    uint64_t last = 0;
    for (uint32_t i = 0; i < target->capacity; i++) {
        if (target->held[i] == 0 || target->held[i] > sequence) continue;
        last = pen_max_u64(last, target->held[i]);
        target->held[i] = 0;
    }
    if (last == 0) return false;
    PEN_ASSERT(last > target->consumed);
    target->consumed = last;
    return true;
}
