#include "scheduler/job/learning_rate.h"

#include <math.h>
#include <stdio.h>

#include "scheduler/job/job.h"
#include "tests/support/check.h"

static void check_rates(const pen_learning_rate_options *options, uint64_t total,
                        const double *expected, uint64_t count) {
    CHECK_OK(pen_learning_rate_check(options));
    for (uint64_t i = 0; i < count; i++) {
        const double rate = pen_learning_rate_at(options, i, total);
        CHECK(fabs(rate - expected[i]) < 1e-15, "step %d has rate %.17g, expected %.17g", (int)i,
              rate, expected[i]);
    }
}

static pen_learning_rate_options one(pen_learning_rate_curve curve, uint64_t warmup) {
    return (pen_learning_rate_options){.warmup = warmup, .count = 1, .curves = {curve}};
}

// Expected values follow the formulas in the header, worked by hand.
static void follows_the_formulas(void **state) {
    (void)state;
    const pen_learning_rate_curve slow = {.base = 0.1}, fast = {.base = 0.4};
    const pen_learning_rate_options constant = one(slow, 0);
    check_rates(&constant, 3, (double[]){0.1, 0.1, 0.1, 0.1}, 4);
    const pen_learning_rate_options warm = one(fast, 4);
    check_rates(&warm, 6, (double[]){0.1, 0.2, 0.30000000000000004, 0.4, 0.4, 0.4}, 6);
    const pen_learning_rate_curve drops = {
        .kind = PEN_LEARNING_RATE_STEP, .base = 1, .every = 2, .factor = 0.5};
    const pen_learning_rate_options step = one(drops, 1);
    check_rates(&step, 0, (double[]){1, 1, 1, 0.5, 0.5, 0.25, 0.25}, 7);
    const pen_learning_rate_curve wave = {
        .kind = PEN_LEARNING_RATE_COSINE, .base = 1, .final = 0.2};
    const pen_learning_rate_options cosine = one(wave, 0);
    check_rates(&cosine, 4,
                (double[]){1, 0.6 + 0.4 * sqrt(0.5), 0.6, 0.6 - 0.4 * sqrt(0.5), 0.2, 0.2}, 6);
    const pen_learning_rate_curve line = {.kind = PEN_LEARNING_RATE_LINEAR, .base = 1};
    const pen_learning_rate_options linear = one(line, 2);
    check_rates(&linear, 6, (double[]){0.5, 1, 1, 0.75, 0.5, 0.25, 0, 0}, 8);
    // a run shorter than its warm-up does not divide by zero
    check_rates(&linear, 2, (double[]){0.5, 1, 1}, 3);
    // a chain longer than the run, and one that the run outlives
    pen_learning_rate_options chain = {.count = 2, .curves = {slow, line}};
    chain.curves[0].length = 2;
    check_rates(&chain, 1, (double[]){0.1, 0.1, 1, 1}, 4);
    chain.curves[1].length = 2;
    check_rates(&chain, 9, (double[]){0.1, 0.1, 1, 0.5, 0, 0}, 6);
}

static const pen_job *read_job(const char *lr, const char *rate, const char *warmup,
                               pen_arena *arena) {
    const char *text;
    const pen_job *job;
    CHECK_OK(pen_arena_format(arena, &text,
                              "version: 1\nmodel: {file: m.onnx}\n"
                              "data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}, "
                              "holdout: 0.1}\nevaluation: {every: 1 epoch}\n"
                              "train: {loss: l1, optimizer: {sgd: {lr: %s}}, batch: 8, "
                              "learning_rate: %s%s}\n",
                              lr, rate, warmup));
    CHECK_OK(pen_job_parse("job.yaml", text, strlen(text), arena, &job));
    return job;
}

// The rate of such a job, as its 4 steps an epoch give it.
static pen_learning_rate_options read_rate(const char *lr, const char *rate, const char *warmup) {
    pen_arena *arena = check_arena();
    pen_learning_rate_options options;
    const pen_job *job = read_job(lr, rate, warmup, arena);
    CHECK_OK(pen_job_get_learning_rate(job, 4, &options));
    pen_arena_destroy(arena);
    return options;
}

// tests/reference/schedules/make_schedule_references.py says what the lines have.
static void follows_pytorch(void **state) {
    (void)state;
    FILE *file = fopen("tests/reference/schedules/rates.txt", "r");
    CHECK(file != NULL, "no references");
    char line[2048];
    uint32_t count = 0;
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        char *rest;
        const uint64_t steps = strtoull(strtok_r(line, "\t", &rest), NULL, 10);
        const char *lr = strtok_r(NULL, "\t", &rest), *rate = strtok_r(NULL, "\t", &rest);
        const pen_learning_rate_options options = read_rate(lr, rate, "");
        for (uint64_t i = 0; i < steps; i++) {
            const double found = pen_learning_rate_at(&options, i, steps);
            const double expected = strtod(rest, &rest);
            CHECK(fabs(found - expected) < 1e-14, "%s: step %d has rate %.17g, expected %.17g",
                  rate, (int)i, found, expected);
        }
    }
    fclose(file);
    assert_int_equal(count, 10);
}

// ReduceLROnPlateau's, of the same lines.
static void falls_on_plateaus_as_pytorch(void **state) {
    (void)state;
    FILE *file = fopen("tests/reference/schedules/plateaus.txt", "r");
    CHECK(file != NULL, "no references");
    char line[4096];
    uint32_t count = 0;
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        char *rest;
        const bool is_larger_better = strcmp(strtok_r(line, "\t", &rest), "max") == 0;
        const char *rate = strtok_r(NULL, "\t", &rest);
        pen_arena *arena = check_arena();
        const pen_job *job = read_job("0.1", rate, "", arena);
        pen_plateau_state found = {0};
        for (char *end; *rest != '\n' && *rest != '\0'; rest = end) {
            const double value = strtod(rest, &rest), expected = strtod(rest, &end);
            pen_plateau_rate_add(&job->train.learning_rate.plateau, 0.1, is_larger_better, value,
                                 &found);
            CHECK(found.rate == expected, "%s: %.17g after %.17g, expected %.17g", rate, found.rate,
                  value, expected);
        }
        pen_arena_destroy(arena);
    }
    fclose(file);
    assert_int_equal(count, 4);
}

// A warm-up comes before a chain, and what follows has the steps that are left.
static void warms_up_before_a_chain(void **state) {
    (void)state;
    const pen_learning_rate_options options =
        read_rate("1", "{chained: [{schedule: constant, length: 1 epoch}, {schedule: polynomial}]}",
                  ", warmup: 2 steps");
    check_rates(&options, 10, (double[]){0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0}, 11);
}

static void refuses_bad_options(void **state) {
    (void)state;
    pen_learning_rate_options options = {.count = 1};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "learning rate is 0");
    pen_learning_rate_curve *curve = &options.curves[0];
    curve->base = NAN;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "positive");
    *curve = (pen_learning_rate_curve){.base = 1, .final = -1};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "final");
    *curve = (pen_learning_rate_curve){.base = 1, .kind = PEN_LEARNING_RATE_STEP, .factor = 1};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "every 0");
    curve->every = 1;
    curve->factor = 0;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "factor");
    curve->kind = PEN_LEARNING_RATE_POLYNOMIAL;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "power");
    curve->kind = PEN_LEARNING_RATE_ONE_CYCLE;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "div_factor");
    curve->cycle = (pen_learning_rate_cycle){
        .pct_start = 0.6, .div_factor = 1, .final_div_factor = 1, .three_phase = true};
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "pct_start is 0.6");
    curve->cycle.three_phase = false;
    CHECK_OK(pen_learning_rate_check(&options));
    curve->cycle.final_div_factor = INFINITY;
    CHECK_ERROR(pen_learning_rate_check(&options), PEN_INVALID_INPUT, "final_div_factor");
}

PEN_TEST_MAIN(cmocka_unit_test(follows_the_formulas), cmocka_unit_test(follows_pytorch),
              cmocka_unit_test(falls_on_plateaus_as_pytorch),
              cmocka_unit_test(warms_up_before_a_chain), cmocka_unit_test(refuses_bad_options))
