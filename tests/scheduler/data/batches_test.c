#include "scheduler/data/batches.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "scheduler/data/dataset.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define COUNT 103

// Example i is the number i, as input and as label; example `bad` has the label 200.
static pen_dataset *numbers(int bad) {
    uint8_t bytes[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    for (int i = 0; i < COUNT; i++)
        bytes[8 + i] = (uint8_t)i;
    const char *path = scratch_file("inputs", bytes, sizeof bytes);
    if (bad >= 0) bytes[8 + bad] = 200;
    const pen_dataset_options options = {.format = "idx",
                                         .path = path,
                                         .scale = 1,
                                         .labels = scratch_file("labels", bytes, sizeof bytes)};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    if (bad >= 0) pen_status_ignore(pen_dataset_limit_classes(dataset, 0, COUNT), "it is bad");
    return dataset;
}

static void check_contents(const pen_batch *batch) {
    const float *inputs = batch->inputs[0];
    const int64_t *labels = batch->labels[0];
    for (uint64_t i = 0; i < batch->count; i++) {
        CHECK((uint64_t)labels[i] == batch->indices[i], "label %d", (int)labels[i]);
        CHECK(inputs[i] == (float)labels[i], "input %g", (double)inputs[i]);
    }
}

static void every_epoch_has_each_example_once(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(-1);
    for (uint64_t size = 1; size <= COUNT + 5; size += 17) {
        pen_batches *batches;
        const pen_batches_options options = {
            .batch_size = size, .shuffle = true, .seed = 5, .epoch_count = 2};
        CHECK_OK(pen_batches_create(dataset, &options, &batches));
        const uint64_t per_epoch = pen_batches_per_epoch(batches);
        assert_int_equal(per_epoch, (COUNT + size - 1) / size);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            unsigned seen[COUNT] = {0};
            for (uint64_t i = 0; i < per_epoch; i++) {
                const pen_batch *batch;
                CHECK_OK(pen_batches_next(batches, &batch));
                assert_non_null(batch);
                assert_int_equal(batch->position.epoch, epoch);
                assert_int_equal(batch->position.index, i);
                assert_int_equal(batch->count, i + 1 < per_epoch ? size : COUNT - i * size);
                check_contents(batch);
                for (uint64_t k = 0; k < batch->count; k++)
                    seen[batch->indices[k]]++;
            }
            for (int i = 0; i < COUNT; i++)
                assert_int_equal(seen[i], 1);
        }
        const pen_batch *batch;
        CHECK_OK(pen_batches_next(batches, &batch));
        assert_null(batch);
        CHECK_OK(pen_batches_next(batches, &batch));
        assert_null(batch);
        pen_batches_destroy(batches);
    }
    pen_dataset_close(dataset);
}

static void shuffling_depends_on_seed_and_epoch_alone(void **state) {
    (void)state;
    uint64_t first[COUNT], again[COUNT], other[COUNT];
    pen_batches_shuffle(1, 0, COUNT, first);
    pen_batches_shuffle(1, 0, COUNT, again);
    assert_memory_equal(first, again, sizeof first);
    pen_batches_shuffle(1, 1, COUNT, other);
    assert_memory_not_equal(first, other, sizeof first);
    pen_batches_shuffle(2, 0, COUNT, other);
    assert_memory_not_equal(first, other, sizeof first);
    // each of 24 orders of four comes up as often as the others: chi square of 23 degrees, p 1e-6
    unsigned histogram[256] = {0};
    for (uint64_t seed = 0; seed < 24000; seed++) {
        uint64_t order[4];
        pen_batches_shuffle(seed, 7, 4, order);
        histogram[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6]++;
    }
    double chi_square = 0;
    for (int i = 0; i < 256; i++) {
        const double difference = histogram[i] - 1000.0;
        if (histogram[i] > 0) chi_square += difference * difference / 1000;
    }
    CHECK(chi_square < 71, "chi square %g", chi_square);
}

static void a_position_is_all_that_resuming_needs(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(-1);
    pen_batches_options options = {.batch_size = 10, .shuffle = true, .seed = 3, .epoch_count = 3};
    uint64_t indices[33][10];
    pen_batches_position next[33];
    pen_batches *batches;
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    for (int i = 0; i < 33; i++) {
        const pen_batch *batch;
        CHECK_OK(pen_batches_next(batches, &batch));
        memcpy(indices[i], batch->indices, batch->count * sizeof(uint64_t));
        next[i] = batch->next;
    }
    pen_batches_destroy(batches);
    for (int i = 0; i < 33; i++) {
        options.start = next[i];
        CHECK_OK(pen_batches_create(dataset, &options, &batches));
        const pen_batch *batch;
        CHECK_OK(pen_batches_next(batches, &batch));
        if (i == 32) {
            assert_null(batch);
        } else {
            assert_memory_equal(batch->indices, indices[i + 1], batch->count * sizeof(uint64_t));
        }
        pen_batches_destroy(batches);
    }
    // the end of an epoch is the beginning of the next
    options.start = (pen_batches_position){0, 11};
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    const pen_batch *batch;
    CHECK_OK(pen_batches_next(batches, &batch));
    assert_int_equal(batch->position.epoch, 1);
    assert_int_equal(batch->position.index, 0);
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

static void file_order_and_dropping_the_last(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(-1);
    const pen_batches_options options = {.batch_size = 10, .drop_last = true, .epoch_count = 1};
    pen_batches *batches;
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    const pen_batch *batch;
    uint64_t expected = 0;
    for (;;) {
        CHECK_OK(pen_batches_next(batches, &batch));
        if (batch == NULL) break;
        assert_int_equal(batch->count, 10);
        for (int i = 0; i < 10; i++)
            assert_int_equal(batch->indices[i], expected++);
    }
    assert_int_equal(expected, 100);
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

static void errors_come_in_their_place(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(57);
    const pen_batches_options options = {.batch_size = 10};
    pen_batches *batches;
    const pen_batch *batch;
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    for (int i = 0; i < 5; i++)
        CHECK_OK(pen_batches_next(batches, &batch));
    check_contents(batch);
    CHECK_ERROR(pen_batches_next(batches, &batch), PEN_INVALID_INPUT,
                "labels': example 57 has the class 200");
    CHECK_ERROR(pen_batches_next(batches, &batch), PEN_CANCELLED, "stopped");
    pen_batches_destroy(batches);
    // an error that nobody asks for is dropped
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    CHECK_OK(pen_batches_next(batches, &batch));
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

static void stop_soon(void *context) {
    pen_clock_pause(1e-4);
    pen_batches_stop(context);
}

static void stops_at_any_moment(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(-1);
    for (int i = 0; i < 200; i++) {
        const pen_batches_options options = {
            .batch_size = 7, .shuffle = true, .buffer_count = 2 + (uint32_t)i % 3};
        pen_batches *batches;
        pen_thread *thread;
        const pen_batch *batch;
        CHECK_OK(pen_batches_create(dataset, &options, &batches));
        for (int k = 0; k < i % 5; k++)
            CHECK_OK(pen_batches_next(batches, &batch));
        if (i % 4 == 0) {
            CHECK_OK(pen_thread_create("stopper", stop_soon, batches, &thread));
            pen_status status;
            do {
                status = pen_batches_next(batches, &batch);
            } while (status == PEN_OK);
            CHECK_ERROR(status, PEN_CANCELLED, "stopped");
            pen_thread_join(thread);
        }
        pen_batches_destroy(batches);
    }
    pen_dataset_close(dataset);
}

static void reading_allocates_nothing(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(-1);
    const pen_batches_options options = {.batch_size = 9, .shuffle = true};
    pen_batches *batches;
    const pen_batch *batch;
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    const uint64_t calls = pen_memory_call_count();
    for (int i = 0; i < 100; i++)
        CHECK_OK(pen_batches_next(batches, &batch));
    assert_int_equal(pen_memory_call_count(), calls);
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

static void refuses_bad_options(void **state) {
    (void)state;
    pen_dataset *dataset = numbers(-1);
    pen_batches *batches;
    pen_batches_options options = {0};
    CHECK_ERROR(pen_batches_create(dataset, &options, &batches), PEN_INVALID_INPUT, "size is 0");
    options = (pen_batches_options){.batch_size = COUNT + 1, .drop_last = true};
    CHECK_ERROR(pen_batches_create(dataset, &options, &batches), PEN_INVALID_INPUT,
                "103 examples do not fill one batch of 104");
    options = (pen_batches_options){.batch_size = 10, .start = {0, 12}};
    CHECK_ERROR(pen_batches_create(dataset, &options, &batches), PEN_INVALID_INPUT, "it has 11");
    options = (pen_batches_options){.batch_size = 10, .buffer_count = 1};
    CHECK_ERROR(pen_batches_create(dataset, &options, &batches), PEN_INVALID_INPUT, "buffers");
    options = (pen_batches_options){.batch_size = UINT64_MAX};
    CHECK_ERROR(pen_batches_create(dataset, &options, &batches), PEN_OUT_OF_MEMORY, "");
    options = (pen_batches_options){.batch_size = 10, .shuffle = true, .epoch_count = 1};
    bool created = false;
    for (uint64_t call = 1; !created; call++) {
        pen_memory_fail_at(call, 0);
        const pen_status status = pen_batches_create(dataset, &options, &batches);
        pen_memory_fail_at(0, 0);
        created = status == PEN_OK;
        if (!created) CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        assert_true(!created || call > 8);
    }
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

PEN_TEST_MAIN(cmocka_unit_test(every_epoch_has_each_example_once),
              cmocka_unit_test(shuffling_depends_on_seed_and_epoch_alone),
              cmocka_unit_test(a_position_is_all_that_resuming_needs),
              cmocka_unit_test(file_order_and_dropping_the_last),
              cmocka_unit_test(errors_come_in_their_place), cmocka_unit_test(stops_at_any_moment),
              cmocka_unit_test(reading_allocates_nothing), cmocka_unit_test(refuses_bad_options))
