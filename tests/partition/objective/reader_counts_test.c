#include "partition/objective/reader_counts.h"

#include "tests/support/check.h"
#include "tests/support/dice.h"

#define CASE_COUNT 60
#define STEP_COUNT 2000
#define DEVICE_LIMIT 40
#define READER_LIMIT 24

// A problem with nothing but outputs and how many readers each has.
static pen_problem make_outputs(dice *d, pen_arena *arena) {
    pen_problem problem = {.output_count = (uint32_t)dice_between(d, 1, 6)};
    problem.given.device_count = (uint32_t)dice_between(d, 1, DEVICE_LIMIT);
    CHECK_OK(PEN_NEW(arena, problem.output_count + 1, &problem.readers.first));
    for (uint32_t o = 0; o < problem.output_count; o++) {
        problem.readers.first[o + 1] =
            problem.readers.first[o] + (uint32_t)dice_between(d, 1, READER_LIMIT);
    }
    return problem;
}

static void check_walk(const pen_reader_counts *counts, uint32_t output, const uint32_t *expected) {
    uint32_t cursor = 0, device, walked = 0, there = 0;
    bool is_met[DEVICE_LIMIT] = {false};
    while (pen_reader_counts_next(counts, output, &cursor, &device)) {
        assert_true(device < counts->device_count);
        assert_false(is_met[device]);
        assert_true(expected[device] > 0);
        is_met[device] = true;
        walked++;
    }
    for (uint32_t d = 0; d < counts->device_count; d++) {
        assert_int_equal(pen_reader_counts_get(counts, output, d), expected[d]);
        there += expected[d] > 0;
    }
    assert_int_equal(walked, there);
}

// Readers come and go; `cell_limit` chooses the table or the slots.
static void check_random_history(uint32_t cell_limit) {
    for (uint64_t seed = 1; seed <= CASE_COUNT; seed++) {
        dice d = {seed, 0};
        pen_arena *arena = check_arena();
        const pen_problem problem = make_outputs(&d, arena);
        pen_reader_counts counts;
        uint32_t expected[6][DEVICE_LIMIT] = {{0}}, total[6] = {0};
        CHECK_OK(pen_reader_counts_init(&counts, &problem, cell_limit, arena));
        assert_int_equal(counts.table != NULL, cell_limit > 0);
        for (int step = 0; step < STEP_COUNT; step++) {
            const uint32_t o = (uint32_t)dice_between(&d, 0, problem.output_count - 1);
            const uint32_t device = (uint32_t)dice_between(&d, 0, problem.given.device_count - 1);
            const uint32_t most = problem.readers.first[o + 1] - problem.readers.first[o];
            if (dice_between(&d, 0, 1) && total[o] < most) {
                assert_int_equal(pen_reader_counts_add(&counts, o, device), expected[o][device]++);
                total[o]++;
            } else if (expected[o][device] > 0) {
                assert_int_equal(pen_reader_counts_remove(&counts, o, device),
                                 --expected[o][device]);
                total[o]--;
            }
            if (step % 37 == 0) check_walk(&counts, o, expected[o]);
        }
        pen_reader_counts_clear(&counts);
        const uint32_t none[DEVICE_LIMIT] = {0};
        for (uint32_t o = 0; o < problem.output_count; o++)
            check_walk(&counts, o, none);
        pen_arena_destroy(arena);
    }
}

static void table_counts_right(void **state) {
    (void)state;
    check_random_history(PEN_READER_COUNTS_TABLE_LIMIT);
}

static void slots_count_right(void **state) {
    (void)state;
    check_random_history(0);
}

PEN_TEST_MAIN(cmocka_unit_test(table_counts_right), cmocka_unit_test(slots_count_right))
