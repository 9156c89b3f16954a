#include "scheduler/train/train_order.h"

#include <inttypes.h>

#include "scheduler/runner/feed.h"

// Says of a mistake in the job which key it is of, and what goes with it.
static pen_status order_refuse(const pen_train_order_options *options, bool is_free) {
    const pen_job *job = options->job;
    if (is_free) {
        return pen_job_blame(job, &job->train.consistency.async.order,
                             pen_error(PEN_INVALID_INPUT,
                                       "order: found free, but no folder for checkpoints, in which "
                                       "the order is recorded; expected `checkpoint: {dir: …}`, "
                                       "--checkpoint DIR, or a record to --replay"));
    }
    const bool is_sync = job->train.consistency.kind == PEN_JOB_SYNC;
    return pen_job_blame(
        job, &job->train.consistency,
        pen_error(PEN_INVALID_INPUT,
                  "--replay: found a training with %s, expected consistency: {async: {order: "
                  "free}}, whose order is recorded",
                  is_sync ? "consistency: sync, which has no order"
                          : "order: seed, which draws the same order each time"));
}

// A record is of use when it has all steps to come.
static pen_status order_replay(pen_train_order *order, const pen_train_order_options *options) {
    if (options->replay == NULL) return PEN_OK;
    PEN_TRY(pen_order_book_read(order->book, options->replay, UINT64_MAX));
    const uint64_t count = pen_order_book_count(order->book);
    if (count >= options->step_count) return PEN_OK;
    return pen_status_at_position(pen_error(PEN_CORRUPT,
                                            "the record is too short: it has the order of %" PRIu64
                                            " steps, the training has %" PRIu64 "; --steps %" PRIu64
                                            " would do",
                                            count, options->step_count, count),
                                  options->replay, 1, 1);
}

// What is replayed is read before anything is started, and must last to the end of the training.
pen_status pen_train_order_begin(const pen_train_order_options *options, pen_arena *arena,
                                 pen_train_order *out_order) {
    const pen_job_train *train = &options->job->train;
    const bool is_free = pen_job_get_asynchrony(options->job).is_free;
    const pen_checkpoint_subject subject = {.job = options->job,
                                            .example_count = options->example_count};
    char *of;
    *out_order = (pen_train_order){0};
    if (!is_free) return options->replay == NULL ? PEN_OK : order_refuse(options, false);
    if (!options->is_kept && options->replay == NULL && options->book == NULL) {
        return order_refuse(options, true);
    }
    out_order->lanes = (pen_lanes){(uint32_t)train->lanes, (uint32_t)train->microbatches};
    out_order->microbatch_size = (uint64_t)(train->batch / train->microbatches);
    out_order->book = options->book;
    if (options->book != NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, PEN_ORDER_OF_BYTES, &of));
    PEN_TRY(pen_order_describe(&subject, of));
    PEN_TRY(pen_order_book_create(NULL, of, &out_order->book));
    out_order->is_own = true;
    return order_replay(out_order, options);
}

void pen_train_order_end(pen_train_order *order) {
    if (order->is_own) pen_order_book_destroy(order->book);
}

pen_status pen_train_order_go_on(pen_train_order *order, const pen_train_order_folders *from,
                                 uint64_t steps_done, const pen_train_order_folders *to,
                                 const pen_train_keeper *keeper) {
    pen_order_book *book = order->book;
    if (book == NULL) return PEN_OK;
    if (from->folder != NULL) {
        PEN_TRY(pen_order_book_read_either(book, from->folder, from->mirror, steps_done));
    }
    if (keeper == NULL) return PEN_OK;
    return pen_order_book_keep_both(book, to->folder, to->mirror,
                                    pen_train_keeper_generation(keeper));
}

pen_arrivals_order pen_train_order_find(const pen_train_order *order, uint64_t step) {
    if (order->book == NULL) return 0;
    const pen_step_order *known = pen_order_book_find(order->book, step);
    return known == NULL ? 0 : known->lanes;
}

pen_status pen_train_order_note(pen_train_order *order, uint64_t step, uint64_t examples,
                                pen_arrivals_order lanes) {
    if (order->book == NULL) return PEN_OK;
    const pen_feed_split split = pen_feed_cut(examples, order->microbatch_size);
    const uint64_t microbatches = split.whole_count + (split.rest > 0);
    const pen_step_order done = {.lanes = lanes,
                                 .count = pen_lane_count(&order->lanes, microbatches)};
    if (!pen_arrivals_order_is_whole(done.lanes, done.count)) {
        return pen_error(PEN_INTERNAL, "step %" PRIu64 " has no order of its %u lanes", step,
                         done.count);
    }
    return pen_order_book_add(order->book, step, &done);
}

pen_status pen_train_order_sync(pen_train_order *order) {
    return order->book == NULL ? PEN_OK : pen_order_book_sync(order->book);
}
