#include "base/random.h"

#include <math.h>

#include "tests/support/check.h"

// Random123's kat_vectors for philox4x32, 10 rounds: counter (four words), key (two), result.
static void blocks_are_those_of_philox(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], result[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t *c = cases[i].counter, *k = cases[i].key;
        const pen_random_key key = {.seed = (uint64_t)k[1] << 32 | k[0],
                                    .stream = (uint64_t)c[3] << 32 | c[2]};
        uint32_t found[4];
        pen_random_block(key, (uint64_t)c[1] << 32 | c[0], found);
        assert_memory_equal(found, cases[i].result, sizeof found);
    }
}

static void streams_differ_in_every_argument(void **state) {
    (void)state;
    uint64_t streams[2 * 20 * 20];
    uint32_t count = 0;
    for (uint64_t first = 0; first < 20; first++) {
        for (uint64_t second = 0; second < 20; second++) {
            streams[count++] = pen_random_stream("dropout", first, second);
            streams[count++] = pen_random_stream("shuffle", first, second);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            CHECK(streams[i] != streams[j], "streams %u and %u are the same", i, j);
        }
    }
    assert_true(pen_random_stream("a", 1, 2) == pen_random_stream("a", 1, 2));
}

#define DRAWS 200000

// Mean and variance of a function of the index, and how it hangs together with its neighbour.
static void check_moments(double (*draw)(uint64_t index), double mean, double variance) {
    double sum = 0, squares = 0, neighbours = 0, last = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double number = draw(i) - mean;
        sum += number;
        squares += number * number;
        neighbours += number * last;
        last = number;
    }
    const double tolerance = 5 / sqrt(DRAWS); // five standard errors
    CHECK(fabs(sum / DRAWS) < tolerance * sqrt(variance), "mean is off by %g", sum / DRAWS);
    CHECK(fabs(squares / DRAWS - variance) < 2 * tolerance * variance, "variance is %g",
          squares / DRAWS);
    CHECK(fabs(neighbours / DRAWS) < tolerance * variance, "neighbours: %g", neighbours / DRAWS);
}

static const pen_random_key test_key = {42, 43};

static double draw_uniform(uint64_t index) {
    const float number = pen_random_uniform(test_key, index);
    CHECK(number >= 0 && number < 1, "%g", (double)number);
    return (double)number;
}

static double draw_normal(uint64_t index) {
    const double number = pen_random_normal(test_key, index);
    CHECK(isfinite(number), "%g", number);
    return number;
}

static double draw_below(uint64_t index) {
    const uint64_t number = pen_random_below(test_key, index, 7);
    CHECK(number < 7, "%llu", (unsigned long long)number);
    return (double)number;
}

static void numbers_have_their_distributions(void **state) {
    (void)state;
    check_moments(draw_uniform, 0.5, 1.0 / 12);
    check_moments(draw_normal, 0, 1);
    check_moments(draw_below, 3, 4);
}

static void limits_are_kept(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(pen_random_below(test_key, i, 1) == 0);
        assert_true(pen_random_below(test_key, i, (1ull << 63) + 1) <= 1ull << 63);
    }
}

// The first numbers are fixed, since placements of a seed are; limits are kept, means are right.
static void sequences_are_fixed_and_even(void **state) {
    (void)state;
    pen_random_sequence one = {1}, some = pen_random_sequence_of(pen_random_stream("x", 1, 2));
    assert_int_equal(pen_random_next(&one), (uint32_t)((0x2000001u * 0x2545f4914f6cdd1du) >> 32));
    double sum = 0.0;
    for (int i = 0; i < 10000; i++) {
        const uint32_t number = pen_random_next_below(&some, 1000);
        assert_true(number < 1000);
        sum += number;
    }
    assert_true(sum / 10000 > 490.0 && sum / 10000 < 509.0);
    assert_int_equal(pen_random_sequence_of(0).state, 1);
}

PEN_TEST_MAIN(cmocka_unit_test(sequences_are_fixed_and_even),
              cmocka_unit_test(blocks_are_those_of_philox),
              cmocka_unit_test(streams_differ_in_every_argument),
              cmocka_unit_test(numbers_have_their_distributions), cmocka_unit_test(limits_are_kept))
