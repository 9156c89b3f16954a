#include "scheduler/engine/diagnose_step.h"

#include <math.h>

#include "tests/support/check.h"

// A step of two microbatches of four nodes each, whose outputs are told by a table.
#define NODES 4u
#define PARTS 2u
#define NO_NODE UINT32_MAX

typedef struct told_run {
    uint32_t bad;   // node, or NO_NODE
    uint32_t other; // node whose bits are others, and those of all behind it; or NO_NODE
    double loss;
} told_run;

typedef struct told_step {
    told_run runs[PARTS][3];
    uint32_t run_count[PARTS];
} told_step;

static pen_status told_compute(void *context, uint32_t part, pen_node_inspection *nodes,
                               uint32_t *out_bad, double *out_loss) {
    told_step *step = context;
    CHECK(step->run_count[part] < 3, "at most three times");
    const told_run *run = &step->runs[part][step->run_count[part]++];
    *out_bad = run->bad;
    *out_loss = run->loss;
    for (uint32_t n = 0; n < NODES; n++) {
        nodes[n].was_run = true;
        nodes[n].hash = 17 * n + (run->other != NO_NODE && n >= run->other);
        nodes[n].is_bad = n == run->bad;
        if (n == run->bad) break;
    }
    return PEN_OK;
}

static pen_status told_describe(void *context, uint32_t part, uint32_t position, pen_arena *arena,
                                const char **out_text) {
    (void)context;
    (void)part;
    return pen_arena_format(arena, out_text, "node %u", position);
}

static pen_status explain(told_step *step, double first, double second) {
    const double losses[] = {first, second};
    const pen_diagnosed_step inspected = {.step = 5,
                                          .device = "device 'a'",
                                          .part_count = PARTS,
                                          .loss_count = PARTS,
                                          .losses = losses,
                                          .node_limit = NODES,
                                          .context = step,
                                          .run = told_compute,
                                          .describe_bad = told_describe,
                                          .describe_node = told_describe};
    return pen_diagnose_step(&inspected);
}

static const told_run good = {NO_NODE, NO_NODE, 1.5};

static void the_same_bits_are_the_numbers_fault(void **state) {
    (void)state;
    const told_run bad = {2, NO_NODE, 0};
    told_step step = {.runs = {{good}, {bad, bad}}};
    CHECK_ERROR(explain(&step, 1.5, NAN), PEN_NOT_FINITE,
                "step 5, microbatch 1 on device 'a': first in node 2. Computed again, the bits are "
                "the same");
    CHECK(step.run_count[0] == 1 && step.run_count[1] == 2, "no more than is needed");
}

static void other_bits_once_are_the_hardwares(void **state) {
    (void)state;
    told_step step = {.runs = {{good}, {good, good}}};
    CHECK_ERROR(explain(&step, 1.5, NAN), PEN_UNAVAILABLE,
                "step 5, microbatch 1: device 'a' gave a loss of nan the first time, and gives 1.5 "
                "twice since");
}

static pen_status told_find_odd(void *context, uint32_t part, pen_arena *arena,
                                const char **out_who, const char **out_what) {
    const told_step *step = context;
    CHECK(step->run_count[part] == 2, "after two runs");
    *out_what = "'x'";
    return pen_arena_format(arena, out_who, "device 'b' of worker %u", part);
}

static void who_sent_other_bits_is_named(void **state) {
    (void)state;
    const double losses[] = {1.5, NAN};
    told_step step = {.runs = {{good}, {good, good}}};
    const pen_diagnosed_step inspected = {.step = 5,
                                          .device = "this machine",
                                          .first = "device 'a' or 'b'",
                                          .part_count = PARTS,
                                          .loss_count = PARTS,
                                          .losses = losses,
                                          .node_limit = NODES,
                                          .context = &step,
                                          .run = told_compute,
                                          .describe_bad = told_describe,
                                          .describe_node = told_describe,
                                          .find_odd = told_find_odd};
    CHECK_ERROR(pen_diagnose_step(&inspected), PEN_UNAVAILABLE,
                "microbatch 1: device 'b' of worker 1 gave other bits of 'x' the first time than "
                "this machine twice since: the hardware of device 'b' of worker 1");
}

static void the_odd_one_of_three_is_told(void **state) {
    (void)state;
    const told_run other = {NO_NODE, 1, 1.25};
    told_step step = {.runs = {{good, other, good}}};
    CHECK_ERROR(explain(&step, NAN, 1.5), PEN_UNAVAILABLE,
                "first in node 1 (the second of three is the odd one)");
    step = (told_step){.runs = {{other, good, good}}};
    CHECK_ERROR(explain(&step, NAN, 1.5), PEN_UNAVAILABLE,
                "first in node 1 (the first of three is the odd one)");
    // bad in one of two only
    const told_run bad = {3, NO_NODE, 0};
    const told_run elsewhere = {2, 2, 0};
    step = (told_step){.runs = {{bad, elsewhere, bad}}};
    CHECK_ERROR(explain(&step, NAN, 1.5), PEN_UNAVAILABLE, "first in node 2");
}

static void a_bad_gradient_that_does_not_come_again_is_the_hardwares(void **state) {
    (void)state;
    told_step step = {.runs = {{good}, {good}}};
    CHECK_ERROR(explain(&step, 1.5, 1.5), PEN_UNAVAILABLE,
                "had numbers that were not finite, and has finite ones when all was computed");
}

PEN_TEST_MAIN(cmocka_unit_test(the_same_bits_are_the_numbers_fault),
              cmocka_unit_test(other_bits_once_are_the_hardwares),
              cmocka_unit_test(who_sent_other_bits_is_named),
              cmocka_unit_test(the_odd_one_of_three_is_told),
              cmocka_unit_test(a_bad_gradient_that_does_not_come_again_is_the_hardwares))
