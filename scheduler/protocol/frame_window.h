// The two ends of a channel: which places are taken, what may be made, sent, received.
//
// The source knows its own places (taken from when a frame is made until the transport lets go) and
// the target's (taken from when it is sent until a credit says consumed). The target knows its own
// (taken from arrival until consumption). A shared channel has a target alone: the maker puts
// frames there itself.
//
// Lifetime: in the arena it was made with. Threads: one at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_FRAME_WINDOW_H
#define PEN_SCHEDULER_PROTOCOL_FRAME_WINDOW_H

#include "base/arena.h"
#include "scheduler/protocol/run_table.h"

// Entries of the arrays are a frame's sequence + 1, 0: none.
typedef struct pen_frame_source {
    uint32_t slots;
    uint32_t first; // microbatch
    uint32_t copies;
    uint32_t capacity;
    uint32_t outbox_first;
    uint32_t outbox_count;
    uint64_t *made;     // [copies] whose memory is in use
    uint64_t *outbox;   // [copies] made but not sent, a ring
    uint64_t *sent;     // [capacity] last sent into each place of the target
    uint64_t made_end;  // all below are made, or were skipped
    uint64_t sent_end;  // all below are sent, or were skipped
    uint64_t consumed;  // all below are consumed, as the target says
    uint64_t let_count; // frames sent whose memory is still lent
} pen_frame_source;

typedef struct pen_frame_target {
    uint32_t slots;
    uint32_t first; // microbatch
    uint32_t capacity;
    uint64_t *held;        // [capacity] here and not consumed
    uint64_t received_end; // all below are received, or were skipped
    uint64_t consumed;     // all below are consumed, or were skipped
} pen_frame_target;

typedef enum pen_frame_check {
    PEN_FRAME_FITS,
    PEN_FRAME_SEEN,    // received before: to be dropped
    PEN_FRAME_REFUSED, // beyond the credit given, or one before it is missing
} pen_frame_check;

PEN_NODISCARD pen_status pen_frame_source_init(pen_frame_source *source, const pen_run_form *form,
                                               const pen_run_channel *channel, pen_arena *arena);
void pen_frame_source_reset(pen_frame_source *source);
// Whether a frame may be made.
bool pen_frame_source_has_place(const pen_frame_source *source, uint64_t sequence);
// It is made and waits to be sent.
void pen_frame_source_make(pen_frame_source *source, uint64_t sequence);
// Takes the next frame that may be sent. False: none.
bool pen_frame_source_take(pen_frame_source *source, uint64_t *out_sequence);
// Whether a frame that is made now may be sent at once.
bool pen_frame_source_can_send(const pen_frame_source *source, uint64_t sequence);
// All below `sequence` are consumed. False: that was not sent.
bool pen_frame_source_credit(pen_frame_source *source, uint64_t sequence);
// The memory of a sent frame is no longer read. False: it was not lent.
bool pen_frame_source_let_go(pen_frame_source *source, uint64_t sequence);

PEN_NODISCARD pen_status pen_frame_target_init(pen_frame_target *target, const pen_run_form *form,
                                               const pen_run_channel *channel, pen_arena *arena);
void pen_frame_target_reset(pen_frame_target *target);
pen_frame_check pen_frame_target_check(const pen_frame_target *target, uint64_t sequence);
// It is here. It was checked.
void pen_frame_target_put(pen_frame_target *target, uint64_t sequence);
bool pen_frame_target_has(const pen_frame_target *target, uint64_t sequence);
// It is consumed. It was there.
void pen_frame_target_release(pen_frame_target *target, uint64_t sequence);
// Consumes what is left below `sequence`. False: there was nothing.
bool pen_frame_target_release_below(pen_frame_target *target, uint64_t sequence);

#endif // PEN_SCHEDULER_PROTOCOL_FRAME_WINDOW_H
