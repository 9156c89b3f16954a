#include "scheduler/protocol/frame_feed.h"

pen_status pen_frame_feed_init(pen_frame_feed *feed, const pen_run_table *table, uint32_t form,
                               uint32_t channel, pen_arena *arena) {
    const pen_run_form *of = &table->forms[form];
    PEN_ASSERT(channel < of->channel_count);
    PEN_ASSERT(of->channels[channel].source_device == PEN_CHANNEL_HOST);
    *feed = (pen_frame_feed){.form = form,
                             .channel = channel,
                             .is_idle = pen_run_channel_is_idle(of, channel),
                             .is_for_updates = pen_run_channel_is_for_updates(of, channel)};
    return pen_frame_source_init(&feed->source, of, &of->channels[channel], arena);
}

void pen_frame_feed_reset(pen_frame_feed *feed) {
    pen_frame_source_reset(&feed->source);
    feed->round = 0;
    feed->frame = 0;
}

void pen_frame_feed_begin(pen_frame_feed *feed, uint64_t first) {
    if (feed->round >= first) return;
    feed->round = first;
    feed->frame = 0;
}

// A frame goes when its place at the host is free and that at the target is consumed.
pen_feed_step pen_frame_feed_next(pen_frame_feed *feed, const pen_run_table *table,
                                  const pen_fed_round *round, uint32_t *out_microbatch,
                                  uint64_t *out_sequence) {
    const pen_run_form *form = &table->forms[feed->form];
    const pen_run_channel *channel = &form->channels[feed->channel];
    const bool is_skipped =
        feed->is_idle || round->form != feed->form || (feed->is_for_updates && !round->updates);
    PEN_ASSERT(round->count > 0);
    if (is_skipped || feed->frame == pen_run_frame_count(form, channel, round->count)) {
        feed->round += 1;
        feed->frame = 0;
        return PEN_FEED_SKIPPED;
    }
    const uint64_t sequence = feed->round * pen_run_slots(form, channel) + feed->frame;
    if (!pen_frame_source_can_send(&feed->source, sequence)) return PEN_FEED_WAITS;
    pen_frame_source_make(&feed->source, sequence);
    uint64_t taken;
    const bool is_taken = pen_frame_source_take(&feed->source, &taken);
    PEN_ASSERT(is_taken && taken == sequence);
    *out_microbatch = pen_run_microbatch(form, channel, sequence);
    *out_sequence = sequence;
    feed->frame += 1;
    return PEN_FEED_SENDS;
}
