#include "scheduler/runtime/executor/finite.h"

#include <math.h>
#include <string.h>

#include "tests/support/check.h"

#define COUNT 203

static void every_element_counts(void **state) {
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN, -NAN};
    float numbers[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = (float)i - 100;
    }
    for (uint32_t count = 0; count <= COUNT; count++) {
        const double expected = count == 0 ? 0 : fmax(100, (double)count - 101);
        CHECK(pen_finite_magnitude(numbers, count * sizeof *numbers, PEN_FLOAT32) == expected,
              "of the first %u", count);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        for (uint32_t b = 0; b < 4; b++) {
            const float before = numbers[i];
            numbers[i] = bad[b];
            CHECK(isinf(pen_finite_magnitude(numbers, sizeof numbers, PEN_FLOAT32)), "at %u", i);
            const pen_finite_summary summary =
                pen_finite_summarize(numbers, sizeof numbers, PEN_FLOAT32);
            CHECK(summary.count == COUNT && summary.nan_count == (b > 1) &&
                      summary.infinite_count == (b < 2) && summary.minimum >= -100 &&
                      summary.maximum <= 102,
                  "at %u", i);
            numbers[i] = before;
        }
    }
    CHECK(pen_finite_magnitude(numbers, sizeof numbers, PEN_INT32) == 0, "integers are finite");
}

static void doubles_are_looked_at(void **state) {
    (void)state;
    double numbers[3] = {1, -1e300, 2};
    CHECK(pen_finite_magnitude(numbers, sizeof numbers, PEN_FLOAT64) == 1e300, "the largest");
    numbers[2] = NAN;
    CHECK(isinf(pen_finite_magnitude(numbers, sizeof numbers, PEN_FLOAT64)), "not a number");
}

static void every_bit_changes_the_hash(void **state) {
    (void)state;
    uint8_t bytes[67] = {1, 2, 3};
    const uint64_t hash = pen_finite_hash(bytes, sizeof bytes);
    for (uint32_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
        CHECK(pen_finite_hash(bytes, sizeof bytes) != hash, "bit %u", bit);
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
    }
    CHECK(pen_finite_hash(bytes, sizeof bytes) == hash, "the same again");
    CHECK(pen_finite_hash(bytes, sizeof bytes - 1) != hash, "the length counts");
}

PEN_TEST_MAIN(cmocka_unit_test(every_element_counts), cmocka_unit_test(doubles_are_looked_at),
              cmocka_unit_test(every_bit_changes_the_hash))
