#include "scheduler/runner/token_sampling.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/dice.h"

#define COUNT 5
#define DRAWS 20000

static const float scores[COUNT] = {0.5f, -1.0f, 2.0f, 2.0f, -INFINITY};

static void draw(const pen_token_sampling *sampling, double out_share[COUNT]) {
    pen_token_score scratch[COUNT];
    uint64_t hits[COUNT] = {0};
    for (uint64_t position = 0; position < DRAWS; position++) {
        pen_token_choice choice;
        CHECK_OK(pen_token_sample(sampling, scores, COUNT, position, scratch, &choice));
        assert_true(choice.token < COUNT && !choice.is_close);
        hits[choice.token]++;
    }
    for (int i = 0; i < COUNT; i++)
        out_share[i] = (double)hits[i] / DRAWS;
}

// Shares are those of the softmax, to five deviations.
static void draws_by_probability(void **state) {
    (void)state;
    static const double temperatures[] = {0.3, 1, 4};
    for (int t = 0; t < 3; t++) {
        double share[COUNT], expected[COUNT], total = 0;
        draw(&(pen_token_sampling){.temperature = temperatures[t], .seed = 3}, share);
        for (int i = 0; i < COUNT; i++)
            total += expected[i] = exp((double)scores[i] / temperatures[t]);
        for (int i = 0; i < COUNT; i++) {
            const double p = expected[i] / total;
            assert_true(fabs(share[i] - p) <= 5 * sqrt(p * (1 - p) / DRAWS));
        }
    }
}

static void top_k_leaves_out_the_rest(void **state) {
    (void)state;
    double share[COUNT];
    draw(&(pen_token_sampling){.temperature = 1, .top_k = 1}, share);
    assert_true(share[2] == 1); // of equal scores the first
    draw(&(pen_token_sampling){.temperature = 10, .top_k = 3}, share);
    assert_true(share[1] == 0 && share[4] == 0);
    assert_true(share[0] > 0.2 && share[2] > 0.2 && share[3] > 0.2);
}

static void zero_takes_the_highest(void **state) {
    (void)state;
    double share[COUNT];
    draw(&(pen_token_sampling){.temperature = 0}, share);
    assert_true(share[2] == 1);
}

static void seed_decides(void **state) {
    (void)state;
    pen_token_score scratch[COUNT];
    const pen_token_sampling first = {.temperature = 4, .seed = 1};
    const pen_token_sampling second = {.temperature = 4, .seed = 2};
    int differences = 0;
    for (uint64_t position = 0; position < 100; position++) {
        pen_token_choice a, again, b;
        CHECK_OK(pen_token_sample(&first, scores, COUNT, position, scratch, &a));
        CHECK_OK(pen_token_sample(&first, scores, COUNT, position, scratch, &again));
        CHECK_OK(pen_token_sample(&second, scores, COUNT, position, scratch, &b));
        assert_int_equal(a.token, again.token);
        differences += a.token != b.token;
    }
    assert_true(differences > 20);
}

static void refuses_what_is_no_number(void **state) {
    (void)state;
    pen_token_score scratch[3];
    pen_token_choice token;
    const pen_token_sampling sampling = {.temperature = 1};
    CHECK_ERROR(pen_token_sample(&sampling, (float[]){0, NAN, 0}, 3, 0, scratch, &token),
                PEN_NOT_FINITE, "score");
    CHECK_ERROR(pen_token_sample(&sampling, (float[]){0, INFINITY, 0}, 3, 0, scratch, &token),
                PEN_NOT_FINITE, "score");
    CHECK_ERROR(pen_token_sample(&sampling, (float[]){-INFINITY, -INFINITY}, 2, 0, scratch, &token),
                PEN_NOT_FINITE, "score");
}

// Whatever scores within the error would have given another token is told to be close, and of these
// scores most are not.
static void tells_what_hangs_on_little(void **state) {
    (void)state;
    enum { MANY = 40, CASES = 400, SHAKES = 20 };
    static const double temperatures[] = {0, 0.5, 1.5};
    pen_token_score scratch[MANY];
    dice d = {.seed = 7};
    int close = 0, moved = 0;
    for (uint64_t c = 0; c < CASES; c++) {
        float given[MANY], shaken[MANY];
        double largest = 0;
        for (int i = 0; i < MANY; i++) {
            given[i] = (float)dice_between(&d, -4000, 4000) / 1000;
            largest = fmax(largest, fabs((double)given[i]));
        }
        if (c % 4 == 0) given[c / 4 % MANY] = given[(c / 4 + 1) % MANY]; // a tie
        const pen_token_sampling sampling = {.temperature = temperatures[c % 3],
                                             .top_k = c % 2 == 0 ? 0 : 7,
                                             .seed = c,
                                             .error = 1e-3};
        pen_token_choice choice, other;
        CHECK_OK(pen_token_sample(&sampling, given, MANY, c, scratch, &choice));
        close += choice.is_close;
        for (int s = 0; s < SHAKES; s++) {
            for (int i = 0; i < MANY; i++)
                shaken[i] =
                    given[i] + (float)((double)dice_between(&d, -99, 99) / 100 * 1e-3 * largest);
            CHECK_OK(pen_token_sample(&sampling, shaken, MANY, c, scratch, &other));
            if (other.token == choice.token) continue;
            assert_true(choice.is_close);
            moved++;
        }
    }
    assert_true(moved > 0);
    assert_in_range(close, 1, CASES / 2);
}

PEN_TEST_MAIN(cmocka_unit_test(tells_what_hangs_on_little), cmocka_unit_test(draws_by_probability),
              cmocka_unit_test(top_k_leaves_out_the_rest), cmocka_unit_test(zero_takes_the_highest),
              cmocka_unit_test(seed_decides), cmocka_unit_test(refuses_what_is_no_number))
