#include "scheduler/data/token_mask.h"

#include <string.h>

#include "scheduler/data/dataset.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define SEQUENCE 20
#define DRAWN 100000

static pen_dataset *open_tokens(const pen_token_mask *mask) {
    uint8_t bytes[2 * SEQUENCE];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    const pen_dataset_options options = {.format = "tokens",
                                         .path = scratch_file("tokens.bin", bytes, sizeof bytes),
                                         .token_element = PEN_TOKEN_UINT8,
                                         .sequence = SEQUENCE,
                                         .mask = mask,
                                         .seed = 5};
    pen_dataset *dataset;
    CHECK_OK(pen_dataset_open(&options, &dataset));
    return dataset;
}

// By the description in token_mask.h, with tests/reference/counted.py. Whoever reads labels alone
// has the same; so has who reads again.
static void tokens_are_masked_as_described(void **state) {
    (void)state;
    static const int64_t inputs[20] = {20, 99, 22, 23, 99, 25, 99, 99, 99, 29,
                                       30, 31, 99, 99, 34, 99, 99, 99, 38, 99};
    static const int64_t labels[20] = {-100, 21,   -100, -100, 24,   -100, 26, 27, 28,   -100,
                                       -100, -100, 32,   33,   -100, 35,   36, 37, -100, 39};
    static const int64_t keep[2] = {25, 31};
    const pen_token_mask mask = {
        .token = 99, .vocabulary = 100, .probability = 0.5, .keep = keep, .keep_count = 2};
    pen_dataset *dataset = open_tokens(&mask);
    int64_t found[SEQUENCE], wanted[SEQUENCE], alone[SEQUENCE];
    const uint64_t example = 1;
    assert_int_equal(pen_dataset_get_info(dataset)->example_count, 2);
    CHECK_OK(
        pen_dataset_read_epoch(dataset, 2, &example, 1, (void *[]){found}, (void *[]){wanted}));
    assert_memory_equal(found, inputs, sizeof inputs);
    assert_memory_equal(wanted, labels, sizeof labels);
    CHECK_OK(pen_dataset_read(dataset, &example, 1, NULL, (void *[]){alone}));
    CHECK(memcmp(alone, labels, sizeof labels) != 0, "epoch 0 has the tokens of epoch 2");
    CHECK_OK(pen_dataset_read_epoch(dataset, 2, &example, 1, NULL, (void *[]){alone}));
    assert_memory_equal(alone, labels, sizeof labels);
    pen_dataset_close(dataset);
}

// 15 of 100 are chosen; of these 80 are masked, 10 stay, and 10 become any of 1,000.
static void shares_are_those_of_bert(void **state) {
    (void)state;
    static int64_t tokens[DRAWN], inputs[DRAWN], labels[DRAWN];
    const pen_token_mask mask = {.token = 1000, .vocabulary = 1001, .probability = 0.15};
    unsigned chosen = 0, masked = 0, same = 0;
    for (unsigned i = 0; i < DRAWN; i++) {
        tokens[i] = 7;
    }
    pen_token_mask_apply(&mask, &(pen_token_place){.seed = 1}, DRAWN, tokens, inputs, labels);
    for (unsigned i = 0; i < DRAWN; i++) {
        if (labels[i] == PEN_TOKEN_UNMASKED) {
            assert_int_equal(inputs[i], 7);
            continue;
        }
        assert_int_equal(labels[i], 7);
        chosen++;
        masked += inputs[i] == 1000;
        same += inputs[i] == 7;
    }
    CHECK(chosen > 14600 && chosen < 15400, "%u chosen", chosen);
    CHECK(masked * 100.0 / chosen > 78.5 && masked * 100.0 / chosen < 81.5, "%u masked", masked);
    CHECK(same * 100.0 / chosen > 9 && same * 100.0 / chosen < 11, "%u as before", same);
}

static void wrong_masks_are_refused(void **state) {
    (void)state;
    const pen_token_mask mask = {.token = 100, .vocabulary = 100, .probability = 0.5};
    const uint8_t bytes[4] = {0};
    const pen_dataset_options options = {.format = "tokens",
                                         .path = scratch_file("tokens.bin", bytes, sizeof bytes),
                                         .token_element = PEN_TOKEN_UINT8,
                                         .sequence = 4,
                                         .mask = &mask};
    pen_dataset *dataset;
    CHECK_ERROR(pen_dataset_open(&options, &dataset), PEN_INVALID_INPUT,
                "mask: found token 100, expected one below vocabulary, 100");
}

PEN_TEST_MAIN(cmocka_unit_test(tokens_are_masked_as_described),
              cmocka_unit_test(shares_are_those_of_bert), cmocka_unit_test(wrong_masks_are_refused))
