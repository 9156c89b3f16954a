#include "scheduler/data/batches.h"

#include <inttypes.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "scheduler/data/balance.h"
#include "scheduler/data/picture_reader.h"

#define BATCHES_BUFFER_COUNT_DEFAULT 3

typedef struct batches_buffer {
    pen_batch batch;
    void *inputs[PEN_DATASET_INPUT_COUNT_LIMIT];
    void *labels[PEN_DATASET_LABEL_COUNT_LIMIT];
    float *scales[PEN_DATASET_LABEL_COUNT_LIMIT];
    uint64_t target_counts[PEN_DATASET_LABEL_COUNT_LIMIT];
    uint64_t *indices;
} batches_buffer;

struct pen_batches {
    pen_dataset *dataset;
    pen_batches_options options; // immutable
    uint64_t example_count;
    uint64_t per_epoch;
    uint32_t buffer_count;
    batches_buffer buffers[PEN_BATCHES_AHEAD_LIMIT]; // contents: of whom the counts below say

    // the reader's
    uint64_t *order;      // [example_count], of order_epoch; NULL without shuffling
    pen_balance *balance; // NULL: the order has each example once
    uint64_t order_epoch; // UINT64_MAX: none yet
    pen_batches_position position;

    pen_thread *thread;
    pen_mutex lock;
    pen_condition changed;
    uint64_t filled_count; // guarded by lock; buffers filled since the start
    uint64_t freed_count;  // guarded by lock; buffers that the consumer has done with
    uint32_t held_count;   // guarded by lock; the consumer has so many from freed_count on
    bool ended;            // guarded by lock; the reader will fill no more
    bool stopped;          // guarded by lock
    pen_status error;      // guarded by lock; why it ended
};

uint64_t pen_batches_count(uint64_t example_count, uint64_t batch_size, bool drop_last) {
    const uint64_t whole = example_count / batch_size;
    return whole + (!drop_last && example_count % batch_size > 0);
}

void pen_batches_shuffle(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *out_order) {
    const pen_random_key key = {seed, pen_random_stream("shuffle", epoch, 0)};
    for (uint64_t i = 0; i < count; i++) {
        // inside out: order[0 .. i] is a permutation of [0, i]
        const uint64_t other = pen_random_below(key, i, i + 1);
        out_order[i] = out_order[other];
        out_order[other] = i;
    }
}

static pen_batches_position batches_after(const pen_batches *batches,
                                          pen_batches_position position) {
    position.index++;
    if (position.index < batches->per_epoch) return position;
    return (pen_batches_position){.epoch = position.epoch + 1};
}

static pen_status batches_read(const pen_batches *batches, const batches_buffer *buffer,
                               void *const *inputs, void *const *labels) {
    const pen_batch *batch = &buffer->batch;
    if (!batches->options.is_training) {
        return pen_dataset_read(batches->dataset, batch->indices, batch->count, inputs, labels);
    }
    PEN_TRY(pen_dataset_read_epoch(batches->dataset, batch->position.epoch, batch->indices,
                                   batch->count, inputs, labels));
    pen_dataset_mix(batches->dataset, batch->position.epoch, batch->position.index, batch->count,
                    inputs, labels);
    return PEN_OK;
}

static void batches_order(pen_batches *batches, uint64_t epoch) {
    const uint64_t seed = batches->options.seed, count = batches->example_count;
    if (batches->balance != NULL) {
        pen_balance_draw(batches->balance, seed, epoch, count, batches->order);
    } else {
        pen_batches_shuffle(seed, epoch, count, batches->order);
    }
    batches->order_epoch = epoch;
}

static void batches_choose(pen_batches *batches, batches_buffer *buffer) {
    const pen_batches_position position = batches->position;
    const uint64_t first = position.index * batches->options.batch_size;
    const uint64_t count = pen_min_u64(batches->example_count - first, batches->options.batch_size);
    if (batches->order != NULL && batches->order_epoch != position.epoch) {
        batches_order(batches, position.epoch);
    }
    for (uint64_t i = 0; i < count; i++) {
        buffer->indices[i] = batches->order == NULL ? first + i : batches->order[first + i];
    }
    buffer->batch.count = count;
    buffer->batch.position = position;
    buffer->batch.next = batches_after(batches, position);
}

// The divisors of the means over the batch, known before any of it is computed.
static pen_status batches_weigh(pen_batches *batches, batches_buffer *buffer) {
    const pen_dataset_info *info = pen_dataset_get_info(batches->dataset);
    const uint64_t count = buffer->batch.count;
    for (uint32_t t = 0; info->labels != NULL && t < info->target_count; t++) {
        pen_target_sum sum =
            pen_dataset_weigh(batches->dataset, t, buffer->indices, count, buffer->labels);
        pen_dataset_part_sum of = {.example_count = count, .is_whole = batches->options.is_whole};
        buffer->target_counts[t] = sum.count;
        if (of.is_whole) {
            PEN_TRY(pen_dataset_weigh_all(batches->dataset, t, &sum)); // known: nothing is read
            of.example_count = info->example_count;
        }
        of.weight = sum.weight;
        PEN_TRY(
            pen_dataset_scale(batches->dataset, buffer->indices, count, &of, buffer->scales[t]));
    }
    return PEN_OK;
}

// Waits for a free buffer; NULL when stopped.
static batches_buffer *batches_wait_for_room(pen_batches *batches) {
    pen_mutex_lock(&batches->lock);
    while (!batches->stopped &&
           batches->filled_count - batches->freed_count == batches->buffer_count) {
        pen_condition_wait(&batches->changed, &batches->lock);
    }
    batches_buffer *buffer = NULL;
    if (!batches->stopped)
        buffer = &batches->buffers[batches->filled_count % batches->buffer_count];
    pen_mutex_unlock(&batches->lock);
    return buffer;
}

static void batches_publish(pen_batches *batches, pen_status error, bool filled, bool ended) {
    pen_mutex_lock(&batches->lock);
    if (filled) batches->filled_count++;
    if (ended) batches->ended = true;
    batches->error = error;
    pen_condition_broadcast(&batches->changed);
    pen_mutex_unlock(&batches->lock);
}

// The thread that reads. It waits for a free buffer, and ends with the data, with an error, or when
// it is stopped.
static void batches_read_ahead(void *context) {
    pen_batches *batches = context;
    const uint64_t epoch_count = batches->options.epoch_count;
    bool more = true;
    while (more) {
        if (epoch_count > 0 && batches->position.epoch >= epoch_count) {
            batches_publish(batches, PEN_OK, false, true);
            return;
        }
        batches_buffer *buffer = batches_wait_for_room(batches);
        if (buffer == NULL) return;
        batches_choose(batches, buffer);
        pen_status status =
            batches_read(batches, buffer, batches->options.labels_only ? NULL : buffer->inputs,
                         buffer->batch.labels);
        if (status == PEN_OK) status = batches_weigh(batches, buffer);
        more = status == PEN_OK;
        batches_publish(batches, status, more, !more);
        batches->position = buffer->batch.next;
    }
}

// Gives back the oldest batch that the caller holds when it may hold no more, then waits for one.
// An error of the reading comes after the batches that were read before it. Reading hurries from
// when a batch was waited for until one was not: batches that were late once would be again, if
// what decodes them had to begin as one that leaves the cores to others.
pen_status pen_batches_next(pen_batches *batches, const pen_batch **out_batch) {
    pen_status status = PEN_OK;
    bool hurries = false;
    *out_batch = NULL;
    pen_mutex_lock(&batches->lock);
    if (batches->held_count == batches->options.held_count) {
        batches->held_count--;
        batches->freed_count++;
        pen_condition_broadcast(&batches->changed);
    }
    while (!batches->stopped && !batches->ended &&
           batches->filled_count == batches->freed_count + batches->held_count) {
        if (hurries) {
            pen_condition_wait(&batches->changed, &batches->lock);
            continue;
        }
        hurries = true;
        pen_mutex_unlock(&batches->lock);
        pen_picture_hurry(batches->dataset, true);
        pen_mutex_lock(&batches->lock);
    }
    const uint64_t next = batches->freed_count + batches->held_count;
    if (batches->stopped) {
        status = pen_error(PEN_CANCELLED, "reading of batches was stopped");
    } else if (batches->filled_count > next) {
        batches->held_count++;
        *out_batch = &batches->buffers[next % batches->buffer_count].batch;
    } else if (batches->error != PEN_OK) {
        status = batches->error;
        batches->error = PEN_OK;
        batches->stopped = true;
    }
    pen_mutex_unlock(&batches->lock);
    if (!hurries) pen_picture_hurry(batches->dataset, false);
    return status;
}

void pen_batches_stop(pen_batches *batches) {
    pen_mutex_lock(&batches->lock);
    batches->stopped = true;
    pen_condition_broadcast(&batches->changed);
    pen_mutex_unlock(&batches->lock);
}

// Somebody waits for the batch that is being read, and for all that is read after.
static void batches_end(pen_batches *batches) {
    pen_batches_stop(batches);
    pen_picture_hurry(batches->dataset, true);
    pen_thread_join(batches->thread);
    batches->thread = NULL;
}

static pen_status batches_allocate_inputs(const pen_batches *batches, batches_buffer *buffer) {
    const pen_dataset_info *info = pen_dataset_get_info(batches->dataset);
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (buffer->inputs[i] != NULL) continue;
        buffer->inputs[i] = pen_memory_allocate(batches->options.batch_size, info->inputs[i].bytes);
        if (buffer->inputs[i] == NULL) return pen_error_out_of_memory();
    }
    return PEN_OK;
}

pen_status pen_batches_complete(pen_batches *batches, const pen_batch *batch) {
    if (!batches->options.labels_only) return PEN_OK;
    batches_end(batches);
    for (uint32_t i = 0; i < batches->buffer_count; i++) {
        batches_buffer *buffer = &batches->buffers[i];
        if (batch != &buffer->batch) continue;
        PEN_TRY(batches_allocate_inputs(batches, buffer));
        return batches_read(batches, buffer, buffer->inputs, NULL);
    }
    return PEN_OK;
}

// Inputs, labels and scales of as many examples as a batch may have.
static pen_status batches_allocate_buffer(const pen_batches *batches, batches_buffer *buffer) {
    const pen_dataset_info *info = pen_dataset_get_info(batches->dataset);
    const uint64_t size = batches->options.batch_size;
    buffer->indices = pen_memory_allocate(size, sizeof *buffer->indices);
    if (buffer->indices == NULL) return pen_error_out_of_memory();
    if (!batches->options.labels_only) PEN_TRY(batches_allocate_inputs(batches, buffer));
    buffer->batch.indices = buffer->indices;
    buffer->batch.inputs = buffer->inputs;
    if (info->labels == NULL) return PEN_OK;
    buffer->batch.labels = buffer->labels;
    buffer->batch.scales = (const float *const *)buffer->scales;
    buffer->batch.target_counts = buffer->target_counts;
    for (uint32_t i = 0; i < info->label_count; i++) {
        buffer->labels[i] = pen_memory_allocate(size, info->labels[i].bytes);
        if (buffer->labels[i] == NULL) return pen_error_out_of_memory();
    }
    for (uint32_t i = 0; i < info->target_count; i++) {
        buffer->scales[i] = pen_memory_allocate(size, sizeof(float));
        if (buffer->scales[i] == NULL) return pen_error_out_of_memory();
    }
    return PEN_OK;
}

static pen_status batches_check(const pen_batches *batches) {
    const pen_batches_options *options = &batches->options;
    if (options->batch_size == 0) return pen_error(PEN_INVALID_INPUT, "the batch size is 0");
    if (batches->buffer_count < 2 || batches->buffer_count > PEN_BATCHES_AHEAD_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%" PRIu32 " batch buffers, expected 2 to %d",
                         batches->buffer_count, PEN_BATCHES_AHEAD_LIMIT);
    }
    return PEN_OK;
}

// Before the thread reads.
static pen_status batches_weigh_all(pen_batches *batches) {
    const pen_dataset_info *info = pen_dataset_get_info(batches->dataset);
    pen_target_sum sum;
    if (!batches->options.is_whole || info->labels == NULL) return PEN_OK;
    for (uint32_t t = 0; t < info->target_count; t++) {
        PEN_TRY(pen_dataset_weigh_all(batches->dataset, t, &sum));
    }
    return PEN_OK;
}

// All memory is taken here: reading batches allocates nothing. A start at the end of an epoch is
// the beginning of the next.
static pen_status batches_start(pen_batches *batches) {
    const pen_batches_options *options = &batches->options;
    PEN_TRY(batches_check(batches));
    batches->example_count = pen_dataset_get_info(batches->dataset)->example_count;
    batches->per_epoch =
        pen_batches_count(batches->example_count, options->batch_size, options->drop_last);
    if (options->held_count >= batches->buffer_count) {
        return pen_error(PEN_INVALID_INPUT, "%" PRIu32 " batches held of %" PRIu32,
                         options->held_count, batches->buffer_count);
    }
    if (batches->per_epoch == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%" PRIu64 " examples do not fill one batch of %" PRIu64
                         ", and short batches are dropped",
                         batches->example_count, options->batch_size);
    }
    if (options->start.index > batches->per_epoch) {
        return pen_error(PEN_INVALID_INPUT,
                         "cannot start at batch %" PRIu64 " of an epoch: it has %" PRIu64,
                         options->start.index, batches->per_epoch);
    }
    batches->position = options->start;
    if (options->start.index == batches->per_epoch) {
        batches->position = (pen_batches_position){.epoch = options->start.epoch + 1};
    }
    if (options->shuffle) {
        batches->order = pen_memory_allocate(batches->example_count, sizeof *batches->order);
        if (batches->order == NULL) return pen_error_out_of_memory();
    }
    if (options->shuffle && options->balances) {
        PEN_TRY(pen_balance_create(batches->dataset, &batches->balance));
    }
    for (uint32_t i = 0; i < batches->buffer_count; i++) {
        PEN_TRY(batches_allocate_buffer(batches, &batches->buffers[i]));
    }
    PEN_TRY(batches_weigh_all(batches));
    pen_picture_hurry(batches->dataset, false);
    return pen_thread_create("penstock-data", batches_read_ahead, batches, &batches->thread);
}

// order_epoch is one that never comes, so that the order of the first epoch is made.
pen_status pen_batches_create(pen_dataset *dataset, const pen_batches_options *options,
                              pen_batches **out_batches) {
    pen_batches *batches = pen_memory_allocate(1, sizeof *batches);
    if (batches == NULL) return pen_error_out_of_memory();
    batches->dataset = dataset;
    batches->options = *options;
    if (options->held_count == 0) batches->options.held_count = 1;
    batches->buffer_count =
        options->buffer_count == 0 ? BATCHES_BUFFER_COUNT_DEFAULT : options->buffer_count;
    batches->order_epoch = UINT64_MAX;
    pen_mutex_init(&batches->lock);
    pen_condition_init(&batches->changed);
    const pen_status status = batches_start(batches);
    if (status != PEN_OK) {
        pen_batches_destroy(batches);
        return status;
    }
    *out_batches = batches;
    return PEN_OK;
}

// What was taken before something failed is given back, too.
void pen_batches_destroy(pen_batches *batches) {
    if (batches == NULL) return;
    batches_end(batches);
    for (uint32_t i = 0; i < PEN_BATCHES_AHEAD_LIMIT; i++) {
        batches_buffer *buffer = &batches->buffers[i];
        for (uint32_t k = 0; k < PEN_DATASET_INPUT_COUNT_LIMIT; k++) {
            pen_memory_free(buffer->inputs[k]);
        }
        for (uint32_t k = 0; k < PEN_DATASET_LABEL_COUNT_LIMIT; k++) {
            pen_memory_free(buffer->labels[k]);
            pen_memory_free(buffer->scales[k]);
        }
        pen_memory_free(buffer->indices);
    }
    pen_memory_free(batches->order);
    pen_balance_destroy(batches->balance);
    pen_status_ignore(batches->error, "nobody asked for the batch that could not be read");
    pen_condition_deinit(&batches->changed);
    pen_mutex_deinit(&batches->lock);
    pen_memory_free(batches);
}

uint64_t pen_batches_per_epoch(const pen_batches *batches) {
    return batches->per_epoch;
}
