// What is kept of a placement is found with that placement alone, however many share its place.
#include "partition/search/weighed.h"

#include "base/random.h"
#include "tests/support/check.h"

#define GROUPS 3
#define DEVICES 12

// The number that a placement is written as.
static double weighed_number(const uint32_t *device_of_group) {
    double number = 0.0;
    for (uint32_t g = 0; g < GROUPS; g++)
        number = number * DEVICES + device_of_group[g];
    return number;
}

static void placements_keep_their_values(void **state) {
    (void)state;
    for (uint64_t wanted = 1; wanted <= 4096; wanted *= 16) {
        pen_arena *arena = check_arena();
        pen_random_sequence random = pen_random_sequence_of(wanted);
        pen_weighed weighed;
        uint32_t known_count = 0;
        CHECK_OK(pen_weighed_init(&weighed, GROUPS, wanted, arena));
        for (uint32_t i = 0; i < 20000; i++) {
            uint32_t device_of_group[GROUPS];
            pen_weighed_value *value, *again;
            for (uint32_t g = 0; g < GROUPS; g++)
                device_of_group[g] = pen_random_next_below(&random, DEVICES);
            CHECK_OK(pen_weighed_find(&weighed, device_of_group, &value));
            if (value->is_known) {
                known_count++;
                assert_true(value->value == weighed_number(device_of_group));
            }
            assert_true(value->is_known || !value->is_formed);
            value->is_formed = true;
            value->is_known = true;
            value->value = weighed_number(device_of_group);
            CHECK_OK(pen_weighed_find(&weighed, device_of_group, &again));
            assert_true(again == value && again->is_known);
        }
        // of 1728 placements, each drawn about 12 times
        if (wanted == 4096) assert_true(known_count > 10000);
        pen_arena_destroy(arena);
    }
}

// A search over nothing has one placement.
static void no_group_is_a_placement(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const uint32_t nothing[1] = {0};
    pen_weighed weighed;
    pen_weighed_value *value;
    CHECK_OK(pen_weighed_init(&weighed, 0, 0, arena));
    CHECK_OK(pen_weighed_find(&weighed, nothing, &value));
    assert_false(value->is_known);
    value->is_known = true;
    CHECK_OK(pen_weighed_find(&weighed, nothing, &value));
    assert_true(value->is_known);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(placements_keep_their_values),
              cmocka_unit_test(no_group_is_a_placement))
