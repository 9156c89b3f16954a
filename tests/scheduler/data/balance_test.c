#include "scheduler/data/balance.h"

#include "scheduler/data/batches.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define COUNT 100
#define IGNORED 9
#define DRAWN 30000

// Of 100 examples 10 are of class 7, 4 of class 3, one is of none, and the others of class 0.
static uint8_t class_of(uint64_t example) {
    if (example == 99) return IGNORED;
    if (example % 10 == 0) return 7;
    return example % 25 == 7 ? 3 : 0;
}

static pen_dataset *open_numbers(bool ignores) {
    uint8_t bytes[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    const pen_dataset_target target = {
        .has_classes = true, .ignores = ignores, .ignore_index = IGNORED};
    for (uint64_t i = 0; i < COUNT; i++) {
        bytes[8 + i] = class_of(i);
        if (!ignores && i == 99) bytes[8 + i] = 0;
    }
    const char *path = scratch_file("labels", bytes, sizeof bytes);
    const pen_dataset_options options = {.format = "idx",
                                         .path = path,
                                         .scale = 1,
                                         .labels = path,
                                         .targets = &target,
                                         .target_count = 1};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    return dataset;
}

// Each class a third of the time, and each example of a class as often as the others of it.
static void classes_are_equally_likely(void **state) {
    (void)state;
    static uint64_t order[DRAWN];
    unsigned of_class[8] = {0}, of_example[COUNT] = {0};
    pen_dataset *dataset = open_numbers(true);
    pen_balance *balance;
    CHECK_OK(pen_balance_create(dataset, &balance));
    pen_balance_draw(balance, 1, 0, DRAWN, order);
    for (unsigned i = 0; i < DRAWN; i++) {
        CHECK(order[i] < 99, "example %u", (unsigned)order[i]);
        of_class[class_of(order[i])]++;
        of_example[order[i]]++;
    }
    CHECK(of_class[0] + of_class[3] + of_class[7] == DRAWN, "another class");
    for (unsigned c = 0; c < 8; c++) {
        if (of_class[c] == 0) continue;
        CHECK(of_class[c] > 9600 && of_class[c] < 10400, "class %u: %u", c, of_class[c]);
    }
    CHECK(of_example[7] > 2250 && of_example[7] < 2750, "example 7: %u", of_example[7]);
    CHECK(of_example[10] > 850 && of_example[10] < 1150, "example 10: %u", of_example[10]);
    CHECK(of_example[1] > 70 && of_example[1] < 170, "example 1: %u", of_example[1]);
    pen_balance_destroy(balance);
    pen_dataset_close(dataset);
}

// By the description in balance.h, with tests/reference/counted.py.
static void the_order_is_as_described(void **state) {
    (void)state;
    static const uint64_t expected[12] = {0, 70, 51, 32, 32, 94, 26, 40, 51, 82, 95, 74};
    pen_dataset *dataset = open_numbers(false);
    const pen_batches_options options = {
        .batch_size = 12, .shuffle = true, .balances = true, .seed = 5, .start = {.epoch = 3}};
    pen_batches *batches;
    const pen_batch *batch;
    CHECK_OK(pen_batches_create(dataset, &options, &batches));
    CHECK_OK(pen_batches_next(batches, &batch));
    for (uint64_t i = 0; i < 12; i++) {
        CHECK(batch->indices[i] == expected[i], "place %u: example %u", (unsigned)i,
              (unsigned)batch->indices[i]);
        CHECK(((const int64_t *)batch->labels[0])[i] == class_of(expected[i]), "its label");
    }
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
}

PEN_TEST_MAIN(cmocka_unit_test(classes_are_equally_likely),
              cmocka_unit_test(the_order_is_as_described))
