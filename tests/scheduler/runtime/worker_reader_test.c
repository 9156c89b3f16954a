#include "scheduler/runtime/worker/worker_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "scheduler/data/batches.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define COUNT 50
#define SIZE 7

static pen_mutex lock;
static pen_condition changed;
static uint32_t done_count;
static uint32_t order[COUNT]; // channels, as they were done
static char failure[512];

static void note_done(void *context, const pen_reading *reading) {
    (void)context;
    pen_mutex_lock(&lock);
    order[done_count++] = reading->channel;
    pen_condition_signal(&changed);
    pen_mutex_unlock(&lock);
}

static void note_failed(void *context, pen_status take_status) {
    (void)context;
    pen_mutex_lock(&lock);
    pen_status_format(take_status, failure, sizeof failure);
    pen_status_ignore(take_status, "it was looked at");
    pen_condition_signal(&changed);
    pen_mutex_unlock(&lock);
}

// Example i is the number i + first, as input and as label.
static const char *write_numbers(const char *name, uint8_t count, uint8_t first) {
    uint8_t bytes[8 + 255] = {0, 0, 8, 1, 0, 0, 0, count};
    for (int i = 0; i < count; i++)
        bytes[8 + i] = (uint8_t)(i + first);
    return scratch_file(name, bytes, 8u + count);
}

static pen_run_data describe(void) {
    pen_run_data data = {.options = {.format = "idx", .scale = 1}, .shuffle = true, .seed = 9};
    pen_dataset *dataset;
    data.options.path = write_numbers("inputs", COUNT, 0);
    data.options.labels = write_numbers("labels", COUNT, 0);
    CHECK_OK(pen_dataset_open(&data.options, &dataset));
    data.count = pen_dataset_get_info(dataset)->example_count;
    CHECK_OK(pen_dataset_fingerprint(dataset, &data.fingerprint));
    pen_dataset_close(dataset);
    return data;
}

static pen_status create(const pen_run_data *data, const char *folder, pen_worker_reader **reader) {
    const pen_worker_reader_options options = {.data = data,
                                               .folder = folder,
                                               .asked_limit = COUNT,
                                               .done = note_done,
                                               .failed = note_failed};
    done_count = 0;
    failure[0] = '\0';
    return pen_worker_reader_create(&options, reader);
}

static void await(uint32_t count) {
    pen_mutex_lock(&lock);
    while (done_count < count && failure[0] == '\0') {
        pen_condition_wait(&changed, &lock);
    }
    pen_mutex_unlock(&lock);
}

// As the loader makes batches of the same epochs.
static void reads_what_batches_have(void **state) {
    (void)state;
    const pen_run_data data = describe();
    pen_worker_reader *reader;
    pen_dataset *dataset;
    pen_batches *batches;
    const pen_batches_options options = {
        .batch_size = SIZE, .shuffle = true, .seed = 9, .epoch_count = 2};
    CHECK_OK(create(&data, NULL, &reader));
    CHECK_OK(pen_dataset_open(&data.options, &dataset));
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    for (uint32_t b = 0;; b++) {
        const pen_batch *batch;
        float inputs[SIZE];
        int64_t labels[SIZE];
        CHECK_OK(pen_batches_next(batches, &batch));
        if (batch == NULL) break;
        pen_reading reading = {.channel = 2 * b,
                               .field = 1,
                               .epoch = batch->position.epoch,
                               .first = batch->position.index * SIZE,
                               .count = batch->count,
                               .bytes = batch->count * sizeof *inputs,
                               .memory = inputs};
        pen_worker_reader_ask(reader, &reading);
        reading.channel += 1;
        reading.field = PEN_RUN_FIELD_LABELS;
        reading.bytes = batch->count * sizeof *labels;
        reading.memory = labels;
        pen_worker_reader_ask(reader, &reading);
        await(2 * b + 2);
        CHECK(failure[0] == '\0', "%s", failure);
        CHECK(order[2 * b] == 2 * b && order[2 * b + 1] == 2 * b + 1, "in another order");
        CHECK(memcmp(inputs, batch->inputs[0], batch->count * sizeof *inputs) == 0, "inputs");
        CHECK(memcmp(labels, batch->labels[0], batch->count * sizeof *labels) == 0, "labels");
    }
    CHECK(done_count == 2 * 2 * ((COUNT + SIZE - 1) / SIZE), "%u", done_count);
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
    pen_worker_reader_destroy(reader);
}

static void other_files_are_named(void **state) {
    (void)state;
    pen_run_data data = describe();
    pen_worker_reader *reader;
    const char *path = data.options.path;
    data.options.path = write_numbers("inputs_here", COUNT, 1);
    CHECK_ERROR(create(&data, NULL, &reader), PEN_INVALID_INPUT, "inputs_here' has other contents");
    data.options.path = write_numbers("few", COUNT - 1, 0);
    data.options.labels = write_numbers("few_labels", COUNT - 1, 0);
    CHECK_ERROR(create(&data, NULL, &reader), PEN_INVALID_INPUT,
                "few' has 49 examples, the coordinator's 50");
    data.options.path = "/nowhere/inputs";
    CHECK_ERROR(create(&data, "/", &reader), PEN_NOT_FOUND, "'/nowhere/inputs' is not there");
    data = describe();
    CHECK_ERROR(create(&data, "/proc", &reader), PEN_INVALID_INPUT, "is not in '/proc'");
    CHECK_ERROR(create(&data, "/nowhere", &reader), PEN_NOT_FOUND, "folder of data '/nowhere'");
    // a name that only begins like the folder's
    char folder[512];
    snprintf(folder, sizeof folder, "%s", path);
    folder[strlen(folder) - 1] = '\0';
    CHECK_ERROR(create(&data, folder, &reader), PEN_NOT_FOUND, "folder of data");
}

static void impossible_readings_fail(void **state) {
    (void)state;
    const pen_run_data data = describe();
    float inputs[SIZE];
    const pen_reading good = {.field = 1, .count = SIZE, .bytes = sizeof inputs, .memory = inputs};
    for (int wrong = 0; wrong < 5; wrong++) {
        pen_worker_reader *reader;
        pen_reading reading = good;
        if (wrong == 0) reading.first = COUNT - SIZE + 1;
        if (wrong == 1) reading.first = UINT64_MAX - 2;
        if (wrong == 2) reading.field = 2;
        if (wrong == 3) reading.field = PEN_RUN_FIELD_LABELS + 1;
        if (wrong == 4) reading.bytes += 4;
        CHECK_OK(create(&data, NULL, &reader));
        pen_worker_reader_ask(reader, &reading);
        await(1);
        CHECK(done_count == 0 && strstr(failure, "while reading data") != NULL, "%d: '%s'", wrong,
              failure);
        pen_worker_reader_ask(reader, &good); // of which nothing comes
        pen_worker_reader_destroy(reader);
        CHECK(done_count == 0, "it goes on");
    }
}

// What is read of labels alone is completed where it is needed.
static void a_batch_is_completed(void **state) {
    (void)state;
    const pen_run_data data = describe();
    const pen_batches_options options = {.batch_size = SIZE, .labels_only = true, .held_count = 1};
    pen_dataset *dataset;
    pen_batches *batches;
    const pen_batch *batch;
    CHECK_OK(pen_dataset_open(&data.options, &dataset));
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(pen_batches_next(batches, &batch));
        CHECK(batch->inputs[0] == NULL, "inputs were read");
        CHECK(((const int64_t *)batch->labels[0])[0] == i * SIZE, "labels");
    }
    CHECK_OK(pen_batches_complete(batches, batch));
    CHECK(((const float *)batch->inputs[0])[1] == 2 * SIZE + 1, "inputs");
    CHECK_ERROR(pen_batches_next(batches, &batch), PEN_CANCELLED, "stopped");
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

static int set_up(void **state) {
    (void)state;
    pen_mutex_init(&lock);
    pen_condition_init(&changed);
    return 0;
}

PEN_TEST_MAIN(cmocka_unit_test_setup(reads_what_batches_have, set_up),
              cmocka_unit_test_setup(other_files_are_named, set_up),
              cmocka_unit_test_setup(impossible_readings_fail, set_up),
              cmocka_unit_test_setup(a_batch_is_completed, set_up))
