// A channel from the host: which of its frames goes next, in the rounds that are announced.
//
// The host's end of it is at the coordinator, which sends the frames, or at the target's worker,
// which reads them from files of its own: both ask the same.
//
// Lifetime: in the arena it was made with. Threads: one at a time.
#ifndef PEN_SCHEDULER_PROTOCOL_FRAME_FEED_H
#define PEN_SCHEDULER_PROTOCOL_FRAME_FEED_H

#include "scheduler/protocol/frame_window.h"

typedef struct pen_frame_feed {
    uint32_t form;
    uint32_t channel;
    bool is_idle;            // nobody reads it: no round has any of its frames
    bool is_for_updates;     // rounds without updates have none
    pen_frame_source source; // the places at the host, and at the target
    uint64_t round;          // of the next frame
    uint32_t frame;          // of the next, in the round
} pen_frame_feed;

// What is asked for in a round.
typedef struct pen_fed_round {
    uint32_t form;
    uint32_t count; // microbatches
    bool updates;
} pen_fed_round;

typedef enum pen_feed_step {
    PEN_FEED_WAITS,   // there is no place for it
    PEN_FEED_SKIPPED, // there is none in this round any more: the next round is asked for
    PEN_FEED_SENDS,   // it is made and sent
} pen_feed_step;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_frame_feed_init(pen_frame_feed *feed, const pen_run_table *table,
                                             uint32_t form, uint32_t channel, pen_arena *arena);
void pen_frame_feed_reset(pen_frame_feed *feed);
// Rounds before `first` are over.
void pen_frame_feed_begin(pen_frame_feed *feed, uint64_t first);
// Goes one step further in the feed's round, of which `round` says what it is. PEN_FEED_SENDS: of
// which microbatch and number the frame is.
pen_feed_step pen_frame_feed_next(pen_frame_feed *feed, const pen_run_table *table,
                                  const pen_fed_round *round, uint32_t *out_microbatch,
                                  uint64_t *out_sequence);

#endif // PEN_SCHEDULER_PROTOCOL_FRAME_FEED_H
