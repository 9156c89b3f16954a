// Which gradients make which version: simulated for many seeds, and judged by the order alone. That
// the judge finds mistakes, make simulate-mistakes shows (tests/simulator/).

#include "tests/support/arrivals_judge.h"
#include "tests/support/check.h"

#define SEEDS 100000

static void no_gradient_is_too_old(void **state) {
    (void)state;
    arrivals_tally tally = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = arrivals_judge(seed, &tally);
        CHECK(wrong == NULL, "seed %llu: %s", (unsigned long long)seed, wrong);
    }
    // all of it happened
    CHECK(tally.short_steps > SEEDS / 10, "%llu short steps",
          (unsigned long long)tally.short_steps);
    CHECK(tally.free_steps > SEEDS, "%llu free steps", (unsigned long long)tally.free_steps);
    CHECK(tally.at_the_limit > SEEDS / 10, "%llu at the limit",
          (unsigned long long)tally.at_the_limit);
    CHECK(tally.alone > SEEDS / 2 && tally.together > SEEDS / 2,
          "%llu versions of one, %llu of more", (unsigned long long)tally.alone,
          (unsigned long long)tally.together);
}

static pen_arrivals_options options_of(uint32_t lanes, uint32_t staleness, uint64_t step) {
    return (pen_arrivals_options){
        .seed = 7, .step = step, .lanes = lanes, .count = lanes, .staleness = staleness};
}

// Without staleness a step is one version, as of synchronous training, and takes as long.
static void staleness_0_is_synchronous(void **state) {
    (void)state;
    pen_arrivals at = {0};
    uint32_t version[PEN_ARRIVALS_LANES], count;
    for (uint64_t step = 1; step <= 100; step++) {
        const pen_arrivals_options options = options_of(8, 0, step);
        assert_true(pen_arrivals_draw(&options, &at, version, &count));
        CHECK(count == 1 && at.version == step, "step %llu: %u versions", (unsigned long long)step,
              count);
    }
    CHECK(at.staleness == 0 && at.clock == at.synchronous, "%llu ticks, synchronous %llu",
          (unsigned long long)at.clock, (unsigned long long)at.synchronous);
}

// With much, every lane makes a version of its own; on average it is as old as there are others.
static void much_staleness_leaves_all_alone(void **state) {
    (void)state;
    pen_arrivals at = {0};
    uint32_t version[PEN_ARRIVALS_LANES], count;
    for (uint64_t step = 1; step <= 1000; step++) {
        const pen_arrivals_options options = options_of(8, 14, step);
        assert_true(pen_arrivals_draw(&options, &at, version, &count));
        CHECK(count == 8, "step %llu: %u versions", (unsigned long long)step, count);
    }
    CHECK(at.gradients == 8000 && at.staleness_worst <= 14, "%llu gradients, %llu versions behind",
          (unsigned long long)at.gradients, (unsigned long long)at.staleness_worst);
    const double mean = (double)at.staleness / 8000;
    CHECK(mean > 6.9 && mean <= 7, "%g versions behind", mean);
    CHECK(at.clock < at.synchronous, "%llu ticks, synchronous %llu", (unsigned long long)at.clock,
          (unsigned long long)at.synchronous);
}

// What a checkpoint keeps is all that the next step depends on.
static void goes_on_from_numbers(void **state) {
    (void)state;
    for (uint32_t stop = 0; stop < 20; stop++) {
        pen_arrivals whole = {0}, parts = {0};
        uint32_t expected[PEN_ARRIVALS_LANES], found[PEN_ARRIVALS_LANES], count, again;
        for (uint64_t step = 1; step <= 20; step++) {
            const pen_arrivals_options options = options_of(5, 3, step);
            int64_t words[6 + 2 * 5];
            if (step == stop) {
                pen_arrivals_write(&parts, 5, words);
                parts = (pen_arrivals){.clock = 99, .base = {4}};
                pen_arrivals_read(words, 5, &parts);
            }
            assert_true(pen_arrivals_draw(&options, &whole, expected, &count));
            assert_true(pen_arrivals_draw(&options, &parts, found, &again));
            assert_memory_equal(expected, found, sizeof expected);
            assert_int_equal(count, again);
        }
        assert_memory_equal(&whole, &parts, sizeof whole);
    }
}

// Numbers from a damaged file end in a refusal or in some order, never anywhere else.
static void damaged_numbers_do_no_harm(void **state) {
    (void)state;
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const pen_random_key key = {seed, pen_random_stream("damaged", 0, 0)};
        int64_t words[6 + 2 * PEN_ARRIVALS_LANES];
        for (uint32_t w = 0; w < sizeof words / sizeof *words; w++) {
            words[w] = (int64_t)pen_random_below(key, w, UINT64_MAX);
            if (seed % 2 == 0) words[w] %= 4;
        }
        pen_arrivals at;
        uint32_t version[PEN_ARRIVALS_LANES], count;
        const pen_arrivals_options options = options_of(PEN_ARRIVALS_LANES, 2, 5);
        pen_arrivals_read(words, PEN_ARRIVALS_LANES, &at);
        refused += !pen_arrivals_draw(&options, &at, version, &count);
        assert_true(count <= PEN_ARRIVALS_LANES);
    }
    CHECK(refused > 0 && refused < 2000, "%u refused", refused);
}

// ---- lanes that come as they come

static void an_order_has_each_lane_once(void **state) {
    (void)state;
    CHECK(pen_arrivals_order_is_whole(0x3120, 4), "four lanes");
    CHECK(pen_arrivals_order_is_whole(0, 1), "one");
    CHECK(!pen_arrivals_order_is_whole(0x3121, 4), "one twice");
    CHECK(!pen_arrivals_order_is_whole(0x4120, 4), "one of five");
    CHECK(!pen_arrivals_order_is_whole(0x13120, 4), "one too many");
    CHECK(!pen_arrivals_order_is_whole(1, 1), "not the first");
    CHECK(pen_arrivals_order_is_whole(0x0123456789abcdef, 16), "all");
    CHECK(pen_arrivals_order_of_one(3) == 0x210, "one after the other");
    CHECK(pen_arrivals_order_lane(0x3120, 1) == 2, "the second");
}

// Lane 2 comes first, with its last gradient; lane 1, of which nothing is told, with the rest.
static void a_lane_comes_with_its_last_gradient(void **state) {
    (void)state;
    pen_arrivals_tally tally = {0};
    for (uint32_t i = 0; i < 2; i++) {
        pen_arrivals_expect(&tally, 0);
        pen_arrivals_expect(&tally, 2);
    }
    pen_arrivals_tell(&tally, 0);
    pen_arrivals_tell(&tally, 2);
    CHECK(tally.count == 0, "not whole");
    pen_arrivals_tell(&tally, 2);
    CHECK(tally.count == 1 && pen_arrivals_order_lane(tally.order, 0) == 2, "lane 2");
    pen_arrivals_settle(&tally, 3);
    CHECK(tally.count == 2 && pen_arrivals_order_lane(tally.order, 1) == 1, "lane 1");
    pen_arrivals_tell(&tally, 0);
    CHECK(tally.count == 3 && tally.order == 0x012, "%llx", (unsigned long long)tally.order);
}

static void an_order_of_other_lanes_is_refused(void **state) {
    (void)state;
    pen_arrivals at = {0};
    uint32_t version[PEN_ARRIVALS_LANES], count;
    pen_arrivals_options options = options_of(4, 6, 1);
    options.is_free = true;
    options.order = 0x3321;
    CHECK(!pen_arrivals_draw(&options, &at, version, &count), "a lane twice");
    options.order = 0x0312;
    CHECK(pen_arrivals_draw(&options, &at, version, &count), "four lanes");
    CHECK(count == 4 && version[2] == 0 && version[1] == 1 && version[3] == 2 && version[0] == 3,
          "one version after the other");
    CHECK(at.clock == 0 && at.synchronous == 0, "nobody looked at a clock");
}

PEN_TEST_MAIN(cmocka_unit_test(an_order_has_each_lane_once),
              cmocka_unit_test(a_lane_comes_with_its_last_gradient),
              cmocka_unit_test(an_order_of_other_lanes_is_refused),
              cmocka_unit_test(no_gradient_is_too_old),
              cmocka_unit_test(staleness_0_is_synchronous),
              cmocka_unit_test(much_staleness_leaves_all_alone),
              cmocka_unit_test(goes_on_from_numbers), cmocka_unit_test(damaged_numbers_do_no_harm))
